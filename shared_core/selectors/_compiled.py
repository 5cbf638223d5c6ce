"""The greedy loops of the selectors for numba: one function per algorithm, with a batch axis in front.

``vrsd`` repeats the numpy loop of its selector. ``mmr``, ``coverage``, and ``ndpp`` with a symmetric kernel, make the
same picks, but they compute a score only where the score may be the highest. The picks are identical to those of numpy
except for ties within rounding error. A single query is a batch of one. Constraints other than k are left to numpy.
Only ``compiled_loops`` of ``_greedy.py`` imports this module, because it needs numba.

All compiled functions are in one file. numba keeps compiled code on disk, and renews it only if the file of the called
function has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .._validation import FloatArray

# The same as in vrsd.py. numba would not notice that a constant in another file has changed.
MAX_TIE = 64.0
# The tie tolerance of a sum in float64: TIE_EPS of candidates.py times the unit in the last place.
ROUNDING = 16 * 2.0**-52

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]


def _compile(**options: Any) -> Callable[[Any], Any]:
    """Decorator: compile at the first call, and keep the machine code on disk if numba finds a folder for it."""

    def decorate(function: Any) -> Any:
        try:
            return njit(nogil=True, cache=True, error_model="numpy", **options)(function)
        except RuntimeError:
            # numba finds no folder to write to. Each process compiles for itself.
            return njit(nogil=True, error_model="numpy", **options)(function)

    return decorate


# "reassoc" and "contract" let the compiler sum in any order and fuse products with sums, as BLAS does.
@_compile(fastmath={"reassoc", "contract"})
def dot(a: FloatArray, b: FloatArray) -> Any:
    """Dot product, in the dtype of the two."""
    total = a.dtype.type(0)
    for c in range(len(a)):
        total += a[c] * b[c]
    return total


@_compile(fastmath={"reassoc", "contract"})
def dot_each(rows: FloatArray, x: FloatArray, out: FloatArray) -> None:
    """Dot product of each row with ``x``, into ``out``."""
    # Four rows at a time read x once for the four: 4.3 µs instead of 6.2 at n = 100, d = 768.
    n, d = rows.shape
    whole = n - n % 4
    zero = x.dtype.type(0)
    for v in range(0, whole, 4):
        a, b, c, e = rows[v], rows[v + 1], rows[v + 2], rows[v + 3]
        dot_a, dot_b, dot_c, dot_e = zero, zero, zero, zero
        for i in range(d):
            dot_a += a[i] * x[i]
            dot_b += b[i] * x[i]
            dot_c += c[i] * x[i]
            dot_e += e[i] * x[i]
        out[v], out[v + 1], out[v + 2], out[v + 3] = dot_a, dot_b, dot_c, dot_e
    for v in range(whole, n):
        out[v] = dot(rows[v], x)


@_compile(fastmath={"reassoc", "contract"})
def dot_exact(a: FloatArray, b: FloatArray) -> Any:
    """Dot product, summed in float64 whatever the dtype of the two is."""
    total = 0.0
    for c in range(len(a)):
        total += float(a[c]) * float(b[c])
    return total


@_compile(fastmath={"reassoc", "contract"})
def product_exact(z: FloatArray, a: FloatArray, b: FloatArray) -> Any:
    """z·a times z·b, summed in float64."""
    z_a, z_b = 0.0, 0.0
    for c in range(len(z)):
        z_a += float(z[c]) * float(a[c])
        z_b += float(z[c]) * float(b[c])
    return z_a * z_b


@_compile()
def vrsd(
    rows: FloatArray, relevance: Matrix, queries: Matrix, sums: Matrix, closed: NDArray[np.bool_], tie: float,
    picks: Indices, cosines: Matrix,
) -> None:  # fmt: skip
    """VRSD for each query of a batch, into ``picks`` and ``cosines``.

    ``step`` numbers the picks, and v the candidates. ``sums`` holds the sum of each query's shown candidates,
    and is changed. The batch axis of ``rows`` has length b, or length 1 if all queries share the candidates.
    """
    b, k = picks.shape
    n, d = rows.shape[1:]
    dots, in_dtype = np.empty(n, rows.dtype), np.empty(d, rows.dtype)
    squares, t_squared, scores = np.empty(n), np.empty(n), np.empty(n)
    for query in range(b):
        own = query if len(rows) > 1 else 0
        s = sums[query]
        for v in range(n):
            # Rows have length 1 or 0, and a zero row has relevance 0.
            squares[v] = 1.0 if relevance[query, v] != 0 else dot(rows[own, v], rows[own, v])
        for step in range(k):
            square, along = dot(s, s), dot(s, queries[query])
            dots[:] = 0
            if square > 0:
                in_dtype[:] = s
                dot_each(rows[own], in_dtype, dots)
            best = -1
            for v in range(n):
                t_squared[v] = square + 2.0 * dots[v] + squares[v]
                if closed[query, v]:
                    scores[v] = -np.inf
                elif t_squared[v] <= tie * (1.0 + square):
                    scores[v] = 0.0
                else:
                    scores[v] = (along + relevance[query, v]) / np.sqrt(t_squared[v])
                if best < 0 or scores[v] > scores[best]:
                    best = v
            least = scores[best] - tie * min(max(square / max(t_squared[best], tie), 1.0), MAX_TIE)
            p = 0
            while p < best and scores[p] < least:
                p += 1
            picks[query, step], cosines[query, step], closed[query, p] = p, scores[p], True
            for c in range(d):
                s[c] += rows[own, p, c]


@_compile()
def mmr(
    rows: FloatArray, weighted: Matrix, m: Matrix, novelty: float, ties: Matrix, picks: Indices, gains: Matrix,
    start: int,
) -> None:  # fmt: skip
    """MMR for each query of a batch: the picks from number ``start`` on, into ``picks`` and ``gains``.

    ``step`` and j number the picks, and v the candidates. ``m`` holds each candidate's highest cosine with a
    shown candidate. ``weighted`` is λ_d·v, or -inf for a closed candidate, and ``novelty`` is 1 − λ_d. ``m`` and
    ``weighted`` are changed.
    """
    # A score w can only fall, because m can only rise. So the last computed score of a candidate is an upper bound, and
    # a candidate whose bound is below the best score is skipped. m[query, v] counts the first seen[v] picks.
    b, k = picks.shape
    n = rows.shape[1]
    w, seen, dots = np.empty(n), np.empty(n, np.int64), np.empty(n, rows.dtype)
    for query in range(b):
        own = query if len(rows) > 1 else 0
        for j in range(start):
            dot_each(rows[own], rows[own, picks[query, j]], dots)
            for v in range(n):
                m[query, v] = max(m[query, v], dots[v])
        for v in range(n):
            w[v] = weighted[query, v] - novelty * m[query, v]
        seen[:] = start
        for step in range(start, k):
            # The candidate of the highest bound comes first: few other bounds are above its score.
            first = 0
            for v in range(n):
                if w[v] > w[first]:
                    first = v
            top = -np.inf
            for at in range(-1, n):
                v = first if at < 0 else at
                if w[v] >= top - ties[query] and weighted[query, v] > -np.inf:
                    for j in range(seen[v], step):
                        m[query, v] = max(m[query, v], dot(rows[own, v], rows[own, picks[query, j]]))
                    seen[v] = step
                    w[v] = weighted[query, v] - novelty * m[query, v]
                    top = max(top, w[v])
            # ``first`` stays the pick if another thread changes the rows meanwhile: the index must be valid.
            i = first
            for v in range(n):
                if seen[v] == step and w[v] >= top - ties[query]:
                    i = v
                    break
            picks[query, step], gains[query, step] = i, w[i]
            weighted[query, i] = w[i] = -np.inf


@_compile()
def ndpp(
    Z: FloatArray, C: Matrix, alpha: float, log_r2: Matrix, noise: Matrix, diagonal: Matrix, largest: Matrix,
    left: Matrix, right: Matrix, shown: int, bound: float, tie: float, tolerance: float, picks: Indices,
    gains: Matrix, counts: Indices,
) -> None:  # fmt: skip
    """NDPP for each query of a batch, into ``picks``, ``gains`` and ``counts``, the number of picks.

    ``step`` numbers the picks, s and t the steps of the LU, v the candidates. ``left`` and ``right`` hold the first
    ``shown`` steps and room for k more. ``diagonal`` and ``largest`` are d and ``scale`` after these steps; if there
    are none, d is not known, and at most ``bound``. ``log_r2`` is -inf for a closed candidate. A count is below k if
    the rank is used up, and -1 if a determinant overflows.
    """
    # d[v] is known after the first seen[v] steps. With a symmetric kernel d only falls, so it is an upper bound of its
    # later values. The other steps are subtracted only where r² d is above ``least``, because elsewhere the gain cannot
    # be within the tie tolerance of the best. With a skew part d may rise, so each step is subtracted from all d at
    # once. w[v] is the logarithm of the gain.
    b, k = picks.shape
    n, width = Z.shape[1:]
    K = width - len(C)
    symmetric = len(C) == 0
    d, scale, w, seen, widest = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64), 0.0
    r2, skew_part = np.empty(n), np.empty(len(C))
    for query in range(b):
        own, noise_of = query if len(Z) > 1 else 0, noise[query]
        highest = log_r2[query].max()
        for v in range(n):
            d[v], scale[v], seen[v], w[v] = bound, 1.0, -1, -np.inf
            if shown:
                d[v], scale[v], seen[v] = diagonal[v], largest[v], shown
            # r² is divided by the highest, and cannot overflow. Where it underflows, a larger number is a bound too.
            r2[v] = max(np.exp(log_r2[query, v] - highest), 1e-300) if log_r2[query, v] > -np.inf else 0.0
            # The largest tie tolerance that a candidate can have.
            widest = max(widest, tie + ROUNDING / tolerance + noise_of[v])
        counts[query] = k
        for step in range(k):
            t = shown + step
            # The candidate of the highest bound comes first: few other bounds are above its gain.
            first, best, top, least = 0, -1, -np.inf, 0.0
            for v in range(n):
                if r2[v] * d[v] > r2[first] * d[first]:
                    first = v
            for at in range(-1, n):
                v = first if at < 0 else at
                if r2[v] * d[v] > least:
                    z = Z[own, v]
                    if seen[v] < 0:
                        d[v] = scale[v] = dot_exact(z[:K], z[:K]) + alpha
                        seen[v] = 0
                    if symmetric:
                        for s in range(seen[v], t):
                            d[v] -= dot_exact(z, left[s]) ** 2
                    seen[v] = t
                    if not np.isfinite(d[v]):
                        counts[query] = -1
                    w[v] = -np.inf
                    if r2[v] * d[v] > least and d[v] > tolerance * scale[v]:
                        w[v] = log_r2[query, v] + np.log(d[v])
                        if w[v] > top:
                            best, top, least = v, w[v], np.exp(w[v] - highest - widest)
            if best < 0 or counts[query] < 0:
                counts[query] = min(counts[query], step)
                break
            lowest = top - tie - ROUNDING * scale[best] / d[best] - noise_of[best]
            i = 0
            while i < best and not (seen[i] == t and w[i] >= lowest):
                i += 1
            picks[query, step], gains[query, step] = i, np.exp(w[i])
            if step == k - 1:
                break
            r2[i] = 0.0
            z, root = Z[own, i], np.sqrt(d[i])
            dot_each(C, z[K:], skew_part)
            for c in range(width):
                left[t, c] = z[c] if c < K else skew_part[c - K]
                if not symmetric:
                    right[t, c] = left[t, c] if c < K else -left[t, c]
            for s in range(t):
                lower = dot_exact(z, left[s])
                upper = lower if symmetric else dot_exact(z, right[s])
                for c in range(width):
                    left[t, c] -= upper * left[s, c]
                    if not symmetric:
                        right[t, c] -= lower * right[s, c]
            for c in range(width):
                left[t, c] /= root
                if not symmetric:
                    right[t, c] /= root
            if not symmetric:
                for v in range(n):
                    product = product_exact(Z[own, v], left[t], right[t])
                    d[v] -= product
                    scale[v] = max(scale[v], abs(product))
                    if not np.isfinite(d[v]):
                        counts[query] = -1


@_compile()
def update_bonus(
    i: int, r: FloatArray, kinds: NDArray[np.int8], documents: NDArray[np.int64], omega: Matrix, g: Matrix,
    fresh: NDArray[np.bool_], of_kind: Matrix, bonus: Matrix, bound: Matrix,
) -> None:  # fmt: skip
    """Raise the bonus and the bound of what ``i`` refers to. What belongs together with it gets none of that kind."""
    for v in range(documents.shape[1]):
        for kind in range(len(omega)):
            if documents[kind, v] == documents[kind, i]:
                fresh[kind, v], of_kind[kind, v] = False, 0.0
        kind = kinds[i, v]
        if fresh[kind, v]:
            of_kind[kind, v] = max(of_kind[kind, v], omega[kind] * r[i, v] * g[v])
        highest = 0.0
        for kind in range(len(omega)):
            highest = max(highest, of_kind[kind, v])
        bound[v] += max(highest - bonus[v], 0.0)
        bonus[v] = highest


@_compile()
def coverage(
    rows: FloatArray, relevance: Matrix, noises: Matrix, alpha: float, a: Matrix, w: Matrix,
    covered_before: Matrix, r: FloatArray, kinds: NDArray[np.int8], documents: NDArray[np.int64], omega: Matrix,
    g: Matrix, shown: Indices, steps: int, ratios: Matrix, left: Matrix, tie: float, picks: Indices, gains: Matrix,
) -> None:  # fmt: skip
    """Coverage for each query of a batch, into ``picks`` and ``gains``.

    ``step`` numbers the picks, s and t the steps of the LU, j the parts, v the candidates. ``left`` holds the first
    ``steps`` steps, those of the ``shown`` candidates, and room for k more; ``ratios`` is d after these steps. All
    queries of a batch have the same parts and references (``r``, ``kinds`` and ``documents``), which are empty if there
    are none.
    """
    # Without its bonus, the gain of a candidate only falls as the set grows. So the last computed gain, plus what the
    # bonus has risen by since, is an upper bound, and a candidate whose bound is below the best gain is skipped. d[v]
    # is known after the first seen[v] steps.
    k = picks.shape[1]
    n, width = rows.shape[1:]
    m = len(w)
    d, bound, seen, covered = np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty(m)
    bonus, of_kind, fresh = np.empty(n), np.empty((len(omega), n)), np.empty((len(omega), n), np.bool_)
    for query in range(len(picks)):
        own = query if len(rows) > 1 else 0
        worth, noise = relevance[query], noises[query]
        # The largest tie tolerance that a candidate can have.
        widest = tie + ROUNDING * (1.0 + alpha) / alpha + noise
        covered[:] = covered_before
        for v in range(n):
            # The squared length of a row is 1 or 0, with a rounding error below 1e-5.
            seen[v], bound[v] = -1, worth[v] + np.log(1.0 + 1e-5 + alpha) + w.sum()
            if len(shown):
                seen[v], d[v] = steps, ratios[v]
        fresh[:], of_kind[:], bonus[:] = True, 0.0, 0.0
        for i in shown:
            update_bonus(i, r, kinds, documents, omega, g, fresh, of_kind, bonus, bound)
        for i in shown:
            bound[i] = -np.inf
        for step in range(k):
            t = steps + step
            # The candidate of the highest bound comes first: few other bounds are above its gain.
            first = 0
            for v in range(n):
                if bound[v] > bound[first]:
                    first = v
            best, top = first, -np.inf
            for at in range(-1, n):
                v = first if at < 0 else at
                if bound[v] > -np.inf and bound[v] >= top - widest and not (at >= 0 and v == first):
                    row = rows[own, v]
                    if seen[v] < 0:
                        d[v], seen[v] = dot_exact(row, row) + alpha, 0
                    for s in range(seen[v], t):
                        d[v] -= dot_exact(row, left[s]) ** 2
                    seen[v] = t
                    bound[v] = worth[v] + np.log(d[v]) + bonus[v]
                    for j in range(m):
                        bound[v] += w[j] * max(a[v, j] - covered[j], 0.0)
                    if bound[v] > top:
                        best, top = v, bound[v]
            lowest = top - tie - ROUNDING * (1.0 + alpha) / d[best] - noise
            i = 0
            while i < best and not (seen[i] == t and bound[i] >= lowest):
                i += 1
            picks[query, step], gains[query, step] = i, bound[i]
            bound[i] = -np.inf
            if step == k - 1:
                break
            update_bonus(i, r, kinds, documents, omega, g, fresh, of_kind, bonus, bound)
            for j in range(m):
                covered[j] = max(covered[j], a[i, j])
            row, root = rows[own, i], np.sqrt(d[i])
            for c in range(width):
                left[t, c] = row[c]
            for s in range(t):
                lower = dot_exact(row, left[s])
                for c in range(width):
                    left[t, c] -= lower * left[s, c]
            for c in range(width):
                left[t, c] /= root
