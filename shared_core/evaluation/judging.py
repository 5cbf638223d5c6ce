"""The picks of every setting for one query, and their measures from vectors and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._values import id_of_text, is_missing
from ..candidates import Candidates, as_unit_rows
from ..candidates.unit_vectors import SetCosines, measure_set
from ..errors import SetSelectError, quoted
from ..facts import Facts
from ..selection.reasons import explain
from ..selectors.registry import Selector
from ..texts import Texts
from ..texts.word_index import WordIndex
from ..texts.words import Text, Weigh, list_terms, match_words
from .corpus import Document, Query, as_cost, first_value
from .results import CandidateView, QueryView, clip
from .settings import Adapted, as_adapted, rank_with_words

Matrix = NDArray[np.float64]
# Characters of the text of a candidate that a view keeps: of those that are gold or picked, and of the others.
_EXCERPT, _SHORT_EXCERPT = 1200, 120
# Decimals of cosines in a view: coarse enough that all machines agree.
_DIGITS = 6


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The candidates that a search found for a query: n ``documents`` with their ``vectors`` (n, d), the nearest first.

    ``vector`` is that of the query (d,). The first ``candidates`` of the documents, by default all, are candidates; a
    search by words found those in the rows ``by_words``, the best first (None: there was no such search, so settings
    with ``keyword_search`` are left out).

    ``copies`` maps documents that repeat the text of another to that other; by default the documents are compared.
    ``texts`` were embedded, and ``bodies`` are compared and refer to each other (an empty one has no copies); both are
    the texts else. ``bm25`` and ``weigh`` are the scores of the documents and the weights of words in the corpus; by
    default those among the candidates. ``gold_vectors`` are known of gold documents.
    """

    vector: ArrayLike
    documents: Sequence[Document]
    vectors: ArrayLike
    copies: Mapping[str, str] | None = None
    texts: Sequence[str] | None = None
    bodies: Sequence[str] | None = None
    candidates: int | None = None
    by_words: Sequence[int] | None = None
    bm25: ArrayLike | None = None
    weigh: Weigh | None = None
    gold_vectors: Mapping[str, ArrayLike] = field(default_factory=dict)


def found_documents(found: Iterable[tuple[str | None, str, str, Mapping[str, Any], Facts]]) -> list[Document]:
    """Documents from a store: for each one its id (or None), text, title, metadata, and facts.

    >>> [document.id for document in found_documents([("a", "A", "", {}, Facts()), ("a", "B", "", {}, Facts())])]
    ['a', 'a (2)']
    """
    seen: dict[str, int] = {}
    documents = []
    for given, text, title, metadata, facts in found:
        name = given or id_of_text(text)
        seen[name] = seen.get(name, 0) + 1
        source, cost = (first_value(metadata, (key,)) for key in ("source", "cost"))
        unique = name if seen[name] == 1 else f"{name} ({seen[name]})"
        documents.append(Document(unique, text, title, None if source is None else str(source), cost, facts))
    return documents


class PickedSet(NamedTuple):
    """The rows that a setting picked. ``explain`` says why each is there; nothing if its cosine is all there is."""

    picks: list[int]
    explain: Callable[[], list[str]] = list


class JudgedPicks(NamedTuple):
    """The ids that every setting picked for one query, and measures of them: arrays with a value for each setting.

    There is no ``redundancy`` of a single pick. ``characters`` is the length of all texts.
    """

    ids: list[list[str]]
    values: dict[str, Matrix]


