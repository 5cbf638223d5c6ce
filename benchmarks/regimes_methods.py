"""The methods of benchmarks/regimes.py: each selects k texts for a question, most of them from its 50 nearest texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from benchmarks.common import best
from benchmarks.regimes_tasks import Case, Picks, Regime, nearest
from shared_core import MMR, NDPP, VRSD, Candidates, Coverage, Selector, TopK
from shared_core.candidates import Parts, References
from shared_core.selection.route import DEFAULT_EXTRA_K
from shared_core.selectors.coverage import COVERED, GATE, HALF_OPEN, REFERRED, RIDGE, TEMPERATURE, WORDS_IN_RELEVANCE
from shared_core.texts.names import list_names
from shared_core.texts.references import find_split_references
from shared_core.texts.word_index import WordIndex
from shared_core.texts.words import Text, Weigh, match_split_words

FETCH_K = 50
RRF_K = 60  # the constant of Cormack, Clarke and Büttcher (SIGIR 2009)


@dataclass(frozen=True)
class Search:
    """What a search for a question has found."""

    question: str
    query: np.ndarray
    rows: np.ndarray  # of the nearest texts in the corpus, by cosine
    vectors: np.ndarray  # of these rows
    texts: list[str]  # of these rows
    by_words: np.ndarray  # rows of the best texts by BM25 over the whole corpus
    bm25: np.ndarray | None = None  # of ``rows``, with the frequencies of the whole corpus
    joined: Search | None = None  # the same search where the best texts by words join the nearest ones
    relevance: np.ndarray | None = None  # in place of the cosines
    names: list[str] | None = None  # titles of these rows; None: names are read from the texts
    near: int | None = None  # the relevance is standardised over so many first rows; None: over all
    weigh: Weigh | None = None  # what words weigh in the corpus, if its index is at hand
    # The same texts, where several searches share them: each is split into words once.
    split: list[Text] | None = None

    @cached_property
    def words(self) -> Parts:
        """How well each text covers each word of the question."""
        return match_split_words([self.question], self.split or list(map(Text, self.texts)), self.weigh)

    @cached_property
    def between(self) -> np.ndarray:
        return self.vectors.astype(np.float64) @ self.vectors.astype(np.float64).T

    @cached_property
    def references(self) -> References:
        """Which text refers to which."""
        texts = self.split or list(map(Text, self.texts))
        return find_split_references(texts, list_names(self.names, texts), self.names, None, None)

    @cached_property
    def candidates(self) -> Candidates:
        return Candidates(self.query, self.vectors, relevance=self.relevance)

    @cached_property
    def with_texts(self) -> Candidates:
        """The nearest texts with the words of the question and the names in the texts."""
        return Candidates(
            self.query, self.vectors, relevance=self.relevance, words=self.words, references=self.references
        )


def search_for(
    regime: Regime, case: Case, query: np.ndarray, vectors: np.ndarray, n: int = FETCH_K,
    by_words: np.ndarray | None = None, titles: bool = True,
) -> Search:  # fmt: skip
    """The n texts nearest to the question of ``case``; ``vectors`` are those of all texts. Without ``titles``, names
    are read from the texts."""
    rows = nearest(case, query, vectors, n)
    names = [regime.names[row] for row in rows] if titles and regime.names else None
    texts = [regime.texts[row] for row in rows]
    words = rows[:0] if by_words is None else by_words
    return Search(case.question, query, rows, vectors[rows], texts, words, names=names)


class Corpus(NamedTuple):
    """A task with its vectors, its texts split into words, and the index of them."""

    regime: Regime
    vectors: np.ndarray
    split: list[Text]
    index: WordIndex

    def search(self, search: Search, rows: Sequence[int], near: int | None = None) -> Search:
        """``search`` with these rows as its candidates."""
        texts, names = self.regime.texts, self.regime.names
        return replace(
            search,
            rows=np.asarray(rows),
            vectors=self.vectors[rows],
            texts=[texts[row] for row in rows],
            names=[names[row] for row in rows] if names else None,
            split=[self.split[row] for row in rows],
            near=near,
        )

    def with_words(self, search: Search, case: Case) -> Search:
        """The search with what BM25 over the candidates of the case says."""
        by_words, scores = self.rank_by_words(case, len(self.split))
        rows = np.array([*dict.fromkeys([*search.rows.tolist(), *by_words[:DEFAULT_EXTRA_K].tolist()])])
        bm25 = np.zeros(len(self.split))
        bm25[by_words] = scores
        joined = replace(self.search(search, rows), bm25=bm25[rows], weigh=self.index.weigh)
        return replace(search, by_words=by_words[:FETCH_K], joined=joined)

    def rank_by_words(self, case: Case, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the best texts by BM25 among the candidates of the case, and their scores."""
        allowed = None if case.pool is None else set(case.pool.tolist()).__contains__
        return self.index.best_rows(case.question, count, allowed)

    def best_by_words(self, case: Case, count: int) -> np.ndarray:
        """The rows of the best texts by BM25 among the candidates of the case."""
        return self.rank_by_words(case, count)[0]


