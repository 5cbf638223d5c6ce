"""Constraints beyond k: a budget, a cap on picks of one source, no near-duplicates.

A constraint closes candidates as picks are made; the shown candidates count from the start. The three classes have the
same methods: ``closed`` says which candidates are forbidden now, shape (n,), and ``take`` is told of a pick.
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
        cheapest = np.delete(self.costs, shown).min()
        if cheapest > self.left:
            raise NothingLeftError(f"nothing fits into budget={budget:g}: the cheapest candidate costs {cheapest:g}")

    def closed(self) -> Mask:
        """Candidates that cost more than what is left."""
        return self.costs > self.left

    def take(self, i: int) -> None:
        """Spend the cost of ``i``."""
        self.left -= float(self.costs[i])


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


class NearDuplicates:
    """The cosine of a pick with another pick or a shown candidate must not be above a threshold.

    With ``prefer``, a candidate is closed from the start if one of a higher rank that stays is too near to it.
    ``never``: which candidates the other constraints forbid from the start. These close no others.
    """

    def __init__(self, candidates: Candidates, threshold: float, shown: Sequence[int], never: Sequence[Mask]) -> None:
        self.rows = candidates.vectors
        # Rounding can put the cosine of a copy slightly above 1. It must not count as above a threshold of 1.
        self.threshold = threshold + TIE_TOLERANCE[candidates.dtype]
        self.near = np.zeros(len(candidates), np.bool_)
        for i in shown:
            self.take(i)
        if candidates.prefer is not None:
            self._drop_older(candidates.prefer, np.logical_or.reduce([self.near, *never]))

    def closed(self) -> Mask:
        """Candidates too near to a pick or to a shown one."""
        return self.near

    def take(self, i: int) -> None:
        """Close the candidates too near to ``i``."""
        self.near |= self.rows.dot(self.rows[i]) > self.threshold

    def _drop_older(self, prefer: NDArray[np.int64], never: Mask) -> None:
        """Close what is too near to a candidate of a higher rank, unless that one cannot be picked itself."""
        order = np.argsort(-prefer, kind="stable")
        # A block of products at a time, because those of 10,000 candidates with each other would take 800 MB.
        for block in np.split(order, range(256, len(order), 256)):
            for i, near in zip(block, self.rows[block] @ self.rows.T > self.threshold, strict=True):
                if not (never[i] or self.near[i]):
                    self.near |= near & (prefer < prefer[i])


Constraint = Budget | PerSource | NearDuplicates
