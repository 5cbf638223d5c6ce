"""Compare every method on a corpus: one search for the candidates of a query, and the picks of every setting."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import as_numeric, check_integer
from ..candidates import as_unit_rows
from ..errors import InvalidInputError, InvalidParameterError, VectorSourceError, argument_name
from ..selection.route import DEFAULT_EXTRA_K, default_fetch_k
from ..selectors.registry import check_selector
from ..signals.embedding_models import Track, without_progress
from ..texts.word_index import WordIndex
from .advice import COUNTED, check_deciding, describe_change, list_notes, recommend
from .corpus import Document, Query, as_document, as_query, convert_all
from .diagnosis import Diagnosis, SearchByVector, diagnose, search_documents
from .judging import JudgedQuery, SearchResult, copies_of, found_documents, judge
from .results import Comparison, CorpusFacts, QueryChange, Recommendation, Replacement, Setting, Size, counted, percent
from .settings import HYBRID_SEARCH, SUM_OF_SCORES, Settings, as_adapted, sweep
from .summary import (
    MeasureValues,
    allowed_measures,
    count_parts,
    estimate,
    find_points,
    gold_in_reach,
    measure,
    summarise,
    without_unknown_ids,
)

Embed: TypeAlias = Callable[[list[str]], ArrayLike]

# Numbers of picks that are judged too if a single one is given.
SIZES = (2, 3, 5, 8, 10)
# The measures that are judged for every number of picks. nDCG of different numbers cannot be compared.
_OF_ALL_SIZES = ("relevance", "redundancy", "precision", "topic_precision", *COUNTED)
# Queries that the result keeps in full, starting with the first, so that the report can show them.
VIEWS = 50
# Queries that lose most, and as many that gain most, which the result keeps in full too.
CHANGES = 5
# Cosines that exact search holds in memory together: 64 MB.
_BLOCK = 16_000_000
_PACKAGES = ("numpy", "setselect", "scipy")


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
) -> Comparison:
    """Compare all methods on your own documents and queries.

    Exact search finds the ``fetch_k`` nearest documents of each query, and every setting picks ``k`` of them. Settings
    with ``keyword_search``, hybrid search and the sum of scores pick from the 25 documents, too, that BM25 finds in the
    whole corpus. Documents and queries are all that is needed. What the queries hold besides their text (gold ids,
    subtopics: see :class:`Query`) adds measures; without any of it, no row can be called the best.

    Parameters
    ----------
    documents : iterable of str, mapping or Document
        Texts, or records with the keys of :func:`~shared_core.evaluation.corpus.read_documents`, or both mixed. The
        default ids are "1", "2", ...
    queries : iterable of str, mapping or Query
        Texts, or records with the keys of :func:`~shared_core.evaluation.corpus.read_queries`.
    embed : callable, or a pair for documents and queries
        ``embed(texts) -> array-like (n, d)``. In a pair, each is such a function or the vectors themselves.
    k : int or sequence of int
        How many documents are picked. Of several numbers, the first is the one that the tables and the best row are
        about. With a single number, 2, 3, 5, 8 and 10 picks are judged too.
    fetch_k : int, optional
        How many candidates they are picked from; by default max(50, 5k), for the largest k that is given.
    settings : sequence of (Setting, Selector), optional
        Default: :func:`~shared_core.evaluation.settings.sweep`. The first must be plain similarity, against which the
        others are tested. Put simpler settings first. :func:`~shared_core.evaluation.settings.named` makes the pairs.
    decide_by : str, optional
        Key of the measure that decides. Default: the first of subtopic recall, point recall and recall that at least
        half as many queries allow as any other of them. Point recall is there if many gold documents nearly repeat
        another one of their query: they count as one point.
    drop_duplicates : bool
        Whether documents with the same text count as one, as in the retrievers. Their ids then stand for each other.
    model, title : str
        Names for the report.
    track : callable
        ``track(items, description)`` returns the items, and may show a progress bar.

    Returns
    -------
    Comparison

    Raises
    ------
    InvalidInputError, InvalidParameterError
        An id, a vector or an option is not valid, or no document has any of the gold ids. Vectors are checked last.

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
    corpus = convert_all(documents, as_document, "documents")
    row_of = {document.id: row for row, document in enumerate(corpus)}
    cleaned, of_ids = without_unknown_ids(convert_all(queries, as_query, "queries"), row_of)
    sizes, planned = check_options(k, fetch_k)
    most, reached = max(sizes), min(planned, len(corpus))
    if most > len(corpus):
        raise InvalidParameterError(
            f"{argument_name('k')} = {most}, but there are only {counted(len(corpus), 'document')}"
        )
    copies = copies_of(corpus, (document.text for document in corpus))

    @cache
    def search_all() -> tuple[NDArray[np.floating], dict[str, Any], WordIndex]:
        """The vectors of the documents; for each query its vector and the nearest rows; and an index of words."""
        embed_documents, embed_queries = embed if isinstance(embed, tuple) else (embed, embed)
        rows = _as_vectors(embed_documents, [document.text for document in corpus], "documents")
        vectors = _as_vectors(embed_queries, [query.text for query in cleaned], "queries")
        if rows.shape[1] != vectors.shape[1]:
            raise InvalidInputError(
                f"vectors of documents have length {rows.shape[1]}, those of queries {vectors.shape[1]}: embed both "
                "with the same model"
            )
        nearest = nearest_rows(vectors, rows, reached).tolist()
        searches = {query.id: found for query, *found in zip(cleaned, vectors, nearest, strict=True)}
        return rows, searches, WordIndex([document.text for document in corpus])

    def candidates_of(query: Query) -> SearchResult:
        rows, searches, word_index = search_all()
        vector, near = searches[query.id]
        extra = word_index.best_rows(query.text, DEFAULT_EXTRA_K)[0].tolist()
        every = list(dict.fromkeys([*near, *extra]))
        position = {row: i for i, row in enumerate(every)}
        return SearchResult(
            vector,
            [corpus[i] for i in every],
            rows[every],
            copies,
            candidates=len(near),
            by_words=[position[row] for row in extra],
            bm25=word_index.score(query.text)[every],
            weigh=word_index.weigh,
            gold_vectors={name: rows[row_of[name]] for name in query.gold},
        )

    found = compare_candidates(
        cleaned,
        candidates_of,
        k=k,
        fetch_k=reached,
        settings=settings,
        decide_by=decide_by,
        drop_duplicates=drop_duplicates,
        documents=len(corpus),
        model=model,
        title=title,
        track=track,
    )
    titled = sum(bool(one.title) and one.text.startswith(one.title) for one in corpus)
    notes = [f"Titles were put before the texts of {titled:,} of {counted(len(corpus), 'document')}."] if titled else []
    return replace(found, notes=(*of_ids, *notes, *found.notes))


