"""Vector retrieval with similarity and diversity (VRSD, Algorithm 1), and its refinement by exchange."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, check_range
from ..candidates import TIE_TOLERANCE, Candidates
from ..errors import InvalidParameterError
from .greedy import GreedyState, lowest_of_best
from .registry import Capabilities, check_usable, register_selector
from .selection import Selection, make_selection

MIN_IMPROVEMENT = 1e-9
# A short s + v has a cosine with a large rounding error. The tie tolerance grows with that error, up to this factor.
MAX_TIE = 64.0

Vector = NDArray[np.float64]


@register_selector("vrsd")
@dataclass(frozen=True)
class VRSD:
    """The set whose sum vector points at the query (VRSD paper, section 3.2, Algorithm 1). It has no parameter to tune.

    The first pick is the candidate of the highest cosine. Each further pick is the candidate v that maximises
    cos(s + v, q), where s is the sum of the unit vectors picked so far. Objective: cos(s, q). Finding the best set is
    NP-hard (section 3.1); benchmarks/results/papers/vrsd_optimum.md compares it with the greedy and the refined set.
    Cost: one pass over the vectors per pick, O(nkd). It refuses sub-questions.

    Parameters
    ----------
    refine : bool
        After the greedy pass, replace one pick by one candidate, the best exchange first, while the objective rises
        by more than 1e-9. The first pick stays (Definition 2 keeps it fixed), unless candidates are already
        ``shown``. The objective never falls below the greedy one. Memory: O(nk). It cannot be combined with
        ``budget``, ``max_per_source`` or ``drop_near_duplicates``.

    Examples
    --------
    >>> from setselect import VRSD, Candidates
    >>> c = Candidates([1.0, 1.0], [[1.0, 0.1], [1.0, 0.0], [0.1, 1.0]])
    >>> VRSD().select(c, 2).indices.tolist()
    [0, 2]
    """

    refine: bool = False

    capabilities: ClassVar[Capabilities] = Capabilities(
        relevance=False, quality=False, sub_questions=False, constraints=True
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "refine", check_range("refine", self.refine))

    def select(
        self, candidates: Candidates, k: int | None = None, *, budget: float | None = None, shown: Iterable[int] = ()
    ) -> Selection:
        """Select greedily, then refine if ``refine`` is set; the sum starts from the ``shown`` candidates."""
        state = GreedyState(candidates, k, budget, shown)
        check_usable(self, candidates)
        if self.refine and state.constraints:
            raise InvalidParameterError(
                "refine=True exchanges picks and keeps to no budget, max_per_source or drop_near_duplicates: leave out "
                "one or the other"
            )
        s = _Sum(candidates, state.shown)
        before = s.cosine()
        cosines = _greedy(s, state)
        if self.refine and _refine(s, state):
            s = _Sum(candidates, state.shown)
            cosines = []
            for i in state.picks:
                s.add(i)
                cosines.append(s.cosine())
        gains = [after - before for before, after in itertools.pairwise([before, *cosines])]
        return make_selection(candidates, state.picks, gains)


class _Sum:
    """The sum s of the unit vectors of the shown and the picked candidates, in float64."""

    def __init__(self, candidates: Candidates, shown: Iterable[int]) -> None:
        self.rows = candidates.vectors  # each v
        self.q = candidates.query.astype(np.float64)
        self.q /= math.sqrt(self.q.dot(self.q))
        self.relevance = candidates.relevance.astype(np.float64)  # v·q
        self.tie = TIE_TOLERANCE[candidates.dtype]
        self.s = np.zeros(len(self.q))
        self.squares = np.vecdot(self.rows, self.rows).astype(np.float64)  # ‖v‖²: 1, or 0 for a zero row
        for i in shown:
            self.add(i)

    def add(self, i: int) -> None:
        """Add candidate ``i``."""
        self.s += self.rows[i]

    def cosine(self) -> float:
        """cos(s, q); 0 if the vectors in s cancel out."""
        square = self.s.dot(self.s)
        return float(self.s.dot(self.q)) / math.sqrt(square) if square > self.tie else 0.0

    def cosine_with_each(self) -> tuple[Vector, Vector]:
        """cos(s + v, q) for each candidate v, and ‖s + v‖²."""
        # ‖s + v‖² = ‖s‖² + 2 s·v + ‖v‖²: one pass over the vectors, and no (n, d) temporary.
        t_squared = self.s.dot(self.s) + 2.0 * self._dots() + self.squares
        return self._cosines(self.s.dot(self.q) + self.relevance, t_squared), t_squared

    def cosine_without_each(self, picks: list[int], dots_with_picks: FloatArray) -> Vector:
        """(picks, n): cos(s - p + v, q) for each pick p and candidate v."""
        dots = self._dots()
        t_squared = (self.s.dot(self.s) - 2.0 * dots[picks] + self.squares[picks])[:, None]
        t_squared = t_squared + 2.0 * (dots - dots_with_picks) + self.squares
        along = (self.s.dot(self.q) - self.relevance[picks])[:, None] + self.relevance
        return self._cosines(along, t_squared)

    def tie_at(self, length: float) -> float:
        """The tie tolerance for cosines of sums whose squared length is ``length``."""
        # The rounding error of s·v grows with ‖s‖. The cosine divides it by ‖s + v‖, so a short s + v enlarges it.
        noise = float(self.s.dot(self.s)) / max(length, self.tie)
        return self.tie * min(max(noise, 1.0), MAX_TIE)

    def _dots(self) -> FloatArray:
        dots: FloatArray = self.rows.dot(self.s.astype(self.rows.dtype))
        return dots

    def _cosines(self, along: Vector, t_squared: Vector) -> Vector:
        """along / √t_squared; 0 where the vectors cancel out, because only rounding errors are left of their sum."""
        cancelled = t_squared <= self.tie * (1.0 + self.s.dot(self.s))
        cosines: Vector = along / np.sqrt(np.where(cancelled, 1.0, t_squared))
        cosines[cancelled] = 0.0
        return cosines


def _greedy(s: _Sum, state: GreedyState) -> list[float]:
    """Algorithm 1; returns the cosine of the sum after each pick.

    The first pick is the paper's d_0: while s = 0, cos(s + v, q) is the cosine of v and q.
    """
    cosines = []
    while state.more():
        scores, t_squared = s.cosine_with_each()  # cos(t, q) and ‖t‖² of t = s + v, for each v
        state.close(scores)  # -inf for each v that is not in R
        p = lowest_of_best(scores, s.tie_at(t_squared[scores.argmax()]))
        cosines.append(float(scores[p]))
        state.take(p, scores)
        s.add(p)
    return cosines


def _refine(s: _Sum, state: GreedyState) -> bool:
    """Exchange picks in place while the objective rises; returns whether there was an exchange."""
    fixed = 0 if state.shown else 1
    if len(state.picks) <= fixed:
        return False
    best, changed = s.cosine(), False
    dots_with_picks = s.rows[state.picks[fixed:]].dot(s.rows.T)  # p·v
    while True:
        scores = s.cosine_without_each(state.picks[fixed:], dots_with_picks)
        scores[:, state.picks + state.shown] = -np.inf
        margin = float(scores.max()) - best - MIN_IMPROVEMENT
        if margin <= 0:
            return changed
        position, newcomer = divmod(lowest_of_best(scores.ravel(), min(s.tie, margin / 2)), len(s.rows))
        s.s += s.rows[newcomer].astype(np.float64) - s.rows[state.picks[fixed + position]]
        # Dot products in float32 are too coarse to confirm an improvement of 1e-9; the float64 sum decides.
        if s.cosine() <= best + MIN_IMPROVEMENT:
            return changed
        best, changed = s.cosine(), True
        state.picks[fixed + position] = newcomer
        dots_with_picks[position] = s.rows.dot(s.rows[newcomer])
