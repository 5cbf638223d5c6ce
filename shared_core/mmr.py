"""Maximal marginal relevance with a bias for quality (RAGSys, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .candidates import Candidates
from .checks import number
from .pool import TIE_EPS, Pool
from .selection import Selection, make_selection, register_selector


@register_selector("mmr")
@dataclass(frozen=True)
class MMR:
    """Relevant, good, and unlike what has been picked (RAGSys, Algorithm 1).

    With v_i = λ_b·cos(q, e_i) + (1 − λ_b)·b_i (or cos(q, e_i) where there is no quality b), the first pick is
    argmax v; each further one is argmax of λ_d·v_i − (1 − λ_d)·max over the picked j of cos(e_i, e_j).
    Objective: the sum of these scores. Cost: one pass over the vectors a pick, O(nkd).

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
        number(self.lambda_d, "lambda_d (lambda_mult)", 0, 1)
        number(self.lambda_b, "lambda_b", 0, 1)

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
        value = self._value(candidates)
        tie = pool.tie
        if candidates.quality is not None:
            tie += TIE_EPS * float(np.finfo(np.float64).eps * np.abs(value).max())
        weighted = pool.close(self.lambda_d * value)
        novelty = 1 - self.lambda_d
        nearest: NDArray[np.floating] | None = None
        for j in pool.shown:
            nearest = _nearer(nearest, candidates.cosines_with(j, novelty))
        gains = []
        while pool.more():
            if nearest is None:
                i = pool.best(pool.close(value), tie)
                gains.append(float(weighted[i]))
            else:
                scores = weighted - nearest
                i = pool.best(scores, tie)
                gains.append(float(scores[i]))
            pool.take(i, weighted)
            if pool.more():
                nearest = _nearer(nearest, candidates.cosines_with(i, novelty))
        return make_selection(candidates, pool.picks, gains)

    def _value(self, candidates: Candidates) -> NDArray[np.float64]:
        relevance = candidates.relevance.astype(np.float64)
        if candidates.quality is None:
            return relevance
        value: NDArray[np.float64] = self.lambda_b * relevance + (1 - self.lambda_b) * candidates.quality
        return value


def _nearer(nearest: NDArray[np.floating] | None, others: NDArray[np.floating]) -> NDArray[np.floating]:
    return others if nearest is None else np.maximum(nearest, others, out=nearest)
