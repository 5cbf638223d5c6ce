"""Vectors retrieval with similarity and diversity (VRSD, Algorithm 1), and its refinement by exchange."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .arrays import FloatArray
from .candidates import Candidates
from .errors import InvalidParameterError
from .pool import Pool, lowest
from .selection import Selection, make_selection, register_selector

_MIN_IMPROVEMENT = 1e-9
_WIDEST_TIE = 64.0
_ROOT_HALF = 0.5**0.5

Vector = NDArray[np.float64]


@register_selector("vrsd")
@dataclass(frozen=True)
class VRSD:
    """The set whose sum vector points at the query; nothing to tune (VRSD, section 3.2, Algorithm 1).

    First the candidate of the highest cosine, then at each step the one that maximises cos(s + v, q), where s is
    the sum of the unit vectors picked so far. Objective: cos(sum, query). The exact optimum is NP-complete
    (section 3.1); measured on small cases the greedy set is optimal in 57–98 % and the refined one in 89–99 %.
    Cost: one pass over the vectors a pick, O(nkd); refined 1.5–3 times that, and O(nk) memory.

    Parameters
    ----------
    refine : bool
        After the greedy pass exchange one pick for one candidate, the best exchange first, until none improves
        the objective by more than 1e-9. The first pick stays (Definition 2 holds it fixed), unless candidates
        are already ``shown``; the objective never falls below the greedy one.

    Examples
    --------
    >>> from shared_core import VRSD, Candidates
    >>> c = Candidates([1.0, 1.0], [[1.0, 0.1], [1.0, 0.0], [0.1, 1.0]])
    >>> VRSD().select(c, 2).indices.tolist()
    [0, 2]
    """

    refine: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.refine, (bool, np.bool_)):
            raise InvalidParameterError(f"refine must be True or False, got {self.refine!r}")

    def select(
        self,
        candidates: Candidates,
        k: int | None = None,
        *,
        budget: float | None = None,
        shown: Iterable[int] = (),
    ) -> Selection:
        """Choose greedily, then refine if so set; the sum starts from the ``shown`` candidates.

        Raises
        ------
        InvalidParameterError, BudgetError
            ``k``, ``shown`` or ``budget`` does not fit the candidates.
        """
        pool = Pool(candidates, k, budget, shown)
        total = _Sum(candidates, pool)
        before = total.cosine()
        rows: list[FloatArray] | None = [] if self.refine else None
        gains = total.pick(pool, before, rows)
        if self.refine and len(pool.picks) > (not pool.shown):
            gains = _exchange(candidates, pool, total, np.array(rows, np.float64), before) or gains
        return make_selection(candidates, pool.picks, gains)


class _Sum:
    """The sum vector s of what is picked, known by s·q, ‖s‖² and s·v for every candidate v.

    With ‖v‖ = 1, cos(s + v, q) = (v·q + s·q) / √(‖s‖² + 1 + 2 s·v); half of what is under the root and √½ of what is
    over it save a product. Numbers that are added to a column are arrays without an axis: numpy would make them.
    """

    def __init__(self, candidates: Candidates, pool: Pool) -> None:
        self.cosines_with = candidates.cosines_by_row()
        self.relevance = candidates.relevance.astype(np.float64)
        n = len(self.relevance)
        # √½ v·q of what is open, and s·v less ½ where v is the zero row, whose ‖v‖² is 0.
        self.open = self.relevance * _ROOT_HALF
        self.with_each = np.zeros(n)
        self.zero_rows: list[int] = []
        # Only what is orthogonal to the query can be a zero row.
        if np.count_nonzero(self.relevance) < n:
            orthogonal = (self.relevance == 0).nonzero()[0]
            self.zero_rows = orthogonal[~candidates.unit_rows(orthogonal).any(axis=1)].tolist()
            self.with_each[self.zero_rows] = -0.5
        self.scores, self.halves = np.empty(n), np.empty(n)
        self.over, self.under = np.array(0.0), np.array(0.5)
        self.tie = pool.tie
        self.with_query = self.square = self.peak = 0.0
        for i in pool.shown:
            self.add(i)
        pool.close(self.open)

    def add(self, i: int) -> FloatArray:
        """Add candidate ``i`` to s; its cosine with each candidate, which that took."""
        row = self.cosines_with(i)
        self.square = max(0.0, 2 * self.with_each.item(i) + self.square + 1)
        self.peak = max(self.peak, self.square)
        self.with_query += self.relevance.item(i)
        self.with_each += row
        return row

    def cosine(self) -> float:
        return self.with_query / self.square**0.5 if self.square > self.tie else 0.0

    def pick(self, pool: Pool, before: float, rows: list[FloatArray] | None) -> list[float]:
        """Pick until there are enough, always the candidate v of the highest cos(s + v, q), of equals the first.

        The gains, s having had the cosine ``before``. ``rows`` takes what :meth:`add` gives for each pick; without
        it the last one is not added to s. All in one place, since at n = 100 calls of one's own cost a quarter.
        """
        own, scores, halves, with_each = self.open, self.scores, self.halves, self.with_each
        over, under, tie = self.over, self.under, self.tie
        add, sqrt, divide, take, cosines_with = np.add, np.sqrt, np.divide, pool.take, self.cosines_with
        with_query_of, with_each_of, score_of = self.relevance.item, with_each.item, scores.item
        with_query, square, peak = self.with_query, self.square, self.peak
        gains: list[float] = []
        while True:
            if peak:
                over[()] = with_query * _ROOT_HALF
                under[()] = square / 2 + 0.5
                add(own, over, scores)
                add(with_each, under, halves)
                # A candidate takes no more than 1 from the length of s: one longer than 2 cannot be cancelled.
                if square > 4:
                    # Nor by more than a half of it, and a quarter of the square is left.
                    noise = 4.0 if peak == square else _noise(peak, (square**0.5 - 1) ** 2)
                    sqrt(halves, halves)
                    divide(scores, halves, scores)
                else:
                    noise = _noise(peak, 2 * _divide(scores, halves, tie * (1.0 + square) / 2))
                i = int(scores.argmax())
                score = score_of(i)
                if i:
                    earlier = scores[:i]
                    # Squares keep the rounding of the longest sum there was, which parts equal scores where the sum
                    # with either candidate is short.
                    if earlier.item(earlier.argmax()) >= score - tie * noise:
                        i = self._first_equal(i, square, peak, tie * noise)
                        score = score_of(i)
            else:
                i = lowest(own, int(own.argmax()), tie * _ROOT_HALF)
                score = with_query_of(i)
            gains.append(score - before)
            before = score
            more = take(i, own)
            if rows is not None or more:
                row = cosines_with(i)
                square += 2 * with_each_of(i) + 1
                if square > peak:
                    peak = square
                elif square < 0:
                    square = 0.0
                with_query += with_query_of(i)
                add(with_each, row, with_each)
                if rows is not None:
                    rows.append(row)
            if not more:
                self.with_query, self.square, self.peak = with_query, square, peak
                return gains

    def _first_equal(self, best: int, square: float, peak: float, widest: float) -> int:
        scores = self.scores
        squares = 2 * self.with_each + (square + 1)
        for rival in np.flatnonzero(scores[:best] >= scores[best] - widest).tolist():
            if scores[rival] >= scores[best] - self.tie * _noise(peak, min(squares[rival], squares[best])):
                return int(rival)
        return best

    def exchange(self, leaver: int, newcomer: int, gone: Vector, come: Vector) -> None:
        """Let a candidate take another's place in s, from what :meth:`add` gave for both."""
        half = self.with_each[newcomer] - gone[newcomer] - self.with_each[leaver] + self.square / 2
        half += leaver not in self.zero_rows
        self.square = max(0.0, 2 * float(half))
        self.with_each += come - gone
        self.with_query += float(self.relevance[newcomer] - self.relevance[leaver])

    def cosines_without(self, leavers: list[int], rows: Vector, free: Vector) -> Vector:
        """(leavers, n): cos(s − p + v, q) for each pick p and candidate v, from p's cosines with each candidate and
        √½ v·q, which is -inf for one that may not come."""
        # ½ ‖s − p + v‖² = s·v − p·v + ½ ‖s‖² − s·p + ‖p‖², and the zero row's ½ off in s·v comes in again.
        constant = (self.square / 2 + 1) - self.with_each[leavers]
        if self.zero_rows:
            constant[[p in self.zero_rows for p in leavers]] -= 1
        halves = self.with_each - rows
        halves += constant[:, None]
        scores: Vector = free + ((self.with_query - self.relevance[leavers]) * _ROOT_HALF)[:, None]
        _divide(scores, halves, self.tie * (1.0 + self.square) / 2)
        return scores