# The rows of k texts, the best first.
Method = Callable[[Search, int], Picks]


def by_vectors(selector: Selector) -> Method:
    return lambda search, k: search.rows[selector.select(search.candidates, k).indices].tolist()


def by_texts(selector: Selector) -> Method:
    return lambda search, k: search.rows[selector.select(search.with_texts, k).indices].tolist()


def reciprocal_ranks(rankings: Iterable[Sequence[int]]) -> dict[int, float]:
    """Reciprocal rank fusion: each row's sum of 1 / (60 + rank) over the rankings, the best first."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, row in enumerate(ranking, 1):
            scores[row] = scores.get(row, 0) + 1 / (RRF_K + rank)
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def hybrid(search: Search, k: int) -> Picks:
    """Reciprocal rank fusion of the 50 nearest texts and the 50 best of BM25."""
    return list(reciprocal_ranks([search.rows.tolist(), search.by_words.tolist()]))[:k]


def relevance_with_words(search: Search, k: int) -> Picks:
    """No selection: the k highest of the relevance that enters the default."""
    return search.rows[best(fused_relevance(search, WORDS_IN_RELEVANCE, weigh_words(search)), k)].tolist()


def sum_of_scores(h: float) -> Method:
    """No selection: the k highest of z(cosine) + h z(BM25) among the nearest texts and the best ones by words."""

    def select(search: Search, k: int) -> Picks:
        joined = search.joined
        assert joined is not None
        assert joined.bm25 is not None
        scores = standardised(joined.vectors @ joined.query) + h * standardised(joined.bm25)
        return joined.rows[best(scores, k)].tolist()

    return select


def with_keyword_search(method: Method) -> Method:
    """The method where the best texts by words join the nearest ones."""
    return lambda search, k: method(search.joined or search, k)


def standardised(values: np.ndarray, near: int | None = None) -> np.ndarray:
    """(x − mean) / σ, or 0 where all values are equal; both of the ``near`` first values."""
    sigma = values[:near].std()
    return (values - values[:near].mean()) / sigma if sigma > 1e-9 else np.zeros(len(values))


def weigh_words(search: Search, reliable: bool = False, power: float = 1.0) -> np.ndarray:
    """What each word weighs: its idf to a power. ``reliable``: times max(0, ½ + its correlation with the cosines)."""
    weights = search.words.weights**power
    if reliable:
        cosines = standardised(search.candidates.relevance.astype(np.float64))
        weights = weights * [max(0, 0.5 + (standardised(a) * cosines).mean()) for a in search.words.covered.T]
    return weights


def fused_relevance(search: Search, h: float, weights: np.ndarray) -> np.ndarray:
    """ρ: the cosine plus h times the score of the words, both in standard deviations."""
    cosines = search.candidates.relevance.astype(np.float64)
    return standardised(cosines, search.near) + h * standardised(search.words.covered @ weights, search.near)


def objective(
    w: float = COVERED, h: float = WORDS_IN_RELEVANCE, b: float = REFERRED[0], t: float = TEMPERATURE,
    ridge: float = RIDGE, gate: float = GATE, reliable: bool = False, power: float = 1.0,
) -> Method:  # fmt: skip
    """The greedy maximum of Coverage's objective, whose constants are no parameters of the selector.

    It leaves out what the question names exactly. ``reliable`` and ``power`` are those of :func:`weigh_words`, in the
    relevance alone.
    """

    def select(search: Search, k: int) -> Picks:
        relevance = standardised(fused_relevance(search, h, weigh_words(search, reliable, power)), search.near)
        parts, weights = search.words.covered, search.words.weights
        weights = w * weights / max(weights.sum(), 1e-12)
        bonus = b / (1 + np.exp(-gate * (relevance - HALF_OPEN))) if gate else b
        relevance /= t
        kernel = search.between + ridge * np.eye(len(search.rows))
        references, names = search.references.strength, search.references.documents[0]
        covered = np.zeros(len(weights))
        picks: list[int] = []
        for _ in range(k):
            gain = relevance + np.log(kernel.diagonal().clip(1e-12)) + np.maximum(0, parts - covered) @ weights
            if b and picks:
                # Named by a pick, while no pick bears the name.
                gain += bonus * references[picks].max(axis=0) * (names[:, None] != names[picks]).all(axis=1)
            gain[picks] = -np.inf
            p = int(gain.argmax())
            picks.append(p)
            kernel -= np.outer(kernel[:, p], kernel[p]) / max(kernel[p, p], 1e-12)  # the Schur complement
            covered = np.maximum(covered, parts[p])
        return search.rows[picks].tolist()

    return select


SIMILARITY, HYBRID, DEFAULT = "similarity", "hybrid search", "setselect"
# The line that anybody can write, and the default over the same candidates.
SUM, KEYWORDS = "sum of scores", "keyword_search"
SUM_WEIGHT = 0.7  # of BM25: the best of 0.5, 0.7 and 1 on the development halves
# The default without a part: without references, and without words and references.
WORDS, VECTORS_ALONE = "… without references", "NDPP()"
WORDS_SORTED, DETERMINANT = "words, no selection", "words and determinant"
METHODS: dict[str, Method] = {
    SIMILARITY: by_vectors(TopK()),
    "MMR λ 0.5": by_vectors(MMR(lambda_mult=0.5)),
    "MMR λ 0.8": by_vectors(MMR(lambda_mult=0.8)),
    HYBRID: hybrid,
    SUM: sum_of_scores(SUM_WEIGHT),
    WORDS_SORTED: relevance_with_words,
    "VRSD": by_vectors(VRSD()),
    VECTORS_ALONE: by_vectors(NDPP()),
    DEFAULT: by_texts(Coverage()),
    KEYWORDS: with_keyword_search(by_texts(Coverage())),
    WORDS: by_texts(Coverage(reference_weight=0)),
    "… without words in the relevance": objective(h=0),
    "… without the determinant": by_texts(Coverage(ridge=1e6)),
    "… without exact names": objective(),
    DETERMINANT: objective(w=0, b=0),
}
# Each part of the default, and the method that has it and all parts above it.
PARTS = {
    "words in the relevance": WORDS_SORTED,
    "the determinant": DETERMINANT,
    "words to cover, and exact names": WORDS,
    "references": DEFAULT,
    "25 by words, and their corpus": KEYWORDS,
}
# The columns of the table that the README shows.
SHOWN = ("MMR λ 0.5", HYBRID, SUM, DEFAULT, KEYWORDS)
OURS = (DEFAULT, KEYWORDS)
