"""Compare every method on a corpus: one search for the candidates of a query, and the picks of every setting."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._argument_names import argument_name
from .._validation import as_numeric, check_integer, quoted
from ..candidates import as_unit_rows
from ..errors import InvalidInputError, InvalidParameterError
from ..selectors.base import Selector, check_selector, default_fetch_k, share_fetch_k
from ..signals.embedding_models import Track, without_progress
from .corpus import Document, Query, as_document, as_query, convert_all
from .hybrid_search import HYBRID_SEARCH, WordIndex, fuse_rankings
from .judging import (
    BEYOND,
    SearchResult,
    JudgedQuery,
    carriers_of,
    check_documents,
    copies_of,
    judge,
    subtopics_of,
)
from .points import find_points
from .recommend import COUNTED, SUBTOPICS_EXAMPLE, check_deciding, recommend
from .results import Comparison, CorpusFacts, QueryChange, Recommendation, Setting, Size, counted
from .settings import Settings, sweep, uses_scores, with_scores
from .sub_questions import ByQuestion, with_merged_lists
from .summary import MeasureValues, allowed_measures, estimate, measure, summarise

Embed: TypeAlias = Callable[[list[str]], ArrayLike]

# Numbers of picks that are judged too if a single one is given.
SIZES = (2, 3, 5, 8, 10)
# The measures that are judged for every number of picks. nDCG of different numbers cannot be compared.
_OF_ALL_SIZES = ("relevance", "redundancy", "precision", "topic_precision", *COUNTED)
# Queries that the result keeps in full, starting with the first, so that the report can show them.
VIEWS = 50
# Queries that lose most, and as many that gain most, which the result keeps in full too.
CHANGES = 5
_PACKAGES = ("numpy", "setselect", "scipy", "ir_measures")
# Cosines that exact search holds in memory together: 64 MB.
_BLOCK = 16_000_000


def compare(
    documents: Iterable[str | Mapping[str, Any] | Document],
    queries: Iterable[str | Mapping[str, Any] | Query],
    embed: Embed | tuple[Embed | ArrayLike, Embed | ArrayLike],
    *,
    k: int | Sequence[int] = 5,
    fetch_k: int | None = None,
    settings: Settings | None = None,
    decide_by: str | None = None,
    drop_duplicates: bool = True,
    model: str = "not named",
    title: str = "Comparison of methods",
    track: Track = without_progress,
    notes: Sequence[str] = (),
) -> Comparison:
    """Compare all methods on your own documents and queries.

    Exact search finds the ``fetch_k`` nearest documents of each query, and every setting picks ``k`` of them. Hybrid
    search, which is the last setting, adds the documents that BM25 finds in the whole corpus.
    :class:`Coverage` reads the words of queries and documents too, and which documents name each other. Documents and
    queries are all that is needed. What the queries hold besides their text (gold ids, subtopics, roots, answers: see
    :class:`Query`) adds measures. If no query has gold ids, subtopics or answers, no winner can be named.

    Parameters
    ----------
    documents : iterable of str, mapping or Document
        Texts, or records with ``text`` and optionally ``id``, ``title`` (put before the text; the name by which
        other texts mention the document), ``subtopics``, ``source`` and ``cost`` (for settings with
        ``max_per_source`` or ``budget``), or both mixed. The default ids are "1", "2", ...
    queries : iterable of str, mapping or Query
        Texts, or records with ``text`` and optionally ``id``, ``gold``, ``subtopics``, ``root``, ``answers``, and
        ``sub_questions``: the sub-questions of this one. They share ``fetch_k`` with the question, and each setting selects
        one set for all of them; plain similarity and hybrid search know the question alone. Two more rows show what
        merged lists give. ``scores`` are those of your own reranker, for two more rows: see
        :func:`~shared_core.evaluation.settings.with_scores`.
    embed : callable, or a pair for documents and queries
        ``embed(texts) -> array-like (n, d)``. In a pair, each is such a function or the vectors themselves: those of
        sub-questions follow that of their question.
        :class:`~shared_core.signals.embedding_models.CachedEmbedding` keeps embeddings on disk.
    k : int or sequence of int
        How many documents are picked, at least 1. Of several numbers, the first is the one that the tables and the
        recommendation are about. With a single number, 2, 3, 5, 8 and 10 picks are judged too, as far as there are so
        many candidates. ``Comparison.sizes`` has what is found with each number.
    fetch_k : int, optional
        How many candidates they are picked from, at least ``k``; by default max(50, 5k), for the largest k that is
        given. At most all documents are candidates.
    settings : sequence of (Setting, Selector), optional
        Default: :func:`~shared_core.evaluation.settings.sweep`. The first must be plain similarity, against which the
        others are tested. Put simpler settings first: see :func:`~shared_core.evaluation.recommend.recommend`.
        :func:`~shared_core.evaluation.settings.named` makes the pairs.
    decide_by : str, optional
        Key of the measure that decides. Default: the first of subtopic recall, answers, p-recall, point recall and
        recall that at least half as many queries allow as any other of them. Point recall is there if many gold
        documents nearly repeat another one of their query: they count as one point.
    drop_duplicates : bool
        Whether documents with the same text count as one, as in the retrievers. Their ids then stand for each other: a
        gold document is found when one of its copies is picked. False keeps them apart.
    model, title : str
        Names for the report.
    track : callable
        ``track(items, description)`` returns the items, and may show a progress bar.
    notes : sequence of str
        Notes for the report. They come before those of the comparison.

    Returns
    -------
    Comparison
        ``partial`` if Ctrl-C interrupted it; the finished queries are compared.

    Raises
    ------
    InvalidInputError
        There are no documents or no queries, two have the same id, no document has any of the queries' gold ids, or the
        vectors are not valid.
    InvalidParameterError
        ``k``, ``fetch_k`` or ``settings`` is no valid value, or ``decide_by`` is not a measure that the queries allow.
        This is checked before anything is embedded.
    ImportError
        The extra ``eval`` is not installed.

    Examples
    --------
    >>> vectors = [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]
    >>> queries = [{"text": "both?", "gold": ["a", "c"]}]
    >>> documents = [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}, {"id": "c", "text": "C"}]
    >>> found = compare(documents, queries, (vectors, [[1.0, 0.9]]), k=2)
    >>> by_label = {setting.label: i for i, setting in enumerate(found.settings)}
    >>> found.values[by_label["similarity"], "recall"].mean, found.values[by_label["vrsd"], "recall"].mean
    (0.5, 0.5)
    """
    need_extra()
    given_sizes, fetch_k = check_options(k, fetch_k, decide_by)
    tried = _check_settings(settings)
    corpus = convert_all(documents, as_document, "documents")
    given = convert_all(queries, as_query, "queries")
    # compare_candidates makes these two checks too, after the texts are embedded.
    _with_rows_of_scores(tried, given)
    check_documents(corpus, [selector for _, selector in tried])
    known = {document.id: document.subtopics for document in corpus}
    cleaned, of_ids = _without_unknown_ids(given, known)
    notes = [*notes, *of_ids]
    most = max(given_sizes)
    if most > len(corpus):
        raise InvalidParameterError(
            f"{argument_name('k')} = {most}, but there are only {counted(len(corpus), 'document')}"
        )
    carriers = carriers_of(corpus)
    subtopics = {query.id: subtopics_of(query, carriers, known) for query in cleaned}
    check_deciding(decide_by, allowed_measures(cleaned, any(subtopics.values())))
    embed_documents, embed_queries = embed if isinstance(embed, tuple) else (embed, embed)
    rows = _as_vectors(embed_documents, [document.text for document in corpus], "documents")
    asked = [text for query in cleaned for text in (query.text, *query.sub_questions)]
    query_rows = _as_vectors(embed_queries, asked, "queries")
    if rows.shape[1] != query_rows.shape[1]:
        raise InvalidInputError(
            f"vectors of documents have length {rows.shape[1]}, those of queries {query_rows.shape[1]}: embed both "
            "with the same model"
        )
    copies = copies_of(corpus)
    row_of = {name: row for row, name in enumerate(known)}
    fetch_k = min(fetch_k, len(corpus))
    ends = np.cumsum([1 + len(query.sub_questions) for query in cleaned]).tolist()
    places = {query.id: slice(end - 1 - len(query.sub_questions), end) for query, end in zip(cleaned, ends, strict=True)}
    nearest = nearest_rows(query_rows, rows, fetch_k)
    by_words = WordIndex([document.text for document in corpus])
    if any(query.sub_questions for query in cleaned):
        notes.append("Hybrid search gets the question without its sub-questions.")

    def candidates_of(query: Query) -> SearchResult:
        place = places[query.id]
        share = share_fetch_k(fetch_k, most, 1 + len(query.sub_questions))
        found = list(dict.fromkeys(nearest[place, :share].ravel().tolist()))
        fused = fuse_rankings([nearest[place.start].tolist(), by_words.best_rows(query.text, fetch_k).tolist()])
        every = list(dict.fromkeys([*found, *fused]))
        position = {row: i for i, row in enumerate(every)}
        return SearchResult(
            query_rows[place],
            [corpus[i] for i in every],
            rows[every],
            subtopics[query.id],
            copies,
            rankings={HYBRID_SEARCH: [position[row] for row in fused]},
            candidates=len(found),
            gold_vectors={name: rows[row_of[name]] for name in query.gold},
        )

    return compare_candidates(
        cleaned,
        candidates_of,
        k=k,
        fetch_k=fetch_k,
        settings=tried,
        decide_by=decide_by,
        drop_duplicates=drop_duplicates,
        documents=len(corpus),
        model=model,
        title=title,
        track=track,
        notes=notes,
    )


def compare_candidates(
    queries: Iterable[str | Mapping[str, Any] | Query],
    candidates_of: Callable[[Query], SearchResult],
    *,
    k: int | Sequence[int] = 5,
    fetch_k: int | None = None,
    settings: Settings | None = None,
    decide_by: str | None = None,
    drop_duplicates: bool = True,
    documents: int | None = None,
    model: str = "not named",
    title: str = "Comparison of methods",
    track: Track = without_progress,
    notes: Sequence[str] = (),
) -> Comparison:
    """Compare all methods on candidates from any search: a vector store, a hybrid search, another retriever.

    Parameters
    ----------
    queries : iterable of str, mapping or Query
        The questions, as in :func:`compare`.
    candidates_of : callable
        ``candidates_of(query) -> SearchResult``: the query's vector, at most ``fetch_k`` documents, and their
        vectors. A query without candidates is left out, and a note says so. If the query has sub-questions, the
        vector has a row for each, shape (q, d), and the documents are those of all searches. Its ``rankings`` become
        further settings: your own hybrid search, for example.
    documents : int, optional
        How many documents the search covers, for the report.
    k, fetch_k, settings, decide_by, drop_duplicates, model, title, track, notes
        See :func:`compare`.

    Returns
    -------
    Comparison
        See :func:`compare`.

    Raises
    ------
    InvalidInputError
        There are no queries, two have the same id, a vector is not valid, no query has candidates, or the queries have
        rankings of different names.
    InvalidParameterError, ImportError
        See :func:`compare`.

    Examples
    --------
    >>> documents = [Document("a", "A"), Document("b", "B"), Document("c", "C")]
    >>> candidates = SearchResult([1.0, 0.9], documents, [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
    >>> found = compare_candidates(["both?"], lambda query: candidates, k=2)
    >>> found.recommendation.setting is None, found.queries[0].picks[0]
    (True, (0, 1))

    With a ranking of your own:

    >>> candidates = replace(candidates, rankings={"my reranker": [2, 0, 1]})
    >>> found = compare_candidates(["both?"], lambda query: candidates, k=2)
    >>> found.settings[-1].label, found.queries[0].picks[len(found.settings) - 1]
    ('my reranker', (2, 1))
    """
    need_extra()
    sizes, fetch_k = check_options(k, fetch_k, decide_by)
    tried = _check_settings(settings)
    given = convert_all(queries, as_query, "queries")
    check_deciding(decide_by, allowed_measures(given, any(query.subtopics or query.gold for query in given)))
    tried = _with_rows_of_scores(tried, given)
    sub_questions = sum(len(query.sub_questions) for query in given)
    if sub_questions:
        tried = with_merged_lists(tried, fetch_k)
    selectors = [selector for _, selector in tried]
    k = sizes[0]
    if len(sizes) == 1:
        sizes += tuple(size for size in SIZES if size <= fetch_k and size != k)

    def judged(query: Query, *, view: bool) -> JudgedQuery | None:
        found = candidates_of(query)
        if not len(found.documents):
            return None
        return judge(query, found, selectors, sizes, drop_duplicates=drop_duplicates, view=view)

    outcomes: list[JudgedQuery] = []
    without_candidates: list[str] = []
    partial = False
    try:
        for query in track(given, "Comparing"):
            outcome = judged(query, view=len(outcomes) < VIEWS)
            if outcome is None:
                without_candidates.append(query.id)
            else:
                outcomes.append(outcome)
                _check_rankings(outcomes[0], outcome)
    except KeyboardInterrupt:
        if not outcomes:
            raise
        partial = True
    if not outcomes:
        raise InvalidInputError(f"no candidates were found for any of {counted(len(given), 'query', 'queries')}")
    outcomes, missing = _check_subtopics(outcomes)
    with_points, repeats = find_points(outcomes)
    if repeats is not None or decide_by == "point_recall":
        outcomes = with_points
    rows = [setting for setting, _ in tried]
    rows += [Setting("ranking", name, None, "the first of this ranking") for name in outcomes[0].rankings]
    columns = measure(outcomes, k)
    keys = _OF_ALL_SIZES if decide_by is None else (*_OF_ALL_SIZES, decide_by)
    of_sizes = {size: measure(outcomes, size, keys) for size in sizes}
    versions = {"python": platform.python_version(), **{package: version(package) for package in _PACKAGES}}
    counts = documents, len(outcomes), len(given)
    reach = _gold_in_reach(outcomes)
    facts = CorpusFacts(*counts, _name_of(model), k, fetch_k, versions, drop_duplicates, sub_questions, reach)
    found = conclude(
        title, facts, rows, outcomes, columns, of_sizes, decide_by=decide_by, repeats=repeats, missing=missing
    )
    shown = [*found.queries]
    hidden = {change.query for change in found.changes} - {view.id for view in shown}
    # Each asks the search again, which may take a while. The comparison is complete without these views.
    with suppress(KeyboardInterrupt):
        again = [judged(query, view=True) for query in given if query.id in hidden]
        shown += [outcome.view for outcome in again if outcome is not None and outcome.view is not None]
    return replace(
        found,
        queries=tuple(shown),
        partial=partial,
        notes=(
            *notes,
            *([missing] if missing is not None and found.recommendation.measure is not None else []),
            *_notes_on_settings(tried, rows, outcomes, k),
            *_notes_on_queries(outcomes, without_candidates, k, drop_duplicates),
        ),
    )


def conclude(
    title: str,
    facts: CorpusFacts,
    settings: Sequence[Setting],
    outcomes: Sequence[JudgedQuery],
    columns: Sequence[MeasureValues],
    of_sizes: Mapping[int, Sequence[MeasureValues]] = MappingProxyType({}),
    *,
    decide_by: str | None = None,
    repeats: str | None = None,
    missing: str | None = None,
) -> Comparison:
    """The comparison of what was picked and measured, with its recommendation; see :func:`recommend`."""
    values, differences = summarise(columns)
    advice = recommend(
        settings, columns, values, differences, of_sizes, decide_by=decide_by, repeats=repeats, missing=missing
    )
    several = (0, "redundancy") in values
    return Comparison(
        title,
        facts,
        tuple(settings),
        tuple(column.measure for column in columns),
        values,
        differences,
        advice,
        relevance=tuple(values[setting, "relevance"].mean for setting in range(len(settings))),
        redundancy=tuple(values[setting, "redundancy"].mean if several else None for setting in range(len(settings))),
        queries=tuple(outcome.view for outcome in outcomes if outcome.view is not None),
        changes=_find_changes(columns, advice, {one.query.id for one in outcomes if one.query.root is not None}),
        sizes=tuple(
            Size(
                size,
                estimate(of_size),
                tuple(np.mean([outcome.sizes[size].characters for outcome in outcomes], axis=0).tolist()),
            )
            for size, of_size in sorted(of_sizes.items())
        ),
    )


def _check_subtopics(outcomes: list[JudgedQuery]) -> tuple[list[JudgedQuery], str | None]:
    """The outcomes, without subtopics that nothing covers in any of them; and what the files lack for subtopics."""
    covering = [ids for outcome in outcomes for ids in outcome.subtopics.values()]
    if any(set(ids) != {BEYOND} for ids in covering):
        return outcomes, None
    if any(outcome.query.subtopics for outcome in outcomes):
        return [replace(outcome, subtopics={}) for outcome in outcomes], (
            "The queries have subtopics, but nothing says which documents cover them. Write the ids of these documents "
            f"into the query, {SUBTOPICS_EXAMPLE}, or write the labels into the documents, "
            '{"id": "a", "text": "...", "subtopics": ["reset"]}.'
        )
    if any(outcome.labelled for outcome in outcomes):
        return outcomes, (
            "The documents carry subtopics, but no query asks for one. Write the labels that each query asks for into "
            'the query, {"subtopics": ["reset", "disk"]}, or write its gold ids: their labels are then its subtopics.'
        )
    return outcomes, None


def _find_changes(
    columns: Sequence[MeasureValues], advice: Recommendation, with_root: Collection[str]
) -> tuple[QueryChange, ...]:
    """The queries that the recommended setting, or else the runner-up, makes worse and better by most."""
    setting = advice.best_other
    if setting is None or advice.measure is None:
        return ()
    [(_, values, names)] = [column for column in columns if column.measure.key == advice.measure_of_changes]
    counts = np.array([advice.measure != "p_recall" or name in with_root for name in names])
    gaps = np.where(counts, values[setting] - values[0], 0.0).round(9)
    worse = [i for i in np.argsort(gaps, kind="stable").tolist() if gaps[i] < 0]
    better = [i for i in np.argsort(-gaps, kind="stable").tolist() if gaps[i] > 0]
    return tuple(
        QueryChange(names[i], float(values[0, i]), float(values[setting, i]))
        for i in (*worse[:CHANGES], *better[:CHANGES])
    )


def need_extra(*packages: str, extra: str = "eval") -> None:
    """Raise the ImportError that names the extra if bm25s, ir_measures, scipy or one of the ``packages`` is missing."""
    missing = [name for name in ("bm25s", "ir_measures", "scipy", *packages) if find_spec(name) is None]
    if missing:
        raise ImportError(f'the comparison needs {", ".join(missing)}: pip install "setselect[{extra}]"')


def nearest_rows(queries: NDArray[np.floating], rows: NDArray[np.floating], fetch_k: int) -> NDArray[np.intp]:
    """(Q, fetch_k): the rows of the highest cosine, best first; equal cosines go to the lower row."""
    # A zero query gets the first rows here. judge() refuses it later, and names its id.
    unit, unit_queries = (as_unit_rows(some, copy=False).astype(np.float32, copy=False) for some in (rows, queries))
    found = []
    step = max(1, _BLOCK // len(unit))
    for start in range(0, len(unit_queries), step):
        cosines = unit_queries[start : start + step] @ unit.T
        # A partition alone would take any of the rows that tie for the last place.
        last = np.partition(cosines, -fetch_k, axis=1)[:, -fetch_k, None]
        above, tied = cosines > last, cosines == last
        taken = above | (tied & (tied.cumsum(axis=1) <= fetch_k - above.sum(axis=1, keepdims=True)))
        near = np.nonzero(taken)[1].reshape(len(cosines), fetch_k)
        order = np.argsort(-np.take_along_axis(cosines, near, axis=1), axis=1, kind="stable")
        found.append(np.take_along_axis(near, order, axis=1))
    return np.concatenate(found)


def _as_vectors(embed: Embed | ArrayLike, texts: list[str], what: str) -> NDArray[np.floating]:
    """One vector for each text, shape (n, d): made by ``embed``, or ``embed`` itself after a check."""
    array = as_numeric(embed(texts) if callable(embed) else embed, f"vectors of {what}")
    if array.ndim != 2 or len(array) != len(texts) or not array.shape[1]:
        raise InvalidInputError(f"vectors of {what} must have shape ({len(texts)}, d), got {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise InvalidInputError(f"vectors of {what}: row {bad[0]} holds NaN or inf")
    rows: NDArray[np.floating] = array if array.dtype.kind == "f" else array.astype(np.float64)
    return rows


def check_options(
    k: int | Sequence[int], fetch_k: int | None, decide_by: str | None = None
) -> tuple[tuple[int, ...], int]:
    """The numbers of picks, and ``fetch_k`` or its default.

    Raises an InvalidParameterError for options that are wrong whatever the corpus is.
    """
    check_deciding(decide_by)
    given = k if isinstance(k, Iterable) and not isinstance(k, str) else [k]
    sizes = tuple(dict.fromkeys(check_integer(one, "k", 1) for one in given))
    if not sizes:
        raise InvalidParameterError(f"{argument_name('k')} holds no number")
    most = max(sizes)
    fetch_k = default_fetch_k(most) if fetch_k is None else check_integer(fetch_k, "fetch_k", 1)
    if fetch_k < most:
        raise InvalidParameterError(
            f"{argument_name('fetch_k')} = {fetch_k} is below {argument_name('k')} = {most}: the picks are made among "
            "the candidates"
        )
    return sizes, fetch_k


def _check_settings(settings: Settings | None) -> list[tuple[Setting, Selector]]:
    tried = sweep() if settings is None else list(settings)
    for _, selector in tried:
        check_selector(selector)
    if not tried or (tried[0][0].method, tried[0][0].parameters) != ("similarity", ()):
        raise InvalidParameterError("the first entry of settings must be plain similarity: named('similarity')")
    return tried


def _name_of(model: str) -> str:
    """The model's name for the report: of a folder only its name, so that the report does not tell where it is."""
    folder = Path(model).expanduser()
    return folder.absolute().name if folder.is_dir() or folder.is_absolute() else model


def _with_rows_of_scores(tried: Settings, queries: Sequence[Query]) -> list[tuple[Setting, Selector]]:
    """The settings, with those for the scores of the queries; an error if some queries have scores and others not."""
    without = [query.id for query in queries if not query.scores]
    if len(without) < len(queries):
        if without:
            raise InvalidInputError(
                f"query {quoted(without[0])} has no scores, but other queries have: score every query, or leave the "
                "scores out"
            )
        return with_scores(tried)
    for setting, selector in tried:
        if uses_scores(selector):
            raise InvalidInputError(f"the setting {quoted(setting.label)} needs scores, and no query has any")
    return list(tried)


def _check_rankings(first: JudgedQuery, other: JudgedQuery) -> None:
    if first.rankings != other.rankings:
        named = " and ".join(
            f"query {quoted(one.query.id)} has {', '.join(map(quoted, one.rankings)) or 'none'}"
            for one in (first, other)
        )
        raise InvalidInputError(f"every query needs the same rankings in the same order, but {named}")


def _notes_on_settings(
    tried: Settings, rows: Sequence[Setting], outcomes: Sequence[JudgedQuery], k: int
) -> Iterator[str]:
    """Notes on settings that get the question alone, select by scores, or pick fewer texts than similarity."""
    alone = [setting.label for setting, selector in tried if isinstance(selector, ByQuestion)]
    if alone:
        yield f"The question without its sub-questions is the query of {', '.join(alone)}."
    by_scores = [setting.label for setting, selector in tried if uses_scores(selector)]
    unscored = sum(outcome.unscored for outcome in outcomes)
    if by_scores and unscored:
        yield (
            f"Without a score: {counted(unscored, 'candidate')}. {' and '.join(by_scores)} select only from the others."
        )
    numbers = np.array([[len(picked) for picked in outcome.sizes[k].picks] for outcome in outcomes])
    fewer = [
        f"{setting.label} {of_setting.mean():.1f}"
        for setting, of_setting in zip(rows, numbers.T, strict=True)
        if (of_setting < numbers[:, 0]).any()
    ]
    if fewer:
        nothing = " A query for which a setting picks nothing has 0 in each measure." if not numbers.all() else ""
        means = ", ".join(fewer)
        yield f"Some settings pick fewer than {counted(k, 'text')}. The mean number of texts is {means}.{nothing}"


def _notes_on_queries(
    outcomes: Sequence[JudgedQuery], without_candidates: Sequence[str], k: int, drop_duplicates: bool
) -> Iterator[str]:
    """Notes on repeated texts, unhelpful words, no candidates, subtopics without documents, and gold out of reach."""
    repeated = sum(outcome.repeated for outcome in outcomes)
    if repeated:
        total = sum(len(outcome.candidates) for outcome in outcomes) + (repeated if drop_duplicates else 0)
        counts = "A text counts once, as in the retrievers" if drop_duplicates else "Every copy counts"
        repeat = "repeats" if repeated == 1 else "repeat"
        yield f"{repeated:,} of {total:,} candidates {repeat} the text of another candidate of their query. {counts}."
    short = [outcome.query.id for outcome in outcomes if outcome.repeated and len(outcome.candidates) < k]
    if short and drop_duplicates:
        yield (
            f"The candidates of {_count(short, 'query', 'queries')} have fewer than {k} different texts, so fewer are "
            "picked. Fetching more candidates can help."
        )
    alone = [outcome.query.id for outcome in outcomes if outcome.only_vectors]
    if alone:
        yield (
            f"The words of {_count(alone, 'query', 'queries')} tell none of the candidates from another, so only the "
            "vectors count there."
        )
    if without_candidates:
        yield f"No candidates were found for {_count(without_candidates, 'query', 'queries')}."
    lost = [label for outcome in outcomes for label in outcome.query.subtopics if label not in outcome.subtopics]
    if lost and any(outcome.subtopics for outcome in outcomes):
        count = _count(lost, "subtopic", "subtopics")
        yield f"No document covers {count} of the queries. The measures leave these out."
    reach = _gold_in_reach(outcomes)
    if reach == 0:
        one = next(outcome for outcome in outcomes if outcome.query.gold)
        yield (
            f"No gold document is among the candidates. A query has the gold id {quoted(one.query.gold[0])}, and a "
            f"candidate has the id {quoted(min(one.candidates))}. If these are ids of one kind, fetch more candidates."
        )
    elif reach is not None and reach < 1:
        yield (
            f"The candidates hold {reach:.1%} of the gold documents: no setting that selects from them can "
            "find more. Fetching more candidates can raise that limit."
        )


def _gold_in_reach(outcomes: Sequence[JudgedQuery]) -> float | None:
    """The mean share of the gold documents of a query that are candidates; None without gold."""
    with_gold = [outcome for outcome in outcomes if outcome.query.gold]
    shares = [len(one.candidates.intersection(one.query.gold)) / len(one.query.gold) for one in with_gold]
    return float(np.mean(shares)) if shares else None


def _without_unknown_ids(queries: Sequence[Query], known: Collection[str]) -> tuple[list[Query], list[str]]:
    """The queries without ids that no document has, and notes on these; an error if no document has any of them."""
    notes = []
    gold = [name for query in queries for name in query.gold]
    covering = [name for query in queries for names in query.subtopics.values() for name in names]
    scored = [name for query in queries for name in query.scores]
    for what, ids in (("gold ids", gold), ("ids under subtopics", covering), ("ids under scores", scored)):
        missing = [name for name in ids if name not in known]
        if missing and len(missing) == len(ids):
            raise InvalidInputError(
                f"none of the {what} of the queries is the id of a document: a query has {quoted(missing[0])}, and the "
                f"first document has the id {quoted(next(iter(known)))}. Write the documents' own ids into the queries"
            )
        if missing:
            notes.append(f"No document has {len(missing)} of the {len(ids)} {what} ({_some(missing)}).")
    cleaned = []
    for query in queries:
        subtopics = {label: tuple(i for i in ids if i in known) for label, ids in query.subtopics.items()}
        # A label whose ids are all unknown is dropped: without ids it would mean the documents that carry the label.
        kept = {label: ids for label, ids in subtopics.items() if ids or not query.subtopics[label]}
        cleaned.append(replace(query, gold=tuple(i for i in query.gold if i in known), subtopics=kept))
    return cleaned, notes


def _count(names: Sequence[str], one: str, many: str) -> str:
    return f"{counted(len(names), one, many)} ({_some(names)})"


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names[:3])) + (", ..." if len(names) > 3 else "")
