"""VRSD's refinement: one pick exchanged for one candidate, for as long as that brings the sum nearer to the query."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..candidates import Candidates
from ._greedy import Pool, lowest
from .vrsd_sum import MIN_IMPROVEMENT, ROOT_HALF, Sum, Vector


def refined(
    candidates: Candidates, pool: Pool, total: Sum, rows: Vector, start: float, loops: Any
) -> list[float] | None:
    """Exchange picks in place while that pays; the gains along the final order, or None if nothing changed.

    ``rows`` (picks, n) holds the cosines of each pick with every candidate and is written to; ``start`` is the cosine
    before the first pick; ``loops`` are the compiled ones, or None.
    """
    exact = _ExactSum(candidates, pool)
    best = max(total.cosine(), exact.cosine())
    free = total.relevance * ROOT_HALF
    free[pool.picks + pool.shown] = -np.inf
    fixed = 0 if pool.shown else 1
    if loops is None:
        changed = _exchange(candidates, pool, total, rows, free, fixed, exact, best)
    else:
        picks = np.array(pool.picks)
        changed = loops.exchange(
            *candidates.rows_and_inverse(), total.relevance, free, total.with_each, total.zero_rows_mask(),
            total.with_query, total.square, total.tie, picks, rows, fixed, exact.sum, exact.query, best,
        )  # fmt: skip
        pool.picks[:] = picks.tolist()
    if not changed:
        return None
    gains: list[float] = np.diff(_ExactSum(candidates, pool).prefix_cosines(), prepend=start).tolist()
    return gains


def _exchange(
    candidates: Candidates,
    pool: Pool,
    total: Sum,
    rows: Vector,
    free: Vector,
    fixed: int,
    exact: _ExactSum,
    best: float,
) -> bool:
    changed = False
    while True:
        scores = total.cosines_without(pool.picks[fixed:], rows[fixed:], free)
        allowed = pool.exchangeable()
        if allowed is not None:
            scores[~allowed[fixed:]] = -np.inf
        flat = scores.ravel()
        highest = int(flat.argmax())
        margin = float(flat[highest]) - best - MIN_IMPROVEMENT
        if margin <= 0:
            return changed
        position, newcomer = divmod(lowest(flat, highest, min(pool.tie, margin / 2)), len(candidates))
        position += fixed
        leaver = pool.picks[position]
        # float32 dots are too coarse to trust an improvement of 1e-9: the sum itself decides.
        value = exact.exchange(leaver, newcomer)
        if value <= best + MIN_IMPROVEMENT:
            return changed
        best, changed = value, True
        pool.exchange(position, newcomer)
        free[leaver], free[newcomer] = total.relevance[leaver] * ROOT_HALF, -np.inf
        row = candidates.cosines_with(newcomer).astype(np.float64)
        total.exchange(leaver, newcomer, rows[position], row)
        rows[position] = row


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
