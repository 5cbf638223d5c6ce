"""One choice for each of many queries."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import numeric
from .candidates import Candidates
from .errors import InvalidInputError, SetSelectError
from .selection import Selection, Selector, resolve_selector


@dataclass(frozen=True, eq=False)
class Selections:
    """The sets chosen for Q queries, read-only.

    Attributes
    ----------
    indices : int64, shape (Q, k)
    gains, relevance : float64, shape (Q, k)
    objective : float64, shape (Q,)
    filled_from : int64, shape (Q,)
        As in :class:`Selection`, with -1 for none.

    Examples
    --------
    >>> from shared_core import select_many
    >>> many = select_many([[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 3.0]], k=1)
    >>> many.indices.tolist(), len(many)
    ([[0], [1]], 2)
    """

    indices: NDArray[np.int64]
    gains: NDArray[np.float64]
    relevance: NDArray[np.float64]
    objective: NDArray[np.float64]
    filled_from: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, query: int) -> Selection:
        filled_from = int(self.filled_from[query])
        return Selection(
            self.indices[query],
            self.gains[query],
            self.relevance[query],
            float(self.objective[query]),
            None if filled_from < 0 else filled_from,
        )


def select_many(
    queries: ArrayLike,
    vectors: ArrayLike,
    k: int,
    selector: str | Selector = "vrsd",
    *,
    quality: ArrayLike | None = None,
    ids: Iterable[Hashable] | None = None,
    **parameters: Any,
) -> Selections:
    """Choose ``k`` for each query, from shared candidates or from each query's own.

    Parameters
    ----------
    queries : array-like, shape (Q, d), Q >= 1
    vectors : array-like, shape (n, d) shared by all queries, or (Q, n, d)
    k : int
        How many for each query, 1..n.
    selector, **parameters
        As in :func:`select`.
    quality : array-like, shape (n,), or (Q, n) for own candidates, optional
    ids : iterable of n hashables, optional
        Of shared candidates.

    Raises
    ------
    InvalidInputError, InvalidParameterError
        As :func:`select`; the message names the query.

    Examples
    --------
    >>> import numpy as np
    >>> from shared_core import select_many
    >>> rng = np.random.default_rng(0)
    >>> select_many(rng.normal(size=(5, 8)), rng.normal(size=(20, 8)), k=3, selector="mmr").indices.shape
    (5, 3)
    """
    chosen_by = resolve_selector(selector, parameters)
    q = numeric(queries, "queries")
    if q.ndim != 2 or not len(q):
        raise InvalidInputError(f"queries must have shape (Q, d) with Q >= 1, got {q.shape}")
    rows = numeric(vectors, "vectors")
    if rows.ndim == 3:
        if len(rows) != len(q):
            raise InvalidInputError(f"queries {q.shape} and vectors {rows.shape} must be as many")
        if ids is not None:
            raise InvalidInputError("ids go with shared candidates, vectors of shape (n, d)")
        columns = None if quality is None else numeric(quality, "quality")
        if columns is not None and columns.shape != rows.shape[:2]:
            raise InvalidInputError(f"quality must have shape {rows.shape[:2]}, got {columns.shape}")

        def candidates(i: int) -> Candidates:
            return Candidates.borrow(q[i], rows[i], quality=None if columns is None else columns[i])
    else:
        shared = None

        def candidates(i: int) -> Candidates:
            nonlocal shared
            if shared is None:
                shared = Candidates.borrow(q[i], rows, quality=quality, ids=ids)
                return shared
            return shared.with_query(q[i])

    return _collect([_one(chosen_by, candidates, i, k) for i in range(len(q))])


def _one(selector: Selector, candidates: Any, i: int, k: int) -> Selection:
    try:
        return selector.select(candidates(i), k)
    except SetSelectError as error:
        # In place, since a selector of one's own may raise an error that is made from other arguments.
        error.args = (f"query {i}: {error}",)
        raise


def _collect(selections: list[Selection]) -> Selections:
    def stack(name: str, dtype: Any) -> NDArray[Any]:
        array = np.array([getattr(s, name) for s in selections], dtype=dtype)
        array.setflags(write=False)
        return array

    filled = np.array([-1 if s.filled_from is None else s.filled_from for s in selections], dtype=np.int64)
    filled.setflags(write=False)
    return Selections(
        stack("indices", np.int64),
        stack("gains", np.float64),
        stack("relevance", np.float64),
        stack("objective", np.float64),
        filled,
    )
