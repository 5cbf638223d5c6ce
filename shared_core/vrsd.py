"""Vectors retrieval with similarity and diversity (VRSD, Algorithm 1), and its refinement by exchange."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .candidates import Candidates
from .errors import InvalidParameterError
from .pool import Pool
from .selection import Selection, make_selection, register_selector

_MIN_IMPROVEMENT = 1e-9
_WIDEST_TIE = 64

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
        start = before = total.cosine()
        reach = pool.close(total.relevance + total.with_query)
        rows: list[NDArray[np.floating]] = []
        gains = []
        while pool.more():
            scores = total.cosines(reach)
            i = total.best(pool, scores)
            gains.append(float(scores[i]) - before)
            before = float(scores[i])
            pool.take(i, reach)
            if self.refine or pool.more():
                rows.append(total.add(i))
                reach += total.relevance[i]
        if self.refine and len(pool.picks) > (not pool.shown):
            gains = _exchange(candidates, pool, total, np.array(rows, np.float64), start, before) or gains
        return make_selection(candidates, pool.picks, gains)


class _Sum:
    """The sum vector s of what is picked, known by s·q, ‖s‖² and ‖s + v‖² for every candidate v."""

    def __init__(self, candidates: Candidates, pool: Pool) -> None:
        self.candidates = candidates
        self.relevance = candidates.relevance.astype(np.float64)
        self.own = np.ones(len(candidates))
        # Only what is orthogonal to the query can be a zero row.
        orthogonal = (self.relevance == 0).nonzero()[0]
        if orthogonal.size:
            self.own[orthogonal] = candidates.vectors[orthogonal].any(axis=1)
        self.negligible = pool.tie
        self.with_query = 0.0
        self.square = 0.0
        self.peak = 0.0
        self.with_each = self.own.copy()
        for i in pool.shown:
            self.add(i)

    def add(self, i: int) -> NDArray[np.floating]:
        """Add candidate ``i`` to s; twice its cosine with each candidate, which that took."""
        row = self.candidates.cosines_with(i, 2.0)
        square = max(0.0, float(self.with_each[i]))
        self.with_each += row
        self.with_each += square - self.square
        self.square = square
        self.peak = max(self.peak, square)
        self.with_query += float(self.relevance[i])
        return row

    def cosine(self) -> float:
        return self.with_query / self.square**0.5 if self.square > self.negligible else 0.0

    def cosines(self, reach: NDArray[np.floating]) -> Vector:
        """cos(s + v, q) for each candidate v from ``reach`` = (s + v)·q, which is -inf for a closed one."""
        # Rounding leaves a little of a sum that cancels out: its direction means nothing, so its cosine is 0.
        least = self.negligible * (1.0 + self.square)
        if self.with_each[self.with_each.argmin()] > least:
            lengths: Vector = np.sqrt(self.with_each)
            np.divide(reach, lengths, out=lengths)
            return lengths
        gone = self.with_each <= least
        scores: Vector = reach / np.sqrt(np.where(gone, 1.0, self.with_each))
        scores[gone & np.isfinite(reach)] = 0.0
        return scores

    def best(self, pool: Pool, scores: Vector) -> int:
        """As :meth:`Pool.best`; squares keep the rounding of the longest sum there was, which parts equal scores
        where the sum with either candidate is short."""
        widest = _WIDEST_TIE * self.negligible
        best = int(scores.argmax())
        if pool.best(scores, widest) == best:
            return best
        rivals = np.flatnonzero(scores[:best] >= scores[best] - widest)
        shorter = np.minimum(self.with_each[rivals], self.with_each[best])
        ties = np.minimum(np.maximum(self.peak / np.maximum(shorter, self.negligible), 1.0), _WIDEST_TIE)
        equal = rivals[scores[rivals] >= scores[best] - ties * self.negligible]
        return int(equal[0]) if equal.size else best

    def exchange(self, leaver: int, newcomer: int, gone: Vector, come: Vector, square: float) -> None:
        """Let a candidate take another's place in s, from what :meth:`add` gave for both and the new ‖s‖²."""
        self.with_each += come - gone
        self.with_each += square - self.square
        self.square = square
        self.with_query += float(self.relevance[newcomer] - self.relevance[leaver])

    def cosines_with_each_for(self, picks: list[int], rows: Vector) -> tuple[Vector, Vector]:
        """(picks, n): cos(s − pick + v, q) for each pick and candidate v, and ‖s − pick + v‖²."""
        squares = self.with_each - rows
        squares += (2 * self.own[picks] + self.square - self.with_each[picks])[:, None]
        scores = self.relevance + (self.with_query - self.relevance[picks])[:, None]
        gone = squares <= self.negligible * (1.0 + self.square)
        if gone.any():
            scores[gone] = 0.0
            scores /= np.sqrt(np.where(gone, 1.0, squares))
        else:
            scores /= np.sqrt(squares)
        return scores, squares


