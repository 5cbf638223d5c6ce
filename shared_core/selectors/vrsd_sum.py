"""The sum vector of VRSD, kept by its cosines with every candidate, and the greedy picks that lengthen it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray
from ..candidates import Candidates
from ._greedy import Pool, lowest

MIN_IMPROVEMENT = 1e-9
WIDEST_TIE = 64.0
ROOT_HALF = 0.5**0.5

Vector = NDArray[np.float64]


class Sum:
    """The sum vector s of what is picked, known by s·q, ‖s‖² and s·v for every candidate v.

    With ‖v‖ = 1, cos(s + v, q) = (v·q + s·q) / √(‖s‖² + 1 + 2 s·v); half of what is under the root and √½ of what is
    over it save a product.
    """

    def __init__(self, candidates: Candidates, pool: Pool) -> None:
        self.candidates = candidates
        self.relevance = candidates.relevance.astype(np.float64)
        n = len(self.relevance)
        # √½ v·q of what is open, and s·v less ½ where v is the zero row, whose ‖v‖² is 0.
        self.open = self.relevance * ROOT_HALF
        self.with_each = np.zeros(n)
        self.zero_rows: list[int] = []
        # Only what is orthogonal to the query can be a zero row.
        if np.count_nonzero(self.relevance) < n:
            orthogonal = (self.relevance == 0).nonzero()[0]
            self.zero_rows = orthogonal[~candidates.unit_rows(orthogonal).any(axis=1)].tolist()
            self.with_each[self.zero_rows] = -0.5
        self.tie = pool.tie
        self.with_query = self.square = self.peak = 0.0
        for i in pool.shown:
            self.add(i)
        pool.close(self.open)

    def add(self, i: int) -> FloatArray:
        """Add candidate ``i`` to s; its cosine with each candidate, which that took."""
        row = self.candidates.cosines_with(i)
        self.square = max(0.0, 2 * self.with_each.item(i) + self.square + 1)
        self.peak = max(self.peak, self.square)
        self.with_query += self.relevance.item(i)
        self.with_each += row
        return row

    def cosine(self) -> float:
        """cos(s, q); of a sum that cancels out 0."""
        return self.with_query / self.square**0.5 if self.square > self.tie else 0.0

    def pick(self, pool: Pool, before: float, rows: list[FloatArray] | None) -> list[float]:
        """Pick until there are enough, always the candidate v of the highest cos(s + v, q), of equals the first.

        The gains, s having had the cosine ``before``. ``rows`` takes what :meth:`add` gives for each pick; without
        it the last one is not added to s. All in one place, since at n = 100 calls of one's own cost a quarter.
        """
        own, with_each, tie = self.open, self.with_each, self.tie
        scores, halves = np.empty(len(own)), np.empty(len(own))
        # Numbers that are added to a column: numpy would make such arrays of them.
        over, under = np.array(0.0), np.array(0.5)
        add, sqrt, divide, take, cosines_with = np.add, np.sqrt, np.divide, pool.take, self.candidates.cosines_by_row()
        with_query_of, with_each_of, score_of = self.relevance.item, with_each.item, scores.item
        highest, lowest_half, half_of = scores.argmax, halves.argmin, halves.item
        with_query, square, peak = self.with_query, self.square, self.peak
        gains: list[float] = []
        while True:
            if peak:
                over[()] = with_query * ROOT_HALF
                under[()] = square / 2 + 0.5
                add(own, over, scores)
                add(with_each, under, halves)
                # A candidate takes no more than 1 from the length of s: one longer than 2 cannot be cancelled.
                if square > 4:
                    # Nor by more than a half of it, and a quarter of the square is left.
                    noise = 4.0 if peak == square else _noise(peak, (square**0.5 - 1) ** 2)
                else:
                    least = half_of(lowest_half())
                    noise = _noise(peak, 2 * least)
                    if least <= (negligible := tie * (1.0 + square) / 2):
                        _cancel(scores, halves, negligible)
                sqrt(halves, halves)
                divide(scores, halves, scores)
                i = int(highest())
                score = score_of(i)
                if i:
                    earlier = scores[:i]
                    # Squares keep the rounding of the longest sum there was, which parts equal scores where the sum
                    # with either candidate is short.
                    if earlier.item(earlier.argmax()) >= score - tie * noise:
                        i = self._first_equal(scores, i, square, peak, tie * noise)
                        score = score_of(i)
            else:
                i = lowest(own, int(own.argmax()), tie * ROOT_HALF)
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

    def pick_compiled(self, loops: Any, pool: Pool, before: float, *, keep: bool) -> tuple[list[float], Vector | None]:
        """As :meth:`pick`; the gains, and if asked for what :meth:`add` gives for each pick."""
        k = pool.target
        picks, gains = np.empty(k, np.int64), np.empty(k)
        kept = np.empty((k if keep else 0, len(self.relevance)))
        self.with_query, self.square, self.peak = loops.pick_sum(
            *self.candidates.rows_and_inverse(), self.relevance, self.open, self.with_each,
            self.with_query, self.square, self.peak, self.tie, before, picks, gains, kept,
        )  # fmt: skip
        pool.picks += picks.tolist()
        return gains.tolist(), kept if keep else None

    def _first_equal(self, scores: Vector, best: int, square: float, peak: float, widest: float) -> int:
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

    def zero_rows_mask(self) -> NDArray[np.bool_]:
        """(n,): which candidates are the zero vector."""
        mask = np.zeros(len(self.relevance), np.bool_)
        mask[self.zero_rows] = True
        return mask

    def cosines_without(self, leavers: list[int], rows: Vector, free: Vector) -> Vector:
        """(leavers, n): cos(s − p + v, q) for each pick p and candidate v, from p's cosines with each candidate and
        √½ v·q, which is -inf for one that may not come."""
        # ½ ‖s − p + v‖² = s·v − p·v + ½ ‖s‖² − s·p + ‖p‖², and the zero row's ½ off in s·v comes in again.
        constant = (self.square / 2 + 1) - self.with_each[leavers]
        if self.zero_rows:
            constant[[p in self.zero_rows for p in leavers]] -= 1
        halves = self.with_each - rows
        halves += constant[:, None]
        scores: Vector = free + ((self.with_query - self.relevance[leavers]) * ROOT_HALF)[:, None]
        _cancel(scores, halves, self.tie * (1.0 + self.square) / 2)
        np.sqrt(halves, halves)
        np.divide(scores, halves, scores)
        return scores


def _noise(peak: float, square: float) -> float:
    """How many times a cosine's rounding that of cos(s + v, q) is, by ‖s + v‖² and the largest ‖s‖² there was."""
    if peak <= square:
        return 1.0
    return peak / square if peak < square * WIDEST_TIE else WIDEST_TIE


def _cancel(scores: Vector, halves: Vector, negligible: float) -> None:
    """Let the cosines of sums that cancel out be 0.

    Rounding leaves a little of such a sum: where its half square is ``negligible`` its direction means nothing.
    """
    gone = halves <= negligible
    if gone.any():
        halves[gone] = 1.0
        scores[gone & np.isfinite(scores)] = 0.0