def diagnose_documents(
    documents: Iterable[str | Mapping[str, Any] | Document],
    embed: Embed | ArrayLike,
    *,
    k: int = 5,
    fetch_k: int | None = None,
    title: str = "Diagnosis of a corpus",
    track: Track = without_progress,
) -> Diagnosis:
    """What your documents hold: copies, near copies, sources, and which texts lead to others. No query is needed.

    The arguments are those of :func:`compare`; ``embed`` may be the vectors (n, d).

    >>> found = diagnose_documents(["A port.", "A port.", "A hill."], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> found.findings[0].key, round(found.findings[0].share, 2)
    ('copies', 0.67)
    """
    _, fetch_k = check_options(k, fetch_k)
    corpus = convert_all(documents, as_document, "documents")
    rows = _as_vectors(embed, [document.text for document in corpus], "documents")
    search, fetch_k = search_documents(corpus, rows), min(fetch_k, len(corpus))
    return diagnose(search, rows.shape[1], title=title, documents=len(corpus), fetch_k=fetch_k, track=track)


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
) -> Comparison:
    """Compare all methods on what ``candidates_of(query)`` finds; the other arguments are those of :func:`compare`.

    A query without candidates is left out, and a note says so. ``documents`` is how many the search covers.
    """
    need_extra()
    sizes, fetch_k = check_options(k, fetch_k, decide_by)
    given = convert_all(queries, as_query, "queries")
    check_deciding(decide_by, allowed_measures(given))
    tried = list(sweep() if settings is None else settings)
    for _, selector in tried:
        check_selector(selector)
    if not tried or (tried[0][0].method, tried[0][0].parameters) != ("similarity", ()):
        raise InvalidParameterError("the first entry of settings must be plain similarity: named('similarity')")
    selectors = [selector for _, selector in tried]
    k = sizes[0]
    if len(sizes) == 1:
        sizes += tuple(size for size in SIZES if size <= fetch_k and size != k)

    # A corpus is embedded by this call: after all checks, and before the progress bar begins.
    first = candidates_of(given[0])

    def judge_query(query: Query, *, view: bool) -> JudgedQuery | None:
        candidates = first if query is given[0] else candidates_of(query)
        if not len(candidates.documents):
            return None
        return judge(query, candidates, selectors, sizes, drop_duplicates=drop_duplicates, view=view)

    outcomes: list[JudgedQuery] = []
    without_candidates: list[str] = []
    for query in track(given, "Comparing"):
        outcome = judge_query(query, view=len(outcomes) < VIEWS)
        if outcome is None:
            without_candidates.append(query.text)
        else:
            outcomes.append(outcome)
    if not outcomes:
        raise InvalidInputError(f"no candidates were found for any of {counted(len(given), 'query', 'queries')}")
    planned, searched = tried, outcomes[0].by_words
    tried = [one for one in planned if searched or not as_adapted(one[1]).keyword_search]
    with_points, repeats = find_points(outcomes)
    if repeats is not None or decide_by == "point_recall":
        outcomes = with_points
    rows = [setting for setting, _ in tried]
    rows += [Setting("ranking", name, "the first of this ranking") for name in (HYBRID_SEARCH, SUM_OF_SCORES)]
    columns = measure(outcomes, k)
    keys = _OF_ALL_SIZES if decide_by is None else (*_OF_ALL_SIZES, decide_by)
    of_sizes = {size: measure(outcomes, size, keys) for size in sorted(sizes)}
    values, differences = summarise(columns)
    texts = {outcome.query.id: outcome.query.text for outcome in outcomes}
    parts = count_parts(outcomes)
    advice = recommend(
        rows, columns, values, differences, texts=texts, parts=parts, decide_by=decide_by, repeats=repeats
    )
    replacements = tuple(_count_replaced(outcomes, k, setting) for setting in range(len(rows)))
    if advice.measure is None:
        advice = replace(advice, claims=(*advice.claims, *describe_change(rows, replacements, k)))
    changes = _find_changes(columns, advice)
    named = {change.query for change in changes} | {to.worst_query for to in differences.values()}
    named |= {query for replacement in replacements for query, _ in replacement.most}
    views = [outcome.view for outcome in outcomes if outcome.view is not None]
    hidden = {change.query for change in changes} - {view.id for view in views}
    # Each asks the search again.
    again = [judge_query(query, view=True) for query in given if query.id in hidden]
    views += [outcome.view for outcome in again if outcome is not None and outcome.view is not None]
    lengths = {size: np.mean([one.sizes[size].values["characters"] for one in outcomes], axis=0) for size in of_sizes}
    versions = {"python": platform.python_version(), **{package: version(package) for package in _PACKAGES}}
    of_corpus = documents, len(outcomes), _name_of(model), k, fetch_k, versions
    return Comparison(
        title,
        CorpusFacts(*of_corpus, gold_in_reach(outcomes)),
        tuple(rows),
        tuple(column.measure for column in columns),
        values,
        differences,
        advice,
        tuple(views),
        changes,
        tuple(Size(size, estimate(of_size), tuple(lengths[size].tolist())) for size, of_size in of_sizes.items()),
        tuple(list_notes(planned, rows, outcomes, without_candidates, k, drop_duplicates)),
        replacements,
        {query: text for query, text in texts.items() if query in named},
    )


