"""Low-rank kernels for :class:`NDPP`: L = V Vᵀ + B C Bᵀ with a skew-symmetric C (NDPP paper, 4.3)."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .candidates import Candidates
from .errors import KernelError
from .kernel_file import naming, read_kernel, write_kernel

Matrix = NDArray[np.float64]


@runtime_checkable
class Kernel(Protocol):
    """What :class:`NDPP` asks of a kernel."""

    def factors(self, candidates: Candidates) -> tuple[Matrix, Matrix, Matrix]:
        """V (n, K), B (n, K') and C (K', K') of these candidates, float64; K' may be 0."""
        ...


@dataclass(frozen=True, eq=False)
class LowRankKernel:
    """A kernel with a row for each of M known items; candidates are looked up by their ids.

    Parameters
    ----------
    V : array-like, shape (M, K)
        Factor of the symmetric part V Vᵀ.
    B : array-like, shape (M, K'), optional
        Factor of the skew part B C Bᵀ; without it the kernel is a symmetric DPP.
    C : array-like, shape (K', K'), optional
        Skew-symmetric: C = −Cᵀ.
    ids : iterable of M hashables, optional
        What the rows are called; by default 0..M-1.

    Raises
    ------
    KernelError
        Shapes do not agree, a value is NaN or inf, C is not skew-symmetric, or an id stands twice. Later: a
        candidate's id is unknown (the message names it).

    Examples
    --------
    >>> from shared_core import NDPP, Candidates, LowRankKernel
    >>> kernel = LowRankKernel([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], ids=["a", "b", "c"])
    >>> c = Candidates([1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]], ids=["c", "a"])
    >>> NDPP(kernel).select(c, 1).indices.tolist()
    [0]
    """

    V: ArrayLike
    B: ArrayLike | None = None
    C: ArrayLike | None = None
    ids: Iterable[Hashable] | None = None

    _kind: ClassVar[str] = "low-rank"
    _names: ClassVar[tuple[str, str, str]] = ("V", "B", "C")

    def __post_init__(self) -> None:
        v, b, c = _checked(self._names, self.V, self.B, self.C)
        ids = tuple(range(len(v))) if self.ids is None else tuple(self.ids)
        if len(ids) != len(v):
            raise KernelError(f"ids must be {len(v)}, one for each row of V, got {len(ids)}")
        try:
            rows = {name: row for row, name in enumerate(ids)}
        except TypeError as error:
            raise KernelError(f"ids must be hashable: {error}") from None
        if len(rows) != len(ids):
            twice = next(name for row, name in enumerate(ids) if rows[name] != row)
            raise KernelError(f"ids: {twice!r} stands more than once")
        for name, value in {"V": v, "B": b, "C": c, "ids": ids, "_rows": rows}.items():
            object.__setattr__(self, name, value)

    def factors(self, candidates: Candidates) -> tuple[Matrix, Matrix, Matrix]:
        """V (n, K), B (n, K') and C (K', K') of the candidates.

        Raises
        ------
        KernelError
            An id is not in the kernel, or the candidates have no ids and are not as many as the kernel's rows.
        """
        v, b, c = self._arrays()
        rows: dict[Hashable, int] = self._rows  # type: ignore[attr-defined]
        if candidates.ids is None:
            if len(candidates) != len(v):
                raise KernelError(
                    f"{len(candidates)} candidates without ids, but the kernel has {len(v)} rows: "
                    "pass Candidates(..., ids=...)"
                )
            return v, b, c
        try:
            index = [rows[name] for name in candidates.ids]
        except KeyError as error:
            raise KernelError(
                f"the kernel does not know id {error.args[0]!r}; it was learned for {len(rows)} ids. "
                "A LinearKernel also serves items that came after training"
            ) from None
        return v[index], b[index], c

    def dense(self) -> Matrix:
        """L of all M items, shape (M, M); for tests and small pools.

        >>> from shared_core import LowRankKernel
        >>> LowRankKernel([[1.0], [2.0]]).dense().tolist()
        [[1.0, 2.0], [2.0, 4.0]]
        """
        v, b, c = self._arrays()
        return _dense(v, b, c)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file; ids must be strings or integers.

        Raises
        ------
        KernelError
            An id is neither a string nor an integer.
        ImportError
            safetensors is missing (``pip install "setselect[kernel]"``).
        """
        ids = list(self.ids or ())
        for name in ids:
            if isinstance(name, bool) or not isinstance(name, (str, int)):
                raise KernelError(f"only ids that are strings or integers can be saved, not {name!r}")
        write_kernel(path, self._kind, dict(zip(self._names, self._arrays(), strict=True)), {"ids": json.dumps(ids)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file written by :meth:`save`.

        Raises
        ------
        KernelError
            The file is truncated or no kernel, of another kind or a later format, or its arrays do not fit.
        FileNotFoundError
            There is no such file.
        """
        arrays, extra = read_kernel(path, cls._kind, cls._names)
        try:
            ids = json.loads(extra["ids"])
        except (KeyError, ValueError) as error:
            raise KernelError(f"{path}: the ids are missing or damaged ({error})") from None
        v, b, c = arrays
        return naming(path, lambda: cls(v, b, c, ids=ids))

    def __repr__(self) -> str:
        v, b, _ = self._arrays()
        return f"LowRankKernel(M={v.shape[0]}, K={v.shape[1]}, K'={b.shape[1]})"

    def _arrays(self) -> tuple[Matrix, Matrix, Matrix]:
        return self.V, self.B, self.C  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class LinearKernel:
    """A kernel computed from the stored vectors, so that items which came after training are served too.

    V = E W_V and B = E W_B, where E holds the candidates' unit vectors.

    Parameters
    ----------
    W_V : array-like, shape (d, K)
    W_B : array-like, shape (d, K'), optional
    C : array-like, shape (K', K'), optional
        Skew-symmetric: C = −Cᵀ.

    Raises
    ------
    KernelError
        As :class:`LowRankKernel`; later, when the candidates' dimension is not d.

    Examples
    --------
    >>> import numpy as np
    >>> from shared_core import NDPP, Candidates, LinearKernel
    >>> c = Candidates([1.0, 0.4], [[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]])
    >>> a, b = NDPP(LinearKernel(np.eye(2))).select(c, 2), NDPP().select(c, 2)
    >>> a.indices.tolist() == b.indices.tolist()
    True
    """

    W_V: ArrayLike
    W_B: ArrayLike | None = None
    C: ArrayLike | None = None

    _kind: ClassVar[str] = "linear"
    _names: ClassVar[tuple[str, str, str]] = ("W_V", "W_B", "C")

    def __post_init__(self) -> None:
        for name, value in zip(self._names, _checked(self._names, self.W_V, self.W_B, self.C), strict=True):
            object.__setattr__(self, name, value)

    def factors(self, candidates: Candidates) -> tuple[Matrix, Matrix, Matrix]:
        """V = E W_V (n, K), B = E W_B (n, K') and C of the candidates.

        Raises
        ------
        KernelError
            The candidates' vectors are of another dimension than the kernel's.
        """
        w_v, w_b, c = self._arrays()
        if candidates.query.shape[0] != w_v.shape[0]:
            raise KernelError(
                f"the kernel takes vectors of length {w_v.shape[0]}, the candidates have "
                f"{candidates.query.shape[0]}; it was most likely learned on another embedding model"
            )
        rows = candidates.vectors.astype(np.float64, copy=False)
        return rows.dot(w_v), rows.dot(w_b), c

    def dense(self, vectors: ArrayLike) -> Matrix:
        """L of these vectors, which are scaled to unit length first, shape (n, n); for tests.

        >>> import numpy as np
        >>> from shared_core import LinearKernel
        >>> LinearKernel(np.eye(2)).dense([[2.0, 0.0], [0.0, 1.0]]).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        rows = np.asarray(vectors)
        return _dense(*self.factors(Candidates(np.ones(rows.shape[-1]), rows)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file.

        Raises
        ------
        ImportError
            safetensors is missing (``pip install "setselect[kernel]"``).
        """
        write_kernel(path, self._kind, dict(zip(self._names, self._arrays(), strict=True)), {})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file written by :meth:`save`.

        Raises
        ------
        KernelError
            The file is truncated or no kernel, of another kind or a later format, or its arrays do not fit.
        FileNotFoundError
            There is no such file.
        """
        arrays, _ = read_kernel(path, cls._kind, cls._names)
        return naming(path, lambda: cls(*arrays))

    def __repr__(self) -> str:
        w_v, w_b, _ = self._arrays()
        return f"LinearKernel(d={w_v.shape[0]}, K={w_v.shape[1]}, K'={w_b.shape[1]})"

    def _arrays(self) -> tuple[Matrix, Matrix, Matrix]:
        return self.W_V, self.W_B, self.C  # type: ignore[return-value]


def _checked(
    names: tuple[str, str, str], v: ArrayLike, b: ArrayLike | None, c: ArrayLike | None
) -> tuple[Matrix, Matrix, Matrix]:
    if (b is None) != (c is None):
        raise KernelError(f"{names[1]} and C belong together: give both or neither")
    first = _matrix(v, names[0])
    if 0 in first.shape:
        raise KernelError(f"{names[0]} must have at least one row and one column, got shape {first.shape}")
    second = np.zeros((len(first), 0)) if b is None else _matrix(b, names[1])
    skew = np.zeros((0, 0)) if c is None else _matrix(c, "C")
    if len(second) != len(first):
        raise KernelError(f"{names[0]} {first.shape} and {names[1]} {second.shape} must have as many rows")
    if skew.shape != (second.shape[1],) * 2:
        raise KernelError(f"C has shape {skew.shape}, but {names[1]} {second.shape} asks for {(second.shape[1],) * 2}")
    if skew.size:
        off = np.abs(skew + skew.T).max()
        if off > 1e-6 * max(np.abs(skew).max(), 1e-300):
            raise KernelError(f"C must be skew-symmetric (C = -C.T), but C + C.T reaches {off:.3g}")
    for array in (first, second, skew):
        array.setflags(write=False)
    return first, second, skew


def _matrix(values: ArrayLike, name: str) -> Matrix:
    if isinstance(values, np.ma.MaskedArray):
        raise KernelError(f"{name} is a masked array: fill or drop its masked values first")
    try:
        matrix = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise KernelError(f"{name} cannot be made into a matrix: {error}") from None
    if matrix.ndim != 2:
        raise KernelError(f"{name} must have two dimensions, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise KernelError(
            f"{name} holds NaN or inf, first in row {np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0]}"
        )
    return matrix


def _dense(v: Matrix, b: Matrix, c: Matrix) -> Matrix:
    dense: Matrix = v @ v.T + b @ c @ b.T
    return dense
