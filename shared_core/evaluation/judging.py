"""The picks of every setting for one query, and their measures from vectors and texts."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import id_of_text, quoted
from ..candidates import Candidates, as_unit_rows
from ..errors import InvalidInputError, SetSelectError
from ..selectors.registry import Selector, capabilities_of
from ..selectors.selection import best_question
from ..texts import Texts
from .corpus import Document, Query, as_number
from .measures import sum_cosine
from .results import QueryView, counted
from .settings import Adapted, as_adapted
from .view import view_query

Matrix = NDArray[np.float64]
# Stands for documents of the store that are not candidates and may cover a subtopic. No store has such an id.
BEYOND = "\0beyond the candidates"


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The candidates that a search found for a query, and the rankings of other searches.

    Attributes
    ----------
    vector : array-like, shape (d,), or (q, d) for a query with sub-questions
        The query's vector; those of the sub-questions follow it.
    documents : sequence of n Document
        The candidates, the nearest first. Documents that only ``rankings`` hold may follow them.
    vectors : array-like, shape (n, d)
        Their embeddings.
    subtopics : mapping, optional
        Labels of what the query asks for, each with the ids of all documents that cover it. By default they come from
        the query and the labels of ``documents``, and a subtopic that none of the documents covers counts as missed.
    copies : mapping, optional
        For each document that repeats the text of another: its id, and the id of that other (see :func:`copies_of`).
        By default only ``documents`` are compared.
    texts : sequence of n str, optional
        What was embedded of each document, for the selectors that read words; by default the text of the document.
    bodies : sequence of n str, optional
        The texts by which documents are compared, and in which references are found; by default the texts of the
        documents. An empty one has no copies.
    rankings : mapping, optional
        Other searches or rerankers, by name: rows of ``documents``, the best first. Each is a setting of the
        comparison, which picks the first k. Every query needs a ranking of each name.
    candidates : int, optional
        How many of ``documents``, from the first, are candidates. By default all are. No setting selects from the
        others, but ``rankings`` may hold them.
    gold_vectors : mapping, optional
        The embeddings of gold documents by their ids. By default those that are candidates are known.
    """

    vector: ArrayLike
    documents: Sequence[Document]
    vectors: ArrayLike
    subtopics: Mapping[str, Collection[str]] | None = None
    copies: Mapping[str, str] | None = None
    texts: Sequence[str] | None = None
    bodies: Sequence[str] | None = None
    rankings: Mapping[str, Sequence[int]] = field(default_factory=dict)
    candidates: int | None = None
    gold_vectors: Mapping[str, ArrayLike] = field(default_factory=dict)


def found_documents(found: Iterable[tuple[str | None, str, str, Mapping[str, Any]]]) -> list[Document]:
    """Documents from a store: for each one its id (or None), text, title, and metadata.

    The metadata may hold ``subtopics``, ``source`` and ``cost``. The id of a document without one is a hash of its
    text. A number is added to an id that occurs again.

    >>> found = [("a", "A", "", {"subtopics": ["x"]}), ("a", "A", "", {}), (None, "B", "", {})]
    >>> [document.id for document in found_documents(found)]
    ['a', 'a (2)', 'text df7e70e5']
    """
    seen: dict[str, int] = {}
    documents = []
    for given, text, title, metadata in found:
        name = given or id_of_text(text)
        seen[name] = seen.get(name, 0) + 1
        labels, source, cost = (metadata.get(key) for key in ("subtopics", "source", "cost"))
        one = (labels,) if isinstance(labels, str) and labels else ()
        documents.append(
            Document(
                name if seen[name] == 1 else f"{name} ({seen[name]})",
                text,
                tuple(map(str, labels)) if isinstance(labels, (list, tuple)) else one,
                title,
                None if source is None else str(source),
                cost,
            )
        )
    return documents


@dataclass(frozen=True, eq=False)
class JudgedPicks:
    """What every setting picked for one query, and the measures of it; arrays have one value for each setting.

    ``redundancy`` is None if a single text was picked, ``answers`` if the query has no answers, and those from vectors
    if a vector is unknown. ``characters`` is the length of the picked texts together.
    """

    picks: list[list[str]]
    relevance: Matrix | None
    sum_cosine: Matrix | None
    redundancy: Matrix | None
    answers: Matrix | None
    characters: Matrix


