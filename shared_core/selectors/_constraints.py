"""What may not be picked, besides what is shown or picked already: a budget, crowding sources, near-duplicates."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .._validation import check_number
from ..arrays import TIE_EPS
from ..candidates import Candidates
from ..errors import BudgetError

Mask = NDArray[np.bool_]


class Limit(Protocol):
    """A rule that closes candidates as picks are made; it starts with the shown ones taken."""

    def closed(self) -> Mask:
        """(n,): what the rule forbids to pick now."""
        ...

    def take(self, i: int) -> None:
        """Candidate ``i`` was picked."""
        ...

    def exchangeable(self, picks: Sequence[int], *, full: bool) -> Mask:
        """(picks, n): which candidate may take the place of which pick.

        Where not k but a rule ended the choice (not ``full``), no exchange may free room for one pick more.
        """
        ...

    def exchange(self, leaver: int, newcomer: int) -> None:
        """One pick has taken the place of another."""
        ...


class Budget:
    """The sum of the costs must not exceed a budget."""

    def __init__(self, candidates: Candidates, budget: float, shown: Sequence[int]) -> None:
        if candidates.costs is None:
            raise BudgetError("a budget needs costs: pass Candidates(..., costs=...), one for each candidate")
        # .2 + .1 is a little more than .3, and still fits.
        self.left = check_number(budget, "budget") + 1e-12 * abs(budget)
        self.costs = candidates.costs
        self.shown = list(shown)
        cheapest = self._free([]).min()
        if cheapest > self.left:
            raise BudgetError(f"nothing fits into budget={budget:g}: the cheapest candidate costs {cheapest:g}")

    def closed(self) -> Mask:
        """What costs more than is left."""
        return self.costs > self.left

    def take(self, i: int) -> None:
        """Spend what ``i`` costs."""
        self.left -= float(self.costs[i])

    def exchangeable(self, picks: Sequence[int], *, full: bool) -> Mask:
        """What fits in place of a pick, and leaves too little for one more where the budget ended the choice."""
        left = self.left + self.costs[list(picks)][:, None] - self.costs[None, :]
        allowed = left >= 0
        if not full:
            free = self._free(picks)
            cheapest, second = np.partition(free, 1)[:2] if len(free) > 1 else (free[0], np.inf)
            others = np.full(len(free), cheapest)
            others[free.argmin()] = second
            allowed &= left < others
        return allowed

    def exchange(self, leaver: int, newcomer: int) -> None:
        """Spend the difference."""
        self.left += float(self.costs[leaver] - self.costs[newcomer])

    def _free(self, picks: Sequence[int]) -> NDArray[np.float64]:
        costs = self.costs.copy()
        costs[[*self.shown, *picks]] = np.inf
        return costs


class PerSource:
    """No more than so many candidates of one source; the shown ones count."""

    def __init__(self, sources: Sequence[Hashable], most: int, shown: Sequence[int]) -> None:
        numbers: dict[Hashable, int] = {}
        self.source = np.array([numbers.setdefault(name, len(numbers)) for name in sources])
        self.counts = np.zeros(len(numbers), dtype=np.int64)
        self.most = most
        for i in shown:
            self.take(i)

    def closed(self) -> Mask:
        """Whatever comes from a source that has its share."""
        full: Mask = (self.counts >= self.most)[self.source]
        return full

    def take(self, i: int) -> None:
        """Count ``i`` for its source."""
        self.counts[self.source[i]] += 1

    def exchangeable(self, picks: Sequence[int], *, full: bool) -> Mask:
        """Its own source's candidates, and those of sources that have room unless that would make room."""
        same: Mask = self.source[list(picks)][:, None] == self.source[None, :]
        # A source that loses a pick has room for another one.
        if full:
            same |= ~self.closed()[None, :]
        return same

    def exchange(self, leaver: int, newcomer: int) -> None:
        """Count one less and one more."""
        self.counts[self.source[leaver]] -= 1
        self.counts[self.source[newcomer]] += 1


class NearDuplicates:
    """No two candidates whose cosine is above a threshold; the shown ones count."""

    def __init__(self, candidates: Candidates, threshold: float, shown: Sequence[int]) -> None:
        self.candidates = candidates
        # A copy's cosine may be 1 and a rounding: it is not above a threshold of 1.
        self.threshold = threshold + TIE_EPS * float(np.finfo(candidates.dtype).eps)
        self.near: dict[int, Mask] = {}
        self.taken = np.zeros(len(candidates), dtype=np.int64)
        for i in shown:
            self.take(i)

    def closed(self) -> Mask:
        """Whatever is too near to a pick or to a shown one."""
        return self.taken > 0

    def take(self, i: int) -> None:
        """Close what is too near to ``i``."""
        self.near[i] = self.candidates.cosines_with(i) > self.threshold
        self.taken += self.near[i]

    def exchangeable(self, picks: Sequence[int], *, full: bool) -> Mask:
        """What is near to no other pick; nothing where near-duplicates ended the choice."""
        if not full:
            return np.zeros((len(picks), len(self.candidates)), dtype=np.bool_)
        own = np.array([self.near[i] for i in picks])
        allowed: Mask = self.taken[None, :] - own == 0
        return allowed

    def exchange(self, leaver: int, newcomer: int) -> None:
        """Open what was near to the leaver alone; close what is near to the newcomer."""
        self.taken -= self.near.pop(leaver)
        self.take(newcomer)
