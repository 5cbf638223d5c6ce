"""What a comparison tries besides the settings if queries have sub-questions: two ways to merge one list for each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ..candidates import Candidates, cosines_with_queries
from ..selection.route import share_fetch_k
from ..selectors.registry import Selector, capabilities_of
from ..selectors.selection import Selection
from ..selectors.top_k import TopK
from .results import Setting
from .search import fuse_rankings
from .settings import as_adapted


@dataclass(frozen=True)
class RankFusion:
    """Reciprocal rank fusion: each query ranks the candidates that its search has found, of ``fetch_k`` for all."""

    fetch_k: int

    def select(
        self, candidates: Candidates, k: int | None = None, *, budget: float | None = None, shown: Iterable[int] = ()
    ) -> Selection:
        """The candidates of the highest sum."""
        length = share_fetch_k(self.fetch_k, k, len(candidates.questions))
        nearest = np.argsort(-cosines_with_queries(candidates), axis=1, kind="stable")[:, :length]
        sums = fuse_rankings(nearest.tolist())
        scores = [sums.get(row, 0.0) for row in range(len(candidates))]
        return TopK().select(candidates.with_query(candidates.query, scores), k, budget=budget, shown=shown)


def with_merged_lists(settings: list[tuple[Setting, Selector]], fetch_k: int) -> list[tuple[Setting, Selector]]:
    """The settings for queries with sub-questions, and two that merge lists.

    Plain similarity, and a setting that cannot select for several queries, get the question alone. Rank fusion comes
    last, because of equally good settings the first is recommended, and no retriever here fuses ranks.
    """
    (plain, top_k), *others = settings
    fusion = RankFusion(fetch_k)
    return [
        (plain, replace(as_adapted(top_k), by_question=True)),
        (Setting("highest cosine", "highest cosine", None, repr(TopK()), sub_questions=True), TopK()),
        *(
            (replace(setting, sub_questions=True), selector)
            if capabilities_of(selector).sub_questions
            else (setting, replace(as_adapted(selector), by_question=True))
            for setting, selector in others
        ),
        (Setting("rrf", "RRF over the queries", None, repr(fusion), sub_questions=True), fusion),
    ]
