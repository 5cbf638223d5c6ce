"""The greedy loops of VRSD and MMR as machine code (numba): numpy's calls cost more than the arithmetic of small sets.

The first functions are the loops of the classes that call them, on the arrays that these keep; those that begin with
``one`` are the whole choice, its checks included, and those with ``many`` that for query after query without the
interpreter and its lock. What is picked, and which of equals, is the same, but for scores that only rounding parts.
Only :mod:`shared_core.selectors.compiled` imports this module.

All in one file, since numba makes kept machine code anew when the file of the function that is called has changed, and
looks at no other. So touch it when one of the constants that it imports changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..arrays import TIE_EPS, FloatArray
from .mmr import NOTHING_PICKED
from .vrsd_sum import MIN_IMPROVEMENT, ROOT_HALF, WIDEST_TIE

_EPS = float(np.finfo(np.float64).eps)

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]


def as_machine_code(**options: Any) -> Callable[[Any], Any]:
    """Decorator: compiled when it is first called, kept on disk where there is a folder for that.

    >>> @as_machine_code()
    ... def twice(x):
    ...     return 2 * x
    >>> twice(21)
    42
    """

    def compile_one(function: Any) -> Any:
        try:
            return njit(nogil=True, cache=True, error_model="numpy", **options)(function)
        except RuntimeError:
            # There is no folder that machine code could be kept in: it is made anew in each process.
            return njit(nogil=True, error_model="numpy", **options)(function)

    return compile_one


# Sums may be taken in any order, as BLAS takes them; nothing else about the numbers may be assumed.
@as_machine_code(fastmath={"reassoc", "contract"})
def dot(a: FloatArray, b: FloatArray) -> Any:
    """Dot product, in the type of the two.

    >>> float(dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    11.0
    """
    total = a.dtype.type(0)
    for c in range(len(a)):
        total += a[c] * b[c]
    return total


@as_machine_code(fastmath={"reassoc", "contract"})
def products(rows: FloatArray, x: FloatArray, out: FloatArray) -> None:
    """Dot product of each row with ``x``, into ``out``.

    >>> out = np.empty(2)
    >>> products(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([3.0, 4.0]), out)
    >>> out.tolist()
    [11.0, 4.0]
    """
    # Four rows at a time, so that x is read once for them: 4.3 µs for 6.2 at 100 × 768.
    n, d = rows.shape
    whole = n - n % 4
    zero = x.dtype.type(0)
    for v in range(0, whole, 4):
        a, b, c, e = rows[v], rows[v + 1], rows[v + 2], rows[v + 3]
        with_a, with_b, with_c, with_e = zero, zero, zero, zero
        for i in range(d):
            with_a += a[i] * x[i]
            with_b += b[i] * x[i]
            with_c += c[i] * x[i]
            with_e += e[i] * x[i]
        out[v], out[v + 1], out[v + 2], out[v + 3] = with_a, with_b, with_c, with_e
    for v in range(whole, n):
        out[v] = dot(rows[v], x)


@as_machine_code()
def _cosines(rows: FloatArray, inverse: FloatArray, i: int, out: FloatArray) -> None:
    # One 1 stands for the lengths of rows that all have it.
    step = 0 if len(inverse) == 1 else 1
    unit = np.empty(rows.shape[1], rows.dtype)
    for c in range(len(unit)):
        unit[c] = rows[i, c] * inverse[i * step]
    products(rows, unit, out)
    for v in range(len(out)):
        out[v] *= inverse[v * step]


@as_machine_code()
def _noise(peak: float, square: float) -> float:
    if peak <= square:
        return 1.0
    return peak / square if peak < square * WIDEST_TIE else WIDEST_TIE


@as_machine_code()
def pick_sum(
    rows: FloatArray, inverse: FloatArray, relevance: Vector, own: Vector, with_each: Vector,
    with_query: float, square: float, peak: float, tie: float, before: float,
    picks: Indices, gains: Vector, kept: Vector,
) -> tuple[float, float, float]:  # fmt: skip
    """VRSD's greedy picks into ``picks`` and ``gains``; s·q, ‖s‖² and the largest ‖s‖² of the sum after that.

    ``kept`` (k, n) takes the cosines of each pick with all candidates; with no rows in it the last is not added.
    """
    n = len(relevance)
    row = np.empty(n, rows.dtype)
    scores = np.empty(n)
    for t in range(len(picks)):
        best, top = 0, -np.inf
        if peak > 0:
            negligible = tie * (1.0 + square) / 2
            for v in range(n):
                half = with_each[v] + (square / 2 + 0.5)
                if own[v] == -np.inf:
                    scores[v] = -np.inf
                elif half <= negligible:
                    scores[v] = 0.0
                else:
                    scores[v] = (own[v] + with_query * ROOT_HALF) / np.sqrt(half)
                if scores[v] > top:
                    best, top = v, scores[v]
            length = 2 * with_each[best] + (square + 1)
            for v in range(best):
                if scores[v] >= top - tie * WIDEST_TIE:
                    shorter = min(2 * with_each[v] + (square + 1), length)
                    if scores[v] >= top - tie * _noise(peak, shorter):
                        best = v
                        break
            score = scores[best]
        else:
            for v in range(n):
                if own[v] > top:
                    best, top = v, own[v]
            for v in range(best):
                if own[v] >= top - tie * ROOT_HALF:
                    best = v
                    break
            score = relevance[best]
        picks[t], gains[t] = best, score - before
        before = score
        own[best] = -np.inf
        if len(kept) or t + 1 < len(picks):
            _cosines(rows, inverse, best, row)
            square = max(0.0, 2 * with_each[best] + square + 1)
            peak = max(peak, square)
            with_query += relevance[best]
            for v in range(n):
                with_each[v] += row[v]
                if len(kept):
                    kept[t, v] = row[v]
    return with_query, square, peak


@as_machine_code()
def exchange(
    rows: FloatArray, inverse: FloatArray, relevance: Vector, free: Vector, with_each: Vector,
    zero: NDArray[np.bool_], with_query: float, square: float, tie: float,
    picks: Indices, kept: Vector, fixed: int, exact: Vector, query: Vector, best: float,
) -> bool:  # fmt: skip
    """VRSD's exchanges, in place in ``picks``; whether there was one. ``exact`` is the sum itself."""
    n, d = rows.shape
    step = 0 if len(inverse) == 1 else 1
    row = np.empty(n, rows.dtype)
    scores = np.empty((len(picks), n))
    changed = False
    while True:
        top, position, newcomer = -np.inf, 0, 0
        negligible = tie * (1.0 + square) / 2
        for p in range(fixed, len(picks)):
            leaver = picks[p]
            constant = square / 2 + 1 - with_each[leaver] - zero[leaver]
            over = (with_query - relevance[leaver]) * ROOT_HALF
            for v in range(n):
                half = with_each[v] - kept[p, v] + constant
                if free[v] == -np.inf:
                    scores[p, v] = -np.inf
                elif half <= negligible:
                    scores[p, v] = 0.0
                else:
                    scores[p, v] = (free[v] + over) / np.sqrt(half)
                if scores[p, v] > top:
                    top, position, newcomer = scores[p, v], p, v
        margin = top - best - MIN_IMPROVEMENT
        if margin <= 0:
            return changed
        position, newcomer = _first(scores, fixed, top - min(tie, margin / 2))
        leaver = picks[position]
        for c in range(d):
            exact[c] += rows[newcomer, c] * inverse[newcomer * step]
            exact[c] -= rows[leaver, c] * inverse[leaver * step]
        length = dot(exact, exact)
        value = dot(exact, query) / np.sqrt(length) if length > tie else 0.0
        if value <= best + MIN_IMPROVEMENT:
            return changed
        best, changed = value, True
        picks[position] = newcomer
        free[leaver], free[newcomer] = relevance[leaver] * ROOT_HALF, -np.inf
        _cosines(rows, inverse, newcomer, row)
        half = with_each[newcomer] - kept[position, newcomer] - with_each[leaver] + square / 2 + (not zero[leaver])
        square = max(0.0, 2 * half)
        with_query += relevance[newcomer] - relevance[leaver]
        for v in range(n):
            with_each[v] += row[v] - kept[position, v]
            kept[position, v] = row[v]


@as_machine_code()
def _first(scores: Vector, start: int, least: float) -> tuple[int, int]:
    for p in range(start, len(scores)):
        for v in range(scores.shape[1]):
            if scores[p, v] >= least:
                return p, v
    return start, 0


@as_machine_code()
def pick_marginal(
    rows: FloatArray, inverse: FloatArray, weighted: Vector, nearest: Vector, novelty: float, tie: float,
    picks: Indices, gains: Vector, picked: int,
) -> None:  # fmt: skip
    """MMR's picks from the one at ``picked`` on: a score can only fall, so that of one passed over is a bound.

    ``nearest`` holds for what was shown, and knows of no pick; -inf in ``weighted`` is a closed candidate.
    """
    n = len(weighted)
    step = 0 if len(inverse) == 1 else 1
    scores, seen = np.empty(n), np.zeros(n, np.int64)
    for v in range(n):
        scores[v] = weighted[v] - nearest[v]
    units = np.empty((len(picks), rows.shape[1]), rows.dtype)
    for j in range(picked):
        for c in range(rows.shape[1]):
            units[j, c] = rows[picks[j], c] * inverse[picks[j] * step]
    for t in range(picked, len(picks)):
        # The highest bound first: it most likely is the next pick, and then few others are above it.
        top, first = -np.inf, 0
        for v in range(n):
            if scores[v] > top:
                top, first = scores[v], v
        top = -np.inf
        for at in range(-1, n):
            v = first if at < 0 else at
            if scores[v] >= top - tie and weighted[v] > -np.inf:
                for j in range(seen[v], t):
                    nearest[v] = max(nearest[v], novelty * (dot(rows[v], units[j]) * inverse[v * step]))
                seen[v] = t
                scores[v] = weighted[v] - nearest[v]
                top = max(top, scores[v])
        # Not left open, whatever another thread may write into the rows meanwhile: it will be an index.
        picks[t], gains[t] = first, scores[first]
        for v in range(n):
            if seen[v] == t and scores[v] >= top - tie:
                picks[t], gains[t] = v, scores[v]
                for c in range(rows.shape[1]):
                    units[t, c] = rows[v, c] * inverse[v * step]
                weighted[v] = scores[v] = -np.inf
                break


@as_machine_code()
def _look(
    rows: FloatArray, query: FloatArray, known: FloatArray, least: float, most: float, slack: float,
    inverse: FloatArray, relevance: FloatArray,
) -> bool:  # fmt: skip
    """One over the length of each row (0 for a zero row), and its cosine with the query; False: one is out of range."""
    seen = np.empty(len(query), rows.dtype)
    for c in range(len(query)):
        # Overflow on the way to float32 is found as inf.
        seen[c] = query[c]
    square = dot(seen, seen)
    # Written so that NaN fails.
    if not (square > least and square < most):
        return False
    # Scaled before it meets rows, which may be as long: the product of two lengths leaves the range of the type.
    over = seen.dtype.type(1 / np.sqrt(square))
    for c in range(len(seen)):
        seen[c] *= over
    unit = not len(known)
    step = 0 if len(known) == 1 else 1
    for v in range(len(rows)):
        if len(known):
            inverse[v] = known[v * step]
            continue
        square = dot(rows[v], rows[v])
        if square > least and square < most:
            unit = unit and abs(square - 1) <= slack
            inverse[v] = 1 / np.sqrt(square)
        else:
            for c in range(rows.shape[1]):
                if rows[v, c] != 0:
                    return False
            unit = False
            inverse[v] = 0
    if unit:
        for v in range(len(rows)):
            inverse[v] = 1
    products(rows, seen, relevance)
    for v in range(len(rows)):
        relevance[v] *= inverse[v]
        # As a row that another thread has written to meanwhile.
        if not np.isfinite(relevance[v]):
            return False
    return True


@as_machine_code()
def one_sum(
    query: FloatArray, rows: FloatArray, known: FloatArray, least: float, most: float, slack: float, tie: float,
    picks: Indices, gains: Vector, cosines: Vector,
) -> bool:  # fmt: skip
    """The whole choice of VRSD; False: a length is out of range, or a number bad.

    ``known`` is one over the lengths of the rows (a single 1: all have that), or nothing.
    """
    n = len(rows)
    inverse, relevance = np.empty(n, rows.dtype), np.empty(n, rows.dtype)
    if not _look(rows, query, known, least, most, slack, inverse, relevance):
        return False
    exact, own, with_each = np.empty(n), np.empty(n), np.empty(n)
    _nothing_summed(relevance, inverse, exact, own, with_each)
    kept = np.empty((0, n))
    pick_sum(rows, inverse, exact, own, with_each, 0.0, 0.0, 0.0, tie, 0.0, picks, gains, kept)
    for t in range(len(picks)):
        cosines[t] = relevance[picks[t]]
    return True


@as_machine_code()
def one_refined(
    query: FloatArray, rows: FloatArray, known: FloatArray, least: float, most: float, slack: float, tie: float,
    picks: Indices, gains: Vector, cosines: Vector,
) -> bool:  # fmt: skip
    """As :func:`one_sum`, and refined."""
    (n, d), k = rows.shape, len(picks)
    inverse, relevance = np.empty(n, rows.dtype), np.empty(n, rows.dtype)
    if not _look(rows, query, known, least, most, slack, inverse, relevance):
        return False
    exact, own, with_each, kept = np.empty(n), np.empty(n), np.empty(n), np.empty((k, n))
    _nothing_summed(relevance, inverse, exact, own, with_each)
    with_query, square, _ = pick_sum(
        rows, inverse, exact, own, with_each, 0.0, 0.0, 0.0, tie, 0.0, picks, gains, kept
    )  # fmt: skip
    zero = np.empty(n, np.bool_)
    for v in range(n):
        zero[v] = inverse[v] == 0
    seen, total, along = np.empty(d), np.zeros(d), np.empty(k)
    for c in range(d):
        seen[c] = query[c]
    length = np.sqrt(dot(seen, seen))
    for c in range(d):
        seen[c] /= length
    _cosines_along(rows, inverse, picks, seen, tie, total, along)
    best = max(with_query / np.sqrt(square) if square > tie else 0.0, along[k - 1])
    if exchange(
        rows, inverse, exact, own, with_each, zero, with_query, square, tie, picks, kept, 1, total, seen, best
    ):  # fmt: skip
        for c in range(d):
            total[c] = 0
        _cosines_along(rows, inverse, picks, seen, tie, total, along)
        for t in range(k):
            gains[t] = along[t] - (along[t - 1] if t else 0.0)
    for t in range(k):
        cosines[t] = relevance[picks[t]]
    return True


@as_machine_code()
def _nothing_summed(relevance: FloatArray, inverse: FloatArray, exact: Vector, own: Vector, with_each: Vector) -> None:
    for v in range(len(relevance)):
        exact[v] = relevance[v]
        own[v] = exact[v] * ROOT_HALF
        with_each[v] = -0.5 if inverse[v] == 0 else 0.0


@as_machine_code()
def _cosines_along(
    rows: FloatArray, inverse: FloatArray, picks: Indices, query: Vector, tie: float, total: Vector, along: Vector
) -> None:
    for t in range(len(picks)):
        i = picks[t]
        for c in range(len(total)):
            total[c] += rows[i, c] * inverse[i]
        length = dot(total, total)
        along[t] = dot(total, query) / np.sqrt(length) if length > tie else 0.0


@as_machine_code()
def one_marginal(
    query: FloatArray, rows: FloatArray, known: FloatArray, least: float, most: float, slack: float, tie: float,
    picks: Indices, gains: Vector, cosines: Vector, lambda_d: float, lambda_b: float, quality: Vector,
) -> bool:  # fmt: skip
    """As :func:`one_sum` for MMR; ``quality`` has a number for each row, or none at all."""
    n = len(rows)
    inverse, relevance = np.empty(n, rows.dtype), np.empty(n, rows.dtype)
    if not _look(rows, query, known, least, most, slack, inverse, relevance):
        return False
    value, weighted, nearest = np.empty(n), np.empty(n), np.empty(n)
    best, largest = -np.inf, 0.0
    for v in range(n):
        value[v] = relevance[v]
        if len(quality):
            if not np.isfinite(quality[v]):
                return False
            value[v] = lambda_b * value[v] + (1 - lambda_b) * quality[v]
            largest = max(largest, abs(value[v]))
        best = max(best, value[v])
        weighted[v], nearest[v] = lambda_d * value[v], NOTHING_PICKED
    room = tie + TIE_EPS * _EPS * largest
    first = 0
    while value[first] < best - room:
        first += 1
    picks[0], gains[0] = first, weighted[first]
    weighted[first] = -np.inf
    pick_marginal(rows, inverse, weighted, nearest, 1 - lambda_d, room, picks, gains, 1)
    for t in range(len(picks)):
        cosines[t] = relevance[picks[t]]
    return True


@as_machine_code()
def many_sums(
    queries: FloatArray, rows: FloatArray, known: FloatArray, least: float, most: float, slack: float, tie: float,
    picks: Indices, gains: Vector, cosines: Vector, odd: NDArray[np.bool_],
) -> None:  # fmt: skip
    """VRSD for each query and its own rows (or, of a single set of rows, all from that); ``odd`` ones are left."""
    for i in range(len(queries)):
        given = rows[i if len(rows) > 1 else 0]
        odd[i] = not one_sum(queries[i], given, known, least, most, slack, tie, picks[i], gains[i], cosines[i])


@as_machine_code()
def many_refined(
    queries: FloatArray, rows: FloatArray, known: FloatArray, least: float, most: float, slack: float, tie: float,
    picks: Indices, gains: Vector, cosines: Vector, odd: NDArray[np.bool_],
) -> None:  # fmt: skip
    """As :func:`many_sums`, and refined."""
    for i in range(len(queries)):
        given = rows[i if len(rows) > 1 else 0]
        odd[i] = not one_refined(queries[i], given, known, least, most, slack, tie, picks[i], gains[i], cosines[i])


@as_machine_code()
def many_marginal(
    queries: FloatArray, rows: FloatArray, known: FloatArray, least: float, most: float, slack: float, tie: float,
    picks: Indices, gains: Vector, cosines: Vector, odd: NDArray[np.bool_],
    lambda_d: float, lambda_b: float, quality: Vector,
) -> None:  # fmt: skip
    """As :func:`many_sums` for MMR; ``quality`` has a row for each query, or one for all, or none."""
    none = np.empty(0)
    for i in range(len(queries)):
        odd[i] = not one_marginal(
            queries[i], rows[i if len(rows) > 1 else 0], known, least, most, slack, tie,
            picks[i], gains[i], cosines[i], lambda_d, lambda_b,
            quality[i if len(quality) > 1 else 0] if len(quality) else none,
        )  # fmt: skip