def _noise(peak: float, square: float) -> float:
    """How many times a cosine's rounding that of cos(s + v, q) is, by ‖s + v‖² and the largest ‖s‖² there was."""
    if peak <= square:
        return 1.0
    return peak / square if peak < square * _WIDEST_TIE else _WIDEST_TIE


def _divide(scores: Vector, halves: Vector, negligible: float) -> float:
    """Divide ``scores`` by the root of ``halves``, which that uses up; the least of these.

    Rounding leaves a little of a sum that cancels out: where that is ``negligible`` its direction means nothing, so
    its cosine is 0.
    """
    least: float = halves.item(halves.argmin())
    if least <= negligible:
        gone = halves <= negligible
        halves[gone] = 1.0
        scores[gone & np.isfinite(scores)] = 0.0
    np.sqrt(halves, out=halves)
    np.divide(scores, halves, out=scores)
    return least


def _exchange(candidates: Candidates, pool: Pool, total: _Sum, rows: Vector, start: float) -> list[float] | None:
    """Exchange picks in place while that pays; the gains along the final order, or None if nothing changed."""
    fixed = 0 if pool.shown else 1
    exact = _ExactSum(candidates, pool)
    best = max(total.cosine(), exact.cosine())
    changed = False
    free = total.relevance * _ROOT_HALF
    free[pool.picks + pool.shown] = -np.inf
    while True:
        scores = total.cosines_without(pool.picks[fixed:], rows[fixed:], free)
        allowed = pool.exchangeable()
        if allowed is not None:
            scores[~allowed[fixed:]] = -np.inf
        flat = scores.ravel()
        highest = int(flat.argmax())
        margin = float(flat[highest]) - best - _MIN_IMPROVEMENT
        if margin <= 0:
            break
        position, newcomer = divmod(lowest(flat, highest, min(pool.tie, margin / 2)), len(candidates))
        position += fixed
        leaver = pool.picks[position]
        # float32 dots are too coarse to trust an improvement of 1e-9: the sum itself decides.
        value = exact.exchange(leaver, newcomer)
        if value <= best + _MIN_IMPROVEMENT:
            break
        best, changed = value, True
        pool.exchange(position, newcomer)
        free[leaver], free[newcomer] = total.relevance[leaver] * _ROOT_HALF, -np.inf
        row = candidates.cosines_with(newcomer).astype(np.float64)
        total.exchange(leaver, newcomer, rows[position], row)
        rows[position] = row
    if not changed:
        return None
    gains: list[float] = np.diff(_ExactSum(candidates, pool).prefix_cosines(), prepend=start).tolist()
    return gains


