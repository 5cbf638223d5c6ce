"""Slow reference implementations, written from the formulas of the papers alone.

Nothing here imports the package under test. Everything is computed in float64 with plain loops, determinants from
scratch and optima by trying all sets, so that the references share no error with the package.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FLOAT32_ROUNDING = 5e-7
FLOAT64_ROUNDING = 1e-15
"""The largest error of a cosine that is computed in float32."""

ZERO_SUM = 1e-12
"""A sum of unit rows that is at most this long counts as the zero vector."""


class SelectionLike(Protocol):
    """The attributes of a selection that the comparisons read."""

    @property
    def indices(self) -> NDArray[np.int64]: ...
    @property
    def gains(self) -> Floats: ...
    @property
    def relevance(self) -> Floats: ...
    @property
    def objective(self) -> float: ...
    @property
    def filled_from(self) -> int | None: ...


@dataclass(frozen=True)
class Step:
    """The scores of all candidates at one step of a method."""

    scores: Floats
    gains: Floats
    slack: Floats
    """The largest error of each score for float32 input."""
    before: float = 0.0
    """The largest error of the objective before this step, which a gain subtracts."""
    tie: float | None = None
    """The largest difference between equal scores; None: the rounding error of a cosine."""
    filled: bool = False
    singular: bool = False
    """Whether the picks are so nearly dependent that float64 does not give the scores of this step to six digits."""


@dataclass(frozen=True)
class Reference:
    """A reference selection, and the scores after any other sequence of picks."""

    picks: tuple[int, ...]
    gains: tuple[float, ...]
    relevance: Floats
    objective: float
    filled_from: int | None
    relevance_slack: float
    """The largest error of the relevance for float32 input."""
    single: bool
    step: Callable[[Sequence[int]], Step]
    finished: Callable[[Sequence[int]], bool]
    combine: Callable[[Iterable[float]], float]
    of_determinants: bool = False
    """Whether scores are computed from determinants, of which ten digits are known in float64."""


# --- vectors --------------------------------------------------------------------------------------


def unit_rows(vectors: ArrayLike) -> Floats:
    """Rows of length 1; a zero row stays zero."""
    rows = np.array(vectors, dtype=np.float64)
    # Without a division by its largest number, a row of length 1e-310 would lose digits in the division by its length.
    for order in (np.inf, 2):
        lengths = np.linalg.norm(rows, order, axis=1, keepdims=True)
        rows /= np.where(lengths > 0, lengths, 1.0)
    return rows


def unit(vector: ArrayLike) -> Floats:
    return unit_rows(np.atleast_2d(np.asarray(vector, dtype=np.float64)))[0]


def cosine(a: ArrayLike, b: ArrayLike) -> float:
    """cos(a, b); 0 where one of them is the zero vector."""
    return float(unit(a) @ unit(b))


def cosines(query: ArrayLike, vectors: ArrayLike) -> Floats:
    q = unit(query)
    return np.array([row @ q for row in unit_rows(vectors)])


def worth_of(query: ArrayLike, vectors: ArrayLike, relevance: ArrayLike | None) -> Floats:
    """The relevance that is given, else the cosines; of several queries the highest."""
    if relevance is not None:
        return np.array(relevance, dtype=np.float64)
    highest: Floats = np.max([cosines(one, vectors) for one in np.atleast_2d(query)], axis=0)
    return highest


def different_queries(query: ArrayLike) -> list[Floats]:
    """Of the queries, (q, d) or (d,), those that no earlier one is equal to, at unit length."""
    different: list[Floats] = []
    for one in map(unit, np.atleast_2d(query)):
        if all(np.abs(one - other).max() > 1e-9 for other in different):
            different.append(one)
    return different


def served_best(queries: ArrayLike, vectors: ArrayLike) -> Floats:
    """(q, n): the cosines with each query in their standard deviations."""
    equal = 16 * float(np.finfo(np.float32 if is_single(vectors) else np.float64).eps)
    return np.array([standard_scores(cosines(one, vectors), equal)[0] for one in np.asarray(queries)])


def standard_worth(query: ArrayLike, vectors: ArrayLike, relevance: ArrayLike | None) -> Floats:
    """As :func:`worth_of`; the cosines with several queries are in standard deviations."""
    several = relevance is None and len(different_queries(query)) > 1
    highest: Floats = served_best(query, vectors).max(axis=0) if several else worth_of(query, vectors, relevance)
    return highest


def is_single(vectors: ArrayLike) -> bool:
    return bool(np.result_type(np.asarray(vectors).dtype, np.float32) == np.float32)


def near_pairs(vectors: ArrayLike, threshold: float) -> Mask:
    """(n, n): the pairs with a cosine above the threshold. The cosine of a zero row is 0."""
    rows = unit_rows(vectors)
    near: Mask = rows @ rows.T > threshold
    return near


@dataclass(frozen=True)
class Conditions:
    """What forbids picks, under the names of the package."""

    vectors: ArrayLike
    shown: Sequence[int] = ()
    costs: ArrayLike | None = None
    budget: float | None = None
    sources: Sequence[Hashable] | None = None
    max_per_source: int | None = None
    drop_near_duplicates: float | None = None
    prefer: Sequence[Any] | NDArray[Any] | None = None

    @cached_property
    def cost(self) -> Floats:
        n = len(np.asarray(self.vectors))
        return np.zeros(n) if self.costs is None else np.asarray(self.costs, dtype=np.float64)

    @cached_property
    def near(self) -> Mask | None:
        return None if self.drop_near_duplicates is None else near_pairs(self.vectors, self.drop_near_duplicates)

    def is_full(self, i: int, taken: Sequence[int]) -> bool:
        """Whether `taken` holds as many candidates of the source of `i` as it may."""
        if self.max_per_source is None:
            return False
        assert self.sources is not None
        return sum(self.sources[j] == self.sources[i] for j in taken) >= self.max_per_source

    @cached_property
    def beaten(self) -> Mask:
        """(n,): the candidates near to one of a higher `prefer` that stays.

        What is near to a shown one, costs more than the budget, or is of a source that the shown ones fill, does not
        stay.
        """
        near, prefer, n = self.near, self.prefer, len(self.cost)
        beaten = np.zeros(n, dtype=np.bool_)
        if near is None or prefer is None:
            return beaten
        gone = near[list(self.shown)].any(axis=0) | [self.is_full(i, self.shown) for i in range(n)]
        if self.budget is not None:
            gone |= self.cost > self.budget
        for i in sorted(range(n), key=lambda i: -prefer[i]):
            beaten[i] = any(near[i, j] and prefer[j] > prefer[i] and not (gone | beaten)[j] for j in range(n))
        return beaten

    def allowed(self, picked: Sequence[int]) -> Mask:
        """(n,): the candidates that may be picked after these."""
        taken = [*self.shown, *picked]
        mask = np.array([not self.is_full(i, taken) for i in range(len(self.cost))]) & ~self.beaten
        mask[taken] = False
        if self.budget is not None:
            mask &= self.cost <= self.budget - sum(self.cost[i] for i in picked)
        if self.near is not None:
            mask &= ~self.near[taken].any(axis=0)
        return mask


# --- the greedy loop ------------------------------------------------------------------------------


def _greedy(
    query: ArrayLike,
    vectors: ArrayLike,
    scores_of: Callable[[Sequence[int], Mask], Step],
    *,
    k: int | None,
    combine: Callable[[Iterable[float]], float],
    relevance: ArrayLike | None = None,
    tie: float | None = None,
    of_determinants: bool = False,
    **conditions: Any,
) -> Reference:
    """One argmax after the other over the candidates that no condition forbids. Ties go to the lower index.

    `tie` is a share of the best score, for scores that range over many orders of magnitude.
    """
    single, allowed = is_single(vectors), Conditions(vectors, **conditions).allowed
    equal = 16 * float(np.finfo(np.float32 if single else np.float64).eps)
    # A comparison asks for the same steps again, once for each selection that it compares.
    steps: dict[tuple[int, ...], Step] = {}

    def step(picked: Sequence[int]) -> Step:
        key = tuple(picked)
        if key not in steps:
            mask = allowed(picked)
            raw = scores_of(picked, mask)
            steps[key] = replace(raw, scores=np.where(mask, raw.scores, -np.inf))
        return steps[key]

    def finished(picked: Sequence[int]) -> bool:
        return (k is not None and len(picked) >= k) or not allowed(picked).any()

    picks: list[int] = []
    gains: list[float] = []
    filled_from = None
    while not finished(picks):
        now = step(picks)
        best = float(np.max(now.scores))
        margin = now.tie
        if margin is None and tie is not None and not now.filled:
            margin = max(equal, tie) * abs(best)
        elif margin is None:
            margin = equal * max(1.0, abs(best))
        pick = int(np.flatnonzero(now.scores >= best - margin)[0])
        if now.filled and filled_from is None:
            filled_from = len(picks)
        picks.append(pick)
        gains.append(float(now.gains[pick]))
    return Reference(
        picks=tuple(picks),
        gains=tuple(gains),
        relevance=worth_of(query, vectors, relevance),
        relevance_slack=2e-6 * (single and relevance is None),
        objective=combine(gains),
        filled_from=filled_from,
        single=single,
        step=step,
        finished=finished,
        combine=combine,
        of_determinants=of_determinants,
    )


# --- similarity -----------------------------------------------------------------------------------


def top_k(
    query: ArrayLike, vectors: ArrayLike, k: int | None = None, *, relevance: ArrayLike | None = None, **conditions: Any
) -> Reference:
    """Candidates in the order of their relevance: what is given, to the last bit, else their cosine with the query."""
    worth = worth_of(query, vectors, relevance)
    slack = np.full(len(worth), FLOAT32_ROUNDING if relevance is None else 0.0)

    def scores_of(picked: Sequence[int], mask: Mask) -> Step:
        return Step(worth, worth, slack, tie=None if relevance is None else 0.0)

    return _greedy(query, vectors, scores_of, k=k, relevance=relevance, combine=math.fsum, **conditions)


# --- VRSD -----------------------------------------------------------------------------------------


def vrsd_value(query: ArrayLike, vectors: ArrayLike, picks: Iterable[int]) -> float:
    """VRSD paper, section 3: cosine of the sum of a set of unit vectors with the query; 0 for a zero sum."""
    return _sum_cosine(unit(query), unit_rows(vectors), list(picks))


def _sum(rows: Floats, picks: Sequence[int]) -> Floats:
    total = np.zeros(rows.shape[1])
    for i in picks:
        total = total + rows[i]
    return total


def _sum_cosine(q: Floats, rows: Floats, picks: Sequence[int]) -> float:
    total = _sum(rows, picks)
    length = math.sqrt(total @ total)
    return 0.0 if length <= ZERO_SUM else float(total @ q) / length


def _sum_slack(total: Floats, before: float = 0.0) -> float:
    """The largest error of the cosine of a sum in float32.

    It grows with 1 / square for sums shorter than 1, and for sums that are shorter than the sum of all but the last
    row, whose square is `before`: the square of the sum is computed from that one.
    """
    square = float(total @ total)
    return FLOAT32_ROUNDING * (1.0 if square <= ZERO_SUM**2 else max(1.0, 1 / square, 2 * before / square))


def vrsd(
    query: ArrayLike, vectors: ArrayLike, k: int | None = None, *, shown: Sequence[int] = (), **conditions: Any
) -> Reference:
    """VRSD paper, Algorithm 1, lines 3-16, on unit vectors. S holds the shown candidates from the start."""
    q, rows = unit(query), unit_rows(vectors)

    def scores_of(picked: Sequence[int], mask: Mask) -> Step:
        before = _sum_cosine(q, rows, [*shown, *picked])
        s = _sum(rows, [*shown, *picked])
        scores = np.zeros(len(rows))
        slack = np.zeros(len(rows))
        for i, v in enumerate(rows):
            t = s + v
            length = math.sqrt(t @ t)
            scores[i] = 0.0 if length <= ZERO_SUM else float(t @ q) / length
            slack[i] = _sum_slack(t, float(s @ s))
        return Step(scores, scores - before, slack, before=_sum_slack(s))

    return _greedy(query, vectors, scores_of, k=k, shown=shown, combine=math.fsum, **conditions)


@dataclass(frozen=True)
class Exchange:
    position: int
    newcomer: int
    value: float


def best_exchange(
    query: ArrayLike, vectors: ArrayLike, picks: Sequence[int], shown: Sequence[int] = ()
) -> Exchange | None:
    """The exchange of one pick for one candidate that gives the highest cosine of the sum, or None.

    It is not in the paper. The problem is NP-complete (section 3.1), and the local search improves the greedy result.
    Ties go to the earliest position, then to the lowest index.
    """
    q, rows = unit(query), unit_rows(vectors)
    outside = [i for i in range(len(rows)) if i not in picks and i not in shown]
    found: list[Exchange] = []
    for position in range(0 if shown else 1, len(picks)):
        sums = _sum(rows, [*shown, *picks[:position], *picks[position + 1 :]]) + rows[outside]
        lengths = np.sqrt(np.array([t @ t for t in sums]))
        for newcomer, t, length in zip(outside, sums, lengths, strict=True):
            value = 0.0 if length <= ZERO_SUM else float(t @ q) / float(length)
            found.append(Exchange(position, newcomer, value))
    if not found:
        return None
    best = max(exchange.value for exchange in found)
    return next(exchange for exchange in found if exchange.value >= best - 16 * np.finfo(np.float64).eps)


def vrsd_refined(
    query: ArrayLike, vectors: ArrayLike, k: int | None = None, *, shown: Sequence[int] = (), **conditions: Any
) -> Reference:
    """VRSD paper, Algorithm 1, then the best exchange, repeated while it improves the cosine by more than 1e-9."""
    q, rows = unit(query), unit_rows(vectors)
    start = vrsd(query, vectors, k, shown=shown, **conditions)
    picks = list(start.picks)
    while True:
        exchange = best_exchange(query, vectors, picks, shown)
        if exchange is None or exchange.value - _sum_cosine(q, rows, [*shown, *picks]) <= 1e-9:
            break
        picks[exchange.position] = exchange.newcomer
    values = [_sum_cosine(q, rows, [*shown, *picks[:j]]) for j in range(len(picks) + 1)]
    gains = tuple(after - before for before, after in itertools.pairwise(values))
    return replace(start, picks=tuple(picks), gains=gains, objective=values[-1] - values[0])


def best_vrsd_set(query: ArrayLike, vectors: ArrayLike, k: int) -> tuple[frozenset[int], float]:
    """VRSD paper, section 3.1: the optimum among all sets of k."""
    q, rows = unit(query), unit_rows(vectors)
    subsets = itertools.combinations(range(len(rows)), k)
    best = max(subsets, key=lambda subset: _sum_cosine(q, rows, subset))
    return frozenset(best), _sum_cosine(q, rows, best)


# --- MMR ------------------------------------------------------------------------------------------


def mmr(
    query: ArrayLike,
    vectors: ArrayLike,
    k: int | None = None,
    *,
    relevance: ArrayLike | None = None,
    quality: ArrayLike | None = None,
    lambda_mult: float = 0.75,
    lambda_b: float = 0.95,
    shown: Sequence[int] = (),
    **conditions: Any,
) -> Reference:
    """RAGSys, Algorithm 1 (MMR with a bias for quality). Without quality v_i is the relevance: the cosine, or given.

    Numbers that are given are exact. So v_i has no rounding error of a cosine, and in w_i the share 1 - λ_d of one.
    """
    rows = unit_rows(vectors)
    worth = worth_of(query, vectors, relevance)
    bias = None if quality is None else np.asarray(quality, dtype=np.float64)
    v = (
        worth
        if bias is None
        else np.array([lambda_b * c + (1 - lambda_b) * b for c, b in zip(worth, bias, strict=True)])
    )
    between = np.array([[a @ b for b in rows] for a in rows])
    size = float(np.max(np.abs(v)))
    slack = np.full(len(rows), FLOAT32_ROUNDING * max(1.0, size))
    v_slack, v_tie, w_tie = slack, None, None
    if relevance is not None:
        slack, v_slack = np.full(len(rows), FLOAT32_ROUNDING * (1 - lambda_mult)), np.zeros(len(rows))
        cosine_tie = 16 * float(np.finfo(np.float32 if is_single(vectors) else np.float64).eps)
        v_tie = 16 * float(np.finfo(np.float64).eps) * size
        w_tie = v_tie + (1 - lambda_mult) * cosine_tie

    def scores_of(picked: Sequence[int], mask: Mask) -> Step:
        before = [*shown, *picked]
        if not before:
            return Step(v, lambda_mult * v, v_slack, tie=v_tie)
        w = np.array(
            [lambda_mult * v[i] - (1 - lambda_mult) * max(between[i, j] for j in before) for i in range(len(rows))]
        )
        return Step(w, w, slack, tie=w_tie)

    return _greedy(query, vectors, scores_of, k=k, relevance=relevance, shown=shown, combine=math.fsum, **conditions)


# --- NDPP -----------------------------------------------------------------------------------------


def ndpp_dense(V: ArrayLike, B: ArrayLike | None = None, C: ArrayLike | None = None) -> Floats:
    """NDPP paper, equation 6: L = V V^T + B C B^T, where C is skew-symmetric."""
    v = np.asarray(V, dtype=np.float64)
    kernel = v @ v.T
    if B is not None and C is not None:
        b = np.asarray(B, dtype=np.float64)
        skew = b @ np.asarray(C, dtype=np.float64) @ b.T
        # Rounding would leave about 1e-17 on the diagonal, where V V^T may be 0.
        kernel = kernel + (skew - skew.T) / 2
    return kernel


def ndpp_weights(
    relevance: Floats, kind: str = "linear", temperature: float = 0.1, *, peak: float | None = None
) -> Floats:
    """NDPP paper, section 4.4.1: the diagonal of R, made positive by max(relevance, 1e-6) or by the exponential."""
    if kind == "linear":
        return np.array([max(c, 1e-6) for c in relevance])
    top = max(relevance) if peak is None else peak
    return np.array([math.exp((c - top) / (2 * temperature)) for c in relevance])


def auto_temperature(relevance: Iterable[float], c: float, equal: float = 0.0) -> float:
    """c population standard deviations of the relevance; infinite if its values differ by no more than rounding."""
    # Computed with exact fractions: as a float, the variance of numbers near 1e-295 would be 0.
    sigma = statistics.pstdev(map(float, relevance))
    return c * sigma if sigma > equal else math.inf


def mapped_cosines(query: ArrayLike, vectors: ArrayLike, W: ArrayLike) -> tuple[Floats, Floats]:
    """cos(q W, e W) of each row e, 0 where W maps to zero; and its largest error for float32 input.

    NDPP paper, section 4.4.1, with one linear map for both encoders.
    """
    matrix = np.asarray(W, dtype=np.float64)
    size = math.sqrt(math.fsum(x * x for x in matrix.flat))

    def mapped(vector: Floats) -> list[float]:
        return [math.fsum(vector[i] * matrix[i, j] for i in range(len(matrix))) for j in range(matrix.shape[1])]

    def length(vector: Iterable[float]) -> float:
        return math.sqrt(math.fsum(x * x for x in vector))

    q = mapped(unit(query))
    cos, moved = [], []
    for row in unit_rows(vectors):
        e = mapped(row)
        both = length(q) * length(e)
        cos.append(math.fsum(a * b for a, b in zip(q, e, strict=True)) / both if both else 0.0)
        # The rounding error of the vector weighs more in a short image.
        moved.append(FLOAT32_ROUNDING * size * (1 / length(q) + 1 / length(e)) if both else 0.0)
    return np.array(cos), np.array(moved)


def ndpp_determinant(kernel: Floats, picks: Sequence[int]) -> float:
    """det(L_S) of NDPP paper, equation 10; 1 for the empty set."""
    return float(np.linalg.det(kernel[np.ix_(picks, picks)])) if len(picks) else 1.0


def _determinants_with(kernel: Floats, picked: Sequence[int], others: Sequence[int]) -> Floats:
    index = np.array([[*picked, i] for i in others], dtype=np.int64)
    return np.linalg.det(kernel[index[:, :, None], index[:, None, :]])


def ndpp_greedy(
    query: ArrayLike,
    vectors: ArrayLike,
    k: int | None = None,
    *,
    kernel: Floats | None = None,
    relevance: ArrayLike | None = None,
    kind: str = "linear",
    temperature: float = 0.1,
    c: float | None = None,
    ridge: float = 0.0,
    W_R: ArrayLike | None = None,
    several: float = 0.6,
    shown: Sequence[int] = (),
    **conditions: Any,
) -> Reference:
    """NDPP paper, section 4.4.2, equation 11, on L' = R L R (4.4.1); every determinant is computed from scratch.

    The process is conditioned on the shown candidates: det(L'_{S + shown}) / det(L'_shown). `kernel` is the dense L of
    the candidates; without it, L is the Gram matrix of the unit rows. `ridge` is added to its diagonal. R has the
    relevance that is given, else the cosines, or with `W_R` the cosines of the vectors times W_R. The kind "auto" is
    the exponential one with the temperature c·σ; of several queries, the highest standard score with ``several``.
    """
    rows = unit_rows(vectors)
    inner = worth = worth_of(query, vectors, relevance)
    if kind == "auto" and relevance is None and len(different_queries(query)) > 1:
        inner, kind, temperature = standard_worth(query, vectors, relevance), "exponential", several
    worth_slack = np.full(len(rows), FLOAT32_ROUNDING if relevance is None else 0.0)
    moved = worth_slack
    if W_R is not None:
        inner, moved = mapped_cosines(query, vectors, W_R)
        moved = moved + moved[int(np.argmax(inner))]
    if not is_single(vectors):
        moved = np.zeros(len(rows))
    peak = float(np.max(inner))
    if kind == "auto":
        assert c is not None
        kind = "exponential"
        exact = np.float32 if relevance is None and is_single(vectors) else np.float64
        equal = 16 * float(np.finfo(exact).eps) * (1.0 if relevance is None else float(np.abs(inner).max()))
        temperature = auto_temperature(inner, c, equal)
        # A rounding error changes σ as well. Where σ is about as large as rounding errors, it cannot be known.
        sigma = auto_temperature(inner, 1.0, equal / 8)
        uncertain = equal / 8 < sigma < 8 * equal
        moved = np.full(len(rows), np.inf) if uncertain else 2 * moved + (peak - inner) * 2 * moved / sigma
    L = ndpp_dense(rows) if kernel is None else np.asarray(kernel, dtype=np.float64)
    L = L + np.eye(len(rows)) * ridge
    r = ndpp_weights(inner, kind, temperature)
    unknown = np.isinf(moved)
    generous = ndpp_weights(inner + np.where(unknown, 0.0, moved), kind, temperature, peak=peak)
    generous[unknown] = np.inf
    adapted = np.diag(r) @ L @ np.diag(r)
    largest = float(np.max(np.diag(L)))
    floor = (1e-6 if is_single(vectors) else 1e-10) * largest
    # Picks that were filled in are not part of S, because its determinant would be 0. Steps are computed in order.
    exhausted: set[tuple[int, ...]] = set()

    def scores_of(picked: Sequence[int], mask: Mask) -> Step:
        n = len(rows)
        fill_in = Step(worth, np.zeros(n), worth_slack, tie=None if relevance is None else 0.0, filled=True)
        if tuple(picked[:-1]) in exhausted:
            exhausted.add(tuple(picked))
            return fill_in
        before = [*shown, *picked]
        others = [i for i in range(n) if mask[i]]
        plain = np.zeros(n)
        gain = np.zeros(n)
        plain[others] = _determinants_with(L, before, others) / ndpp_determinant(L, before)
        gain[others] = _determinants_with(adapted, before, others) / ndpp_determinant(adapted, before)
        offers = mask & (plain > floor)
        if not offers.any():
            exhausted.add(tuple(picked))
            return fill_in
        # A float32 cosine changes the weight by one rounding error. A float32 row changes the entries of L and so
        # the ratio, and the change is larger if the picks are almost dependent; sums in float32 change it as much.
        amplified = largest * _amplification(L, before)
        slack = generous**2 * (plain + 2 * FLOAT32_ROUNDING * amplified) - gain
        singular = bool((FLOAT64_ROUNDING * amplified > 1e-10 * plain)[offers].any())
        return Step(np.where(offers, gain, -np.inf), gain, np.abs(slack), singular=singular)

    # A ratio of two determinants has a larger rounding error, so ratios are equal if ten digits are.
    more: dict[str, Any] = {"k": k, "relevance": relevance, "shown": shown, "tie": 1e-10, **conditions}
    return _greedy(query, vectors, scores_of, combine=math.prod, of_determinants=True, **more)


def _amplification(L: Floats, picked: Sequence[int]) -> Floats:
    """How much larger than an error of the entries of L that of det(L_{S+i}) / det(L_S) may be, for each i.

    The ratio is L_ii - L_iS x with x = L_SS^-1 L_Si, and y = L_SS^-T L_iS^T. To first order an error E of L changes it
    by (-y, 1) E (-x, 1).
    """
    inside = L[np.ix_(picked, picked)]
    x = np.linalg.lstsq(inside, L[picked], rcond=None)[0]
    y = np.linalg.lstsq(inside.T, L[:, picked].T, rcond=None)[0]
    amplified: Floats = (1 + np.abs(x).sum(axis=0)) * (1 + np.abs(y).sum(axis=0))
    return amplified


# --- coverage -------------------------------------------------------------------------------------

Parts = tuple[ArrayLike, ArrayLike]
"""How well each candidate covers each part (n, m), and the weight of each part (m,)."""


Names = tuple[Any, ...] | ArrayLike
"""How clearly each candidate refers to each other (n, n); numbers for what belongs together, of each kind or of all
kinds; the kind of each reference (n, n). Alone: nothing belongs together, and all references are names."""


def bm25_words(question: Sequence[str], texts: Sequence[Sequence[str]]) -> tuple[Floats, Floats]:
    """Robertson and Zaragoza (2009), equations 3.13 and 3.3, with K1 = 1.2 and B = 0.75, for texts that are split.

    A word of the question counts once. It weighs 0 if it is in no text or in all of them.
    """
    n, different = len(texts), sorted(set(question), key=list(question).index)
    lengths = list(map(len, texts))
    mean = math.fsum(lengths) / n or 1.0
    covered, weights = np.zeros((n, len(different))), np.zeros(len(different))
    for j, word in enumerate(different):
        holders = 0
        for i, text in enumerate(texts):
            f = sum(other == word for other in text)
            holders += f > 0
            covered[i, j] = f / (f + 1.2 * ((1 - 0.75) + 0.75 * lengths[i] / mean))
        weights[j] = math.log(1 + (n - holders + 0.5) / (holders + 0.5)) if 0 < holders < n else 0.0
    return covered, weights


def bm25(question: Sequence[str], texts: Sequence[Sequence[str]]) -> Floats:
    """Lucene's BM25 of each text: Kamphuis et al. (2020), "Which BM25 Do You Mean?", table 1, with k1 = 1.5, b = 0.75.

    Question and texts are split. A word that is twice in the question counts twice.
    """
    scores = np.zeros(len(texts))
    mean = sum(map(len, texts)) / max(1, len(texts))
    for word in question:
        holders = sum(word in text for text in texts)
        idf = math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5))
        for i, text in enumerate(texts):
            f = sum(other == word for other in text)
            scores[i] += idf * f / (f + 1.5 * (1 - 0.75 + 0.75 * len(text) / mean)) if f else 0.0
    return scores


def references(texts: Sequence[Sequence[str]], names: Sequence[Sequence[str]]) -> Floats:
    """Which text names which other, for texts and names that are split and written as they stand.

    At each place the longest name counts and the text goes on behind it. Each word of a name but "of" has a capital or
    a "_". It counts as written; in a name of several words it may be all in capitals in the name or in the text. A name
    of one word does not count if it stands in lower case in a text.
    """
    n, keys = len(texts), [tuple(word.lower() for word in name) for name in names]
    keys = [key if sum(c.isalpha() for word in key for c in word) >= 3 else () for key in keys]
    proper = [name for name in names if {*name} - {"of"} and all(w != w.lower() or "_" in w for w in name if w != "of")]
    forms: dict[tuple[str, ...], list[set[str]]] = {}
    for name in proper:
        for j, word in enumerate(name):
            ways = {word, word.upper()} | ({word.title()} if word.isupper() else set()) if len(name) > 1 else {word}
            ways |= {"of", "OF"} if word.lower() == "of" else set()
            forms.setdefault(tuple(w.lower() for w in name), [set() for _ in name])[j].update(ways)
    named: list[set[tuple[str, ...]]] = [set() for _ in texts]
    ordinary = set()
    for i, text in enumerate(texts):
        p = 0
        while p < len(text):
            here = [key for key in keys if key and tuple(word.lower() for word in text[p : p + len(key)]) == key]
            counts = [key for key in here if key in forms and all(map(set.__contains__, forms[key], text[p:]))]
            longest = max(counts, key=len, default=())
            if not longest and text[p].islower():
                ordinary.update(key for key in here if len(key) == 1)
            named[i].update(counts and [longest])
            p += len(longest) or 1
    R = np.zeros((n, n))
    for j, key in enumerate(keys):
        others = [i for i in range(n) if keys[i] != key and i != j]
        naming = [i for i in others if key in named[i] and key not in ordinary]
        if 0 < len(naming) < len(others):
            rare = math.log(1 + (len(others) - len(naming) + 0.5) / (len(naming) + 0.5))
            R[naming, j] = min(1.0, rare / math.log(1 + (len(others) - 0.5) / 1.5))
    return R


def indicators(values: Sequence[Any]) -> Parts:
    """The parts of values: the candidates of each value; a list holds several values, and None is no value."""
    own = [value if isinstance(value, list) else [] if value is None else [value] for value in values]
    different = sorted({value for some in own for value in some})
    return [[float(value in some) for value in different] for some in own], [1.0] * len(different)


def standard_scores(values: Iterable[float], equal: float = 0.0) -> tuple[Floats, float]:
    """(values − mean) / σ, and σ; 0 and inf if the values differ by no more than rounding."""
    exact = [Fraction(x) for x in values]
    mean = sum(exact) / len(exact)
    sigma = auto_temperature(map(float, exact), 1.0, equal)
    return np.array([float(x - mean) / sigma for x in exact]), sigma


def shares_of(weights: ArrayLike) -> Floats:
    """The weights divided by their sum; 0 if all of them are 0."""
    v = [Fraction(float(x)) for x in np.asarray(weights)]
    return np.array([float(x / sum(v)) if sum(v) else 0.0 for x in v])


def _coverage_relevance(
    query: ArrayLike,
    vectors: ArrayLike,
    relevance: ArrayLike | None,
    words: Parts | None,
    c: float,
    h: float,
    several: float,
) -> tuple[Floats, Floats]:
    """(ρ − max ρ) / T, and its largest error for float32 input; ``several`` is T for several queries."""
    r = standard_worth(query, vectors, relevance)
    single = relevance is None and is_single(vectors)
    equal = 16 * float(np.finfo(np.float32 if single else np.float64).eps)
    if relevance is not None:
        equal *= float(np.abs(r).max())
    z, sigma = standard_scores(r, equal)
    rounding = FLOAT32_ROUNDING if relevance is None else 0.0
    error = (2 + np.abs(z)) * rounding / sigma
    # Where σ is about as large as rounding errors, it cannot be known.
    if equal / 8 < auto_temperature(r, 1.0, equal / 8) < 8 * equal:
        error = np.full(len(r), np.inf)
    of_several = relevance is None and len(different_queries(query)) > 1
    rho = z = r if of_several else z
    if words is not None and h:
        a, b = np.asarray(words[0], dtype=np.float64), shares_of(words[1])
        found = [math.fsum(x * y for x, y in zip(row, b, strict=True)) for row in a]
        rho = z + h * standard_scores(found, 16 * 2.0**-52 * max(found))[0]
    if of_several:
        return (rho - max(rho)) / several, (2 + np.abs(rho)) * 2 * float(np.max(error)) / several
    centred, deviation = standard_scores(rho, 16 * 2.0**-52)
    T = c * deviation
    worth: Floats = (rho - max(rho)) / T
    return worth, (2 + np.abs(centred)) * 2 * float(np.max(error)) / T if math.isfinite(T) else np.zeros(len(r))


def _coverage_terms(
    query: ArrayLike,
    vectors: ArrayLike,
    *,
    c: float,
    h: float,
    w: float,
    words: Parts | None = None,
    cover: Parts | Sequence[Any] | None = None,
    relevance: ArrayLike | None = None,
    word_weight: float = 1.0,
    cover_weight: float = 1.0,
    served: float = 0.5,
    several: float = 0.5,
    **others: Any,
) -> tuple[Floats, Floats, Floats]:
    """(ρ − max ρ) / T; its largest error; and w β_j a_ij of each part, (parts, n)."""
    n = len(np.asarray(vectors))
    worth, moved = _coverage_relevance(query, vectors, relevance, words, c, h * word_weight, several)
    values = cover if cover is None or isinstance(cover, tuple) else indicators(cover)
    columns: list[Floats] = []
    for parts, weight in ((words, word_weight), (values, cover_weight)):
        if parts is not None:
            a, b = np.asarray(parts[0], dtype=np.float64), np.asarray(parts[1], dtype=np.float64)
            # A part of cover counts as much as the most relevant candidate that covers it.
            most = np.ones(len(b)) if parts is words else (a * np.exp(c * worth)[:, None]).max(axis=0) / c
            columns += [w * weight * b[j] / math.fsum(b) * most[j] * a[:, j] for j in range(len(b)) if b[j] > 0]
            exact = parts[2] if len(parts) > 2 and weight else None
            columns += [] if exact is None else [100.0 * named for named in np.asarray(exact, dtype=np.float64).T]
            moved = moved + (0.0 if parts is words else w / c * weight * float(np.max(moved, initial=0.0)))
    if len(different_queries(query)) > 1:
        different = different_queries(query)
        for one in different:
            c_j = cosines(one, vectors)
            columns.append(w / len(different) * np.exp((c_j - max(c_j)) / auto_temperature(c_j, served, 1e-14)))
    return worth, moved, np.array(columns).reshape(len(columns), n)


def assert_shares(
    actual: NDArray[np.float64] | None,
    picks: Sequence[int],
    query: ArrayLike,
    vectors: ArrayLike,
    *,
    bridge: float = 0.0,
    references: Names | None = None,
    shown: Sequence[int] = (),
    **settings: Any,
) -> None:
    """The relevance above the lowest one, what is newly covered, and the bonus of each pick, divided by their sum."""
    assert actual is not None
    worth, moved, covered = _coverage_terms(query, vectors, **settings)
    for position, pick in enumerate(picks):
        before = [*shown, *picks[:position]]
        new = [max(column[pick] - max(column[before], default=0.0), 0.0) for column in covered]
        lead = 0.0 if references is None else bridge * gates(worth)[pick] * clearness(pick, before, references)
        parts = [worth[pick] - min(worth), math.fsum(new), lead]
        total, error = math.fsum(parts), 1e-9 + 4 * float(np.max(moved))
        if total > 1e3 * error:
            np.testing.assert_allclose(actual[position], np.array(parts) / total, atol=4 * error / total)


def coverage(
    query: ArrayLike,
    vectors: ArrayLike,
    k: int | None = None,
    *,
    ridge: float,
    relevance: ArrayLike | None = None,
    references: Names | None = None,
    bridge: float = 0.0,
    shown: Sequence[int] = (),
    words: Parts | None = None,
    cover: Parts | Sequence[Any] | None = None,
    c: float,
    h: float,
    w: float,
    word_weight: float = 1.0,
    cover_weight: float = 1.0,
    **conditions: Any,
) -> Reference:
    """Greedy by F(S + i) − F(S) of the docstring of Coverage and its bonus; all are computed from scratch.

    T is c·σ of the relevance ρ; h and w are the weights of the words in the relevance and of what the set covers;
    ``bridge`` is the weight of the bonus.
    """
    rows = unit_rows(vectors)
    n = len(rows)
    L = rows @ rows.T + ridge * np.eye(n)
    weights: dict[str, Any] = {"c": c, "h": h, "w": w, "word_weight": word_weight, "cover_weight": cover_weight}
    worth, moved, covered = _coverage_terms(query, vectors, words=words, cover=cover, relevance=relevance, **weights)

    gate, spread = gates(worth), float(np.std(worth))
    # The slope of the gate is at most three quarters.
    moved = moved * (1 + (0.75 * bridge / spread if references is not None and spread > 1e-12 else 0.0))

    def values(sets: list[list[int]]) -> Floats:
        index = np.array(sets, dtype=np.int64)
        diversity = np.linalg.slogdet(L[index[:, :, None], index[:, None, :]])[1]
        found: Floats = worth[index].sum(axis=1) + diversity + covered[:, index].max(axis=2, initial=0.0).sum(axis=0)
        return found

    def scores_of(picked: Sequence[int], mask: Mask) -> Step:
        before, others = [*shown, *picked], np.flatnonzero(mask).tolist()
        gains, slack = np.zeros(n), moved.copy()
        gains[others] = values([[*before, i] for i in others]) - values([before]) - math.log1p(ridge)
        if references is not None:
            gains[others] += [bridge * gate[i] * clearness(i, before, references) for i in others]
        ratios = _determinants_with(L, before, others) / ndpp_determinant(L, before)
        slack[others] += 2 * FLOAT32_ROUNDING * ((1 + ridge) * _amplification(L, before)[others] / ratios)
        return Step(gains, gains, slack, tie=16 * float(np.finfo(np.float32).eps) if is_single(vectors) else 1e-10)

    more: dict[str, Any] = {"k": k, "relevance": relevance, "shown": shown, **conditions}
    return _greedy(query, vectors, scores_of, combine=math.fsum, of_determinants=True, **more)


def gates(worth: Floats) -> Floats:
    """The share of its bonus that each candidate gets: half of it one standard deviation below the mean."""
    z, _ = standard_scores(worth, 16 * 2.0**-52)
    return np.array([1 / (1 + math.exp(-3 * (x + 1))) for x in z])


def clearness(i: int, before: Sequence[int], references: Names) -> float:
    """How clearly the earlier texts refer to candidate i, times the weight of the kind of reference.

    A reference does not count if an earlier text belongs together with candidate i by its kind.
    """
    return max((clearness_of(j, i, before, references) for j in before), default=0.0)


def clearness_of(j: int, i: int, before: Sequence[int], references: Names) -> float:
    """:func:`clearness` of the one earlier text j."""
    named, names, kinds = (*references, None)[:3] if isinstance(references, tuple) else (references, None, None)
    kind = 0 if kinds is None else int(np.asarray(kinds)[j, i])
    names = np.arange(len(np.asarray(named))) if names is None else np.asarray(names)
    together = names if names.ndim == 1 else names[kind]
    if any(together[other] == together[i] for other in before):
        return 0.0
    # The package keeps them in float32. Names and links count fully, citations and neighbours less.
    return float(np.float32(np.asarray(named)[j, i])) * (1.0, 1.0, 0.5, 0.09375)[kind]


def assert_referred_by(
    actual: NDArray[np.int64] | None, references: Names, picks: Sequence[int], shown: Sequence[int] = ()
) -> None:
    """The first of the earlier texts that name a pick most; -1 where it has no bonus."""
    assert actual is not None
    for position, (pick, name) in enumerate(zip(picks, actual.tolist(), strict=True)):
        before = [*shown, *picks[:position]]
        most = clearness(pick, before, references)
        first = next(j for j in before if clearness_of(j, pick, before, references) == most) if most > 0 else -1
        assert name == first, (position, pick, name, first)


# --- a given relevance ----------------------------------------------------------------------------


def scaled_relevance(relevance: Sequence[float], scale: str) -> list[float]:
    """The relevance of the candidates of one query, mapped to [0, 1] with exact fractions."""
    values = [Fraction(r) for r in relevance]
    low, high = min(values), max(values)
    match scale:
        case "minmax":
            return [float((r - low) / (high - low)) if high > low else 0.5 for r in values]
        case "rank":
            # The mean of the ranks that the equal values could have, divided by the highest rank.
            below = [sum(other < r for other in values) for r in values]
            equal = [sum(other == r for other in values) for r in values]
            last = len(values) - 1
            places = [Fraction(2 * b + e - 1, 2) for b, e in zip(below, equal, strict=True)]
            return [float(place / last) if high > low else 0.5 for place in places]
        case "sigmoid":
            # exp overflows above 709. Below -745 a sigmoid is 0.
            return [1 / (1 + math.exp(-r)) if r > -700 else math.exp(max(r, -746.0)) for r in relevance]
        case _:
            raise AssertionError(f"there is no scale {scale!r}")


# --- perspectives ---------------------------------------------------------------------------------


def pap(query: ArrayLike, perspective: ArrayLike, direction: str = "remove") -> Floats:
    """PIR paper, section 3.1: q_p = q - (q.p / |p|^2) p; "emphasize" adds the second term."""
    q, p = np.asarray(query, dtype=np.float64), np.asarray(perspective, dtype=np.float64)
    component = (q @ p) / (p @ p) * p
    return q - component if direction == "remove" else q + component


# --- comparison -----------------------------------------------------------------------------------


def assert_same_picks(actual: SelectionLike, expected: Reference, about: Any = "") -> None:
    """The picks are those of the reference. In float32 another pick passes if its score ties with the best one.

    In float64 that holds for scores of determinants alone: ten digits of them are known.
    """
    picks = [int(i) for i in actual.indices]
    known = _known_picks(picks, expected)
    if picks == list(expected.picks) or (known < len(picks) and picks[:known] == list(expected.picks[:known])):
        return
    picks = picks[:known]
    message = f"{about}\nactual   {picks}\nexpected {list(expected.picks)}"
    assert expected.single or expected.of_determinants, (
        f"picks differ in float64: {message}\n{_first_difference(picks, expected)}"
    )
    for position, pick in enumerate(picks):
        before = picks[:position]
        assert not expected.finished(before), f"position {position} is one too many: {message}"
        now = expected.step(before)
        best = int(np.argmax(now.scores))
        top, got = float(now.scores[best]), float(now.scores[pick])
        scale = max(1.0, abs(top)) if expected.combine is math.fsum or now.filled else abs(top)
        equal = 16 * np.finfo(np.float32).eps * scale if now.tie is None else now.tie
        allowance = equal + now.slack[best] + now.slack[pick]
        if not expected.single:
            allowance = 0.0 if now.filled else 1e-10 * scale
        assert got >= top - allowance, (
            f"position {position}: pick {pick} scores {got!r}, candidate {best} {top!r}, "
            f"apart by {top - got:.3g} with {allowance:.3g} allowed: {message}"
        )
    assert known < len(actual.indices) or expected.finished(picks), f"stopped too early: {message}"


def _known_picks(picks: Sequence[int], expected: Reference) -> int:
    """How many of the picks the reference can judge: those before the first step that is singular."""
    return next((at for at in range(len(picks)) if expected.step(picks[:at]).singular), len(picks))


def assert_agrees(actual: SelectionLike, expected: Reference, about: Any = "") -> None:
    """Picks, gains, relevance, objective and filled_from are those of the reference, given the same picks before."""
    assert_same_picks(actual, expected, about)
    picks = [int(i) for i in actual.indices]
    assert len(set(picks)) == len(picks), f"repeated picks {picks}: {about}"
    known = _known_picks(picks, expected)
    gains: list[float] = []
    tolerance: list[float] = []
    filled_from = None
    for position, pick in enumerate(picks[:known]):
        now = expected.step(picks[:position])
        gains.append(float(now.gains[pick]))
        tolerance.append(4 * (float(now.slack[pick]) + now.before) if expected.single else 0.0)
        if now.filled and filled_from is None:
            filled_from = position
    if expected.combine is math.prod:
        # Products range over many orders of magnitude, so an absolute tolerance would accept any small one.
        tolerance = [1e-6 * abs(gain) + more for gain, more in zip(gains, tolerance, strict=True)]
        close(actual.gains[:known], gains, tolerance, "gains", about, digits=0)
        product = math.prod(actual.gains)
        close([actual.objective], [product], [1e-9 * abs(product)], "product of the gains", about, digits=0)
    else:
        close(actual.gains, gains, tolerance, "gains", about)
        close([actual.objective], [math.fsum(actual.gains)], [1e-12], "sum of the gains", about)
    near = [expected.relevance_slack] * len(picks)
    close(actual.relevance, expected.relevance[picks], near, "relevance", about)
    assert known < len(picks) or actual.filled_from == filled_from, (
        f"filled_from: actual {actual.filled_from}, expected {filled_from}: {about}"
    )


def assert_refined(
    actual: SelectionLike, expected: Reference, query: ArrayLike, vectors: ArrayLike, about: Any = "", **conditions: Any
) -> None:
    """As `assert_agrees` for float64. In float32 other exchanges may lead to another set that is equally good."""
    picks = [int(i) for i in actual.indices]
    assert len(set(picks)) == len(picks), f"repeated picks {picks}: {about}"
    message = f"{about}\nactual   {picks}\nexpected {list(expected.picks)}"
    shown = list(conditions.get("shown", ()))
    if picks != list(expected.picks):
        assert expected.single, f"picks differ in float64: {message}"
        now = expected.step([])
        if not shown:
            first = float(now.scores[picks[0]])
            assert first >= np.max(now.scores) - 2.5e-6, f"first pick scores {first!r}: {message}"
        value = vrsd_value(query, vectors, [*shown, *picks])
        better = best_exchange(query, vectors, picks, shown)
        assert better is None or better.value <= value + 2.5e-6, f"{better} beats {value!r}: {message}"
    sets = [[*shown, *picks[:j]] for j in range(len(picks) + 1)]
    values = [vrsd_value(query, vectors, picked) for picked in sets]
    slack = [4 * _sum_slack(_sum(unit_rows(vectors), picked)) * expected.single for picked in sets]
    gains = [after - before for before, after in itertools.pairwise(values)]
    tolerance = [before + after for before, after in itertools.pairwise(slack)]
    close(actual.gains, gains, tolerance, "gains", message)
    near = [expected.relevance_slack] * len(picks)
    close(actual.relevance, expected.relevance[picks], near, "relevance", message)
    close([actual.objective], [values[-1] - values[0]], [slack[-1] + slack[0]], "objective", message)
    close([actual.objective], [math.fsum(actual.gains)], [1e-12], "sum of the gains", message)
    assert actual.filled_from is None


def close(
    actual: Iterable[float],
    expected: Iterable[float],
    tolerance: Iterable[float],
    what: str,
    about: Any = "",
    digits: float = 1e-9,
) -> None:
    """Equal to nine digits (absolute below 1), with `tolerance` in addition."""
    for position, (a, e, more) in enumerate(zip(actual, expected, tolerance, strict=True)):
        assert abs(a - e) <= digits * max(1.0, abs(e)) + more, (
            f"{what}[{position}]: actual {a!r}, expected {e!r}, apart by {abs(a - e):.3g}: {about}"
        )


def _first_difference(picks: Sequence[int], expected: Reference) -> str:
    for position, (a, e) in enumerate(zip(picks, expected.picks, strict=False)):
        if a != e:
            scores = expected.step(picks[:position]).scores
            return f"position {position}: actual {a} scores {scores[a]!r}, expected {e} scores {scores[e]!r}"
    return f"lengths {len(picks)} and {len(expected.picks)}"
