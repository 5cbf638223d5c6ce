"""What all greedy selectors share: the open candidates, the picks, and the rule for equal scores."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_integer
from ..candidates import TIE_TOLERANCE, Candidates
from ..errors import InvalidParameterError, NothingLeftError, quoted, warn
from ._constraints import make_constraints
from .selection import Selection, make_selection

Scores = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]


class GreedyState:
    """The candidates that are open: neither shown, nor picked, nor forbidden by a constraint.

    k, the budget and ``shown`` are checked here, for every selector. Selectors keep their scores in arrays.
    :meth:`close` and :meth:`take` set closed candidates to -inf there.
    """

    def __init__(self, candidates: Candidates, k: int | None, budget: float | None, shown: Iterable[int]) -> None:
        n, self.shown = len(candidates.vectors), [*shown]
        if self.shown:
            self.shown = _check_shown(self.shown, n)
        self.picks: list[int] = []
        self.tie = TIE_TOLERANCE[candidates.vectors.dtype]
        self._any_open = True
        available = n - len(self.shown)
        if not available:
            raise NothingLeftError(f"all n={n} candidates are already shown: nothing is left to select")
        if k is None and budget is None:
            raise InvalidParameterError("give k, budget or both: they determine how many candidates are selected")
        self.target = available if k is None else check_integer(k, "k")
        if not 1 <= self.target <= available:
            others = f" ({len(self.shown)} of {n} candidates are already shown)" if self.shown else ""
            raise InvalidParameterError(f"k must be in 1..n, got k={self.target} with n={available}{others}")
        self.constraints = make_constraints(candidates, budget, self.shown)
        if self.constraints and not np.isfinite(self.close(np.zeros(n))).any():
            raise NothingLeftError(
                f"none of n={n} candidates can be picked: each was shown before, or breaks a constraint"
            )

    def close(self, scores: Scores) -> Scores:
        """Set all closed candidates of a new array of scores to -inf, and return it."""
        if self.shown or self.picks:
            scores[self.shown + self.picks] = -np.inf
        for constraint in self.constraints:
            scores[constraint.closed()] = -np.inf
        return scores

    def more(self) -> bool:
        """Whether another pick is wanted and possible."""
        return self._any_open and len(self.picks) < self.target

    def take(self, i: int, scores: Scores) -> None:
        """Pick ``i``; close it in ``scores``, with every candidate that a constraint now forbids."""
        self.picks.append(i)
        scores[i] = -np.inf
        if self.constraints:
            for constraint in self.constraints:
                constraint.take(i)
                scores[constraint.closed()] = -np.inf
            self._any_open = bool(np.isfinite(scores).any())


def select_greedily(
    candidates: Candidates,
    score: Callable[[list[int]], ArrayLike],
    k: int | None = None,
    *,
    budget: float | None = None,
    shown: Iterable[int] = (),
) -> Selection:
    """Pick the candidate of the highest score, again and again; for authors of selectors.

    The picks keep to ``budget``, ``shown`` and the constraints of the candidates. Of equal scores, up to rounding, the
    first candidate counts.

    Parameters
    ----------
    candidates, k, budget, shown
        The arguments of :meth:`Selector.select`.
    score : callable
        ``score(rows)`` gets the rows of the ``shown`` candidates and of the picks so far. It returns what each of the n
        candidates would add, shape (n,), which is the gain of the one that is picked.

    Returns
    -------
    Selection

    Examples
    --------
    >>> from setselect import Candidates, select_greedily
    >>> c = Candidates([1.0, 0.5], [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> def unlike_the_last(rows):
    ...     return c.relevance - (c.vectors @ c.vectors[rows[-1]] if rows else 0)
    >>> select_greedily(c, unlike_the_last, 2, shown=[0]).indices.tolist()
    [2, 1]
    """
    state, gains = GreedyState(candidates, k, budget, shown), []
    while state.more():
        scores = state.close(np.array(score(state.shown + state.picks), np.float64))
        i = lowest_of_best(scores, state.tie)
        gains.append(float(scores[i]))
        state.take(i, scores)
    return make_selection(candidates, state.picks, gains)


def lowest_of_best(scores: Scores, tie: float) -> int:
    """The lowest index whose score is within ``tie`` of the highest."""
    return int((scores >= scores[scores.argmax()] - tie).argmax())


def _check_shown(shown: Iterable[int], n: int) -> list[int]:
    indices = [check_integer(i, "shown") for i in shown]
    for i in indices:
        if not 0 <= i < n:
            raise InvalidParameterError(f"shown holds {i}, but there are n={n} candidates (0..{n - 1})")
    if len(set(indices)) != len(indices):
        raise InvalidParameterError(f"shown names a candidate twice: {quoted(indices)}")
    return indices


_numba_failed = False


def compiled_loops() -> ModuleType | None:
    """The compiled loops; None if numba is missing, switched off (``NUMBA_DISABLE_JIT=1``) or has failed.

    numba is imported by the first selection and not with the package: the import takes 0.2 to 0.4 seconds.
    """
    return None if _numba_failed else _import_loops()


@functools.cache
def _import_loops() -> ModuleType | None:
    try:
        import numba

        if getattr(numba.config, "DISABLE_JIT", 0):
            return None
        from . import _compiled
    except ModuleNotFoundError:
        return None
    # Any exception: numba raises ImportError for a numpy that it does not support, SystemError for one that it was not
    # built for, and OSError for a library that cannot be loaded.
    except Exception as error:
        _leave_to_numpy(error)
        return None
    return _compiled


def run_compiled(name: str, *arguments: Any) -> int | None:
    """The number of picks of the compiled loop of this name; None: numba is missing or has failed."""
    loops = compiled_loops()
    if loops is None:
        return None
    try:
        count: int = getattr(loops, name)(*arguments)
    # Any exception: at the first call numba reads its machine code from disk, or compiles and saves it. A full disk
    # raises OSError, and a damaged file raises what pickle raises.
    except Exception as error:
        _leave_to_numpy(error)
        return None
    return count


def _leave_to_numpy(error: Exception) -> None:
    global _numba_failed
    _numba_failed = True
    warn(
        f"numba is installed but cannot be used ({type(error).__name__}: {quoted(str(error))}). Until this process "
        "ends, numpy makes the same selections, more slowly. If a new process warns too, repair or uninstall numba, "
        "free space on the disk, or set NUMBA_CACHE_DIR to another folder for the machine code"
    )
