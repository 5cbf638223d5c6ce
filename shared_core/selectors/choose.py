"""``select`` for arrays; ``choose`` for adapters, which selects fewer than k where too few candidates are available."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import check_one_of, read_only
from ..candidates import CONSTRAINTS, TIE_TOLERANCE, Candidates, References
from ..errors import InvalidInputError, NothingLeftError, warn
from ..scaling import SCALES, Scale, rescale
from ..signals.references import check_strings, find_references
from ..signals.words import match_words
from .base import (
    DEFAULT_MIN_K,
    DEFAULT_SELECTOR,
    Selection,
    Selector,
    SelectorName,
    at_rows,
    check_arguments,
    check_worthwhile,
    resolve_selector,
    select_worthwhile,
    uses_references,
    uses_words,
    warn_of_no_effect,
)

_EMPTY = Selection(read_only(np.zeros(0, np.int64)), read_only(np.zeros(0)), read_only(np.zeros(0)), 0.0)


def select(
    query: ArrayLike,
    vectors: ArrayLike,
    k: int | None = None,
    selector: SelectorName | str | Selector = DEFAULT_SELECTOR,
    *,
    question: str | Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
    titles: Sequence[str | None] | None = None,
    references: References | ArrayLike | None = None,
    cover: ArrayLike | Iterable[Any] | None = None,
    relevance: ArrayLike | None = None,
    relevance_scale: Scale | None = "minmax",
    quality: ArrayLike | None = None,
    ids: Iterable[Hashable] | None = None,
    costs: ArrayLike | None = None,
    sources: Iterable[Hashable] | None = None,
    prefer: Iterable[Any] | None = None,
    budget: float | None = None,
    shown: Iterable[int] = (),
    min_gain: float | None = None,
    min_k: int = DEFAULT_MIN_K,
    **parameters: Any,
) -> Selection:
    """Select a set of ``k`` from your own arrays.

    Parameters
    ----------
    query : array-like, shape (d,) or (q, d)
        The query's embedding; or several, one per row: the question first, then its sub-questions. The candidates are
        those that were found for all of them, and the set serves each; see :class:`Candidates`.
    vectors : array-like, shape (n, d)
        The candidates' embeddings, one per row.
    k : int, optional
        Size of the set, 1..n. It may be left out if ``budget`` is given.
    selector : str or Selector
        ``"coverage"`` (default), ``"ndpp"``, ``"mmr"``, ``"vrsd"``, ``"similarity"``, another registered name, or an
        object.
    question : str, or sequence of q str, optional
        The query in words; for several queries a string for each. With ``texts``, :class:`Coverage` also counts which
        words of them each text has.
    texts : sequence of n str, optional
        The candidates' texts. They need ``question``. From them :class:`Coverage` also reads which candidates name
        each other; see :func:`find_references`.
    titles : sequence of n str or None, optional
        The names by which the texts mention each other. If one is None or empty, the name is read from the beginning
        of the text. They need ``texts``.
    references : References, or array-like, shape (n, n), in [0, 1], optional
        How clearly candidate i names candidate j, for :class:`Coverage`. They replace the names in ``texts``.
    cover : array of shape (n, m) in [0, 1], or n values, optional
        Parts that the set has to cover, for :class:`Coverage`: how well each candidate covers each part, or the value
        of each candidate, such as its label. See :class:`Candidates`.
    relevance : array-like, shape (n,), optional
        What each candidate is worth for the query, in place of the cosine: the scores of a reranker or of hybrid
        search. ``"cosine"`` is the default. :class:`VRSD` refuses it.
    relevance_scale : {"minmax", "rank", "sigmoid", "zscore"} or None
        How the given relevance is scaled for the selector; see :func:`rescale`. None: not at all.
    quality : array-like, shape (n,), optional
        How good each candidate is by itself, for :class:`MMR`.
    ids : iterable of n hashables, optional
        Names of the candidates, for messages and for a :class:`LowRankKernel`.
    costs : array-like, shape (n,), optional
        What each candidate takes from the ``budget``.
    sources : iterable of n hashables, optional
        Where each candidate comes from, for ``max_per_source``.
    prefer : iterable of n numbers or dates, optional
        Which one of near-duplicates may be picked, for ``drop_near_duplicates``: the one with the highest value. See
        :class:`Candidates`.
    budget : float, optional
        The sum of ``costs`` that the set must not exceed.
    shown : iterable of int
        Rows that the reader has seen already. The selection continues from them and does not return them.
    min_gain : float in [0, 1], optional
        After ``min_k`` picks, the set ends before the first one whose gain is below this share of the first gain, so it
        may have fewer than ``k`` members. A gain of :class:`Coverage` is a logarithm: e to the power of it is compared
        with ``min_gain``, where 1 is the most relevant candidate by itself, without words and names. Another selector
        whose first gain is not above 0 selects ``k``.
    min_k : int
        The number of members that the set has in any case, if ``min_gain`` is given.
    **parameters
        The constraints of :class:`Candidates` (``max_per_source``, ...), with which the set may have fewer than ``k``
        members; and the selector's own: ``word_weight``, ``cover_weight``, ``bridge_weight``, ``ridge`` (Coverage),
        ``refine`` (VRSD), ``lambda_mult``, ``lambda_b`` (MMR), ``kernel``, ``relevance_mapping``, ``temperature``,
        ``ridge`` (NDPP).

    Returns
    -------
    Selection
        Its ``relevance`` is the cosine with the query, or the relevance that was given, before it was scaled.

    Raises
    ------
    InvalidInputError, InvalidParameterError, BudgetError
        An argument is wrong; the message says which one, what is wrong, and where.
    NothingLeftError
        No candidate can be picked: each was shown before, breaks a constraint, or does not fit into the budget.

    Examples
    --------
    >>> from setselect import select
    >>> vectors = [[1.0, 0.0], [1.0, 0.02], [0.0, 1.0]]
    >>> select([1.0, 0.9], vectors, k=2).indices.tolist()
    [1, 2]
    >>> select([1.0, 0.9], vectors, k=2, selector="similarity").indices.tolist()
    [1, 0]

    A question and a sub-question, which the second pick serves:

    >>> found = select([[1.0, 0.1], [0.1, 1.0]], vectors, k=2, question=["Who made it?", "When was it made?"],
    ...                texts=["Ada made it.", "It was made by Ada.", "That was in 1843."])
    >>> found.indices.tolist(), found.serves.tolist()
    ([1, 2], [0, 1])
    """
    if isinstance(relevance, str) and relevance == "cosine":
        relevance = None
    if relevance_scale is not None:
        check_one_of(relevance_scale, "relevance_scale", SCALES)
    check_worthwhile(min_gain, min_k)
    constraints = {name: parameters.pop(name) for name in CONSTRAINTS if name in parameters}
    check_arguments(select, parameters, CONSTRAINTS)
    resolved = resolve_selector(selector, parameters)
    if (question is None) != (texts is None):
        missing = "texts" if texts is None else "question"
        raise InvalidInputError(f"{missing} is missing: the words need the question and the candidates' texts")
    if titles is not None and texts is None:
        raise InvalidInputError("texts is missing: titles are the names by which the texts mention each other")
    if titles is not None:
        check_strings(titles, "titles", (str, NoneType))
        if references is not None:
            warn("titles has no effect with references, which are used as given")
    read = {"question": question, "titles": titles, "references": references, "cover": cover}
    others = {"costs": costs is not None, "sources": sources is not None, "min_k": min_k != DEFAULT_MIN_K}
    others["relevance_scale"] = relevance_scale != "minmax"
    warn_of_no_effect(
        resolved,
        [*parameters, *(name for name, is_given in others.items() if is_given)],
        quality=quality is not None,
        words=" and ".join(name for name, value in read.items() if value is not None),
        without={
            "word_weight": "question and texts" if texts is None else None,
            "cover_weight": "cover" if cover is None else None,
            "bridge_weight": "texts or references" if texts is None and references is None else None,
            "costs": "budget" if budget is None else None,
            "min_k": "min_gain" if min_gain is None else None,
            "sources": "max_per_source" if constraints.get("max_per_source") is None else None,
            "relevance_scale": "relevance" if relevance is None else None,
        },
    )
    candidates = Candidates(
        query,
        vectors,
        relevance=relevance,
        quality=quality,
        references=references,
        cover=cover,
        ids=ids,
        costs=costs,
        sources=sources,
        prefer=prefer,
        **constraints,
        copy=False,
    )
    if question is not None and texts is not None and uses_words(resolved):
        for name, column in (("texts", texts), ("titles", titles)):
            if column is not None and len(column) != len(candidates):
                raise InvalidInputError(f"{name} must be {len(candidates)}, one for each candidate, got {len(column)}")
        words = match_words(question, texts)
        if not isinstance(question, str) and len(question) != len(np.atleast_2d(query)):
            raise InvalidInputError(
                f"question has {len(question)} strings and query has {len(np.atleast_2d(query))} rows: pass a string "
                "for each row"
            )
        if references is None and uses_references(resolved):
            references = find_references(texts, titles)
        candidates = candidates.with_query(query, words=words, references=references)
    used = candidates
    if relevance is not None:
        used = candidates.with_query(query, rescale(candidates.relevance, relevance_scale))
    select_up_to = partial(resolved.select, used, budget=budget, shown=shown)
    found, _ = select_worthwhile(select_up_to, k, resolved, min_gain, min_k)
    if relevance is None:
        return found
    return replace(found, relevance=read_only(candidates.relevance[found.indices].astype(np.float64)))


def choose(
    candidates: Candidates,
    selector: Selector,
    k: int | None,
    *,
    budget: float | None = None,
    shown: Sequence[int] = (),
    score_threshold: float | None = None,
    threshold_on: ArrayLike | None = None,
) -> Selection:
    """Select up to ``k`` candidates whose relevance is at least ``score_threshold``; the selection may be empty.

    If fewer than ``k`` candidates are available, all of them are selected. If none of them fits into the budget, a
    warning says so. ``shown`` candidates may be below the threshold. ``threshold_on`` (n,) is compared with it in place
    of the relevance, where that was scaled.
    """
    rows = np.arange(len(candidates.vectors))
    if score_threshold is not None:
        relevance = candidates.relevance.astype(np.float64)
        if threshold_on is not None:
            relevance = np.asarray(threshold_on)
        elif not candidates.relevance_given:
            # A threshold of 1 must not drop copies of the query, whose cosine may be 1 minus rounding.
            score_threshold -= TIE_TOLERANCE[candidates.dtype]
        near = relevance >= score_threshold
        near[list(shown)] = True
        rows = np.flatnonzero(near)
        shown = np.searchsorted(rows, list(shown)).tolist()
    available = len(rows) - len(shown)
    if available <= 0:
        return _EMPTY
    some = candidates if score_threshold is None else candidates.take(rows)
    if budget is not None and some.costs is not None and (cheapest := np.delete(some.costs, shown).min()) > budget:
        warn(f"nothing fits into budget={budget:g}: the cheapest candidate costs {cheapest:g}")
    try:
        found = selector.select(some, None if k is None else min(k, available), budget=budget, shown=shown)
    except NothingLeftError:
        return _EMPTY
    return found if score_threshold is None else at_rows(found, rows)
