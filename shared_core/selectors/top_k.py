"""Relevance order: what every vector store does, as the baseline and for the same interface."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..candidates import Candidates
from ._greedy import Pool
from .base import Selection, make_selection, register_selector


@register_selector("similarity")
@dataclass(frozen=True)
class TopK:
    """The k candidates of the highest cosine with the query. Objective: the sum of the cosines. Cost: O(nk).

    Examples
    --------
    >>> from shared_core import Candidates, TopK
    >>> TopK().select(Candidates([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]]), 1).indices.tolist()
    [1]
    """

    def select(
        self,
        candidates: Candidates,
        k: int | None = None,
        *,
        budget: float | None = None,
        shown: Iterable[int] = (),
    ) -> Selection:
        """Choose by relevance alone; ``shown`` candidates are left out.

        Raises
        ------
        InvalidParameterError, BudgetError
            ``k``, ``shown`` or ``budget`` does not fit the candidates.
        """
        pool = Pool(candidates, k, budget, shown)
        take_by_relevance(pool, candidates)
        return make_selection(candidates, pool.picks, candidates.relevance[pool.picks].tolist())


def take_by_relevance(pool: Pool, candidates: Candidates) -> None:
    """Fill the pool's remaining places in relevance order, ties to the lower index.

    >>> from shared_core import Candidates
    >>> c = Candidates([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]])
    >>> pool = Pool(c, 2, None, ())
    >>> take_by_relevance(pool, c)
    >>> pool.picks
    [1, 0]
    """
    scores = pool.close(candidates.relevance.astype(np.float64))
    while pool.more():
        pool.take(pool.best(scores), scores)
