"""An NDPP kernel with one row for each known item."""

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
