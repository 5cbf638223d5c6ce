"""Constraints beyond k: a budget, a cap on picks of one source, no near-duplicates.

A constraint closes candidates as picks are made; the shown candidates count from the start. The three classes have the
same methods: ``closed`` says which candidates are forbidden now, shape (n,); ``take`` is told of a pick, and
``exchange`` of a pick that another candidate replaced. ``exchangeable`` says which candidate may replace which pick,
shape (picks, n). Its argument ``full`` is False if the constraints ended the selection before k picks. Then only
exchanges that leave no room for one more pick are allowed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from .._validation import check_range
from ..candidates import TIE_TOLERANCE, Candidates
from ..errors import BudgetError, NothingLeftError

Mask = NDArray[np.bool_]


def make_constraints(candidates: Candidates, budget: float | None, shown: Sequence[int]) -> list[Constraint]:
    """The constraints of a selection; the list is empty if it has none."""
    made: list[Constraint] = []
    if budget is not None:
        made.append(Budget(candidates, budget, shown))
    if candidates.sources is not None and candidates.max_per_source is not None:
        made.append(PerSource(candidates.sources, candidates.max_per_source, shown))
    if candidates.drop_near_duplicates is not None:
        never = [constraint.closed() for constraint in made]
        made.append(NearDuplicates(candidates, candidates.drop_near_duplicates, shown, never))
    return made


class Budget:
    """The sum of the costs must not exceed a budget."""

    def __init__(self, candidates: Candidates, budget: float, shown: Sequence[int]) -> None:
        if candidates.costs is None:
            raise BudgetError("a budget needs costs: pass Candidates(..., costs=...), one for each candidate")
        # In floating point 0.2 + 0.1 is slightly above 0.3. The margin lets such a sum fit.
        budget = check_range("budget", budget)
        self.left = budget + 1e-12 * abs(budget)
        self.costs = candidates.costs
        self.shown = list(shown)
        cheapest = self._open_costs([]).min()
        if cheapest > self.left:
            raise NothingLeftError(f"nothing fits into budget={budget:g}: the cheapest candidate costs {cheapest:g}")

    def closed(self) -> Mask:
        """Candidates that cost more than what is left."""
        return self.costs > self.left

    def take(self, i: int) -> None:
        """Spend the cost of ``i``."""
        self.left -= float(self.costs[i])

    def exchangeable(self, picks: Sequence[int], *, full: bool) -> Mask:
        """Candidates that fit in place of a pick. If not ``full``, they must also leave too little for another pick."""
        left = self.left + self.costs[list(picks)][:, None] - self.costs[None, :]
        allowed = left >= 0
        if not full:
            costs = self._open_costs(picks)
            cheapest, second = np.partition(costs, 1)[:2] if len(costs) > 1 else (costs[0], np.inf)
            cheapest_other = np.full(len(costs), cheapest)
            cheapest_other[costs.argmin()] = second
            allowed &= left < cheapest_other
        return allowed

    def exchange(self, leaver: int, newcomer: int) -> None:
        """Spend the difference of the two costs."""
        self.left += float(self.costs[leaver] - self.costs[newcomer])

    def _open_costs(self, picks: Sequence[int]) -> NDArray[np.float64]:
        costs = self.costs.copy()
        costs[[*self.shown, *picks]] = np.inf
        return costs


class PerSource:
    """At most ``max_per_source`` candidates of one source, shown ones included. None is a source of its own."""

    def __init__(self, sources: Sequence[Hashable], max_per_source: int, shown: Sequence[int]) -> None:
        numbers: dict[Hashable, int] = {}
        keys = (("row", row) if name is None else ("source", name) for row, name in enumerate(sources))
        self.source = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
        self.counts = np.bincount(self.source[list(shown)], minlength=len(numbers))
        self.max_per_source = max_per_source

    def closed(self) -> Mask:
        """Candidates of sources that have reached their cap."""
        full: Mask = (self.counts >= self.max_per_source)[self.source]
        return full

    def take(self, i: int) -> None:
        """Count ``i`` for its source."""
        self.counts[self.source[i]] += 1

    def exchangeable(self, picks: Sequence[int], *, full: bool) -> Mask:
        """Candidates of the pick's own source; if ``full``, also those of sources below their cap."""
        same: Mask = self.source[list(picks)][:, None] == self.source[None, :]
        # If the selection ended early, a source that loses a pick would have room for another one.
        if full:
            same |= ~self.closed()[None, :]
        return same

    def exchange(self, leaver: int, newcomer: int) -> None:
        """Count one pick less for the leaver's source, and one more for the newcomer's."""
        self.counts[self.source[leaver]] -= 1
        self.counts[self.source[newcomer]] += 1


class NearDuplicates:
    """The cosine of a pick with another pick or a shown candidate must not be above a threshold.

    With ``prefer``, a candidate is closed from the start if one of a higher rank that stays is too near to it.
    ``never``: which candidates the other constraints forbid from the start. These close no others.
    """

    def __init__(
        self, candidates: Candidates, threshold: float, shown: Sequence[int], never: Sequence[Mask] = ()
    ) -> None:
        self.rows = candidates.vectors
        # Rounding can put the cosine of a copy slightly above 1. It must not count as above a threshold of 1.
        self.threshold = threshold + TIE_TOLERANCE[candidates.dtype]
        self.near: dict[int, Mask] = {}
        self.taken = np.zeros(len(candidates), dtype=np.int64)
        for i in shown:
            self.take(i)
        if candidates.prefer is not None:
            self._drop_older(candidates.prefer, np.logical_or.reduce([self.closed(), *never]))

    def closed(self) -> Mask:
        """Candidates too near to a pick or to a shown one."""
        return self.taken > 0

    def take(self, i: int) -> None:
        """Close the candidates too near to ``i``."""
        self.near[i] = self.rows.dot(self.rows[i]) > self.threshold
        self.taken += self.near[i]

    def exchangeable(self, picks: Sequence[int], *, full: bool) -> Mask:
        """Candidates that are not too near to any other pick; none if near-duplicates ended the selection."""
        if not full:
            return np.zeros((len(picks), len(self.rows)), dtype=np.bool_)
        own = np.array([self.near[i] for i in picks])
        allowed: Mask = self.taken[None, :] - own == 0
        return allowed

    def exchange(self, leaver: int, newcomer: int) -> None:
        """Open the candidates that are near to the leaver only. Close those near to the newcomer."""
        self.taken -= self.near.pop(leaver)
        self.take(newcomer)

    def _drop_older(self, prefer: NDArray[np.int64], never: Mask) -> None:
        """Close what is too near to a candidate of a higher rank, unless that one cannot be picked itself."""
        order = np.argsort(-prefer, kind="stable")
        # A block of products at a time, because those of 10,000 candidates with each other would take 800 MB.
        for block in np.split(order, range(256, len(order), 256)):
            for i, near in zip(block, self.rows[block] @ self.rows.T > self.threshold, strict=True):
                if not (never[i] or self.taken[i]):
                    self.taken += near & (prefer < prefer[i])


Constraint = Budget | PerSource | NearDuplicates
