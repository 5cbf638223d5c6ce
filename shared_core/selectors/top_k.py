"""Selection by relevance alone, as every vector store does it: the baseline, with the interface of the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..candidates import Candidates
from .greedy import GreedyState, lowest_of_best
from .registry import Capabilities, register_selector
from .selection import Selection, make_selection


@register_selector("similarity")
@dataclass(frozen=True)
class TopK:
    """The k candidates of the highest relevance. Objective: the sum of their relevance. Cost: O(nk).

    With sub-questions, the relevance of a candidate is its highest cosine with one of them.

    Examples
    --------
    >>> from setselect import Candidates, TopK
    >>> TopK().select(Candidates([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]]), 1).indices.tolist()
    [1]
    """

    capabilities: ClassVar[Capabilities] = Capabilities(quality=False, constraints=True)

    def select(
        self, candidates: Candidates, k: int | None = None, *, budget: float | None = None, shown: Iterable[int] = ()
    ) -> Selection:
        """Select by relevance; ``shown`` candidates are left out."""
        state = GreedyState(candidates, k, budget, shown)
        take_by_relevance(state, candidates)
        return make_selection(candidates, state.picks, candidates.relevance[state.picks].tolist())


def take_by_relevance(state: GreedyState, candidates: Candidates) -> None:
    """Pick in order of relevance until no more picks are wanted or possible."""
    scores = state.close(candidates.relevance.astype(np.float64))
    # Given numbers have no rounding error of a dot product, so only equal ones are a tie.
    tie = 0.0 if candidates.relevance_given else state.tie
    while state.more():
        state.take(lowest_of_best(scores, tie), scores)