@dataclass(frozen=True)
class SearchedStore:
    """A store or an index of a framework, as an adapter searches it: what ``compare_store`` and its twins work on.

    ``embed`` gives the vectors of questions. ``find(text, vector)`` gives the candidates of a question: what
    :func:`found_documents` takes, and the columns of a :class:`SearchResult`. ``widest`` is the most that ``nearest``
    finds, None if the texts would be embedded, and ``count()`` the number of all texts or None.
    """

    name: str
    model: str
    sizes: tuple[int, ...]
    fetch_k: int
    embed: Callable[[list[str]], Any]
    find: Callable[[str, Any], tuple[list[Any], dict[str, Any]]]
    nearest: SearchByVector
    widest: int | None
    count: Callable[[], int | None]

    def compare(self, queries: Iterable[str | Mapping[str, Any] | Query], **options: Any) -> Comparison:
        """The comparison; see :func:`compare_candidates`."""
        apart: list[bool] = []

        def candidates_of(query: Query) -> SearchResult:
            [vector] = self.embed([query.text])
            rows, columns = self.find(query.text, vector)
            titles = [metadata.get("title") for *_, metadata, _ in rows]
            apart.extend(isinstance(t, str) and t not in text for t, text in zip(titles, columns["texts"], strict=True))
            return SearchResult(vector, found_documents(rows), **columns)

        options = {"k": self.sizes, "fetch_k": self.fetch_k, "model": self.model, **options}
        found = compare_candidates(queries, candidates_of, **options)
        note = f"{percent(float(np.mean(apart)))} of the candidates have a `title` in metadata, which is not embedded."
        return replace(found, notes=(*found.notes, note)) if any(apart) else found

    def diagnose(self, *, title: str | None = None, **options: Any) -> Diagnosis:
        """What the texts hold. A word is embedded to learn the length of the vectors."""
        if self.widest is None:
            raise VectorSourceError(
                f"setselect has no vector reader for {self.name}, so all texts would be embedded: call "
                "register_vector_source"
            )
        length = np.shape(self.embed(["text"])[0])[-1]
        options |= {"title": title or self.name, "documents": self.count()}
        return diagnose(self.nearest, length, fetch_k=self.fetch_k, widest=self.widest, **options)


