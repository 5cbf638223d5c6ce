"""Maximal marginal relevance with a bias for quality (RAGSys, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import check_number
from ..arrays import TIE_EPS, FloatArray
from ..candidates import Candidates
from ._greedy import Pool, Scores
from .base import Selection, make_selection, register_selector
from .compiled import loops_for_scores
from .lazy import Front, lazy_pays

# Below any cosine, and finite: infinities of both signs would cancel out.
NOTHING_PICKED = -4.0


@register_selector("mmr")
@dataclass(frozen=True)
class MMR:
    """Relevant, good, and unlike what has been picked (RAGSys, Algorithm 1).

    With v_i = λ_b·cos(q, e_i) + (1 − λ_b)·b_i (or cos(q, e_i) where there is no quality b), the first pick is
    argmax v; each further one is argmax of λ_d·v_i − (1 − λ_d)·max over the picked j of cos(e_i, e_j).
    Objective: the sum of these scores. Cost: one pass over the vectors a pick, O(nkd); of many candidates most are
    passed over, since a score can only fall, which changes no pick.

    Parameters
    ----------
    lambda_d : float in [0, 1]
        Weight of relevance; 1 is pure relevance, 0 pure novelty. LangChain's and LlamaIndex's ``lambda_mult``.
        Qdrant, OpenSearch and others count it from the other end, as diversity = 1 − ``lambda_d``.
    lambda_b : float in [0, 1]
        Weight of relevance against quality; without quality it has no effect.

    Raises
    ------
    InvalidParameterError
        A λ lies outside [0, 1].

    Examples
    --------
    >>> from shared_core import MMR, Candidates
    >>> c = Candidates([1.0, 0.4], [[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]])
    >>> MMR(lambda_d=0.5).select(c, 2).indices.tolist()
    [1, 2]
    """

    lambda_d: float = 0.75
    lambda_b: float = 0.95

    def __post_init__(self) -> None:
        check_number(self.lambda_d, "lambda_d (lambda_mult)", 0, 1)
        check_number(self.lambda_b, "lambda_b", 0, 1)

    def select(
        self,
        candidates: Candidates,
        k: int | None = None,
        *,
        budget: float | None = None,
        shown: Iterable[int] = (),
    ) -> Selection:
        """Choose greedily; ``shown`` candidates count as picked first.

        Raises
        ------
        InvalidParameterError, BudgetError
            ``k``, ``shown`` or ``budget`` does not fit the candidates.
        """
        pool = Pool(candidates, k, budget, shown)
        value = candidates.relevance
        tie = pool.tie
        if candidates.quality is not None:
            value = self.lambda_b * value + (1 - self.lambda_b) * candidates.quality
            tie += TIE_EPS * float(np.finfo(np.float64).eps * np.abs(value).max())
        weighted = pool.close(self.lambda_d * value)
        novelty = 1 - float(self.lambda_d)
        nearest: FloatArray | None = None
        similarities_to = candidates.cosines_by_row(novelty)
        for j in pool.shown:
            others = similarities_to(j)
            nearest = others if nearest is None else np.maximum(nearest, others)
        relevant = self.lambda_d * (1.0 if candidates.quality is None else self.lambda_b)
        loops = loops_for_scores(len(candidates), relevant, novelty, pool)
        if loops is not None:
            return _pick_compiled(loops, candidates, pool, value, weighted, nearest, novelty, tie)
        # With nothing picked or shown yet the paper has argmax v, whatever λ_d.
        scores = pool.close(value.copy()) if nearest is None else weighted - nearest
        gains: list[float] = []
        best, take = pool.best, pool.take
        lazy = lazy_pays(len(candidates), pool.target, relevant, novelty)
        while True:
            i = best(scores, tie)
            gains.append(float(weighted[i] if nearest is None else scores[i]))
            if not take(i, weighted):
                return make_selection(candidates, pool.picks, gains)
            others = similarities_to(i)
            nearest = others if nearest is None else np.maximum(nearest, others, out=nearest)
            if lazy:
                lazy = False
                if not _pick_lazily(Front(candidates, weighted, nearest, novelty, tie), pool, gains):
                    return make_selection(candidates, pool.picks, gains)
            np.subtract(weighted, nearest, out=scores)


def _pick_compiled(
    loops: Any, candidates: Candidates, pool: Pool,
    value: Scores, weighted: Scores, nearest: FloatArray | None, novelty: float, tie: float,
) -> Selection:  # fmt: skip
    picks, gains = np.empty(pool.target, np.int64), np.empty(pool.target)
    if nearest is None:
        first = pool.best(value, tie)
        picks[0], gains[0] = first, weighted[first]
        weighted[first] = -np.inf
    loops.pick_marginal(
        *candidates.rows_and_inverse(),
        weighted.astype(np.float64, copy=False),
        np.full(len(candidates), NOTHING_PICKED) if nearest is None else nearest.astype(np.float64),
        novelty, tie, picks, gains, int(nearest is None),
    )  # fmt: skip
    return make_selection(candidates, picks.tolist(), gains.tolist())


def _pick_lazily(front: Front, pool: Pool, gains: list[float]) -> bool:
    """Pick for as long as a front pays; whether more is to be picked after that."""
    while (found := front.best()) is not None:
        i, gain = found
        gains.append(gain)
        if not pool.take(i, front.weighted):
            return False
        front.add(i)
    return True