@dataclass(frozen=True, eq=False)
class JudgedQuery:
    """One query, and what was picked for it with each of the ``sizes``; hybrid search and the sum of scores come last.

    ``candidates`` are the ids of the nearest; ``by_words`` says whether there was a search by words.
    ``repeated`` counts the candidates that repeat the text of another. Candidates are ``labelled`` with subtopics
    and ``sourced`` if one is. ``mean_candidate`` is the mean of their unit vectors, and ``gold_vectors`` are those
    known of gold documents, which ``points`` groups.
    """

    query: Query
    candidates: frozenset[str]
    by_words: bool
    sizes: dict[int, JudgedPicks]
    repeated: int
    sourced: bool
    view: QueryView | None
    mean_candidate: Matrix
    gold_vectors: dict[str, Matrix]
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
    view shows the first of the ``sizes``. Without candidates by words, settings with ``keyword_search`` are left out.
    """
    settings = [one for one in map(as_adapted, selectors) if found.by_words is not None or not one.keyword_search]
    try:
        pool = _Pool(query, found, settings, max(sizes), drop_duplicates)
        # The first picks of a larger set are not always the smaller set, so each size is selected by itself.
        picks_of = {
            k: [pool.select(setting, k) for setting in settings] + [PickedSet(ranking[:k]) for ranking in pool.rankings]
            for k in sizes
        }
    except SetSelectError as error:
        error.args = (f"query {quoted(query.text)}: {error}",)
        raise
    distinct = sorted(set(pool.first))
    known = {pool.ids[row]: pool.unit[row] for row in distinct}
    return JudgedQuery(
        pool.query,
        frozenset(pool.ids[row] for row in pool.nearest.rows),
        found.by_words is not None,
        {k: pool.measure(k, [one.picks for one in of_size]) for k, of_size in picks_of.items()},
        pool.repeated,
        sourced=not all(is_missing(document.source) for document in pool.documents),
        view=pool.view(picks_of[sizes[0]]) if view else None,
        mean_candidate=pool.unit[distinct].mean(axis=0),
        gold_vectors=_gold_vectors(pool.query, known, found.gold_vectors),
    )


class _Among(NamedTuple):
    """What settings select from: rows of a pool in the order in which they were found, and what is known of them."""

    rows: list[int]
    candidates: Candidates
    texts: Texts


class _Pool:
    """The candidates of one query, the nearest first, and the documents that only other searches found.

    Each row is a document. Rows of one text share an id, a gold id if there is one, and ``first[row]`` is the first of
    them: picks are first rows. Settings select among the ``nearest``, and those with ``keyword_search`` among the rows
    ``by_words`` too. ``rankings`` are read up to ``most`` picks.
    """

    def __init__(
        self, query: Query, found: SearchResult, settings: Sequence[Adapted], most: int, drop_duplicates: bool
    ) -> None:
        bodies = [one.text for one in found.documents] if found.bodies is None else found.bodies
        copies = copies_of(found.documents, bodies) if found.copies is None else found.copies
        counted_once = copies if drop_duplicates else {}
        by_words = list(found.by_words or ())
        has_budget = any(setting.budget is not None for setting in settings)
        everything = Candidates(
            found.vector,
            found.vectors,
            ids=[document.id for document in found.documents],
            costs=_read_costs(found.documents) if has_budget else None,
            sources=[document.source for document in found.documents],
        )
        # One order for every store, so that ties fall to the same document.
        cosines = everything.relevance
        order = np.argsort(-cosines, kind="stable")
        searched = len(found.documents) if found.candidates is None else found.candidates
        self.rankings: list[list[int]] = []
        for ranking in _rank(query, found, list(dict.fromkeys([*range(searched), *by_words])), cosines).values():
            # Of several rows with one text the first counts.
            first: dict[str, int] = {}
            for row in ranking:
                name = found.documents[row].id
                first.setdefault(counted_once.get(name, name), row)
            self.rankings.append(list(first.values())[:most])
        # Documents that no setting selects from and no ranking picks are left out.
        others = [*by_words, *(row for rows in self.rankings for row in rows)]
        order = order[(order < searched) | np.isin(order, others)]
        self.documents = [found.documents[i] for i in order]
        row_of = {i: row for row, i in enumerate(order.tolist())}
        near = [row_of[i] for i in range(searched)]
        united = list(dict.fromkeys([*near, *(row_of[i] for i in by_words)]))
        candidates = [self.documents[row] for row in near]
        self.repeated = len(candidates) - len({copies.get(one.id, one.id) for one in candidates})
        gold = {counted_once.get(name, name): name for name in reversed(query.gold)}

        def rename(ids: Iterable[str]) -> tuple[str, ...]:
            texts = (counted_once.get(name, name) for name in ids)
            return tuple(dict.fromkeys(gold.get(text, text) for text in texts))

        subtopics = {label: rename(ids) for label, ids in query.subtopics.items()}
        self.query = replace(query, gold=rename(query.gold), subtopics=subtopics)
        self.ids = [rename([document.id])[0] for document in self.documents]
        row_of_id: dict[str, int] = {}
        self.first = [row_of_id.setdefault(name, row) for row, name in enumerate(self.ids)]
        self.rankings = [[self.first[row_of[i]] for i in ranking] for ranking in self.rankings]
        self.drop_duplicates = drop_duplicates
        self.everything = everything.take(order)
        self.embedded = [one.text for one in self.documents] if found.texts is None else [found.texts[i] for i in order]
        self.bodies = [bodies[i] for i in order]
        self.facts = [document.read_facts() for document in self.documents]
        self.nearest = self._among(near)
        # Texts are split and compared when they are first used.
        same = len(united) == len(near) and found.weigh is None
        self.united = self.nearest if same else self._among(united, found.weigh)
        self.unit, (self.unit_query,) = (
            as_unit_rows(rows.astype(np.float64)) for rows in (self.everything.vectors, self.everything.query[None])
        )
        self.cosines = self.unit @ self.unit_query

    def _among(self, rows: list[int], weigh: Weigh | None = None) -> _Among:
        embedded, bodies = ([column[row] for row in rows] for column in (self.embedded, self.bodies))
        texts = Texts(embedded, [self.facts[row] for row in rows], bodies=bodies, weigh=weigh)
        return _Among(rows, self.everything.take(rows), texts)

    def select(self, setting: Adapted, k: int) -> PickedSet:
        """The picks of a setting."""
        rows, candidates, texts = self.united if setting.keyword_search else self.nearest
        question = [self.query.text]
        selection = setting.select_set(candidates, k, question=question, texts=texts, drop_copies=self.drop_duplicates)
        reasons: Callable[[], list[str]] = list
        if selection.shares is not None:
            reasons = partial(explain, selection, setting.selector, question=question, texts=texts)
        return PickedSet([self.first[rows[i]] for i in selection.indices.tolist()], reasons)

    def measure(self, k: int, sets: list[list[int]]) -> JudgedPicks:
        """The measures of each set of at most ``k`` picks."""
        figures = np.array([measure_set(self.unit_query, self.unit[picks]) for picks in sets])
        values = dict(zip(SetCosines._fields, figures.T, strict=True))
        if min(k, len(set(self.first))) <= 1:
            del values["redundancy"]
        values["characters"] = np.array([sum(len(self.documents[row].text) for row in picks) for picks in sets])
        return JudgedPicks([[self.ids[row] for row in picks] for picks in sets], values)

    def view(self, sets: list[PickedSet]) -> QueryView:
        """The view of the query."""
        parts = {label: np.isin(self.ids, covering) for label, covering in self.query.subtopics.items()}
        # The candidates, and what rankings picked besides.
        nearest = {self.first[row] for row in self.nearest.rows}
        picked = {row for one in sets for row in one.picks}
        shown = sorted(nearest | picked)
        position = {row: i for i, row in enumerate(shown)}

        def view_row(row: int) -> CandidateView:
            long = row in picked or self.ids[row] in self.query.gold
            return CandidateView(
                self.ids[row],
                clip(" ".join(self.documents[row].text.split()), _EXCERPT if long else _SHORT_EXCERPT),
                round(float(self.cosines[row]), _DIGITS),
                row not in nearest,
                tuple(part for part, covering in enumerate(parts.values()) if covering[row]),
            )

        return QueryView(
            self.query.id,
            self.query.text,
            self.query.gold,
            tuple(map(view_row, shown)),
            {setting: tuple(position[row] for row in one.picks) for setting, one in enumerate(sets)},
            tuple(parts),
            tuple(self._rare_words([self.embedded[row] for row in nearest])),
            {setting: tuple(said) for setting, one in enumerate(sets) if (said := one.explain())},
        )

    def _rare_words(self, texts: list[str]) -> list[str]:
        """The words of the query that at most half of the texts have, the rarest first."""
        words = list_terms(Text(self.query.text))
        counts = (match_words(self.query.text, texts).covered > 0).sum(axis=0)
        return [words[j] for j in np.argsort(counts, kind="stable").tolist() if 0 < counts[j] <= len(texts) / 2]


def _rank(query: Query, found: SearchResult, rows: list[int], cosines: NDArray[np.floating]) -> dict[str, list[int]]:
    """The rankings of these rows by hybrid search and by the sum of scores."""
    if found.bm25 is None:
        texts = [document.text for document in found.documents] if found.texts is None else found.texts
        bm25 = WordIndex([texts[row] for row in rows]).score(query.text)
    else:
        bm25 = np.asarray(found.bm25)[rows]
    ranked = rank_with_words(cosines[rows], bm25)
    return {label: [rows[place] for place in ranking] for label, ranking in ranked.items()}


def _read_costs(documents: Iterable[Document]) -> list[float]:
    """What each document takes from a budget: a store may have any value under this key, or none."""
    return [
        len(one.text) if is_missing(one.cost) else as_cost(one.cost, f"cost of document {one.id}") for one in documents
    ]


def _gold_vectors(query: Query, known: dict[str, Matrix], given: Mapping[str, ArrayLike]) -> dict[str, Matrix]:
    """The unit vectors of the query's gold documents, as far as they are candidates or given."""
    beyond = [name for name in query.gold if name in given and name not in known]
    if beyond:
        rows = as_unit_rows(np.array([given[name] for name in beyond], dtype=np.float64))
        known = known | dict(zip(beyond, rows, strict=True))
    return {name: known[name] for name in query.gold if name in known}


def copies_of(documents: Iterable[Document], bodies: Iterable[str]) -> dict[str, str]:
    """For each document whose body is that of an earlier one: its id, and the earlier id. Empty ones do not count.

    >>> copies_of([Document("a", "A"), Document("b", "B"), Document("c", "A")], ["A", "B", "A"])
    {'c': 'a'}
    """
    first: dict[str, str] = {}
    named = ((one.id, first.setdefault(body, one.id)) for one, body in zip(documents, bodies, strict=True) if body)
    return {name: earlier for name, earlier in named if name != earlier}