class _ExactSum:
    """The sum of the unit vectors of what is shown and picked, in float64."""

    def __init__(self, candidates: Candidates, pool: Pool) -> None:
        self.rows = candidates.unit_rows
        query = candidates.query.astype(np.float64)
        self.query = query / np.sqrt(query.dot(query))
        self.negligible = pool.tie
        self.shown = self.rows(pool.shown).sum(axis=0, dtype=np.float64)
        self.picked = self.rows(pool.picks).astype(np.float64)
        self.sum = self.shown + self.picked.sum(axis=0)

    def exchange(self, leaver: int, newcomer: int) -> float:
        """The cosine with the query once ``newcomer`` has taken the place of ``leaver``."""
        come, go = self.rows([newcomer, leaver])
        self.sum += come
        self.sum -= go
        return self.cosine()

    def cosine(self) -> float:
        square = float(self.sum.dot(self.sum))
        return float(self.sum.dot(self.query)) / square**0.5 if square > self.negligible else 0.0

    def prefix_cosines(self) -> Vector:
        """The cosine with the query after each pick."""
        # Row by row: numpy's cumsum along this axis takes four times as long.
        sums = self.picked.copy()
        for before, row in itertools.pairwise([self.shown, *sums]):
            row += before
        squares = np.vecdot(sums, sums)
        gone = squares <= self.negligible
        cosines: Vector = np.where(gone, 0.0, sums.dot(self.query) / np.sqrt(np.where(gone, 1.0, squares)))
        return cosines