def _exchange(
    candidates: Candidates, pool: Pool, total: _Sum, rows: Vector, start: float, greedy: float
) -> list[float] | None:
    """Exchange picks in place while that pays; the gains along the final order, or None if nothing changed."""
    first_movable = 0 if pool.shown else 1
    exact = _ExactSum(candidates, pool)
    best = max(greedy, exact.cosine())
    changed = False
    while True:
        scores, squares = total.cosines_with_each_for(pool.picks, rows)
        scores[:first_movable] = -np.inf
        scores[:, pool.picks + pool.shown] = -np.inf
        allowed = pool.exchangeable()
        if allowed is not None:
            scores[~allowed] = -np.inf
        flat = scores.ravel()
        margin = float(flat[flat.argmax()]) - best - _MIN_IMPROVEMENT
        if margin <= 0:
            break
        position, newcomer = divmod(pool.best(flat, min(pool.tie, margin / 2)), len(candidates))
        leaver = pool.picks[position]
        # float32 dots are too coarse to trust an improvement of 1e-9: the sum itself decides.
        value = exact.exchange(leaver, newcomer)
        if value <= best + _MIN_IMPROVEMENT:
            break
        best, changed = value, True
        pool.exchange(position, newcomer)
        row = candidates.cosines_with(newcomer, 2.0).astype(np.float64)
        total.exchange(leaver, newcomer, rows[position], row, float(squares[position, newcomer]))
        rows[position] = row
    if not changed:
        return None
    gains: list[float] = np.diff(_ExactSum(candidates, pool).prefix_cosines(), prepend=start).tolist()
    return gains


class _ExactSum:
    """The sum of the unit vectors of what is shown and picked, in float64."""

    def __init__(self, candidates: Candidates, pool: Pool) -> None:
        self.vectors = candidates.vectors
        query = candidates.query.astype(np.float64)
        self.query = query / np.sqrt(query.dot(query))
        self.negligible = pool.tie
        self.shown = self.vectors[pool.shown].sum(axis=0, dtype=np.float64)
        self.picked = self.vectors[pool.picks].astype(np.float64)
        self.sum = self.shown + self.picked.sum(axis=0)

    def exchange(self, leaver: int, newcomer: int) -> float:
        """The cosine with the query once ``newcomer`` has taken the place of ``leaver``."""
        self.sum += self.vectors[newcomer]
        self.sum -= self.vectors[leaver]
        return self.cosine()

    def cosine(self) -> float:
        square = float(self.sum.dot(self.sum))
        return float(self.sum.dot(self.query)) / square**0.5 if square > self.negligible else 0.0

    def prefix_cosines(self) -> Vector:
        """The cosine with the query after each pick."""
        sums = self.shown + np.cumsum(self.picked, axis=0)
        squares = np.vecdot(sums, sums)
        gone = squares <= self.negligible
        cosines: Vector = np.where(gone, 0.0, sums.dot(self.query) / np.sqrt(np.where(gone, 1.0, squares)))
        return cosines
