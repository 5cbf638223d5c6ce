"""The greedy loops of MMR, NDPP and Coverage for numba.

Each makes the picks of the numpy loop of its selector, except for ties within rounding error, but computes a score only
where it may be the highest. Kernels, constraints, and what was shown before, are left to numpy. Each loop returns the
number of its picks. Only ``compiled_loops`` of ``greedy.py`` imports this module, because it needs numba.

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

# The tie tolerance of a sum in float64: TIE_EPS of candidates.py times the unit in the last place. numba would not
# notice that a constant in another file has changed.
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
def dot_exact(a: FloatArray, b: FloatArray) -> Any:
    """Dot product, summed in float64 whatever the dtype of the two is: numba's float() would keep float32."""
    total = 0.0
    for c in range(len(a)):
        total += np.float64(a[c]) * np.float64(b[c])
    return total


@_compile()
def mmr(
    rows: FloatArray, v: Vector, relevance: float, v_tie: float, tie: float, picks: Indices, gains: Vector,
) -> int:  # fmt: skip
    """MMR, into ``picks`` and ``gains``; ``relevance`` is λ_d.

    ``step`` and j number the picks, and i and c the candidates. m holds each candidate's highest cosine with a pick.
    """
    # A score w can only fall, because m can only rise. So the last computed score of a candidate is an upper bound, and
    # a candidate whose bound is below the best score is skipped. m[c] counts the first seen[c] picks.
    n = len(rows)
    w, m, seen, open_ = v.copy(), np.full(n, -np.inf), np.zeros(n, np.int64), np.ones(n, np.bool_)
    for step in range(len(picks)):
        # The candidate of the highest bound comes first: few other bounds are above its score.
        first = 0
        for c in range(n):
            if w[c] > w[first]:
                first = c
        top = w[first] if step == 0 else -np.inf
        for at in range(-1, n):
            c = first if at < 0 else at
            if step and open_[c] and w[c] >= top - tie:
                for j in range(seen[c], step):
                    m[c] = max(m[c], dot(rows[c], rows[picks[j]]))
                seen[c] = step
                w[c] = relevance * v[c] - (1.0 - relevance) * m[c]
                top = max(top, w[c])
        # ``first`` stays the pick if another thread changes the rows meanwhile: the index must be valid.
        i, least = first, top - (tie if step else v_tie)
        for c in range(n):
            if open_[c] and seen[c] == step and w[c] >= least:
                i = c
                break
        picks[step], gains[step] = i, w[i] if step else relevance * w[i]
        if step == 0:
            for c in range(n):
                # No cosine is below -1.
                w[c] = relevance * v[c] + (1.0 - relevance) * (1.0 + 1e-5)
        open_[i], w[i] = False, -np.inf
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
    rows: FloatArray, alpha: float, tolerance: float, log_weight: Vector, noise: Vector, a: Matrix, w: Vector,
    r: FloatArray, kinds: NDArray[np.int8], documents: NDArray[np.int64], omega: Vector, g: Vector, tie: float,
    picks: Indices, gains: Vector,
) -> int:  # fmt: skip
    """Coverage, and NDPP without a kernel, into ``picks`` and ``gains``, which are logarithms.

    ``step`` numbers the picks and the steps of the LU, j the parts, v the candidates. ``a`` and the references (``r``,
    ``kinds`` and ``documents``) are empty if there are none. Fewer than k picks: the rank is used up.
    """
    # Without its bonus, the gain of a candidate only falls as the set grows. So the last computed gain, plus what the
    # bonus has risen by since, is an upper bound, and a candidate whose bound is below the best gain is skipped. d[v]
    # is known after the first seen[v] steps.
    n, width = rows.shape
    m, covered, left = len(w), np.zeros(len(w)), np.empty((len(picks), width))
    d, scale, bound, seen = np.empty(n), np.empty(n), np.empty(n), np.full(n, -1)
    bonus, of_kind, fresh = np.zeros(n), np.zeros((len(omega), n)), np.ones((len(omega), n), np.bool_)
    # The largest tie tolerance that a candidate can have.
    widest = tie + ROUNDING / tolerance + noise.max()
    for v in range(n):
        # The squared length of a row is 1 or 0, with a rounding error below 1e-5.
        bound[v] = log_weight[v] + np.log(1.0 + 1e-5 + alpha) + w.sum()
    for step in range(len(picks)):
        # The candidate of the highest bound comes first: few other bounds are above its gain.
        first, best, top = 0, -1, -np.inf
        for v in range(n):
            if bound[v] > bound[first]:
                first = v
        for at in range(-1, n):
            v = first if at < 0 else at
            if bound[v] > -np.inf and bound[v] >= top - widest and seen[v] < step:
                row = rows[v]
                if seen[v] < 0:
                    d[v] = scale[v] = dot_exact(row, row) + alpha
                    seen[v] = 0
                for s in range(seen[v], step):
                    d[v] -= dot_exact(row, left[s]) ** 2
                seen[v], bound[v] = step, -np.inf
                if d[v] > tolerance * scale[v]:
                    bound[v] = log_weight[v] + np.log(d[v]) + bonus[v]
                    for j in range(m):
                        bound[v] += w[j] * max(a[v, j] - covered[j], 0.0)
                if bound[v] > top:
                    best, top = v, bound[v]
        if best < 0:
            return step
        lowest = top - tie - ROUNDING * scale[best] / d[best] - noise[best]
        i = 0
        while i < best and not (seen[i] == step and bound[i] >= lowest):
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
            left[step, c] = row[c]
        for s in range(step):
            lower = dot_exact(row, left[s])
            for c in range(width):
                left[step, c] -= lower * left[s, c]
        for c in range(width):
            left[step, c] /= root
    return len(picks)