@dataclass(frozen=True, eq=False)
class JudgedQuery:
    """One query and the picks for it; ``sizes`` maps each number of picks to them.

    The last settings are the ``rankings`` of the search. ``repeated`` counts the candidates that repeat the text of
    another, and ``unscored`` those without a score. ``only_vectors`` says that the words of the query tell none of
    its candidates from another, although a selector reads them. ``labelled`` says whether a candidate carries
    labels of subtopics. ``mean_candidate`` is the mean of the candidates' unit vectors, and ``gold_vectors`` has
    those of the gold documents that are known. ``points`` are groups of gold documents.
    """

    query: Query
    subtopics: Mapping[str, Collection[str]]
    candidates: frozenset[str]
    sizes: dict[int, JudgedPicks]
    rankings: tuple[str, ...] = ()
    repeated: int = 0
    unscored: int = 0
    only_vectors: bool = False
    labelled: bool = False
    view: QueryView | None = None
    mean_candidate: Matrix = field(default_factory=lambda: np.zeros(0))
    gold_vectors: dict[str, Matrix] = field(default_factory=dict)
    points: tuple[frozenset[str], ...] = ()


def judge(
    query: Query,
    found: SearchResult,
    selectors: Sequence[Selector],
    sizes: Sequence[int],
    *,
    drop_duplicates: bool = True,
    view: bool = False,
) -> JudgedQuery:
    """Let every selector pick each number of the candidates, or all if there are fewer; an error names the query.

    With ``drop_duplicates`` no setting picks one text twice, and a gold id stands for every copy of its document. A
    view shows the first of the ``sizes``.
    """
    try:
        pool = _make_pool(query, found, selectors, max(sizes), drop_duplicates)
        # The first picks of a larger set are not always the smaller set, so each size is selected by itself.
        picks_of = {
            k: [pool.select(as_adapted(selector), k) for selector in selectors]
            + [(picks[:k], [-1] * len(picks[:k])) for picks in pool.rankings.values()]
            for k in sizes
        }
        words = pool.texts.match_words(pool.question) if any(capabilities_of(one).words for one in selectors) else None
    except SetSelectError as error:
        error.args = (f"query {quoted(query.id)}: {error}",)
        raise
    measured = _Measures(pool)
    return JudgedQuery(
        pool.query,
        pool.subtopics,
        frozenset(pool.documents[pool.place[row]].id for row in pool.rows),
        {k: measured.judge(k, [picks for picks, _ in of_size]) for k, of_size in picks_of.items()},
        tuple(pool.rankings),
        pool.repeated,
        unscored=len(pool.rows) - len(pool.scores),
        only_vectors=words is not None and not words.weights.any(),
        labelled=any(document.subtopics for document in pool.documents),
        view=_view(pool, measured, picks_of[sizes[0]]) if view else None,
        mean_candidate=measured.unit.mean(axis=0),
        gold_vectors=_gold_vectors(pool.query, dict(zip(measured.ids, measured.unit, strict=True)), found.gold_vectors),
    )


