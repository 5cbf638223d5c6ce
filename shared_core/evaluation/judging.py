"""The picks of every setting, judged query by query, and the measures over all queries."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import id_of_text, quoted
from ..candidates import Candidates, as_unit_rows
from ..errors import InvalidInputError, SetSelectError
from ..selectors.base import Selector, best_query, uses_references, uses_words
from ..selectors.choose import choose
from ..signals.references import find_references, read_name
from ..signals.words import match_words
from .corpus import Document, Query
from .measures import bootstrap_intervals, rank_measures, sum_cosine
from .results import CandidateView, Difference, Estimate, Measure, Needs, QueryView
from .settings import uses_scores, uses_sources

Matrix = NDArray[np.float64]
EXCERPT = 240  # characters of a candidate's text that a view keeps
# Stands for documents of the store that are not candidates and may cover a subtopic. No store has such an id.
BEYOND = "\0beyond the candidates"
# Decimals of places on the map and of cosines: finer than a pixel, and coarse enough that all machines agree.
_DIGITS = 6
# Measures of the same picks, computed in another order, differ by less than this.
_ROUNDING = 1e-9
# Name, key, what the queries must hold, and description of each measure, in the order of the report.
_MEASURES: tuple[tuple[str, str, Needs, str], ...] = (
    ("relevance", "relevance", "nothing", "mean cosine of the picks with the query"),
    ("redundancy", "redundancy", "nothing", "mean cosine between the picks: how much they repeat each other"),
    ("cos(sum, q)", "sum_cosine", "nothing", "cosine of the sum of the picks with the query"),
    ("recall@{k}", "recall", "gold", "share of the gold documents that are picked"),
    ("precision@{k}", "precision", "gold", "share of the picks that are gold documents"),
    ("nDCG@{k}", "ndcg", "gold", "picked gold documents, discounted by rank, relative to the best possible"),
    ("success@{k}", "success", "gold", "share of the queries with at least one gold document picked"),
    ("point recall@{k}", "point_recall", "gold", "recall of the gold documents, with near-repeats as one document"),
    ("subtopic recall@{k}", "subtopic_recall", "subtopics", "share of the query's subtopics that the picks cover"),
    ("topic precision@{k}", "topic_precision", "subtopics", "share of the picks that cover a subtopic of the query"),
    ("α-nDCG@{k}", "alpha_ndcg", "subtopics", "covered subtopics, discounted by rank; each repetition counts half"),
    ("p-recall@{k}", "p_recall", "perspectives", "mean over root queries of the success of their perspectives (PIR)"),
    ("answers", "answers", "answers", "share of the query's answers that occur in the picked texts"),
)
_KEYS = tuple(key for _, key, _, _ in _MEASURES)


@dataclass(frozen=True, eq=False)
class FoundCandidates:
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
                float(cost) if isinstance(cost, (int, float)) else None,
            )
        )
    return documents


@dataclass(frozen=True, eq=False)
class JudgedPicks:
    """What every setting picked for one query, and the measures of it; arrays have one value for each setting.

    ``redundancy`` is None if a single text was picked, ``answers`` is None if the query has no answers,
    ``sum_cosine`` is None for all sizes but the first. ``characters`` is the length of the picked texts together.
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
    rankings: tuple[str, ...]
    repeated: int
    unscored: int
    only_vectors: bool
    sizes: dict[int, JudgedPicks]
    view: QueryView | None
    labelled: bool = False
    mean_candidate: Matrix = field(default_factory=lambda: np.zeros(0))
    gold_vectors: dict[str, Matrix] = field(default_factory=dict)
    points: tuple[frozenset[str], ...] = ()


class MeasureValues(NamedTuple):
    """A measure and its values, shape (settings, N), for N queries with these ids; for p-recall, for N roots."""

    measure: Measure
    values: Matrix
    queries: tuple[str, ...]


