"""What may still be picked, and which of equals goes first: the part that all greedy selectors share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .candidates import Candidates
from .checks import integer, number
from .errors import BudgetError, InvalidParameterError

# Equal rows get dot products that differ in the last bits, since BLAS sums the end of a block in another order.
TIE_EPS = 16
_TIES = {np.dtype(t): TIE_EPS * float(np.finfo(t).eps) for t in (np.float32, np.float64)}
Scores = NDArray[np.floating[Any]]


class Pool:
    """The candidates that are not shown, not picked and within the budget.

    Selectors keep their scores in arrays in which a closed candidate stands at -inf; :meth:`close` and
    :meth:`take` put it there.
    """

    __slots__ = ("_costs", "_left", "_open", "picks", "shown", "target", "tie")

    def __init__(self, candidates: Candidates, k: int | None, budget: float | None, shown: Iterable[int]) -> None:
        n = len(candidates)
        self.shown = checked_shown(shown, n)
        self.tie = _TIES[candidates.dtype]
        self.picks: list[int] = []
        self._open = True
        available = n - len(self.shown)
        if not available:
            raise InvalidParameterError(f"all n={n} candidates are already shown: nothing is left to choose")
        if k is None:
            if budget is None:
                raise InvalidParameterError("give k, or budget, or both: how many candidates are wanted?")
            self.target = available
        else:
            self.target = _k(k, available, n)
        self._costs: NDArray[np.float64] | None = None
        self._left = np.inf
        if budget is not None:
            self._start_budget(candidates, budget)

    def close(self, scores: Scores) -> Scores:
        """Put all closed candidates of a fresh array of scores at -inf, and return it."""
        if self.shown or self.picks:
            scores[self.shown + self.picks] = -np.inf
        if self._costs is not None:
            scores[self._costs > self._left] = -np.inf
        return scores

    def more(self) -> bool:
        """Whether another pick is wanted and possible."""
        return self._open and len(self.picks) < self.target

    def best(self, scores: Scores, tie: float | None = None) -> int:
        """The open candidate of the highest score; of those within ``tie`` of it, the lowest index."""
        best = int(scores.argmax())
        if best:
            least = scores[best] - (self.tie if tie is None else tie)
            before = scores[:best]
            if before[before.argmax()] >= least:
                return int((before >= least).argmax())
        return best

    def take(self, i: int, scores: Scores) -> bool:
        """Pick ``i`` and close it in ``scores``, with whatever no longer fits; whether there is :meth:`more`."""
        self.picks.append(i)
        scores[i] = -np.inf
        if self._costs is not None:
            self._left -= float(self._costs[i])
            scores[self._costs > self._left] = -np.inf
            self._open = bool(np.isfinite(scores).any())
        return self._open and len(self.picks) < self.target

    def exchangeable(self) -> NDArray[np.bool_] | None:
        """(picks, n): which candidate may take the place of which pick under the budget; None: any may.

        An exchange must fit and, where the budget and not k ended the choice, must not free room for one more.
        """
        if self._costs is None:
            return None
        costs = self._costs
        left = self._left + costs[self.picks][:, None] - costs[None, :]
        allowed = left >= 0
        if len(self.picks) < self.target:
            free = self._free_costs()
            cheapest, second = (*np.partition(free, 1)[:2],) if len(free) > 1 else (free[0], np.inf)
            others = np.full(len(free), cheapest)
            others[free.argmin()] = second
            allowed &= left < others
        return allowed

    def exchange(self, position: int, i: int) -> None:
        """Let candidate ``i`` take the place of the pick at ``position``."""
        if self._costs is not None:
            self._left += float(self._costs[self.picks[position]] - self._costs[i])
        self.picks[position] = i

    def _free_costs(self) -> NDArray[np.float64]:
        assert self._costs is not None
        costs = self._costs.copy()
        costs[self.shown] = np.inf
        costs[self.picks] = np.inf
        return costs

    def _start_budget(self, candidates: Candidates, budget: float) -> None:
        if candidates.costs is None:
            raise BudgetError("a budget needs costs: pass Candidates(..., costs=...), one for each candidate")
        self._left = number(budget, "budget")
        self._costs = candidates.costs
        cheapest = self._free_costs().min()
        if cheapest > self._left:
            raise BudgetError(f"nothing fits into budget={budget:g}: the cheapest candidate costs {cheapest:g}")


def _k(k: int, available: int, n: int) -> int:
    count = integer(k, "k")
    if not 1 <= count <= available:
        shown = "" if available == n else f" ({n - available} of {n} candidates are already shown)"
        raise InvalidParameterError(f"k must be in 1..n, got k={count} with n={available}{shown}")
    return count


def checked_shown(shown: Iterable[int], n: int) -> list[int]:
    """``shown`` as a list of ints.

    Raises
    ------
    InvalidParameterError
        One of them is no integer, is out of 0..n-1, or stands twice.

    Examples
    --------
    >>> checked_shown((2, 0), 3)
    [2, 0]
    """
    indices = [integer(i, "shown") for i in shown]
    for i in indices:
        if not 0 <= i < n:
            raise InvalidParameterError(f"shown holds {i}, but there are n={n} candidates (0..{n - 1})")
    if len(set(indices)) != len(indices):
        raise InvalidParameterError(f"shown names a candidate twice: {indices}")
    return indices