@dataclass(frozen=True, eq=False)
class _Pool:
    """The candidates of one query, the nearest first, and the documents that only rankings pick.

    ``documents`` are the different texts, and ``place[row]`` is the text of each row of ``stored``, ``everything`` and
    ``embedded``. ``rows`` are the candidates in the order in which they were found, and ``texts`` theirs. ``scores``
    has the score of each row with one.
    """

    query: Query
    subtopics: Mapping[str, Collection[str]]
    stored: list[Document]
    documents: list[Document]
    place: list[int]
    everything: Candidates
    embedded: list[str]
    bodies: list[str]
    rows: list[int]
    scores: dict[int, float]
    rankings: dict[str, list[int]]
    drop_duplicates: bool
    repeated: int

    @property
    def question(self) -> list[str]:
        return [self.query.text, *self.query.sub_questions]

    @functools.cached_property
    def candidates(self) -> Candidates:
        return self.everything.take(self.rows)

    @functools.cached_property
    def texts(self) -> Texts:
        rows = self.rows
        stored = [self.stored[row] for row in rows]
        return Texts(
            [self.embedded[row] for row in rows],
            [document.title for document in stored],
            bodies=[self.bodies[row] for row in rows],
        )

    def select(self, setting: Adapted, k: int) -> tuple[list[int], list[int]]:
        """The texts that are picked, and for each the text that refers to it or -1."""
        candidates, texts, rows = self.candidates, self.texts, self.rows
        if setting.by_scores:
            among = [number for number, row in enumerate(rows) if row in self.scores]
            rows = [rows[number] for number in among]
            candidates = candidates.take(among).with_values(relevance=[self.scores[row] for row in rows])
            texts = texts.take(among)
        selection = setting.select_set(
            candidates, k, question=self.question, texts=texts, drop_copies=self.drop_duplicates
        )
        picks = [self.place[rows[i]] for i in selection.indices.tolist()]
        referred_by = [-1] * len(picks) if selection.referred_by is None else selection.referred_by.tolist()
        return picks, [-1 if i < 0 else self.place[rows[i]] for i in referred_by]


def _make_pool(
    query: Query, found: SearchResult, selectors: Sequence[Selector], most: int, drop_duplicates: bool
) -> _Pool:
    """The candidates of a query, checked; rankings are read up to ``most`` picks."""
    if query.sub_questions and np.shape(found.vector)[:-1] != (1 + len(query.sub_questions),):
        raise InvalidInputError(
            f"the vector of a query with {counted(len(query.sub_questions), 'sub-question')} must have "
            f"{1 + len(query.sub_questions)} rows, the question first, got shape {np.shape(found.vector)}"
        )
    settings = list(map(as_adapted, selectors))
    searched = len(found.documents) if found.candidates is None else found.candidates
    check_documents(found.documents, settings)
    bodies = [document.text for document in found.documents] if found.bodies is None else found.bodies
    copies = found.copies
    if copies is None:
        copies = copies_of([replace(one, text=text) for one, text in zip(found.documents, bodies, strict=True)])
    rankings = _read_rankings(found, copies if drop_duplicates else {}, most)
    reads_costs = any(setting.budget is not None for setting in settings)
    everything = Candidates(
        found.vector,
        found.vectors,
        ids=[document.id for document in found.documents],
        costs=[len(document.text) if document.cost is None else float(document.cost) for document in found.documents]
        if reads_costs
        else None,
        sources=[str(document.source) for document in found.documents],
    )
    # One order for every store, so that ties fall to the same document.
    order = np.argsort(-everything.with_query(everything.query).relevance, kind="stable")
    # Of the documents that only rankings hold, those that no ranking picks are left out.
    order = order[(order < searched) | np.isin(order, [row for rows in rankings.values() for row in rows])]
    stored = [found.documents[i] for i in order]
    row_of = {i: row for row, i in enumerate(order.tolist())}
    rows = [row_of[i] for i in range(searched)]
    subtopics = found.subtopics
    if subtopics is None:
        subtopics = _subtopics_of_candidates(query, [stored[row] for row in rows])
    repeated = len(rows) - len({copies.get(stored[row].id, stored[row].id) for row in rows})
    documents, place = stored, list(range(len(stored)))
    scores = {row: query.scores[stored[row].id] for row in rows if stored[row].id in query.scores}
    if any(setting.by_scores for setting in settings) and not scores:
        raise InvalidInputError("none of its scores is that of a candidate: score what the search finds")
    if drop_duplicates and copies:
        query, subtopics, documents, place = with_texts_once(query, subtopics, stored, copies)
    return _Pool(
        query,
        subtopics,
        stored,
        documents,
        place,
        everything.take(order),
        [document.text for document in stored] if found.texts is None else [found.texts[i] for i in order],
        [bodies[i] for i in order],
        rows,
        scores,
        {label: [place[row_of[i]] for i in ranking] for label, ranking in rankings.items()},
        drop_duplicates,
        repeated,
    )


