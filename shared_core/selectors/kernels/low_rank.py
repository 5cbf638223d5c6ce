"""Low-rank kernels for :class:`NDPP`: L = V Vᵀ + B C Bᵀ with a skew-symmetric C (NDPP paper, 4.3)."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ...candidates import Candidates
from ...errors import KernelError
from ._factors import Matrix, checked, product
from .file_format import naming, read_kernel, write_kernel
from .relevance import KernelRelevance, checked_relevance


@runtime_checkable
class Kernel(Protocol):
    """What :class:`NDPP` asks of a kernel.

    One that has a method ``log_relevance(candidates)`` as well brings its own relevance: shape (n,), or None.
    """

    def factors(self, candidates: Candidates) -> tuple[Matrix, Matrix, Matrix]:
        """V (n, K), B (n, K') and C (K', K') of these candidates, float64; K' may be 0."""
        ...


@dataclass(frozen=True, eq=False)
class LowRankKernel(KernelRelevance):
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
    W_R : array-like, shape (d, r), optional
        The relevance that the kernel was learned with is that of vectors times W_R; without it, of the vectors.
    temperature : float > 0, optional
        Of that relevance, see :meth:`log_relevance`; without it the kernel brings none. W_R needs one.

    Raises
    ------
    KernelError
        Shapes do not agree, a value is NaN or inf, C is not skew-symmetric, an id stands twice, the temperature is
        not above 0, or W_R is without one. Later: a candidate's id is unknown (the message names it).

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
    W_R: ArrayLike | None = None
    temperature: float | None = None

    _kind: ClassVar[str] = "low-rank"
    _names: ClassVar[tuple[str, str, str]] = ("V", "B", "C")

    def __post_init__(self) -> None:
        v, b, c = checked(self._names, self.V, self.B, self.C)
        w_r, temperature = checked_relevance(self.W_R, self.temperature)
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
        fields = {"V": v, "B": b, "C": c, "ids": ids, "_rows": rows, "W_R": w_r, "temperature": temperature}
        for name, value in fields.items():
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
            name = error.args[0]
            alike = next((other for other in rows if str(other) == str(name)), None)
            raise KernelError(
                f"the kernel does not know id {name!r}; it was learned for {len(rows)} ids"
                + (". " if alike is None else f", {alike!r} among them, of another type. ")
                + "A LinearKernel also serves items that came after training"
            ) from None
        return v[index], b[index], c

    def dense(self) -> Matrix:
        """L of all M items, shape (M, M); for tests and small pools.

        >>> from shared_core import LowRankKernel
        >>> LowRankKernel([[1.0], [2.0]]).dense().tolist()
        [[1.0, 2.0], [2.0, 4.0]]
        """
        v, b, c = self._arrays()
        return product(v, b, c)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file; ids must be strings or integers.

        Raises
        ------
        KernelError
            An id is neither a string nor an integer.
        ImportError
            safetensors is missing (``pip install "setselect[kernel]"``).
        """
        ids = [name.item() if isinstance(name, np.integer) else name for name in self.ids or ()]
        for name in ids:
            if not _is_name(name):
                raise KernelError(f"only ids that are strings or integers can be saved, not {name!r}")
        parts = self._named() | self._relevance_arrays()
        write_kernel(path, self._kind, parts, {"ids": json.dumps(ids)}, self.temperature)

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
        arrays, extra, temperature = read_kernel(path, cls._kind, cls._names, ("W_R",))
        try:
            ids = json.loads(extra["ids"])
        except (KeyError, ValueError, RecursionError) as error:
            raise KernelError(f"{path}: the ids are missing or damaged ({error})") from None
        if not isinstance(ids, list) or not all(map(_is_name, ids)):
            raise KernelError(f"{path}: the ids are damaged: they must be a list of strings and integers")
        return naming(path, lambda: cls(**arrays, ids=ids, temperature=temperature))

    def __repr__(self) -> str:
        v, b, _ = self._arrays()
        return f"LowRankKernel(M={v.shape[0]}, K={v.shape[1]}, K'={b.shape[1]}{self._temperature_shown()})"

    def _arrays(self) -> tuple[Matrix, Matrix, Matrix]:
        return self.V, self.B, self.C  # type: ignore[return-value]

    def _named(self) -> dict[str, Matrix]:
        return dict(zip(self._names, self._arrays(), strict=True))


@dataclass(frozen=True, eq=False)
class LinearKernel(KernelRelevance):
    """A kernel computed from the stored vectors, so that items which came after training are served too.

    V = E W_V and B = E W_B, where E holds the candidates' unit vectors.

    Parameters
    ----------
    W_V : array-like, shape (d, K)
    W_B : array-like, shape (d, K'), optional
    C : array-like, shape (K', K'), optional
        Skew-symmetric: C = −Cᵀ.
    W_R : array-like, shape (d, r), optional
    temperature : float > 0, optional
        As of :class:`LowRankKernel`: the relevance that the kernel was learned with.

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
    W_R: ArrayLike | None = None
    temperature: float | None = None

    _kind: ClassVar[str] = "linear"
    _names: ClassVar[tuple[str, str, str]] = ("W_V", "W_B", "C")

    def __post_init__(self) -> None:
        w_v, w_b, c = checked(self._names, self.W_V, self.W_B, self.C)
        w_r, temperature = checked_relevance(self.W_R, self.temperature)
        if w_r is not None and len(w_r) != len(w_v):
            raise KernelError(f"W_V {w_v.shape} and W_R {w_r.shape} must have as many rows: both take the same vectors")
        for name, value in {"W_V": w_v, "W_B": w_b, "C": c, "W_R": w_r, "temperature": temperature}.items():
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
        return product(*self.factors(Candidates(np.ones(rows.shape[-1]), rows)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file.

        Raises
        ------
        ImportError
            safetensors is missing (``pip install "setselect[kernel]"``).
        """
        write_kernel(path, self._kind, self._named() | self._relevance_arrays(), {}, self.temperature)

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
        arrays, _, temperature = read_kernel(path, cls._kind, cls._names, ("W_R",))
        return naming(path, lambda: cls(**arrays, temperature=temperature))

    def __repr__(self) -> str:
        w_v, w_b, _ = self._arrays()
        return f"LinearKernel(d={w_v.shape[0]}, K={w_v.shape[1]}, K'={w_b.shape[1]}{self._temperature_shown()})"

    def _arrays(self) -> tuple[Matrix, Matrix, Matrix]:
        return self.W_V, self.W_B, self.C  # type: ignore[return-value]

    def _named(self) -> dict[str, Matrix]:
        return dict(zip(self._names, self._arrays(), strict=True))


def _is_name(name: object) -> bool:
    return isinstance(name, (str, int)) and not isinstance(name, bool)
