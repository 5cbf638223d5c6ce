"""``select`` for arrays; ``choose`` for adapters, which returns a smaller set if there are too few candidates."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import as_column, check_integer, check_number, read_only
from ..candidates import Candidates, check_candidates, tie_tolerance
from ..errors import NothingLeftError
from ..scaling import Scale, rescale
from ._greedy import check_shown
from .base import DEFAULT_SELECTOR, Selection, Selector, check_selector, resolve_selector, warn_of_no_effect

_EMPTY = Selection(read_only(np.zeros(0, np.int64)), read_only(np.zeros(0)), read_only(np.zeros(0)), 0.0)


def select(
    query: ArrayLike,
    vectors: ArrayLike,
    k: int | None = None,
    selector: str | Selector = DEFAULT_SELECTOR,
    *,
    relevance: ArrayLike | None = None,
    relevance_scale: Scale | None = "minmax",
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
    """Select a set of ``k`` from your own arrays.

    Parameters
    ----------
    query : array-like, shape (d,)
    vectors : array-like, shape (n, d)
    k : int, optional
        Size of the set, 1..n. It may be left out if ``budget`` is given.
    selector : str or Selector
        ``"ndpp"`` (default), ``"mmr"``, ``"vrsd"``, ``"similarity"``, another registered name, or an object.
    relevance : array-like, shape (n,), optional
        What each candidate is worth for the query, in place of the cosine: the scores of a reranker or of hybrid
        search. :class:`VRSD` refuses it.
    relevance_scale : {"minmax", "rank", "sigmoid"} or None
        How the given relevance is mapped to [0, 1] for the selector; see :func:`rescale`. None: not at all.
    quality, ids, costs, sources, max_per_source, drop_near_duplicates
        See :class:`Candidates`. With the last two the set may have fewer than ``k`` members.
    budget : float, optional
        The sum of ``costs`` that the set must not exceed.
    shown : iterable of int
        Rows that the reader has seen already. The selection continues from them and does not return them.
    **parameters
        The selector's own: ``refine`` (VRSD), ``lambda_mult``, ``lambda_b`` (MMR), ``kernel``,
        ``relevance_mapping``, ``temperature``, ``ridge`` (NDPP).

    Returns
    -------
    Selection
        Its ``relevance`` is the cosine with the query, or the relevance that was given, before it was scaled.

    Raises
    ------
    InvalidInputError, InvalidParameterError, BudgetError
        An argument is wrong; the message says which one, what is wrong, and where.

    Examples
    --------
    >>> from setselect import select
    >>> vectors = [[1.0, 0.0], [1.0, 0.02], [0.0, 1.0]]
    >>> select([1.0, 0.9], vectors, k=2).indices.tolist()
    [1, 2]
    >>> select([1.0, 0.9], vectors, k=2, selector="similarity").indices.tolist()
    [1, 0]
    """
    resolved = resolve_selector(selector, parameters)
    warn_of_no_effect(resolved, parameters, quality=quality is not None)
    candidates = Candidates(
        query,
        vectors,
        relevance=None if relevance is None else rescale(relevance, relevance_scale),
        quality=quality,
        ids=ids,
        costs=costs,
        sources=sources,
        max_per_source=max_per_source,
        drop_near_duplicates=drop_near_duplicates,
        copy=False,
    )
    found = resolved.select(candidates, k, budget=budget, shown=shown)
    if relevance is None:
        return found
    return replace(found, relevance=read_only(rescale(relevance, None)[found.indices]))


def choose(
    candidates: Candidates,
    selector: Selector,
    k: int | None,
    *,
    budget: float | None = None,
    shown: Iterable[int] = (),
    score_threshold: float | None = None,
    threshold_on: ArrayLike | None = None,
) -> Selection:
    """Select up to ``k`` candidates whose relevance is at least ``score_threshold``.

    If fewer than ``k`` candidates are available, all of them are selected.

    Parameters
    ----------
    candidates : Candidates
    selector : Selector
    k : int or None
        The most that are selected, at least 1. It may be None if ``budget`` is given.
    budget : float, optional
        The sum of the candidates' costs that the set must not exceed.
    shown : iterable of int
        Rows that the reader has seen already. ``score_threshold`` does not apply to them.
    score_threshold : float, optional
        The lowest relevance that a pick may have; in [-1, 1] if that is the cosine with the query.
    threshold_on : array-like, shape (n,), optional
        What ``score_threshold`` is compared with; by default the candidates' relevance. If that was scaled, pass the
        relevance as it was before.

    Returns
    -------
    Selection
        Indices are rows of ``candidates``. It is empty when no candidate is available.

    Raises
    ------
    InvalidParameterError, BudgetError
        As :meth:`Selector.select`, but a ``k`` above the number of candidates is no error.

    Examples
    --------
    >>> from setselect import Candidates, VRSD
    >>> from shared_core.selectors.choose import choose
    >>> c = Candidates([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> choose(c, VRSD(), 5, score_threshold=0.5).indices.tolist()
    [0]
    """
    check_selector(selector)
    already = check_shown(shown, len(check_candidates(candidates)))
    kept = None
    if score_threshold is not None:
        if candidates.relevance_given or threshold_on is not None:
            score_threshold = check_number(score_threshold, "score_threshold")
            on = candidates.relevance if threshold_on is None else threshold_on
            near = as_column(on, len(candidates), "threshold_on") >= score_threshold
        else:
            score_threshold = check_number(score_threshold, "score_threshold (a cosine)", -1, 1)
            # A threshold of 1 must not drop copies of the query, whose cosine may be 1 minus rounding.
            near = candidates.relevance.astype(np.float64) >= score_threshold - tie_tolerance(candidates.dtype)
        near[already] = True
        kept = np.flatnonzero(near)
    available = (len(candidates) if kept is None else len(kept)) - len(already)
    if available <= 0:
        return _EMPTY
    if k is not None:
        k = min(check_integer(k, "k"), available)
    try:
        if kept is None:
            return selector.select(candidates, k, budget=budget, shown=already)
        place = {row: number for number, row in enumerate(kept.tolist())}
        found = selector.select(candidates.take(kept), k, budget=budget, shown=[place[row] for row in already])
        return replace(found, indices=read_only(kept[found.indices].astype(np.int64)))
    except NothingLeftError:
        return _EMPTY
