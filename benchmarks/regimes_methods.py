"""The methods of benchmarks/regimes.py: each selects k texts for a question, most of them from its 50 nearest texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from benchmarks.regimes_tasks import Case, Picks, Regime, nearest
from shared_core import MMR, NDPP, VRSD, Candidates, Coverage, Selector, TopK
from shared_core.candidates import Parts, References
from shared_core.selectors.coverage import BRIDGE, COVERED, WORDS_IN_RELEVANCE
from shared_core.selectors.ndpp import AUTO_TEMPERATURE, DEFAULT_RIDGE
from shared_core.signals.references import find_references
from shared_core.signals.words import match_words

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
    relevance: np.ndarray | None = None  # in place of the cosines
    names: list[str] | None = None  # titles of these rows; None: names are read from the texts

    @cached_property
    def words(self) -> Parts:
        """How well each text covers each word of the question."""
        return match_words(self.question, self.texts)

    @cached_property
    def between(self) -> np.ndarray:
        """The cosine of each two texts."""
        return self.vectors.astype(np.float64) @ self.vectors.astype(np.float64).T

    @cached_property
    def references(self) -> References:
        """Which text names which."""
        return find_references(self.texts, self.names)

    @cached_property
    def candidates(self) -> Candidates:
        """The nearest texts as vectors alone."""
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
    best = np.argsort(-fused_relevance(search, WORDS_IN_RELEVANCE), kind="stable")
    return search.rows[best[:k]].tolist()


def adagres(search: Search, k: int) -> Picks:
    """AdaGReS (Peng et al. 2025, arXiv 2512.25052) for a number of texts instead of a budget of tokens.

    Greedy on Σ cos(q, c) − β Σ cos(c, c'), the second sum over pairs of picks. β = mean cos(q, c) / ((k − 1)/2 · mean
    cos(c, c')), both means over the candidates, is the closed form with α = 1, λ = 1 and β₀ = 0. All k texts are taken.
    """
    cosines, between = search.vectors @ search.query, search.between
    pairs = between[np.triu_indices(len(between), 1)].mean()
    beta = max(cosines.mean(), 0) / max((k - 1) / 2 * pairs, 1e-9)
    picks: list[int] = []
    for _ in range(k):
        gain = cosines - beta * between[picks].sum(axis=0)
        gain[picks] = -np.inf
        picks.append(int(gain.argmax()))
    return search.rows[picks].tolist()


def dartboard(c: float) -> Method:
    """Dartboard (Pickett et al. 2024, arXiv 2407.12101), greedy on Σ_t P(t | q, σ) max over the picks of N(t; g, σ).

    The distance is 1 − cosine. The paper tunes σ for each corpus. Here σ is c standard deviations of the candidates'
    cosines with the question, so that it needs no tuning and suits every model.
    """

    def select(search: Search, k: int) -> Picks:
        to_query, between = search.vectors @ search.query, search.between
        sigma = max(c * float(to_query.std()), 1e-6)
        density = np.exp(-(((1 - between) / sigma) ** 2) / 2)  # N(t; g, σ) up to a constant factor
        log_p = -(((1 - to_query) / sigma) ** 2) / 2
        p = np.exp(log_p - log_p.max())
        picks: list[int] = []
        reached = np.zeros(len(p))
        for _ in range(k):
            gain = np.maximum(density, reached) @ p
            gain[picks] = -np.inf
            # The first pick is the nearest text, as in the authors' code.
            picks.append(int(gain.argmax()) if picks else int(to_query.argmax()))
            reached = np.maximum(reached, density[picks[-1]])
        return search.rows[picks].tolist()

    return select


# --- the objective of the default with other constants, which are no parameters of the selector -----


def standardised(values: np.ndarray) -> np.ndarray:
    """(x − mean) / σ, or 0 where all values are equal."""
    sigma = values.std()
    return (values - values.mean()) / sigma if sigma > 1e-9 else np.zeros(len(values))


def fused_relevance(search: Search, h: float) -> np.ndarray:
    """ρ: the cosine plus h times the score of the words, both in standard deviations."""
    cosines = search.candidates.relevance.astype(np.float64)
    return standardised(cosines) + h * standardised(search.words.covered @ search.words.weights)


def agreement(search: Search) -> float:
    """The correlation of the words' score with the cosines, 0 at least."""
    cosines = search.candidates.relevance.astype(np.float64)
    return max(0.0, float(np.mean(standardised(cosines) * standardised(search.words.covered @ search.words.weights))))


# What the picks so far add to each candidate by naming it, in [0, 1].
Bonus = Callable[[Search, Picks], np.ndarray]


def named(search: Search, picks: Picks) -> np.ndarray:
    return search.references.named[picks].max(axis=0)


def is_name_new(search: Search, picks: Picks) -> np.ndarray:
    names = search.references.names
    return (names[:, None] != names[picks]).all(axis=1)


def named_once(search: Search, picks: Picks) -> np.ndarray:
    """Named by a pick, while no pick bears the name."""
    return named(search, picks) * is_name_new(search, picks)


def named_or_naming(search: Search, picks: Picks) -> np.ndarray:
    """The same in both directions."""
    naming = search.references.named[:, picks].max(axis=1)
    return np.maximum(named(search, picks), naming) * is_name_new(search, picks)


def named_and_new(search: Search, picks: Picks) -> np.ndarray:
    """Times 1 minus the cosine with the text that names it."""
    return (search.references.named[picks] * (1 - search.between[picks])).max(axis=0)


def objective(
    T: float = AUTO_TEMPERATURE,
    ridge: float = DEFAULT_RIDGE,
    w: float = COVERED,
    h: float = WORDS_IN_RELEVANCE,
    b: float = BRIDGE,
    bonus: Bonus = named_once,
    skew: float = 0,
    power: float = 1,
    by_agreement: bool = False,
) -> Method:
    """The greedy maximum of Coverage's objective.

    Ideas that are not in the product: another bonus, references R as the skew part of the kernel, γ (R − Rᵀ) with
    γ = ``skew``, the weights of the words to a power, and h and w times the agreement of the words with the cosines.
    """

    def select(search: Search, k: int) -> Picks:
        trust = agreement(search) if by_agreement else 1
        relevance = standardised(fused_relevance(search, h * trust)) / T
        parts, weights = search.words.covered, search.words.weights**power
        weights = w * trust * weights / max(weights.sum(), 1e-12)
        kernel = search.between + ridge * np.eye(len(search.rows))
        if skew:
            kernel += skew * (search.references.named - search.references.named.T)
        covered = np.zeros(len(weights))
        picks: list[int] = []
        for _ in range(k):
            gain = relevance + np.log(kernel.diagonal().clip(1e-12)) + np.maximum(0, parts - covered) @ weights
            if b and picks:
                gain += b * bonus(search, picks)
            gain[picks] = -np.inf
            p = int(gain.argmax())
            picks.append(p)
            kernel -= np.outer(kernel[:, p], kernel[p]) / max(kernel[p, p], 1e-12)  # the Schur complement
            covered = np.maximum(covered, parts[p])
        return search.rows[picks].tolist()

    return select


SIMILARITY, HYBRID, DEFAULT, WORDS = "similarity", "hybrid search", "setselect", "… without bridges"
METHODS: dict[str, Method] = {
    SIMILARITY: by_vectors(TopK()),
    "MMR λ 0.5": by_vectors(MMR(lambda_mult=0.5)),
    "MMR λ 0.8": by_vectors(MMR(lambda_mult=0.8)),
    HYBRID: hybrid,
    "words, no selection": relevance_with_words,
    "VRSD": by_vectors(VRSD()),
    "AdaGReS": adagres,
    "Dartboard": dartboard(1.0),
    "NDPP()": by_vectors(NDPP()),
    DEFAULT: by_texts(Coverage()),
    WORDS: by_texts(Coverage(bridge_weight=0)),
    "… without words in the relevance": objective(h=0),
    "… without coverage": objective(w=0),
    "… without the determinant": by_texts(Coverage(ridge=1e6)),
}
# The columns of the table that the README shows.
SHOWN = ("MMR λ 0.5", "MMR λ 0.8", HYBRID, DEFAULT)

# What was tried on the development half. Each temperature and ridge is tried with words and without, since the default
# and NDPP() share them.
SHARED = tuple(product((0.75, 1.0, 1.25), (0.05, 0.1, 0.2)))


def with_words(T: float, ridge: float, w: float = COVERED, h: float = WORDS_IN_RELEVANCE) -> str:
    return f"T = {T:g} σ, α = {ridge:g}, w = {w:g}, h = {h:g}"


def without_words(T: float, ridge: float) -> str:
    return f"T = {T:g} σ, α = {ridge:g}, no words"


TRIED: dict[str, Method] = {
    **{with_words(*some): objective(*some) for some in SHARED},
    **{without_words(*some): objective(*some, w=0, h=0, b=0) for some in SHARED},
    **{
        with_words(AUTO_TEMPERATURE, DEFAULT_RIDGE, w, h): objective(w=w, h=h)
        for w, h in ((4, 0.25), (12, 0.25), (8, 0.15), (8, 0.4))
    },
    **{f"b = {b}": objective(b=b) for b in (1, 2, 6, 8)},
    **{f"b = {b}, for every text of the name": objective(b=b, bonus=named) for b in (2, 4)},
    **{f"b = {b}, times 1 − cosine": objective(b=b, bonus=named_and_new) for b in (4, 8)},
    **{f"b = {b}, in both directions": objective(b=b, bonus=named_or_naming) for b in (2, 4)},
    **{f"γ = {skew}: a skew part in the kernel": objective(b=0, skew=skew) for skew in (3, 5)},
    "the default, weights of the words squared": objective(power=2),
    "the default, h = 0.5 and w = 16, times agreement": objective(h=0.5, w=16, by_agreement=True),
    **{f"Dartboard, σ = {c} standard deviations": dartboard(c) for c in (0.5, 2)},
}
