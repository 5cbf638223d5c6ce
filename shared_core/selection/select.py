"""``select``: the best set of candidates that are given as arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import check_ranges
from ..candidates import CONSTRAINTS, Candidates, References
from ..errors import InvalidInputError, InvalidParameterError, warn
from ..scaling import Scale
from ..selectors.registry import DEFAULT_SELECTOR, Selector, SelectorName, resolve_selector
from ..selectors.selection import Selection
from ..texts import as_texts
from ..texts.words import as_questions
from .effects import refuse_unknown_parameters, warn_of_no_effect
from .route import DEFAULT_MIN_K, Limits, select_set

# The arguments that are those of Candidates.
_COLUMNS = {"relevance", "quality", "references", "cover", "ids", "costs", "sources", "prefer", *CONSTRAINTS}


def select(
    query: ArrayLike,
    vectors: ArrayLike,
    k: int | None = None,
    selector: SelectorName | str | Selector = DEFAULT_SELECTOR,
    *,
    question: str | Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
    titles: Sequence[str | None] | None = None,
    identifiers: Sequence[str | Iterable[str] | None] | None = None,
    neighbours: Sequence[int | None] | None = None,
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
    max_per_source: int | None = None,
    drop_near_duplicates: float | None = None,
    **parameters: Any,
) -> Selection:
    """Select a set of ``k`` from your own arrays.

    Parameters
    ----------
    query, vectors, relevance, quality, references, cover, ids, costs, sources, prefer
        The candidates and what is known of them, row by row: see :class:`Candidates`. ``relevance="cosine"`` is the
        default. ``references`` replace those in ``texts``.
    k : int, optional
        Size of the set, 1..n. It may be left out if ``budget`` is given.
    selector : str or Selector
        ``"coverage"`` (default), ``"ndpp"``, ``"mmr"``, ``"vrsd"``, ``"similarity"``, another registered name, or an
        object.
    question : str, or sequence of q str, optional
        The query in words; for several queries a string for each. With ``texts``, :class:`Coverage` also counts which
        words of them each text has.
    texts, titles, identifiers, neighbours : sequence of n, optional
        The candidates' texts, for :class:`Coverage`, and how they lead to each other: see :func:`find_references`.
        ``texts`` need ``question``, the others ``texts``, and ``neighbours`` also ``sources``.
    relevance_scale : {"minmax", "rank", "sigmoid", "zscore"} or None
        How the given relevance is scaled for the selector; see :func:`rescale`. None: not at all.
    budget : float, optional
        The sum of ``costs`` that the set must not exceed.
    shown : iterable of int
        Rows that the reader has seen already. The selection continues from them and does not return them.
    min_gain : float in [0, 1], optional
        After ``min_k`` picks, the set ends before the first one whose gain is below this share of the first gain, so it
        may have fewer than ``k`` members. A gain of :class:`Coverage` is a logarithm: e to the power of it is compared
        with ``min_gain``, where 1 is the most relevant candidate by itself, without words and references. Another
        selector whose first gain is not above 0 selects ``k``.
    min_k : int
        The number of members that the set has in any case, if ``min_gain`` is given. With 0 and ``shown`` the set may
        be empty: nothing new is worth enough.
    max_per_source, drop_near_duplicates
        The constraints of :class:`Candidates`, with which the set may have fewer than ``k`` members.
    **parameters
        The selector's own parameters.

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
    >>> select([1.0, 1.0], vectors, k=2).indices.tolist()
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
    values: dict[str, Any] = {
        "question": question, "texts": texts, "titles": titles, "identifiers": identifiers, "neighbours": neighbours,
        "references": references, "cover": cover, "relevance": relevance, "quality": quality, "ids": ids,
        "costs": costs, "sources": sources, "prefer": prefer, "budget": budget, "min_gain": min_gain,
        "max_per_source": max_per_source, "drop_near_duplicates": drop_near_duplicates,
    }  # fmt: skip
    given = {name: value for name, value in values.items() if value is not None}
    try:
        resolved = resolve_selector(selector, parameters)
    except InvalidParameterError:
        refuse_unknown_parameters(select, parameters)
        raise
    if min_k is not DEFAULT_MIN_K:
        given["min_k"] = min_k
    if relevance_scale != "minmax":
        given["relevance_scale"] = relevance_scale
    if given:
        check_ranges({"relevance_scale": relevance_scale, "min_gain": min_gain, "min_k": min_k})
        if (question is None) != (texts is None):
            missing = "texts" if texts is None else "question"
            raise InvalidInputError(f"{missing} is missing: the words need the question and the candidates' texts")
        for name in [name for name in ("titles", "identifiers", "neighbours") if name in given]:
            if texts is None:
                raise InvalidInputError(f"texts is missing: {name} says how the texts lead to each other")
            if references is not None:
                warn(f"{name} has no effect with references, which are used as given")
        warn_of_no_effect(resolved, given, values)
    columns = {name: value for name, value in given.items() if name in _COLUMNS}
    candidates = Candidates(query, vectors, copy=False, **columns)
    split = None
    if question is not None and texts is not None:
        questions, rows = as_questions(question), len(np.atleast_2d(query))
        if not isinstance(question, str) and len(questions) != rows:
            raise InvalidInputError(
                f"question has {len(questions)} strings and query has {rows} rows: pass a string for each row"
            )
        if len(texts) != len(candidates):
            raise InvalidInputError(f"texts must be {len(candidates)}, one for each candidate, got {len(texts)}")
        split = as_texts(texts, titles, identifiers, candidates.sources, neighbours)
    return select_set(
        candidates,
        resolved,
        k,
        question=question or "",
        texts=split,
        relevance_scale=relevance_scale,
        shown=tuple(shown),
        limits=Limits(budget, min_gain=min_gain, min_k=min_k, exactly_k=True),
    )