def _find_changes(columns: Sequence[MeasureValues], advice: Recommendation) -> tuple[QueryChange, ...]:
    """The queries that the best row, or the runner-up if that is similarity, makes worse and better by most."""
    setting = advice.best_other
    if setting is None or advice.measure is None:
        return ()
    [(_, values, names)] = [column for column in columns if column.measure.key == advice.measure]
    gaps = (values[setting] - values[0]).round(9)
    worse = [i for i in np.argsort(gaps, kind="stable").tolist() if gaps[i] < 0]
    better = [i for i in np.argsort(-gaps, kind="stable").tolist() if gaps[i] > 0]
    return tuple(
        QueryChange(names[i], float(values[0, i]), float(values[setting, i]))
        for i in (*worse[:CHANGES], *better[:CHANGES])
    )


def _count_replaced(outcomes: Sequence[JudgedQuery], k: int, setting: int) -> Replacement:
    """How the setting changes the ``k`` texts of plain similarity, which is the first setting."""
    sets = [(outcome.query.id, outcome.sizes[k].ids) for outcome in outcomes]
    numbers = [(query, len({*picks[0]} - {*picks[setting]})) for query, picks in sets]
    changed = np.mean([{*picks[0]} != {*picks[setting]} for _, picks in sets])
    most = sorted((one for one in numbers if one[1]), key=lambda one: -one[1])[:CHANGES]
    return Replacement(float(changed), float(np.mean([number for _, number in numbers])), tuple(most))


def need_extra(*packages: str, extra: str = "eval") -> None:
    """Raise the ImportError that names the extra if bm25s, scipy or one of the ``packages`` is missing."""
    missing = [name for name in ("bm25s", "scipy", *packages) if find_spec(name) is None]
    if missing:
        raise ImportError(f'the comparison needs {", ".join(missing)}: pip install "setselect[{extra}]"')


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


def _name_of(model: str) -> str:
    """The model's name for the report: of a folder only its name, so that the report does not tell where it is."""
    folder = Path(model).expanduser()
    # Packages of models name their folders so.
    parts = folder.absolute().parts[-2 if folder.name == "model" else -1 :]
    return "/".join(parts) if folder.is_dir() or folder.is_absolute() else model


def _as_vectors(
    embed: Callable[[list[str]], ArrayLike] | ArrayLike, texts: list[str], what: str
) -> NDArray[np.floating]:
    """One vector for each text, shape (n, d): made by ``embed``, or ``embed`` itself after a check."""
    array = as_numeric(embed(texts) if callable(embed) else embed, f"vectors of {what}")
    if array.ndim != 2 or len(array) != len(texts) or not array.shape[1]:
        raise InvalidInputError(f"vectors of {what} must have shape ({len(texts)}, d), got {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise InvalidInputError(f"vectors of {what}: row {bad[0]} holds NaN or inf")
    rows: NDArray[np.floating] = array if array.dtype.kind == "f" else array.astype(np.float64)
    return rows


def nearest_rows(queries: NDArray[np.floating], rows: NDArray[np.floating], fetch_k: int) -> NDArray[np.intp]:
    """(Q, fetch_k): the rows of the highest cosine, best first; equal cosines go to the lower row."""
    # A zero query gets the first rows here. judge() refuses it later, and names its id.
    unit, unit_queries = (as_unit_rows(each, copy=False).astype(np.float32, copy=False) for each in (rows, queries))
    blocks = []
    step = max(1, _BLOCK // len(unit))
    for start in range(0, len(unit_queries), step):
        cosines = unit_queries[start : start + step] @ unit.T
        # A partition alone would take any of the rows that tie for the last place.
        last = np.partition(cosines, -fetch_k, axis=1)[:, -fetch_k, None]
        above, tied = cosines > last, cosines == last
        taken = above | (tied & (tied.cumsum(axis=1) <= fetch_k - above.sum(axis=1, keepdims=True)))
        near = np.nonzero(taken)[1].reshape(len(cosines), fetch_k)
        order = np.argsort(-np.take_along_axis(cosines, near, axis=1), axis=1, kind="stable")
        blocks.append(np.take_along_axis(near, order, axis=1))
    return np.concatenate(blocks)
