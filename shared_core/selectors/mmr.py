"""Maximal marginal relevance with a bias for quality (RAGSys, Algorithm 1)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import check_fields
from ..candidates import TIE_EPS, TIE_TOLERANCE, Candidates
from .greedy import GreedyState, lowest_of_best, run_compiled
from .registry import Capabilities, register_selector
from .selection import Selection, make_selection

Vector = NDArray[np.float64]


@register_selector("mmr")
@dataclass(frozen=True)
class MMR:
    """Candidates that are relevant, of high quality, and unlike earlier picks (RAGSys, Algorithm 1).

    q and e_i are the unit vectors of :class:`Candidates`, and v_i = λ_b·cos(q, e_i) + (1 − λ_b)·b_i, or cos(q, e_i)
    without a quality b. A given relevance takes the place of cos(q, e_i). The first pick is argmax v. Each further pick
    maximises w_i = λ_d·v_i − (1 − λ_d)·m_i, where m_i is the highest cosine of e_i with a picked candidate. A gain is
    λ_d·v_i for the first pick and w_i for the others. Objective: their sum. Cost: one pass over the vectors per pick,
    O(nkd). The compiled loop skips candidates that cannot be the next pick. With sub-questions, cos(q, e_i) is the
    highest cosine of e_i with one of them.

    Parameters
    ----------
    lambda_mult : float in [0, 1]
        The paper's λ_d, the weight of relevance; 1 is pure relevance, 0 pure novelty. The default is 0.5, as in
        LangChain and LlamaIndex; the paper uses 0.75. Qdrant, OpenSearch and others use the opposite convention,
        diversity = 1 − ``lambda_mult``.
    lambda_b : float in [0, 1]
        Weight of relevance against quality. It has no effect without quality.

    Examples
    --------
    >>> from setselect import MMR, Candidates
    >>> c = Candidates([1.0, 0.4], [[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]])
    >>> MMR(lambda_mult=0.5).select(c, 2).indices.tolist()
    [1, 2]
    """

    lambda_mult: float = 0.5
    lambda_b: float = 0.95

    capabilities: ClassVar[Capabilities] = Capabilities(constraints=True)

    def __post_init__(self) -> None:
        check_fields(self)

    def select(
        self, candidates: Candidates, k: int | None = None, *, budget: float | None = None, shown: Iterable[int] = ()
    ) -> Selection:
        """Select greedily; ``shown`` candidates count as picked first."""
        state = GreedyState(candidates, k, budget, shown)
        v, v_tie, tie = self._v(candidates)
        rows = candidates.vectors
        if not state.shown and not state.constraints:
            picks, of_picks = np.empty(state.target, np.int64), np.empty(state.target)
            if run_compiled("mmr", rows, v, self.lambda_mult, v_tie, tie, picks, of_picks) is not None:
                return make_selection(candidates, picks.tolist(), of_picks.tolist())
        gains: list[float] = []
        m = np.full(len(v), -np.inf)
        for j in state.shown:
            np.maximum(m, rows.dot(rows[j]), out=m)
        while state.more():
            # With nothing picked or shown the pick is argmax v, whatever λ_d is.
            is_first = not state.shown and not state.picks
            w = state.close(v.copy() if is_first else self.lambda_mult * v - (1 - self.lambda_mult) * m)
            i = lowest_of_best(w, v_tie if is_first else tie)
            gains.append(float(self.lambda_mult * w[i] if is_first else w[i]))
            state.take(i, w)
            np.maximum(m, rows.dot(rows[i]), out=m)
        return make_selection(candidates, state.picks, gains)

    def _v(self, candidates: Candidates) -> tuple[Vector, float, float]:
        """v_i, and the tie tolerances of v_i and of w_i."""
        v, tie = candidates.relevance.astype(np.float64), TIE_TOLERANCE[candidates.vectors.dtype]
        if candidates.quality is not None:
            v = self.lambda_b * v + (1 - self.lambda_b) * candidates.quality
        elif not candidates.relevance_given:
            return v, tie, tie
        rounding = TIE_EPS * sys.float_info.epsilon * float(np.abs(v).max())
        if candidates.relevance_given:
            # v_i contains no dot product. w_i contains the dot product m_i, with the weight 1 − λ_d.
            return v, rounding, rounding + (1 - self.lambda_mult) * tie
        return v, tie + rounding, tie + rounding
