"""The choice as adapters make it: what there is, instead of an error, when candidates run short."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .candidates import Candidates
from .checks import integer, number
from .pool import checked_shown
from .selection import Selection, Selector

_NOTHING = np.zeros(0)


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
    kept = np.arange(len(candidates))
    if score_threshold is not None:
        number(score_threshold, "score_threshold (a cosine)", -1, 1)
        near = candidates.relevance >= score_threshold
        near[already] = True
        kept = np.flatnonzero(near)
    available = len(kept) - len(already)
    if available <= 0:
        return _empty()
    if k is not None:
        k = min(integer(k, "k"), available)
    if len(kept) == len(candidates):
        return selector.select(candidates, k, budget=budget, shown=already)
    places = {int(row): place for place, row in enumerate(kept)}
    chosen = selector.select(candidates.take(kept), k, budget=budget, shown=[places[row] for row in already])
    indices = kept[chosen.indices].astype(np.int64)
    indices.setflags(write=False)
    return Selection(indices, chosen.gains, chosen.relevance, chosen.objective, chosen.filled_from)


def _empty() -> Selection:
    nothing = _NOTHING
    nothing.setflags(write=False)
    return Selection(nothing.astype(np.int64), nothing, nothing, 0.0, None)
