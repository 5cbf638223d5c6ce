"""``select``: the best set of candidates that are given as arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import check_ranges
from ..candidates import CONSTRAINTS, Candidates, References
from ..errors import InvalidInputError, warn
from ..scaling import Scale
from ..selectors.ending import DEFAULT_MIN_K
from ..selectors.registry import DEFAULT_SELECTOR, Selector, SelectorName, resolve_selector
from ..selectors.selection import Selection
from ..texts import as_texts
from ..texts.words import as_questions
from .effects import refuse_unknown_parameters, warn_of_no_effect
from .route import Limits, select_set


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
        The candidates' texts. They need ``question``. From them :class:`Coverage` also reads which candidates
        refer to each other; see :func:`find_references`.
    titles : sequence of n str or None, optional
        The names by which the texts refer to each other. If one is missing (None, NaN, NaT, NA, blank), the name is
        read from the beginning of the text. They need ``texts``.
    identifiers : sequence of n str, iterables of str, or None, optional
        The numbers or codes by which the texts cite each other ("4.5.1", "E1042", ``src/io.py``); if one is missing, it
        is read from the beginning of the text. A number means a text of the same one of the ``sources``. They need
        ``texts``; see :func:`find_references`.
    neighbours : sequence of n int or None, optional
        The number of each text in its source: texts of one of the ``sources`` with successive numbers lead to each
        other. They need ``texts`` and ``sources``.
    references : References, or array-like, shape (n, n), in [0, 1], optional
        How clearly candidate i refers to candidate j, for :class:`Coverage`. They replace the references in ``texts``.
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
        Where each candidate comes from, for ``max_per_source``, and for citations by number, with ``texts``. For
        ``max_per_source``, one without a source is a source of its own.
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
        with ``min_gain``, where 1 is the most relevant candidate by itself, without words and references. Another
        selector whose first gain is not above 0 selects ``k``.
    min_k : int
        The number of members that the set has in any case, if ``min_gain`` is given. With 0 and ``shown`` the set may
        be empty: nothing new is worth enough.
    **parameters
        The constraints of :class:`Candidates` (``max_per_source``, ...), with which the set may have fewer than ``k``
        members; and the selector's own: ``word_weight``, ``cover_weight``, ``reference_weight``, ``neighbour_weight``,
        ``ridge`` (Coverage), ``refine`` (VRSD), ``lambda_mult``, ``lambda_b`` (MMR), ``kernel``,
        ``relevance_mapping``, ``temperature``, ``ridge`` (NDPP).

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
    check_ranges({"relevance_scale": relevance_scale, "min_gain": min_gain, "min_k": min_k})
    constraints = {name: parameters.pop(name) for name in CONSTRAINTS if name in parameters}
    refuse_unknown_parameters(select, parameters, CONSTRAINTS)
    resolved = resolve_selector(selector, parameters)
    if (question is None) != (texts is None):
        missing = "texts" if texts is None else "question"
        raise InvalidInputError(f"{missing} is missing: the words need the question and the candidates' texts")
    called = {"titles": titles, "identifiers": identifiers, "neighbours": neighbours}
    for name, column in called.items():
        if column is not None and texts is None:
            raise InvalidInputError(f"texts is missing: {name} says how the texts lead to each other")
        if column is not None and references is not None:
            warn(f"{name} has no effect with references, which are used as given")
    values = {"question": question, "texts": texts, **called, "references": references, "cover": cover}
    values |= {"relevance": relevance, "quality": quality, "costs": costs, "sources": sources, "prefer": prefer}
    values |= {"budget": budget, "min_gain": min_gain, **constraints}
    given = [name for name, value in values.items() if value is not None]
    given += ["min_k"] if min_k != DEFAULT_MIN_K else []
    given += ["relevance_scale"] if relevance_scale != "minmax" else []
    if given:
        warn_of_no_effect(resolved, given, {*values, *CONSTRAINTS})
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
    split = None
    if question is not None and texts is not None:
        questions, rows = as_questions(question), len(np.atleast_2d(query))
        if not isinstance(question, str) and len(questions) != rows:
            raise InvalidInputError(
                f"question has {len(questions)} strings and query has {rows} rows: pass a string for each row"
            )
        for name, column in (("texts", texts), *called.items()):
            if column is not None and len(column) != len(candidates):
                raise InvalidInputError(f"{name} must be {len(candidates)}, one for each candidate, got {len(column)}")
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
