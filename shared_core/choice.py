"""The choice as adapters make it: what there is, instead of an error, when candidates run short."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .candidates import Candidates
from .checks import integer, number
from .errors import NothingLeftError
from .pool import checked_shown, tie_of
from .selection import Selection, Selector


def choose(
    candidates: Candidates,
    selector: Selector,
    k: int | None,
    *,
    budget: float | None = None,
    shown: Iterable[int] = (),
    score_threshold: float | None = None,
) -> Selection:
    """Choose up to ``k``: below the threshold nothing is chosen, and ``k`` is cut to what is left.

    Parameters
    ----------
    candidates, selector, budget
        See :class:`Candidates` and :class:`Selector`.
    k : int or None
        At most so many, at least 1.
    shown : iterable of int
        Rows that the reader already has; they count whatever their relevance.
    score_threshold : float in [-1, 1], optional
        The least cosine with the query that a pick may have.

    Returns
    -------
    Selection
        Indices are rows of ``candidates``; empty when nothing is left to choose from.

    Raises
    ------
    InvalidParameterError, BudgetError
        As the selector raises them, but for ``k`` above the number of candidates.

    Examples
    --------
    >>> from shared_core import Candidates, VRSD, choose
    >>> c = Candidates([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> choose(c, VRSD(), 5, score_threshold=0.5).indices.tolist()
    [0]
    """
    already = checked_shown(shown, len(candidates))
    kept = None if score_threshold is None else _near(candidates, score_threshold, already)
    available = (len(candidates) if kept is None else len(kept)) - len(already)
    if available <= 0:
        return _NOTHING
    if k is not None:
        k = min(integer(k, "k"), available)
    try:
        return _choose(candidates, selector, k, budget, already, kept)
    except NothingLeftError:
        return _NOTHING


def _near(candidates: Candidates, score_threshold: float, already: list[int]) -> NDArray[np.intp]:
    number(score_threshold, "score_threshold (a cosine)", -1, 1)
    # Copies of the query's own text must not fall out by rounding.
    near = candidates.relevance.astype(np.float64) >= score_threshold - tie_of(candidates.dtype)
    near[already] = True
    return np.flatnonzero(near)


def _choose(
    candidates: Candidates,
    selector: Selector,
    k: int | None,
    budget: float | None,
    already: list[int],
    kept: NDArray[np.intp] | None,
) -> Selection:
    if kept is None or len(kept) == len(candidates):
        return selector.select(candidates, k, budget=budget, shown=already)
    places = {int(row): place for place, row in enumerate(kept)}
    chosen = selector.select(candidates.take(kept), k, budget=budget, shown=[places[row] for row in already])
    indices = kept[chosen.indices].astype(np.int64)
    indices.setflags(write=False)
    return Selection(indices, chosen.gains, chosen.relevance, chosen.objective, chosen.filled_from)


def _nothing() -> Selection:
    indices, values = np.zeros(0, dtype=np.int64), np.zeros(0)
    indices.setflags(write=False)
    values.setflags(write=False)
    return Selection(indices, values, values, 0.0, None)


_NOTHING = _nothing()
