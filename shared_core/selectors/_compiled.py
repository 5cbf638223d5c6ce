"""The greedy loops of the selectors for numba: one function per algorithm, for one query.

``vrsd`` repeats the numpy loop of its selector. ``mmr``, ``coverage``, and ``ndpp`` with a symmetric kernel, make the
same picks, but they compute a score only where the score may be the highest. The picks are identical to those of numpy
except for ties within rounding error. Each loop returns the number of its picks. Constraints other than k are left to
numpy. Only ``compiled_loops`` of ``greedy.py`` imports this module, because it needs numba.

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

Vector = NDArray[np.float64]
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
    rows: FloatArray, relevance: Vector, squares: Vector, q: Vector, s: Vector, closed: NDArray[np.bool_], tie: float,
    picks: Indices, cosines: Vector,
) -> int:  # fmt: skip
    """VRSD, into ``picks`` and ``cosines``.

    ``step`` numbers the picks, and v the candidates. ``squares`` has the squared length of each row.
    ``s`` holds the sum of the shown candidates, and it and ``closed`` are changed.
    """
    n, d = rows.shape
    dots, in_dtype = np.empty(n, rows.dtype), np.empty(d, rows.dtype)
    t_squared, scores = np.empty(n), np.empty(n)
    for step in range(len(picks)):
        square, along = dot(s, s), dot(s, q)
        dots[:] = 0
        if square > 0:
            in_dtype[:] = s
            dot_each(rows, in_dtype, dots)
        best = -1
        for v in range(n):
            t_squared[v] = square + 2.0 * dots[v] + squares[v]
            if closed[v]:
                scores[v] = -np.inf
            elif t_squared[v] <= tie * (1.0 + square):
                scores[v] = 0.0
            else:
                scores[v] = (along + relevance[v]) / np.sqrt(t_squared[v])
            if best < 0 or scores[v] > scores[best]:
                best = v
        least = scores[best] - tie * min(max(square / max(t_squared[best], tie), 1.0), MAX_TIE)
        p = 0
        while p < best and scores[p] < least:
            p += 1
        picks[step], cosines[step], closed[p] = p, scores[p], True
        for c in range(d):
            s[c] += rows[p, c]
    return len(picks)


@_compile()
def mmr(
    rows: FloatArray, weighted: Vector, m: Vector, novelty: float, tie: float, picks: Indices, gains: Vector,
) -> int:  # fmt: skip
    """MMR after its first pick, into ``picks`` and ``gains``.

    ``step`` and j number the picks, and v the candidates. ``m`` holds each candidate's highest cosine with the
    first pick or a shown candidate. ``weighted`` is λ_d·v, or -inf for a closed candidate, and ``novelty`` is 1 − λ_d.
    Both arrays are changed.
    """
    # A score w can only fall, because m can only rise. So the last computed score of a candidate is an upper bound, and
    # a candidate whose bound is below the best score is skipped. m[v] counts the first seen[v] picks.
    n = len(rows)
    w, seen = np.empty(n), np.zeros(n, np.int64)
    for v in range(n):
        w[v] = weighted[v] - novelty * m[v]
    for step in range(len(picks)):
        # The candidate of the highest bound comes first: few other bounds are above its score.
        first = 0
        for v in range(n):
            if w[v] > w[first]:
                first = v
        top = -np.inf
        for at in range(-1, n):
            v = first if at < 0 else at
            if w[v] >= top - tie and weighted[v] > -np.inf:
                for j in range(seen[v], step):
                    m[v] = max(m[v], dot(rows[v], rows[picks[j]]))
                seen[v] = step
                w[v] = weighted[v] - novelty * m[v]
                top = max(top, w[v])
        # ``first`` stays the pick if another thread changes the rows meanwhile: the index must be valid.
        i = first
        for v in range(n):
            if seen[v] == step and w[v] >= top - tie:
                i = v
                break
        picks[step], gains[step] = i, w[i]
        weighted[i] = w[i] = -np.inf
    return len(picks)


@_compile()
def ndpp(
    Z: FloatArray, C: Matrix, alpha: float, log_r2: Vector, noise: Vector, diagonal: Vector, largest: Vector,
    left: Matrix, right: Matrix, shown: int, bound: float, tie: float, tolerance: float, picks: Indices,
    gains: Vector,
) -> int:  # fmt: skip
    """NDPP, into ``picks`` and ``gains``. Fewer than k picks: the rank is used up; -1: a determinant overflows.

    ``step`` numbers the picks, s and t the steps of the LU, v the candidates. ``left`` and ``right`` hold the first
    ``shown`` steps and room for k more. ``diagonal`` and ``largest`` are d and ``scale`` after these steps; if there
    are none, d is not known, and at most ``bound``. ``log_r2`` is -inf for a closed candidate.
    """
    # d[v] is known after the first seen[v] steps. With a symmetric kernel d only falls, so it is an upper bound of its
    # later values. The other steps are subtracted only where r² d is above ``least``, because elsewhere the gain cannot
    # be within the tie tolerance of the best. With a skew part d may rise, so each step is subtracted from all d at
    # once. w[v] is the logarithm of the gain.
    n, width = Z.shape
    K = width - len(C)
    symmetric = len(C) == 0
    d, scale, w, seen, widest = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64), 0.0
    r2, skew_part = np.empty(n), np.empty(len(C))
    highest = log_r2.max()
    for v in range(n):
        d[v], scale[v], seen[v], w[v] = bound, 1.0, -1, -np.inf
        if shown:
            d[v], scale[v], seen[v] = diagonal[v], largest[v], shown
        # r² is divided by the highest, and cannot overflow. Where it underflows, a larger number is a bound too.
        r2[v] = max(np.exp(log_r2[v] - highest), 1e-300) if log_r2[v] > -np.inf else 0.0
        # The largest tie tolerance that a candidate can have.
        widest = max(widest, tie + ROUNDING / tolerance + noise[v])
    for step in range(len(picks)):
        t = shown + step
        # The candidate of the highest bound comes first: few other bounds are above its gain.
        first, best, top, least = 0, -1, -np.inf, 0.0
        for v in range(n):
            if r2[v] * d[v] > r2[first] * d[first]:
                first = v
        for at in range(-1, n):
            v = first if at < 0 else at
            if r2[v] * d[v] > least:
                z = Z[v]
                if seen[v] < 0:
                    d[v] = scale[v] = dot_exact(z[:K], z[:K]) + alpha
                    seen[v] = 0
                if symmetric:
                    for s in range(seen[v], t):
                        d[v] -= dot_exact(z, left[s]) ** 2
                seen[v] = t
                if not np.isfinite(d[v]):
                    return -1
                w[v] = -np.inf
                if r2[v] * d[v] > least and d[v] > tolerance * scale[v]:
                    w[v] = log_r2[v] + np.log(d[v])
                    if w[v] > top:
                        best, top, least = v, w[v], np.exp(w[v] - highest - widest)
        if best < 0:
            return step
        lowest = top - tie - ROUNDING * scale[best] / d[best] - noise[best]
        i = 0
        while i < best and not (seen[i] == t and w[i] >= lowest):
            i += 1
        picks[step], gains[step] = i, np.exp(w[i])
        if step == len(picks) - 1:
            break
        r2[i] = 0.0
        z, root = Z[i], np.sqrt(d[i])
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
                product = product_exact(Z[v], left[t], right[t])
                d[v] -= product
                scale[v] = max(scale[v], abs(product))
                if not np.isfinite(d[v]):
                    return -1
    return len(picks)


@_compile()
def update_bonus(
    i: int, r: FloatArray, kinds: NDArray[np.int8], documents: NDArray[np.int64], omega: Vector, g: Vector,
    fresh: NDArray[np.bool_], of_kind: Matrix, bonus: Vector, bound: Vector,
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
    rows: FloatArray, relevance: Vector, noise: float, alpha: float, a: Matrix, w: Vector, covered_before: Vector,
    r: FloatArray, kinds: NDArray[np.int8], documents: NDArray[np.int64], omega: Vector, g: Vector, shown: Indices,
    steps: int, ratios: Vector, left: Matrix, tie: float, picks: Indices, gains: Vector,
) -> int:  # fmt: skip
    """Coverage, into ``picks`` and ``gains``.

    ``step`` numbers the picks, s and t the steps of the LU, j the parts, v the candidates. ``left`` holds the first
    ``steps`` steps, those of the ``shown`` candidates, and room for k more; ``ratios`` is d after these steps. The
    references (``r``, ``kinds`` and ``documents``) are empty if there are none.
    """
    # Without its bonus, the gain of a candidate only falls as the set grows. So the last computed gain, plus what the
    # bonus has risen by since, is an upper bound, and a candidate whose bound is below the best gain is skipped. d[v]
    # is known after the first seen[v] steps.
    n, width = rows.shape
    m, covered = len(w), covered_before.copy()
    d, bound, seen = np.empty(n), np.empty(n), np.empty(n, np.int64)
    bonus, of_kind, fresh = np.zeros(n), np.zeros((len(omega), n)), np.ones((len(omega), n), np.bool_)
    # The largest tie tolerance that a candidate can have.
    widest = tie + ROUNDING * (1.0 + alpha) / alpha + noise
    for v in range(n):
        # The squared length of a row is 1 or 0, with a rounding error below 1e-5.
        seen[v], bound[v] = -1, relevance[v] + np.log(1.0 + 1e-5 + alpha) + w.sum()
        if len(shown):
            seen[v], d[v] = steps, ratios[v]
    for i in shown:
        update_bonus(i, r, kinds, documents, omega, g, fresh, of_kind, bonus, bound)
    for i in shown:
        bound[i] = -np.inf
    for step in range(len(picks)):
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
                row = rows[v]
                if seen[v] < 0:
                    d[v], seen[v] = dot_exact(row, row) + alpha, 0
                for s in range(seen[v], t):
                    d[v] -= dot_exact(row, left[s]) ** 2
                seen[v] = t
                bound[v] = relevance[v] + np.log(d[v]) + bonus[v]
                for j in range(m):
                    bound[v] += w[j] * max(a[v, j] - covered[j], 0.0)
                if bound[v] > top:
                    best, top = v, bound[v]
        lowest = top - tie - ROUNDING * (1.0 + alpha) / d[best] - noise
        i = 0
        while i < best and not (seen[i] == t and bound[i] >= lowest):
            i += 1
        picks[step], gains[step] = i, bound[i]
        bound[i] = -np.inf
        if step == len(picks) - 1:
            break
        update_bonus(i, r, kinds, documents, omega, g, fresh, of_kind, bonus, bound)
        for j in range(m):
            covered[j] = max(covered[j], a[i, j])
        row, root = rows[i], np.sqrt(d[i])
        for c in range(width):
            left[t, c] = row[c]
        for s in range(t):
            lower = dot_exact(row, left[s])
            for c in range(width):
                left[t, c] -= lower * left[s, c]
        for c in range(width):
            left[t, c] /= root
    return len(picks)
