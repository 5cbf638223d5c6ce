"""The choice from arrays, and as adapters make it: what there is, instead of an error, when candidates run short."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_integer, check_number
from ..arrays import as_numeric
from ..candidates import Candidates
from ..errors import NothingLeftError
from ._greedy import checked_shown, tie_of
from .at_once import select_at_once
from .base import Selection, Selector, resolve_selector


def select(
    query: ArrayLike,
    vectors: ArrayLike,
    k: int | None = None,
    selector: str | Selector = "vrsd",
    *,
    quality: ArrayLike | None = None,
    ids: Iterable[Hashable] | None = None,
    costs: ArrayLike | None = None,
    sources: Iterable[Hashable] | None = None,
    max_per_source: int | None = None,
    drop_near_duplicates: float | None = None,
    budget: float | None = None,
    shown: Iterable[int] = (),
    **parameters: Any,
) -> Selection:
    """Choose a set of ``k`` from your own arrays.

    Parameters
    ----------
    query : array-like, shape (d,)
    vectors : array-like, shape (n, d)
    k : int, optional
        How many, 1..n. May be left out where ``budget`` is given.
    selector : str or Selector
        ``"similarity"``, ``"vrsd"``, ``"mmr"``, ``"ndpp"``, another registered name, or an object.
    quality, ids, costs, sources, max_per_source, drop_near_duplicates
        See :class:`Candidates`. Under the last two there may be fewer than ``k``.
    budget : float, optional
        Sum of ``costs`` that must not be exceeded.
    shown : iterable of int
        Rows that the reader already has: the choice goes on from them and does not return them.
    **parameters
        The selector's own: ``refine`` (VRSD), ``lambda_d`` or ``lambda_mult``, ``lambda_b`` (MMR), ``kernel``,
        ``relevance``, ``temperature`` (NDPP).

    Raises
    ------
    InvalidInputError, InvalidParameterError, BudgetError
        See the classes; each message says what was wrong and where.

    Examples
    --------
    >>> from shared_core import select
    >>> vectors = [[1.0, 0.0], [1.0, 0.02], [0.0, 1.0]]
    >>> select([1.0, 0.9], vectors, k=2).indices.tolist()
    [1, 2]
    >>> select([1.0, 0.9], vectors, k=2, selector="similarity").indices.tolist()
    [1, 0]
    """
    chooser = resolve_selector(selector, parameters)
    rows = vectors if type(vectors) is np.ndarray else as_numeric(vectors, "vectors")
    limited = max_per_source is not None or drop_near_duplicates is not None or budget is not None
    plain = ids is None and costs is None and sources is None and isinstance(shown, tuple) and not shown
    if plain and not limited and k is not None:
        chosen = select_at_once(query, rows, k, chooser, quality)
        if chosen is not None:
            return chosen
    candidates = Candidates.borrow(
        query,
        rows,
        quality=quality,
        ids=ids,
        costs=costs,
        sources=sources,
        max_per_source=max_per_source,
        drop_near_duplicates=drop_near_duplicates,
    )
    return chooser.select(candidates, k, budget=budget, shown=shown)


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
        k = min(check_integer(k, "k"), available)
    try:
        return _choose(candidates, selector, k, budget, already, kept)
    except NothingLeftError:
        return _NOTHING


def _near(candidates: Candidates, score_threshold: float, already: list[int]) -> NDArray[np.intp]:
    check_number(score_threshold, "score_threshold (a cosine)", -1, 1)
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
