"""What may still be picked, and which of equals goes first: the part that all greedy selectors share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_integer
from ..arrays import TIE_EPS
from ..candidates import Candidates
from ..errors import InvalidParameterError, NothingLeftError
from ._constraints import Budget, Limit, NearDuplicates, PerSource

_TIES = {np.dtype(t): TIE_EPS * float(np.finfo(t).eps) for t in (np.float32, np.float64)}


def tie_of(dtype: np.dtype[Any]) -> float:
    """How far apart rounding may put equal cosines."""
    return _TIES[dtype]


Scores = NDArray[np.floating[Any]]


class Pool:
    """The candidates that are not shown, not picked and within all limits.

    Selectors keep their scores in arrays in which a closed candidate stands at -inf; :meth:`close` and
    :meth:`take` put it there.
    """

    __slots__ = ("_limits", "_open", "picks", "shown", "target", "tie")

    def __init__(self, candidates: Candidates, k: int | None, budget: float | None, shown: Iterable[int]) -> None:
        n = len(candidates)
        self.shown = checked_shown(shown, n)
        self.tie = tie_of(candidates.dtype)
        self.picks: list[int] = []
        self._open = True
        available = n - len(self.shown)
        if not available:
            raise NothingLeftError(f"all n={n} candidates are already shown: nothing is left to choose")
        if k is None:
            if budget is None:
                raise InvalidParameterError("give k, or budget, or both: how many candidates are wanted?")
            self.target = available
        else:
            self.target = _k(k, available, n)
        self._limits: list[Limit] = []
        if budget is not None:
            self._limits.append(Budget(candidates, budget, self.shown))
        if candidates.sources is not None and candidates.max_per_source is not None:
            self._limits.append(PerSource(candidates.sources, candidates.max_per_source, self.shown))
        if candidates.drop_near_duplicates is not None:
            self._limits.append(NearDuplicates(candidates, candidates.drop_near_duplicates, self.shown))
        if self._limits and not np.isfinite(self.close(np.zeros(n))).any():
            raise NothingLeftError(f"of n={n} candidates none may be picked: shown, too near to shown, or over a limit")

    @property
    def limited(self) -> bool:
        """Whether there is a limit beyond k: what may be picked then depends on what has been."""
        return bool(self._limits)

    def close(self, scores: Scores) -> Scores:
        """Put all closed candidates of a fresh array of scores at -inf, and return it."""
        if self.shown or self.picks:
            scores[self.shown + self.picks] = -np.inf
        for limit in self._limits:
            scores[limit.closed()] = -np.inf
        return scores

    def more(self) -> bool:
        """Whether another pick is wanted and possible."""
        return self._open and len(self.picks) < self.target

    def best(self, scores: Scores, tie: float | None = None) -> int:
        """The open candidate of the highest score; of those within ``tie`` of it, the lowest index."""
        return lowest(scores, int(scores.argmax()), self.tie if tie is None else tie)

    def take(self, i: int, scores: Scores) -> bool:
        """Pick ``i`` and close it in ``scores``, with whatever no longer fits; whether there is :meth:`more`."""
        self.picks.append(i)
        scores[i] = -np.inf
        if self._limits:
            for limit in self._limits:
                limit.take(i)
                scores[limit.closed()] = -np.inf
            self._open = bool(np.isfinite(scores).any())
        return self._open and len(self.picks) < self.target

    def exchangeable(self) -> NDArray[np.bool_] | None:
        """(picks, n): which candidate may take the place of which pick under the limits; None: any may."""
        if not self._limits:
            return None
        full = len(self.picks) == self.target
        allowed = np.ones(1, dtype=np.bool_)
        for limit in self._limits:
            allowed = allowed & limit.exchangeable(self.picks, full=full)
        return allowed

    def exchange(self, position: int, i: int) -> None:
        """Let candidate ``i`` take the place of the pick at ``position``."""
        for limit in self._limits:
            limit.exchange(self.picks[position], i)
        self.picks[position] = i


def lowest(scores: Scores, best: int, tie: float) -> int:
    """The lowest index of those within ``tie`` of the score at ``best``, which is the highest.

    >>> lowest(np.array([0.1, 0.9, 1.0]), 2, 0.2)
    1
    """
    if best:
        least = scores[best] - tie
        before = scores[:best]
        if before[before.argmax()] >= least:
            return int((before >= least).argmax())
    return best


def _k(k: int, available: int, n: int) -> int:
    count = check_integer(k, "k")
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
    try:
        listed = list(shown)
    except TypeError:
        raise InvalidParameterError(f"shown takes a collection of row numbers, got {shown!r}") from None
    indices = [check_integer(i, "shown") for i in listed]
    for i in indices:
        if not 0 <= i < n:
            raise InvalidParameterError(f"shown holds {i}, but there are n={n} candidates (0..{n - 1})")
    if len(set(indices)) != len(indices):
        raise InvalidParameterError(f"shown names a candidate twice: {indices}")
    return indices