class _Measures:
    """What the measures of picks are computed from: the vectors, lengths and answers of the different texts."""

    def __init__(self, pool: _Pool) -> None:
        self.ids = [document.id for document in pool.documents]
        first_rows = [pool.place.index(text) for text in range(len(pool.documents))]
        vectors = pool.everything.take(first_rows).vectors
        self.unit, (self.query,) = (
            as_unit_rows(rows.astype(np.float64)) for rows in (vectors, pool.everything.query[None])
        )
        self.cosines = self.unit @ self.query
        self.pairs = self.unit @ self.unit.T
        np.fill_diagonal(self.pairs, 0)
        self.has_answers = bool(pool.query.answers)
        self.contained = _find_answers([document.text for document in pool.documents], pool.query.answers)
        self.lengths = np.array([len(document.text) for document in pool.documents])

    def judge(self, k: int, picks: list[list[int]]) -> JudgedPicks:
        """The measures of each set of at most ``k`` picks."""
        # A set without a pick has 0 of everything, and a single pick repeats nothing.
        numbers = np.array([max(len(picked), 1) for picked in picks])
        redundancy = np.array([self.pairs[np.ix_(picked, picked)].sum() for picked in picks])
        return JudgedPicks(
            [[self.ids[i] for i in picked] for picked in picks],
            relevance=np.array([self.cosines[picked].sum() for picked in picks]) / numbers,
            sum_cosine=np.array([sum_cosine(self.query, self.unit[picked]) if picked else 0.0 for picked in picks]),
            redundancy=redundancy / (numbers * np.maximum(numbers - 1, 1)) if min(k, len(self.ids)) > 1 else None,
            answers=np.array([self.contained[picked].any(axis=0).mean() for picked in picks])
            if self.has_answers
            else None,
            characters=np.array([self.lengths[picked].sum() for picked in picks]),
        )


def _view(pool: _Pool, measured: _Measures, picks: list[tuple[list[int], list[int]]]) -> QueryView:
    """The view of a query: what each text covers, and which of the questions it serves best."""
    parts = {label: np.isin(measured.ids, list(covering)) for label, covering in pool.subtopics.items()}
    parts = parts or dict(zip(pool.query.answers, measured.contained.T, strict=True))
    # The nearest row of each text.
    distinct = sorted({pool.place[row]: row for row in sorted(pool.rows, reverse=True)}.values())
    served: dict[int, int | None] = dict.fromkeys(pool.place[row] for row in distinct)
    if pool.query.sub_questions:
        served = dict(zip(served, best_question(pool.everything.take(distinct)).tolist(), strict=True))
    return view_query(
        pool.query,
        pool.documents,
        [pool.embedded[pool.place.index(text)] for text in range(len(pool.documents))],
        parts,
        served,
        np.vstack([measured.query[None], measured.unit]),
        picks,
    )


def _read_rankings(found: SearchResult, copies: Mapping[str, str], k: int) -> dict[str, list[int]]:
    """The first ``k`` rows of each ranking; of several rows with one text the first."""
    names = [copies.get(document.id, document.id) for document in found.documents]
    read = {}
    for label, ranking in found.rankings.items():
        first: dict[str, int] = {}
        for row in ranking:
            if not 0 <= row < len(names):
                raise InvalidInputError(
                    f"the ranking {quoted(label)} holds row {row}, but there are {len(names)} documents"
                )
            first.setdefault(names[row], int(row))
        read[label] = list(first.values())[:k]
    return read


def check_documents(documents: Iterable[Document], settings: Collection[Adapted]) -> None:
    """Raise an error that names the first document without a source or a valid cost, if a setting needs it."""
    sources = any(setting.max_per_source is not None for setting in settings)
    costs = any(setting.budget is not None for setting in settings)
    for document in documents:
        if sources and document.source is None:
            raise InvalidInputError(f"document {quoted(document.id)} has no source, which max_per_source needs")
        # The metadata of a store can hold any value under this key.
        if costs and document.cost is not None:
            as_number(document.cost, f"cost of document {document.id}", least=0)


def _gold_vectors(query: Query, known: dict[str, Matrix], given: Mapping[str, ArrayLike]) -> dict[str, Matrix]:
    """The unit vectors of the query's gold documents, as far as they are candidates or given."""
    beyond = [name for name in query.gold if name in given and name not in known]
    if beyond:
        rows = as_unit_rows(np.array([given[name] for name in beyond], dtype=np.float64))
        known = known | dict(zip(beyond, rows, strict=True))
    return {name: known[name] for name in query.gold if name in known}


