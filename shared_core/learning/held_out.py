"""What a selector's picks are worth to queries that were not trained on."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..candidates import Candidates
from ..selectors.base import Selector
from .feedback.coverage import Feedback, score_all
from .neighbours import Neighbours


class HeldOut:
    """The feedback that selectors' picks get, query by query; no set is scored twice.

    Parameters
    ----------
    neighbours : Neighbours
        The pool.
    vectors : ndarray, shape (n, d)
    queries : sequence of m int
        Rows of the pool.
    feedback : Feedback
    k : int
        How many a selector picks.
    fetch_k : int
        From how many of the query's nearest, without itself and its duplicates.
    ids : sequence of n hashables, optional
        What a selector's kernel calls the rows; by default 0..n-1.

    Raises
    ------
    InvalidInputError
        A query's vector is zero, or the feedback gives something else than a finite number.

    Examples
    --------
    >>> from shared_core import TopK
    >>> items = [{"question": str(n), "answer": str(n)} for n in range(3)]
    >>> vectors = np.array([[1.0, 0.0], [1.0, 0.1], [1.0, 0.3]])
    >>> held_out = HeldOut(Neighbours(items, vectors), vectors, [0], lambda query, some: float(some[0]["answer"]), 1, 2)
    >>> held_out.values(TopK()).tolist()
    [1.0]
    """

    def __init__(
        self,
        neighbours: Neighbours,
        vectors: NDArray[np.floating],
        queries: Sequence[int],
        feedback: Feedback,
        k: int,
        fetch_k: int,
        ids: Sequence[Hashable] | None = None,
    ) -> None:
        self._items, self._feedback, self._k = neighbours.items, feedback, k
        self.queries = list(queries)
        self._vectors, self._ids = vectors, ids
        self._rows = neighbours.nearest(self.queries, fetch_k)
        self._known: dict[tuple[int, tuple[int, ...]], float] = {}

    def picks(self, selector: Selector) -> list[tuple[int, ...]]:
        """Rows of the pool that the selector picks for each query, the most similar last."""
        found = []
        for query, rows in zip(self.queries, self._rows, strict=True):
            ids = rows.tolist() if self._ids is None else [self._ids[row] for row in rows]
            # Made anew each time: kept, the candidates' vectors would fill the memory.
            candidates = Candidates(self._vectors[query], self._vectors[rows], ids=ids)
            chosen = selector.select(candidates, min(self._k, len(rows))).indices
            # The candidates stand nearest first.
            found.append(tuple(rows[np.sort(chosen)[::-1]].tolist()))
        return found

    def values(self, selector: Selector) -> NDArray[np.float64]:
        """The feedback for each query's picks, shape (m,)."""
        keys = list(zip(self.queries, self.picks(selector), strict=True))
        missing = [key for key in dict.fromkeys(keys) if key not in self._known]
        pairs = [(self._items[query], [self._items[row] for row in subset]) for query, subset in missing]
        where = [f"held-out item {query}, rows {subset}" for query, subset in missing]
        self._known.update(zip(missing, score_all(self._feedback, pairs, where), strict=True))
        return np.array([self._known[key] for key in keys])
