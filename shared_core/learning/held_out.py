"""Held-out items: which items are not trained on, and the feedback that a selector's picks get for them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..candidates import Candidates
from ..errors import InvalidInputError
from ..selectors.base import Selector
from .feedback.coverage import Feedback, score_all
from .labels.labelling import LabelledSubset
from .neighbours import Neighbours


def split_labels(
    labels: Sequence[LabelledSubset], neighbours: Neighbours, share: float, seed: int
) -> tuple[list[LabelledSubset], list[int]]:
    """The labels to train on, and the rows of the held-out items; duplicates of an item stay together."""
    queries = sorted({entry.query for entry in labels})
    # A duplicate of a held-out item must not be trained on.
    groups = neighbours.groups(queries) if queries else []
    if len(groups) < 2:
        raise InvalidInputError(
            f"labels are of {len(queries)} items, {len(groups)} of them different; at least 2 different items are "
            "needed, one of them to be held out"
        )
    count = min(max(1, round(share * len(groups))), len(groups) - 1)
    drawn = np.random.default_rng([seed, 0]).permutation(len(groups))[:count]
    held_out = {query for place in drawn for query in groups[place]}
    return [entry for entry in labels if entry.query not in held_out], sorted(held_out)


class HeldOut:
    """The feedback for the picks of selectors, query by query; no set of picks is scored twice.

    ``vectors`` has shape (n, d), ``queries`` are rows of the pool. A selector picks k of the ``fetch_k`` items that are
    nearest to a query; its kernel knows the items by ``ids`` (default: 0..n-1).
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
            # The vectors are copied for one query at a time: those of all queries together would fill the memory.
            candidates = Candidates(self._vectors[query], self._vectors[rows], ids=ids)
            picks = selector.select(candidates, min(self._k, len(rows))).indices
            # The candidates are sorted, the nearest first, so the highest index is the least similar pick.
            found.append(tuple(rows[np.sort(picks)[::-1]].tolist()))
        return found

    def values(self, selector: Selector) -> NDArray[np.float64]:
        """The feedback for each query's picks, shape (m,)."""
        keys = list(zip(self.queries, self.picks(selector), strict=True))
        missing = [key for key in dict.fromkeys(keys) if key not in self._known]
        pairs = [(self._items[query], [self._items[row] for row in subset]) for query, subset in missing]
        where = [f"held-out item {query}, rows {subset}" for query, subset in missing]
        self._known.update(zip(missing, score_all(self._feedback, pairs, where), strict=True))
        return np.array([self._known[key] for key in keys])
