"""One set that is relevant, repeats little, and covers every part of the question together; the default selector."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, check_fields, check_number, read_only
from ..candidates import (
    REFERENCE_KINDS,
    Candidates,
    References,
    count_repeats,
    standardise,
)
from .greedy import GreedyState, lowest_of_best
from .ndpp import (
    FLOAT64_TIE,
    NO_NUMBERS,
    NO_REFERENCES,
    IncrementalLU,
    factors_of_unit_rows,
    log_relevance,
    run_coverage,
    standard_relevance,
)
from .registry import Capabilities, register_selector
from .selection import Selection, make_selection

Matrix = NDArray[np.float64]

# Chosen by benchmarks/constants.py: the weights of the words beside the cosine in the relevance, and of each kind of
# parts, where the parameters are 1; T, in standard deviations of the relevance; and the ridge.
WORDS_IN_RELEVANCE = 0.5
COVERED = 8.0
TEMPERATURE = 0.5
RIDGE = 0.5
# The weight of what the question names exactly, each: more than all other terms of a candidate together.
EXACT = 100.0
# The weight of each kind of reference, in the order of REFERENCE_KINDS. benchmarks/citations.py and
# benchmarks/neighbours.py measure the last two.
REFERRED = (8.0, 8.0, 4.0, 0.75)
# A candidate gets half of a bonus where its relevance is this many standard deviations from the mean, and with the
# slope GATE the more, the more relevant it is.
GATE, HALF_OPEN = 3.0, -1.0
# A candidate covers a query by 1/e if its cosine is this many standard deviations below the highest one. It was chosen
# on the development half of the questions of benchmarks/several_queries.py.
SERVED = 0.5
# With a ridge below this, rounding errors in float32 would decide between candidates.
LEAST_RIDGE = 1e-4
# R, its kinds, the documents, the weights, and the share of each candidate.
_Bonus = tuple[FloatArray, NDArray[np.int8], NDArray[np.int64], Matrix, Matrix]


class _Terms(NamedTuple):
    """The terms of the objective and the bonus, in the letters of :class:`Coverage`.

    The columns of a are what the question names exactly, the words, the questions if there are several, and ``cover``.
    """

    log_weight: Matrix  # (ρ − max ρ) / T: (n,)
    noise: float  # the tie tolerance beside that of the determinant
    a: Matrix  # (n, m)
    w: Matrix  # (m,): w β
    r: FloatArray  # R (n, n); empty if there is no bonus
    kinds: NDArray[np.int8]  # (n, n)
    documents: NDArray[np.int64]  # (kinds, n)
    omega: Matrix  # (kinds,): the weight of the bonus by the kind of the reference; 0 if there is none
    g: Matrix  # (n,): the share of its bonus that a candidate gets


@register_selector("coverage")
@dataclass(frozen=True)
class Coverage:
    """The set S that is relevant, repeats little, covers the words of the question, and whose texts lead to each other.

    The objective is F(S) = Σ_{i∈S} (ρ_i − max ρ) / T + log det((E_S E_Sᵀ + αI) / (1 + α)) + w Σ_j β_j max_{i∈S} a_ij.

    - ρ is the relevance of each candidate. With words, it is z(z(r) + h·z(a β)), where r is the cosine or the relevance
      that was given, a_ij in [0, 1] is how well candidate i covers word j, β_j is its weight in ``words`` divided by
      their sum, and z subtracts the mean of the candidates and divides by their standard deviation, or is 0 if it is 0.
      Without words ρ = z(r). T = 0.5.
    - The rows of E are the unit vectors of the candidates, and α is the ridge: a candidate that repeats nothing adds 0.
      These two terms are those of :class:`NDPP` without a kernel, whose T and α weigh repetition more.
    - The last term is what the set covers: part j counts as covered as well as the best of its members covers it. The
      parts of ``cover`` are further columns, with a w of their own. Their β has a factor: the highest a_ij exp(ρ_i −
      max ρ) / T of any candidate. So a part that only irrelevant candidates cover weighs little. Each part of
      ``words.exact``, what the question names exactly, weighs more than all other terms together: as long as there are
      places, the set gets a candidate for it.
    - With sub-questions, max_j z(c_j) stands for z(r), where c_j are the cosines with query j, and ρ is not
      standardised again. Each query is a part too: a_ij = exp((c_ij − max c_j) / (σ_j / 2)), where σ_j is the standard
      deviation of c_j. The queries have the same β, with sum 1.

    Each term is submodular (Lin and Bilmes 2011, "A Class of Submodular Functions for Document Summarization"), and so
    is F: the gain F(S + i) − F(S) of a candidate never rises as the set grows.

    With references, a candidate to which an earlier pick or a ``shown`` text refers gets a bonus. Its gain is F(S + i)
    − F(S) + g_i max_{j∈S} ω_κ R_ji, where R_ji in [0, 1] says how clearly text j refers to text i, and κ is the kind of
    this reference: a name, a link, a citation by number or code, or a place directly before or after text i in its
    document. g_i = 1 / (1 + exp(−3 (z(ρ)_i + 1))) lets its own relevance have a say: half of the bonus one standard
    deviation below the mean. A reference does not count if S has a text that belongs together with i by its kind, so
    several passages of one document, or of one section that is cited, bring one bonus. The objective is the sum of the
    gains, and depends on the order of the picks. The paper on nonsymmetric DPPs calls this a positive correlation
    between items, which a symmetric kernel cannot express (Gartrell et al. 2021, section 1).

    Cost: O(nkd + nkm) for m parts. Memory: O(kd + nm), and O(n²) with references.

    Parameters
    ----------
    word_weight : float in [0, 1e6]
        Scales h and w for the words: how much the words of the question count beside the vectors. 0: not at all, and
        what it names exactly neither.
    cover_weight : float in [0, 1e6]
        Scales w for the parts of ``cover``: how much it counts that the set covers them.
    reference_weight : float in [0, 1e6]
        Scales each ω_κ but that of neighbours: how much it counts that an earlier pick refers to a candidate.
    neighbour_weight : float in [0, 1e6]
        Scales ω_κ of neighbours: how much it counts that a candidate stands next to an earlier pick.
    ridge : float >= 0.0001
        α. It limits the penalty for a repetition, as in :class:`NDPP`.

    Examples
    --------
    >>> from setselect import Candidates, Coverage, match_words
    >>> texts = ["Paris has a river.", "Paris has many rivers.", "The Seine is 777 km long.", "The weather is fine."]
    >>> words = match_words("How long is the river of Paris?", texts)
    >>> c = Candidates([1.0, 0.2], [[1.0, 0.1], [1.0, 0.2], [0.6, 1.0], [-1.0, 0.5]], words=words)
    >>> Coverage().select(c, 2).indices.tolist()
    [0, 2]
    """

    word_weight: float = 1.0
    cover_weight: float = 1.0
    reference_weight: float = 1.0
    neighbour_weight: float = 1.0
    ridge: float = RIDGE

    @cached_property
    def capabilities(self) -> Capabilities:
        """It uses no quality, no references with ``reference_weight=0``, and no neighbours with the other weight 0."""
        refers, continues = self.reference_weight > 0, self.neighbour_weight > 0
        return Capabilities(
            quality=False, words=True, references=refers, neighbours=continues, log_gains=True, constraints=True
        )

    def __post_init__(self) -> None:
        check_fields(self)
        check_number(self.ridge, "ridge", LEAST_RIDGE)

    def select(
        self, candidates: Candidates, k: int | None = None, *, budget: float | None = None, shown: Iterable[int] = ()
    ) -> Selection:
        """Select greedily; what ``shown`` candidates cover counts as covered, and what they refer to gets the bonus."""
        state = GreedyState(candidates, k, budget, shown)
        terms = self._terms(candidates)
        noise = np.full_like(terms.log_weight, terms.noise)
        # Read-only and row by row: for each other combination numba would compile its loop again, for seconds.
        arrays = tuple(read_only(np.ascontiguousarray(term)[...]) for term in terms[2:])
        gains = run_coverage(state, candidates.vectors, self.ridge, terms.log_weight, noise, arrays)
        if gains is None:
            factors = factors_of_unit_rows(candidates.vectors, self.ridge)
            gains = _greedy(state, IncrementalLU(factors, state.shown, state.target), terms)
        # The loops leave out the constant 1 / (1 + α) of the determinant.
        gains = np.subtract(gains, math.log1p(self.ridge)).tolist()
        referred_by, bonus = _find_referring(terms, state) if terms.omega.any() else (None, 0.0)
        shares = _find_shares(terms, state, bonus)
        return make_selection(candidates, state.picks, gains, referred_by=referred_by, shares=shares)

    def _terms(self, candidates: Candidates) -> _Terms:
        z, noise = standard_relevance(candidates)
        columns, weights = [], []
        if (words := candidates.words) is not None and self.word_weight:
            if words.exact is not None:
                columns.append(words.exact.astype(np.float64))
                weights.append(np.full(words.exact.shape[1], EXACT))
            if words.weights.any():
                beta = _shares(words.weights)
                columns.append(words.covered)
                weights.append(COVERED * self.word_weight * beta)
                h = WORDS_IN_RELEVANCE * self.word_weight
                # vecdot computes each row alone, so copies of a text get exactly the same number.
                z_words, per_words = standardise(np.vecdot(words.covered, beta), any_size=True)
                z, noise = z + h * z_words, 1 + noise + h * per_words
                # The highest of several z has another deviation, and T is in standard deviations of the cosines there.
                if len(candidates.questions) == 1 or candidates.relevance_given:
                    z, per_rho = standardise(z)
                    noise = noise * per_rho
        log_weight, noise = log_relevance(z, noise, TEMPERATURE)
        if len(candidates.questions) > 1:
            columns.append(_served(candidates))
            weights.append(COVERED * _shares(1 / count_repeats(candidates.questions)))
        of_values = 0.0
        if candidates.cover is not None and self.cover_weight and candidates.cover.weights.any():
            columns.append(candidates.cover.covered)
            # A part weighs as much as the most relevant candidate that covers it. T divides both, as in the relevance.
            most = (candidates.cover.covered * np.exp(TEMPERATURE * log_weight)[:, None]).max(axis=0)
            weights.append(COVERED / TEMPERATURE * self.cover_weight * _shares(candidates.cover.weights) * most)
            of_values = weights[-1].sum()
        # One kind of parts is not copied.
        a = columns[0] if len(columns) == 1 else np.hstack([np.zeros((len(candidates), 0)), *columns])
        w = np.concatenate([NO_NUMBERS, *weights])
        bonus: _Bonus = NO_REFERENCES
        per_gate, references = 0.0, candidates.references
        if references is not None and (self.reference_weight or self.neighbour_weight):
            standard, per_sigma = standardise(log_weight)
            g = 1 / (1 + np.exp(-GATE * (standard - HALF_OPEN)))
            bonus = *_weigh_references(references, self.reference_weight, self.neighbour_weight), g
            # The slope of g is at most a quarter of GATE.
            per_gate = GATE / 4 * per_sigma.item() * bonus[3].max()
        tie = noise.item() * (1 + of_values + per_gate) + FLOAT64_TIE * (w.sum() + bonus[3].max())
        return _Terms(log_weight, float(tie), a, w, *bonus)


def _greedy(state: GreedyState, lu: IncrementalLU, terms: _Terms) -> list[float]:
    """The greedy method; returns the gain of each pick."""
    a, log_weight = terms.a, state.close(terms.log_weight.copy())  # -inf for a closed candidate
    gains, everyone = [], list(range(len(a)))
    while state.more():
        texts = state.shown + state.picks
        covered = a[texts].max(axis=0, initial=0.0)
        new = np.vecdot(np.maximum(a - covered, 0.0), terms.w)  # w Σ_j β_j (what i covers of part j and S does not)
        marginal = log_weight + lu.log_ratios() + new
        if terms.omega.any():
            marginal += _find_bonus(terms, texts, everyone).max(axis=0, initial=0.0)
        best = int(marginal.argmax())
        i = lowest_of_best(marginal, state.tie + lu.log_noise(best) + terms.noise)
        gains.append(float(marginal[i]))
        lu.add(i)
        state.take(i, log_weight)
    return gains


def _shares(weights: Matrix) -> Matrix:
    """The weights divided by their sum, which may overflow; 0 if all of them are 0."""
    shares = weights / (weights.max() or 1.0)
    result: Matrix = shares / (shares.sum() or 1.0)
    return result


def _served(candidates: Candidates) -> Matrix:
    """(n, q): how well each candidate covers each query; fully if its cosines are equal up to rounding."""
    z, _ = standardise(candidates.cosines)
    return np.ascontiguousarray(np.exp((z - z.max(axis=1, keepdims=True)) / SERVED).T)


def _weigh_references(
    references: References, weight: float, of_neighbours: float
) -> tuple[FloatArray, NDArray[np.int8], NDArray[np.int64], Matrix]:
    """R, its kinds, the documents of each kind, and the weights of the kinds."""
    omega = [omega * (of_neighbours if kind == "neighbour" else weight)
             for kind, omega in zip(REFERENCE_KINDS, REFERRED, strict=True)]  # fmt: skip
    r, documents, kinds = references
    each = documents if documents.ndim == 2 else np.tile(documents, (len(REFERRED), 1))
    return r, np.zeros(r.shape, np.int8) if kinds is None else kinds, each, np.array(omega)


def _find_bonus(terms: _Terms, texts: list[int], rows: list[int]) -> Matrix:
    """(texts, rows): the bonus by which each of the texts raises each candidate. Those of one kind are new to them."""
    kinds = terms.kinds[np.ix_(texts, rows)].astype(np.intp)
    # (kinds, rows): whether none of the texts belongs together with the candidate
    is_new = ~(terms.documents[:, texts, None] == terms.documents[:, None, rows]).any(axis=1)
    counts = is_new[kinds, np.arange(len(rows))]
    bonus: Matrix = terms.omega[kinds] * terms.r[np.ix_(texts, rows)].astype(np.float64) * terms.g[rows] * counts
    return bonus


def _find_referring(terms: _Terms, state: GreedyState) -> tuple[list[int], list[float]]:
    """The row of the earlier text that brought each pick its bonus, or -1 for none; and the bonus."""
    referring, bonuses = [], []
    for place, pick in enumerate(state.picks):
        texts = state.shown + state.picks[:place]
        bonus = _find_bonus(terms, texts, [pick])[:, 0]
        bonuses.append(float(bonus.max(initial=0.0)))
        referring.append(texts[bonus.argmax()] if bonus.any() else -1)
    return referring, bonuses


def _find_shares(terms: _Terms, state: GreedyState, bonus: list[float] | float) -> Matrix:
    """(k, 3): what relevance, the parts that are new, and the ``bonus`` have of their sum; 0 if the sum is 0."""
    picks = state.picks
    worth = np.zeros((len(picks), 3))
    worth[:, 0] = terms.log_weight[picks] - terms.log_weight.min()
    if terms.w.size:
        covered = terms.a[state.shown].max(axis=0, initial=0.0)
        a = terms.a[picks]
        before = np.maximum.accumulate(np.vstack([covered, a[:-1]]))
        worth[:, 1] = np.vecdot(np.maximum(a - before, 0.0), terms.w)
    worth[:, 2] = bonus
    total = worth.sum(axis=1, keepdims=True)
    np.divide(worth, total, out=worth, where=total > 0)
    return worth
