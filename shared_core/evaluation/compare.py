"""The comparison of every method on a corpus: each query's candidates once, every setting's picks from them."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from .._validation import check_integer
from ..errors import InvalidInputError, InvalidParameterError
from ..selectors.base import Selector
from ..signals.embedding_cache import Track, untracked
from .judging import Found, Judged, carriers_of, judge, subtopics_in
from .measuring import estimate, measured
from .noting import UNASKED_SUBTOPICS, notes_on, unknown_ids, without_unknown
from .recommend import check_deciding, recommend
from .records import Document, Query, all_of, as_document, as_query
from .results import Comparison, CorpusFacts, Setting
from .searching import Embed, nearest_rows, vectors_of
from .sweep import sweep

Settings: TypeAlias = Sequence[tuple[Setting, Selector]]
_PACKAGES = ("numpy", "setselect", "scipy", "ir_measures")


def compare(
    documents: Iterable[str | Mapping[str, Any] | Document],
    queries: Iterable[str | Mapping[str, Any] | Query],
    embed: Embed | tuple[Embed | ArrayLike, Embed | ArrayLike],
    *,
    k: int = 5,
    fetch_k: int = 50,
    settings: Settings | None = None,
    decide_by: str | None = None,
    model: str = "not named",
    title: str = "Which method when",
    seed: int = 0,
    views: int = 50,
    track: Track = untracked,
    notes: Sequence[str] = (),
) -> Comparison:
    """Compare all methods on your own documents and queries.

    Each query's ``fetch_k`` nearest documents are found by exact search; every setting picks ``k`` of them. Documents
    and queries are all that is needed; what queries bring besides (gold ids, subtopics, roots, answers: see
    :class:`Query`) adds measures, and without any of it no winner can be named.

    Parameters
    ----------
    documents : iterable of str, mapping or Document
        Texts, records with ``text`` and optionally ``id`` and ``subtopics``, or both mixed. Ids are by default their
        places, "1", "2", ...
    queries : iterable of str, mapping or Query
        Likewise; a record may have ``gold``, ``subtopics``, ``root`` and ``answers``.
    embed : callable, or a pair for documents and queries
        ``embed(texts) -> array-like (n, d)``; in a pair each is such a function or the vectors themselves. See
        :class:`CachedEmbedding` for a function with a memory.
    k : int
        How many are picked, at least 1.
    fetch_k : int
        How many they are picked from, at least ``k``; cut to the number of documents.
    settings : sequence of (Setting, Selector), optional
        By default :func:`sweep`; the first must be plain similarity, against which others are tested.
    decide_by : str, optional
        Key of the measure that decides; by default subtopic recall, answers, p-recall or recall, whichever comes first.
    model, title : str
        Stand in the result.
    seed : int
        Of the bootstrap and of the tests.
    views : int
        So many queries, the first ones, are kept in full for looking at.
    track : callable
        ``track(items, description)`` hands the items on, for a progress bar.
    notes : sequence of str
        Stand in the result, before its own.

    Returns
    -------
    Comparison
        ``partial`` where Ctrl-C broke it off: the queries done until then are compared.

    Raises
    ------
    InvalidInputError
        There are no documents or queries, two have one id, or vectors are not what they should be.
    InvalidParameterError
        ``k`` or ``fetch_k`` does not fit, or ``decide_by`` is not among the measures.
    ImportError
        The extra ``eval`` is not installed.

    Examples
    --------
    >>> vectors = [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]
    >>> queries = [{"text": "both?", "gold": ["a", "c"]}]
    >>> documents = [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}, {"id": "c", "text": "C"}]
    >>> found = compare(documents, queries, (vectors, [[1.0, 0.9]]), k=2)
    >>> by_label = {setting.label: i for i, setting in enumerate(found.settings)}
    >>> found.values[by_label["similarity"], "recall"].mean, found.values[by_label["MMR λ .5"], "recall"].mean
    (0.5, 0.5)
    """
    need_extra()
    held = all_of(documents, as_document, "documents")
    asked = all_of(queries, as_query, "queries")
    known = {document.id for document in held}
    notes = [*notes, *unknown_ids(asked, known)]
    asked = [without_unknown(query, known) for query in asked]
    _check(k, fetch_k, decide_by)
    if k > len(held):
        raise InvalidParameterError(f"k = {k}, but there are only {len(held)} documents")
    of_documents, of_queries = embed if isinstance(embed, tuple) else (embed, embed)
    rows = vectors_of(of_documents, [document.text for document in held], "documents")
    wanted = vectors_of(of_queries, [query.text for query in asked], "queries")
    if rows.shape[1] != wanted.shape[1]:
        raise InvalidInputError(
            f"documents have vectors of length {rows.shape[1]}, queries of {wanted.shape[1]}: use one model for both"
        )
    carriers = carriers_of(held)
    labels = {document.id: document.subtopics for document in held}
    if carriers and not any(subtopics_in(query, carriers, labels) for query in asked):
        notes.append(UNASKED_SUBTOPICS)
    nearest = nearest_rows(wanted, rows, min(fetch_k, len(held)))
    places = {query.id: place for place, query in enumerate(asked)}

    def candidates_of(query: Query) -> Found:
        place = places[query.id]
        near = nearest[place]
        return Found(wanted[place], [held[i] for i in near], rows[near], subtopics_in(query, carriers, labels))

    return compare_candidates(
        asked,
        candidates_of,
        k=k,
        fetch_k=min(fetch_k, len(held)),
        settings=settings,
        decide_by=decide_by,
        documents=len(held),
        model=model,
        title=title,
        seed=seed,
        views=views,
        track=track,
        notes=notes,
    )


def compare_candidates(
    queries: Iterable[str | Mapping[str, Any] | Query],
    candidates_of: Callable[[Query], Found],
    *,
    k: int = 5,
    fetch_k: int = 50,
    settings: Settings | None = None,
    decide_by: str | None = None,
    documents: int | None = None,
    model: str = "not named",
    title: str = "Which method when",
    seed: int = 0,
    views: int = 50,
    track: Track = untracked,
    notes: Sequence[str] = (),
) -> Comparison:
    """As :func:`compare`, with candidates from anywhere: a vector store, a hybrid search, another retriever.

    Parameters
    ----------
    queries : iterable of str, mapping or Query
    candidates_of : callable
        ``candidates_of(query) -> Found``: vector, documents and their vectors, at most ``fetch_k`` of them. A query
        for which there are none is left out, and a note says so.
    documents : int, optional
        How many there are to search, for the record.
    k, fetch_k, settings, decide_by, model, title, seed, views, track, notes
        As :func:`compare`.

    Raises
    ------
    InvalidInputError, InvalidParameterError, ImportError
        As :func:`compare`; also where there are no candidates for any query.

    Examples
    --------
    >>> documents = [Document("a", "A"), Document("b", "B"), Document("c", "C")]
    >>> found = compare_candidates(
    ...     ["both?"], lambda query: Found([1.0, 0.9], documents, [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]), k=2
    ... )
    >>> found.recommendation.setting is None, found.queries[0].picks[0]
    (True, (0, 1))
    """
    need_extra()
    asked = all_of(queries, as_query, "queries")
    _check(k, fetch_k, decide_by)
    tried = list(sweep() if settings is None else settings)
    if not tried or tried[0][0].method != "similarity":
        raise InvalidParameterError("the first of settings must be plain similarity: named('similarity', TopK())")
    selectors = [selector for _, selector in tried]
    outcomes: list[Judged] = []
    empty: list[str] = []
    partial = False
    try:
        for query in track(asked, "Comparing"):
            found = candidates_of(query)
            if len(found.documents):
                outcomes.append(judge(query, found, selectors, k, view=len(outcomes) < views))
            else:
                empty.append(query.id)
    except KeyboardInterrupt:
        if not outcomes:
            raise
        partial = True
    if not outcomes:
        raise InvalidInputError(f"no candidates were found for any of {len(asked)} queries")
    table = measured(outcomes, k)
    values = {
        (setting, column.measure.key): estimate(column.values[setting], seed)
        for column in table
        for setting in range(len(tried))
    }
    redundant = any(column.measure.key == "redundancy" for column in table)
    return Comparison(
        title,
        CorpusFacts(documents, len(outcomes), len(asked), model, k, fetch_k, seed, _versions()),
        tuple(setting for setting, _ in tried),
        tuple(column.measure for column in table),
        values,
        recommend([setting for setting, _ in tried], table, decide_by=decide_by, seed=seed),
        relevance=tuple(values[setting, "relevance"].mean for setting in range(len(tried))),
        redundancy=tuple(values[s, "redundancy"].mean if redundant else None for s in range(len(tried))),
        queries=tuple(judged.view for judged in outcomes if judged.view is not None),
        partial=partial,
        notes=(*notes, *notes_on(outcomes, empty)),
    )


def need_extra() -> None:
    """Raise the ImportError that names the extra, before anything takes time.

    >>> need_extra()
    """
    for package in ("scipy", "ir_measures"):
        if find_spec(package) is None:
            raise ImportError(f'the comparison needs {package}: pip install "setselect[eval]"')


def _check(k: int, fetch_k: int, decide_by: str | None) -> None:
    check_deciding(decide_by)
    if check_integer(fetch_k, "fetch_k") < check_integer(k, "k"):
        raise InvalidParameterError(f"fetch_k = {fetch_k} is below k = {k}: there must be something to choose from")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
