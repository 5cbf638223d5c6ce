"""The NDPP kernels: one with a row for each known item, and one that is computed from the stored vectors."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..._parsing import is_text, parse_json
from ...candidates import Candidates
from ...errors import InvalidInputError, KernelError, quoted
from .base import LearnedKernel, Matrix


@dataclass(frozen=True, eq=False, repr=False)
class LowRankKernel(LearnedKernel):
    """An NDPP kernel with a row for each of M known items; candidates are looked up by their ids (NDPP paper, 4.3).

    Parameters
    ----------
    V : array-like, shape (M, K)
        Factor of the symmetric part V Vᵀ.
    B : array-like, shape (M, K'), optional
        Factor of the skew part B C Bᵀ. Without it the kernel is a symmetric DPP.
    C : array-like, shape (K', K'), optional
        Skew-symmetric: C = −Cᵀ.
    ids : iterable of M hashables, optional
        Names of the rows; 0..M-1 by default.
    W_R : array-like, shape (d, r), optional
        Linear map of the vectors for the learned relevance, see :meth:`log_relevance`. Needs a temperature.
    temperature : float > 0, optional
        Temperature of the learned relevance. Without it the kernel has none.

    Raises
    ------
    KernelError
        An array or the temperature is wrong, or an id occurs twice. In a selection: a candidate's id is unknown.

    Examples
    --------
    >>> from setselect import NDPP, Candidates, LowRankKernel
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
        self._set_checked()
        M = len(self._arrays()[0])
        ids = tuple(range(M) if self.ids is None else self.ids)
        if len(ids) != M:
            raise KernelError(f"ids must be {M}, one for each row of V, got {len(ids)}")
        rows = {name: row for row, name in enumerate(ids)}
        if len(rows) != len(ids):
            twice = next(name for row, name in enumerate(ids) if rows[name] != row)
            raise KernelError(f"ids: {quoted(twice)} occurs more than once")
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "_rows", rows)

    def factors(self, candidates: Candidates) -> tuple[Matrix, Matrix, Matrix]:
        """V (n, K), B (n, K') and C (K', K') of the candidates, whose rows are found by id."""
        V, B, C = self._arrays()
        rows: dict[Hashable, int] = self._rows  # type: ignore[attr-defined]
        if candidates.ids is None:
            if len(candidates) != len(V):
                raise KernelError(
                    f"{len(candidates)} candidates without ids, but the kernel has {len(V)} rows: "
                    "pass Candidates(..., ids=...)"
                )
            return V, B, C
        try:
            index = [rows[name] for name in candidates.ids]
        except KeyError as error:
            name = error.args[0]
            alike = next((other for other in rows if str(other) == str(name)), None)
            raise KernelError(
                f"the kernel does not know id {quoted(name)}; it was learned for {len(rows)} ids"
                + (". " if alike is None else f", one of which is {quoted(alike)}, of another type. ")
                + "A LinearKernel also serves items that came after training"
            ) from None
        return V[index], B[index], C

    def _metadata(self) -> dict[str, str]:
        ids = [name.item() if isinstance(name, np.integer) else name for name in self.ids or ()]
        for name in ids:
            if not _can_be_saved(name):
                raise KernelError(f"only ids that are strings or integers can be saved, not {quoted(name)}")
        return super()._metadata() | {"ids": json.dumps(ids)}

    @classmethod
    def _arguments(cls, metadata: dict[str, str]) -> dict[str, Any]:
        try:
            ids = parse_json(metadata["ids"])
        except (KeyError, InvalidInputError) as error:
            raise KernelError(f"the ids are missing or damaged ({error})") from None
        if not isinstance(ids, list) or not all(map(_can_be_saved, ids)):
            raise KernelError("the ids are damaged: they must be a list of strings and integers")
        return super()._arguments(metadata) | {"ids": ids}


def _can_be_saved(name: object) -> bool:
    return is_text(name) if isinstance(name, str) else isinstance(name, int) and not isinstance(name, bool)


@dataclass(frozen=True, eq=False, repr=False)
class LinearKernel(LearnedKernel):
    """An NDPP kernel computed from vectors, which also serves items that came after training.

    V = E W_V and B = E W_B, where the rows of E are the candidates' unit vectors.

    Parameters
    ----------
    W_V : array-like, shape (d, K)
        Linear map of the vectors to V.
    W_B : array-like, shape (d, K'), optional
        Linear map of the vectors to B. Needs ``C``.
    C : array-like, shape (K', K'), optional
        Skew-symmetric: C = −Cᵀ.
    W_R, temperature
        As in :class:`LowRankKernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from setselect import NDPP, Candidates, LinearKernel
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
        self._set_checked()
        W_V, W_R = self._arrays()[0], self.W_R
        if W_R is not None and len(np.asarray(W_R)) != len(W_V):
            raise KernelError(
                f"W_V {W_V.shape} and W_R {np.shape(W_R)} must have the same number of rows: both take the same vectors"
            )

    def factors(self, candidates: Candidates) -> tuple[Matrix, Matrix, Matrix]:
        """V = E W_V (n, K), B = E W_B (n, K') and C of the candidates."""
        W_V, W_B, C = self._arrays()
        if candidates.query.shape[0] != W_V.shape[0]:
            raise KernelError(
                f"the kernel takes vectors of length {W_V.shape[0]}, the candidates have "
                f"{candidates.query.shape[0]}; it was most likely learned on another embedding model"
            )
        E = candidates.vectors.astype(np.float64, copy=False)
        return E.dot(W_V), E.dot(W_B), C