def judge(
    query: Query,
    found: FoundCandidates,
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
        if query.queries and np.shape(found.vector)[:-1] != (1 + len(query.queries),):
            raise InvalidInputError(
                f"the vector of a query with {len(query.queries)} sub-questions must have {1 + len(query.queries)} "
                f"rows, the question first, got shape {np.shape(found.vector)}"
            )
        searched = len(found.documents) if found.candidates is None else found.candidates
        check_sources(found.documents[:searched], selectors)
        copies = copies_of(found.documents) if found.copies is None else found.copies
        ranked = _read_rankings(found, copies if drop_duplicates else {}, max(sizes))
        everything = Candidates(
            found.vector,
            found.vectors,
            ids=[document.id for document in found.documents],
            costs=[len(one.text) if one.cost is None else one.cost for one in found.documents],
            sources=[str(document.source) for document in found.documents],
        )
        # One order for every store, so that ties fall to the same document.
        order = np.argsort(-everything.with_query(everything.query).relevance, kind="stable")
        # Of the documents that only rankings hold, those that no ranking picks are left out.
        order = order[(order < searched) | np.isin(order, [row for rows in ranked.values() for row in rows])]
        everything, stored = everything.take(order), [found.documents[i] for i in order]
        texts = [document.text for document in stored] if found.texts is None else [found.texts[i] for i in order]
        rows = tuple(np.flatnonzero(order < searched).tolist())
        subtopics = found.subtopics
        if subtopics is None:
            subtopics = _subtopics_of_candidates(query, [stored[row] for row in rows])
        repeated = len(rows) - len({copies.get(stored[row].id, stored[row].id) for row in rows})
        documents, place = stored, list(range(len(stored)))
        if drop_duplicates and copies:
            query, subtopics, documents, place = with_texts_once(query, subtopics, stored, copies)

        @functools.cache
        def read(rows: tuple[int, ...]) -> dict[str, Any]:
            return _read_texts(query, [texts[row] for row in rows], [stored[row] for row in rows], selectors)

        @functools.cache
        def nearest(rows: tuple[int, ...]) -> Candidates:
            return everything.take(rows).with_query(found.vector, **read(rows))

        @functools.cache
        def scored(rows: tuple[int, ...]) -> Candidates:
            return everything.take(rows).with_query(found.vector, [scores[row] for row in rows], **read(rows))

        pool = pool_of_scores = _Pool(nearest, rows, place)
        scores = {row: query.scores[stored[row].id] for row in rows if stored[row].id in query.scores}
        if any(map(uses_scores, selectors)):
            if not scores:
                raise InvalidInputError("none of its scores is that of a candidate: score what the search finds")
            # Of the copies of a text, the one with the highest score counts.
            pool_of_scores = _Pool(scored, sorted(scores, key=lambda row: -scores[row]), place)
        of_rankings = [[place[order.tolist().index(row)] for row in of_ranking] for of_ranking in ranked.values()]
        # The first picks of a larger set are not always the smaller set, so each size is selected by itself.
        found_sets = {
            k: [(pool_of_scores if uses_scores(one) else pool).pick(one, k) for one in selectors]
            + [(picks[:k], [-1] * len(picks[:k])) for picks in of_rankings]
            for k in sizes
        }
    except SetSelectError as error:
        error.args = (f"query {quoted(query.id)}: {error}",)
        raise
    ids = [document.id for document in documents]
    vectors = everything.take([place.index(text) for text in range(len(documents))]).vectors
    unit, unit_query = (as_unit_rows(some.astype(np.float64)) for some in (vectors, everything.query[None]))
    cosines = unit @ unit_query[0]
    contained = _find_answers([document.text for document in documents], query.answers)
    lengths = np.array([len(document.text) for document in documents])
    pairs = unit @ unit.T
    np.fill_diagonal(pairs, 0)

    def measured(k: int, picks: list[list[int]]) -> JudgedPicks:
        # A set without a pick has 0 of everything, and a single pick repeats nothing.
        numbers = np.array([max(len(picked), 1) for picked in picks])
        return JudgedPicks(
            [[ids[i] for i in picked] for picked in picks],
            relevance=np.array([cosines[picked].sum() for picked in picks]) / numbers,
            sum_cosine=np.array([sum_cosine(unit_query[0], unit[picked]) if picked else 0.0 for picked in picks])
            if k == sizes[0]
            else None,
            redundancy=np.array([pairs[np.ix_(picked, picked)].sum() for picked in picks])
            / (numbers * np.maximum(numbers - 1, 1))
            if min(k, len(ids)) > 1
            else None,
            answers=np.array([contained[picked].any(axis=0).mean() for picked in picks]) if query.answers else None,
            characters=np.array([lengths[picked].sum() for picked in picks]),
        )

    words = read(rows)["words"]
    # What each text covers, for the view.
    parts = {label: np.isin(ids, list(covering)) for label, covering in subtopics.items()}
    parts = parts or dict(zip(query.answers, contained.T, strict=True))
    return JudgedQuery(
        query,
        subtopics,
        frozenset(ids[place[row]] for row in rows),
        tuple(ranked),
        repeated,
        len(rows) - len(scores),
        words is not None and not words.weights.any(),
        {k: measured(k, [picked for picked, _ in of_size]) for k, of_size in found_sets.items()},
        _view(query, documents, parts, pool, cosines, np.vstack([unit_query, unit]), found_sets[sizes[0]])
        if view
        else None,
        labelled=any(document.subtopics for document in documents),
        mean_candidate=unit.mean(axis=0),
        gold_vectors=_gold_vectors(query, dict(zip(ids, unit, strict=True)), found.gold_vectors),
    )


class _Pool:
    """The candidates that settings select from: ``rows`` of what was found, of which ``make`` gives the candidates.

    ``place`` maps each row to its text. Of several rows with one text, the first in ``rows`` stands for it.
    """

    def __init__(
        self, make: Callable[[tuple[int, ...]], Candidates], rows: Sequence[int], place: Sequence[int]
    ) -> None:
        self.make, self.rows, self.place = make, tuple(sorted(rows)), place
        first: dict[int, int] = {}
        for row in rows:
            first.setdefault(place[row], row)
        self.distinct = tuple(sorted(first.values()))

    def pick(self, selector: Selector, k: int) -> tuple[list[int], list[int]]:
        """The texts that are picked, and for each the text that names it or -1.

        As in the adapters, the copies are left out only if one text was selected twice.
        """
        for rows in (self.rows, self.distinct):
            found = choose(self.make(rows), selector, k)
            picks = [self.place[rows[i]] for i in found.indices.tolist()]
            if len(set(picks)) == len(picks):
                break
        names = [-1] * len(picks) if found.named_by is None else found.named_by.tolist()
        return picks, [-1 if i < 0 else self.place[rows[i]] for i in names]


def _read_rankings(found: FoundCandidates, copies: Mapping[str, str], k: int) -> dict[str, list[int]]:
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


def check_sources(documents: Iterable[Document], selectors: Iterable[Selector]) -> None:
    """Raise an error that names the first document without a source if one of the selectors needs it."""
    if any(map(uses_sources, selectors)):
        for document in documents:
            if document.source is None:
                raise InvalidInputError(f"document {quoted(document.id)} has no source, which max_per_source needs")


def _gold_vectors(query: Query, known: dict[str, Matrix], given: Mapping[str, ArrayLike]) -> dict[str, Matrix]:
    """The unit vectors of the query's gold documents, as far as they are candidates or given."""
    beyond = [name for name in query.gold if name in given and name not in known]
    if beyond:
        rows = as_unit_rows(np.array([given[name] for name in beyond], dtype=np.float64))
        known = known | dict(zip(beyond, rows, strict=True))
    return {name: known[name] for name in query.gold if name in known}


def _read_texts(
    query: Query, texts: Sequence[str], documents: Sequence[Document], selectors: Sequence[Selector]
) -> dict[str, Any]:
    """The ``words`` and ``references`` of the texts, as far as a selector uses them."""
    titles = [document.title for document in documents]
    return {
        "words": match_words([query.text, *query.queries], texts) if any(map(uses_words, selectors)) else None,
        "references": find_references(texts, titles) if any(map(uses_references, selectors)) else None,
    }


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


def _view(
    query: Query,
    documents: list[Document],
    parts: Mapping[str, NDArray[np.bool_]],
    pool: _Pool,
    cosines: Matrix,
    vectors: Matrix,
    found: list[tuple[list[int], list[int]]],
) -> QueryView:
    seen = [pool.place[row] for row in pool.distinct]
    served = dict(zip(seen, best_query(pool.make(pool.distinct)).tolist(), strict=True)) if query.queries else {}
    # The candidates, and what rankings picked besides.
    shown = sorted({*seen, *(row for picked, _ in found for row in picked)})
    position = {row: i for i, row in enumerate(shown)} | {-1: -1}
    (x, y), *places = project_to_map(vectors[[0, *(1 + row for row in shown)]]).round(_DIGITS).tolist()
    views = tuple(
        CandidateView(
            documents[row].id,
            _excerpt(documents[row].text),
            round(float(cosines[row]), _DIGITS),
            place[0],
            place[1],
            _excerpt(documents[row].title or read_name(documents[row].text)),
            served.get(row),
            row not in seen,
            tuple(part for part, covering in enumerate(parts.values()) if covering[row]),
        )
        for row, place in zip(shown, places, strict=True)
    )
    picks, names = (
        {setting: tuple(position[row] for row in of_setting[part]) for setting, of_setting in enumerate(found)}
        for part in (0, 1)
    )
    return QueryView(query.id, query.text, query.gold, x, y, views, picks, names, query.queries, tuple(parts))


def project_to_map(vectors: Matrix) -> Matrix:
    """Places on a map, shape (n, 2): the first two principal components of ``vectors`` (n, d).

    The signs are chosen so that the first row has no negative coordinate.
    """
    left, scale, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    places: Matrix = np.zeros((len(vectors), 2))
    width = min(2, len(scale))
    places[:, :width] = left[:, :width] * scale[:width]
    # A component that does not exist holds rounding errors, which must not show as a direction.
    places[:, np.abs(places).max(axis=0) < 1e-9] = 0.0
    for column in places.T:
        # If the first row lies on the axis, the row farthest from it decides the sign.
        decides = column[0] if abs(column[0]) > 1e-9 else column[np.abs(column).argmax()]
        if decides < 0:
            column *= -1
    return places + 0.0


def _excerpt(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= EXCERPT else flat[: EXCERPT - 1].rstrip() + "…"


def allowed_measures(queries: Sequence[Query], with_subtopics: bool) -> list[str]:
    """The keys of the measures that can be computed for these queries. No candidates are needed to know them."""
    held: dict[Needs, bool] = {
        "nothing": True,
        "gold": any(query.gold for query in queries),
        "subtopics": with_subtopics,
        "perspectives": any(query.gold and query.root is not None for query in queries),
        "answers": any(query.answers for query in queries),
    }
    return [key for _, key, needs, _ in _MEASURES if held[needs]]


def measure(outcomes: Sequence[JudgedQuery], k: int, keys: Collection[str] = _KEYS) -> list[MeasureValues]:
    """The measures of these keys that at least one query allows, each over those queries; ``k`` is in the names."""
    found: dict[str, tuple[Matrix, tuple[str, ...]]] = {}
    for key in {"relevance", "redundancy", "sum_cosine", "answers"}.intersection(keys):
        of_query = {o.query.id: values for o in outcomes if (values := getattr(o.sizes[k], key)) is not None}
        if of_query:
            found[key] = np.stack(list(of_query.values()), axis=1), tuple(of_query)
    with_gold = [judged for judged in outcomes if judged.query.gold]
    with_subtopics = [judged for judged in outcomes if judged.subtopics]
    names = {"recall": f"R@{k}", "ndcg": f"nDCG@{k}", "success": f"Success@{k}"}
    names = {key: name for key, name in names.items() if key in keys}
    found |= _rank(with_gold, k, lambda judged: dict.fromkeys(judged.query.gold, 1), names)
    found |= _precision("precision", with_gold, k, lambda judged: judged.query.gold)
    with_points = [judged for judged in outcomes if judged.points]
    if with_points:
        of_query = {
            o.query.id: [np.mean([not point.isdisjoint(picked) for point in o.points]) for picked in o.sizes[k].picks]
            for o in with_points
        }
        found["point_recall"] = np.array(list(of_query.values())).T, tuple(of_query)
    names = {"subtopic_recall": f"StRecall@{k}", "alpha_ndcg": f"alpha_nDCG@{k}"}
    names = {key: name for key, name in names.items() if key in keys}
    found |= _rank(with_subtopics, k, _subtopic_grades, names)
    found |= _precision("topic_precision", with_subtopics, k, lambda judged: set().union(*judged.subtopics.values()))
    counts = np.array([len(judged.query.gold) for judged in with_gold] or [k])
    most = {key: float(np.mean(np.minimum(counts, k) / of)) for key, of in (("precision", k), ("recall", counts))}
    of_root = _successes_by_root([judged for judged in with_gold if judged.query.root is not None], k)
    if of_root:
        found["p_recall"] = np.stack(list(of_root.values()), axis=1), tuple(of_root)
    return [
        MeasureValues(
            Measure(name.format(k=k), key, description, key != "redundancy", needs, most.get(key, 1.0)), *found[key]
        )
        for name, key, needs, description in _MEASURES
        if key in found and key in keys
    ]


def summarise(column: MeasureValues) -> list[tuple[Estimate, Difference]]:
    """For each setting its mean, and what it gains and loses against the first, with bootstrap 95 % intervals."""
    values = column.values
    gaps = values - values[0]
    rows = np.vstack([values, gaps])
    lows, highs = bootstrap_intervals(rows)
    # The computed mean of equal numbers can differ from them in the last bit.
    means = np.where((rows == rows[:, :1]).all(axis=1), rows[:, 0], rows.mean(axis=1))
    bounds: list[tuple[float, float, float]] = [
        (float(mean), float(min(low, mean)), float(max(high, mean)))
        for mean, low, high in zip(means, lows, highs, strict=True)
    ]
    losses = np.where(np.abs(gaps) < _ROUNDING, 0.0, -gaps if column.measure.higher_is_better else gaps)
    summaries = []
    for estimated, compared, loss in zip(bounds, bounds[len(values) :], losses, strict=False):
        lost = loss[loss > 0]
        estimate = Estimate(*estimated, queries=len(column.queries))
        difference = Difference(
            *compared,
            better=float((loss < 0).mean()),
            worse=float((loss > 0).mean()),
            loss=float(lost.mean()) if len(lost) else 0.0,
            worst_loss=float(lost.max()) if len(lost) else 0.0,
            worst_query=column.queries[int(loss.argmax())] if len(lost) else None,
        )
        summaries.append((estimate, difference))
    return summaries


def estimate(columns: Sequence[MeasureValues]) -> dict[tuple[int, str], Estimate]:
    """The mean of each setting by each measure, with bootstrap 95 % intervals.

    Measures over the same number of queries share the resamples, which saves time.
    """
    found: dict[tuple[int, str], Estimate] = {}
    for number in {len(column.queries) for column in columns}:
        same = [column for column in columns if len(column.queries) == number]
        rows = np.vstack([column.values for column in same])
        bounds = zip(rows.mean(axis=1).tolist(), *(ends.tolist() for ends in bootstrap_intervals(rows)), strict=True)
        names = [(setting, column.measure.key) for column in same for setting in range(len(column.values))]
        for name, (mean, low, high) in zip(names, bounds, strict=True):
            found[name] = Estimate(mean, min(low, mean), max(high, mean), number)
    return found


def _rank(
    outcomes: Sequence[JudgedQuery],
    k: int,
    grades: Callable[[JudgedQuery], dict[str, int] | dict[str, dict[str, int]]],
    names: dict[str, str],
) -> dict[str, tuple[Matrix, tuple[str, ...]]]:
    """Measures of rankings, (settings, N), and the N queries; ``names`` maps our keys to the names in ir_measures."""
    if not outcomes:
        return {}
    qrels = {judged.query.id: grades(judged) for judged in outcomes}
    picked = {judged.query.id: judged.sizes[k].picks for judged in outcomes}
    by_setting = [
        rank_measures(qrels, {name: picks[setting] for name, picks in picked.items()}, list(names.values()))
        for setting in range(len(outcomes[0].sizes[k].picks))
    ]
    return {key: (np.stack([values[name] for values in by_setting]), tuple(qrels)) for key, name in names.items()}


def _precision(
    key: str, outcomes: Sequence[JudgedQuery], k: int, right: Callable[[JudgedQuery], Collection[str]]
) -> dict[str, tuple[Matrix, tuple[str, ...]]]:
    """The share of the picks that are right, (settings, N), and the N queries."""
    if not outcomes:
        return {}
    shares = [
        [sum(name in of_query for name in picked) / max(len(picked), 1) for picked in judged.sizes[k].picks]
        for judged in outcomes
        for of_query in [set(right(judged))]
    ]
    return {key: (np.array(shares).T, tuple(judged.query.id for judged in outcomes))}


def _subtopic_grades(judged: JudgedQuery) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    for label, ids in judged.subtopics.items():
        for document in ids:
            grades.setdefault(document, {})[label] = 1
    return grades


def _successes_by_root(outcomes: Sequence[JudgedQuery], k: int) -> dict[str, Matrix]:
    """For each root the mean success of its queries, (settings,). The mean over roots is p-recall."""
    of_root: dict[str, list[list[float]]] = {}
    for judged in outcomes:
        hits = [float(not set(judged.query.gold).isdisjoint(picked)) for picked in judged.sizes[k].picks]
        of_root.setdefault(str(judged.query.root), []).append(hits)
    return {root: np.mean(successes, axis=0) for root, successes in of_root.items()}