def copies_of(documents: Iterable[Document]) -> dict[str, str]:
    """For each document that repeats the text of an earlier one: its id, and the earlier id. Empty texts do not count.

    >>> copies_of([Document("a", "A"), Document("b", "B"), Document("c", "A")])
    {'c': 'a'}
    """
    first: dict[str, str] = {}
    named = ((document.id, first.setdefault(document.text, document.id)) for document in documents if document.text)
    return {name: earlier for name, earlier in named if name != earlier}


def with_texts_once(
    query: Query, subtopics: Mapping[str, Collection[str]], documents: Sequence[Document], copies: Mapping[str, str]
) -> tuple[Query, dict[str, tuple[str, ...]], list[Document], list[int]]:
    """The arguments with one id for each text, a gold id if there is one; and each document's place among the texts."""
    gold = {copies.get(name, name): name for name in reversed(query.gold)}

    def renamed(ids: Iterable[str]) -> tuple[str, ...]:
        texts = (copies.get(name, name) for name in ids)
        return tuple(dict.fromkeys(gold.get(text, text) for text in texts))

    first: dict[str, Document] = {}
    names = [renamed([document.id])[0] for document in documents]
    for name, document in zip(names, documents, strict=True):
        first.setdefault(name, replace(document, id=name))
    places = {name: place for place, name in enumerate(first)}
    return (
        replace(query, gold=renamed(query.gold)),
        {label: renamed(ids) for label, ids in subtopics.items()},
        list(first.values()),
        [places[name] for name in names],
    )


def carriers_of(documents: Sequence[Document]) -> dict[str, tuple[str, ...]]:
    """The ids of the documents that carry each label."""
    carriers: dict[str, list[str]] = {}
    for document in documents:
        for label in document.subtopics:
            carriers.setdefault(label, []).append(document.id)
    return {label: tuple(ids) for label, ids in carriers.items()}


def subtopics_of(
    query: Query, carriers: Mapping[str, tuple[str, ...]], labels: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """For each subtopic that the query asks for, the ids of the documents that cover it.

    The query names its subtopics, with or without ids, or they are the labels of its gold documents. A query with
    neither has no subtopics, since labels of documents alone do not tell what it asks for. ``carriers`` maps labels to
    ids, ``labels`` ids to labels.
    """
    if query.subtopics:
        wanted = {label: ids or carriers.get(label, ()) for label, ids in query.subtopics.items()}
    else:
        of_gold = dict.fromkeys(label for gold in query.gold for label in labels.get(gold, ()))
        wanted = {label: carriers[label] for label in of_gold}
    return {label: ids for label, ids in wanted.items() if ids}


def _subtopics_of_candidates(query: Query, documents: Sequence[Document]) -> dict[str, tuple[str, ...]]:
    """The query's subtopics when only the candidates are known, and not all documents."""
    labels = {document.id: document.subtopics for document in documents}
    if not query.subtopics and not labels.keys() >= set(query.gold):
        # The labels of the gold documents that were not found are unknown.
        return {}
    # The store may hold documents on a subtopic that no candidate covers, so this subtopic counts as missed.
    return dict.fromkeys(query.subtopics, (BEYOND,)) | subtopics_of(query, carriers_of(documents), labels)


def _find_answers(texts: list[str], answers: Sequence[str]) -> NDArray[np.bool_]:
    """(n, answers): whether a text holds an answer as whole words; case and white space do not matter."""
    patterns = [re.compile(_whole_words(_normalised(answer))) for answer in answers]
    normalised = [_normalised(text) for text in texts] if patterns else []
    return np.array([[bool(pattern.search(text)) for pattern in patterns] for text in normalised], dtype=np.bool_)


def _whole_words(answer: str) -> str:
    # Han, Kana, Thai, Lao, Myanmar and Khmer have no spaces between words, so other characters may touch the answer.
    unspaced = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
    before = "" if unspaced.match(answer[:1]) else r"(?<!\w)"
    after = "" if unspaced.match(answer[-1:]) else r"(?!\w)"
    return before + re.escape(answer) + after


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
