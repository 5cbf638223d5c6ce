"""Greedy MAP of a nonsymmetric determinantal point process (NDPP paper, 4.4)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, as_finite, as_float64, check_range, read_only
from ..candidates import TIE_TOLERANCE, Candidates, standardise
from ..errors import InvalidParameterError, KernelError, quoted, warn
from .greedy import GreedyState, lowest_of_best, run_compiled
from .kernels import Kernel, LowRankKernel, as_kernel
from .kernels.base import log_exponential
from .registry import Capabilities, register_selector
from .selection import Selection, make_selection
from .top_k import take_by_relevance

Matrix = NDArray[np.float64]

# Only r² enters the kernel, so with the paper's r = cos an opposite vector would count as a relevant one.
LINEAR_FLOOR = 1e-6
# temperature="auto" is this many standard deviations of the candidates' relevance. This constant and the ridge were
# chosen on the development half of the questions of benchmarks/regimes.py.
AUTO_TEMPERATURE = 1.0
# The same with sub-questions. Each cosine is in standard deviations of the cosines with its query, so a further query
# does not change T. It was chosen on the development half of the questions of benchmarks/several_queries.py.
SEVERAL_TEMPERATURE = 0.6
DEFAULT_RIDGE = 0.05
FLOAT64_TIE = TIE_TOLERANCE[np.dtype(np.float64)]
# A determinant ratio below this share of the numbers it was computed from is rounding error, by dtype of the vectors.
RANK_TOLERANCE = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-10}

_NO_SKEW_PART = read_only(np.empty((0, 0)))
NO_NUMBERS = read_only(np.empty(0))
# The terms of Coverage without parts (a, w), and without references (R, their kinds, the documents, ω, g).
_NO_PARTS = _NO_SKEW_PART, NO_NUMBERS
NO_REFERENCES = (
    read_only(np.empty((0, 0), np.float32)),
    read_only(np.empty((0, 0), np.int8)),
    read_only(np.empty((1, 0), np.int64)),
    read_only(np.zeros(1)),
    NO_NUMBERS,
)
_OVERFLOW = "the numbers of the kernel are so large that a determinant overflows: divide all of them by the same number"


@register_selector("ndpp")
@dataclass(frozen=True)
class NDPP:
    """The set S of the largest determinant det(L'_S), L' = R L R, selected greedily (NDPP paper, eqs. 10 and 11).

    L says which candidates go together. With a learned ``kernel``, L = V Vᵀ + B C Bᵀ; its skew part B C Bᵀ can favour
    pairs of candidates. Without a kernel, L = E Eᵀ + αI on the unit vectors E, a symmetric DPP with the ridge α. R =
    diag(r) holds the relevance r of each candidate for the query. A gain is det(L'_{S+i}) / det(L'_S). Objective: the
    product of the gains, det(L'_S). Cost: O(nkK + nk²) for rank K (d without a kernel). Memory: O(nk).

    Once the rank of the kernel is used up, every further determinant is 0. The remaining picks are filled in by
    relevance with gain 0, and ``Selection.filled_from`` is the position of the first of them. With a ridge of 1e-5 or
    more the rank is never used up.

    With sub-questions, the relevance of a candidate is its highest cosine with one of them; with
    ``temperature="auto"`` it is the highest of its cosines in standard deviations of all cosines with that query, and
    T = 0.6. A kernel, and the relevance that it has learned, know the first query alone.

    Parameters
    ----------
    kernel : LowRankKernel, LinearKernel, path or None
        The learned L, the path of its file, or any object with the method of :class:`Kernel`. None: L = E Eᵀ + αI.
    relevance_mapping : {"linear", "exponential"} or None
        How the relevance becomes r. ``"exponential"``: r = exp(relevance / (2·T)), divided by its maximum.
        ``"linear"``: r = max(relevance, 1e-6). The paper (4.4.1) has r = cos, with which an opposite vector would be as
        relevant as an equal one. None: what the kernel has learned (its ``log_relevance``), unless a relevance was
        given; else ``"exponential"``.
    temperature : "auto" or float > 0
        T of ``"exponential"``. The lower it is, the more relevance counts, and the less diversity. ``"auto"``:
        T = σ, the standard deviation of the relevance of all candidates of the call, so that one setting suits every
        embedding model and every reranker. If σ is 0 up to rounding, only the kernel decides. A number has no effect
        where r is linear or learned by the kernel, and a warning says so.
    ridge : float >= 0 or None
        α, which is added to the diagonal of L. It limits the penalty for a repetition: after a pick, the gain of an
        exact copy of it is multiplied by α (2 + α) / (1 + α)², about 2α. So a text that is much more relevant than the
        rest is still selected beside one that resembles it. None: 0.05 without a kernel; 0 with a kernel, which is
        used as it was learned. The paper has no ridge.

    Raises
    ------
    KernelError
        The file holds no kernel. In a selection: the kernel does not know a candidate's id, takes vectors of another
        length, or holds numbers so large that a determinant overflows.

    Examples
    --------
    >>> from setselect import NDPP, Candidates
    >>> c = Candidates([1.0, 0.4], [[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]])
    >>> NDPP().select(c, 2).indices.tolist()
    [1, 2]
    >>> NDPP(ridge=0).select(c, 3).filled_from
    2
    """

    kernel: Kernel | str | os.PathLike[str] | None = None
    relevance_mapping: Literal["linear", "exponential"] | None = None
    temperature: float | Literal["auto"] = "auto"
    ridge: float | None = None

    capabilities: ClassVar[Capabilities] = Capabilities(quality=False, constraints=True)

    def __post_init__(self) -> None:
        for name in ("relevance_mapping", "ridge"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, check_range(name, value))
        if self.kernel is not None:
            object.__setattr__(self, "kernel", as_kernel(self.kernel))
        T = self.temperature
        if isinstance(T, str) and T == "auto":
            return
        if not as_finite(T) > 0:
            raise InvalidParameterError(f"temperature must be a finite number above 0, or 'auto', got {quoted(T)}")
        object.__setattr__(self, "temperature", float(T))
        learned = self.relevance_mapping is None and getattr(self.kernel, "temperature", None) is not None
        if self.relevance_mapping == "linear" or learned:
            what = "the relevance that the kernel has learned" if learned else "relevance_mapping='linear'"
            warn(f"temperature has no effect with {what}; relevance_mapping='exponential' uses it")

    # A gain may overflow to inf, because r² is a factor of it. A determinant that overflows is refused. The logarithm
    # of a ratio of 0 is -inf.
    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def select(
        self, candidates: Candidates, k: int | None = None, *, budget: float | None = None, shown: Iterable[int] = ()
    ) -> Selection:
        """Select greedily; the kernel is conditioned on the ``shown`` candidates."""
        state = GreedyState(candidates, k, budget, shown)
        log_r2, noise = self._log_r2(candidates)
        factors = self._factors(candidates)
        log_gains = None if self.kernel else run_coverage(state, factors.Z, factors.alpha, log_r2, noise)
        if log_gains is None:
            state.close(log_r2)  # -inf for a closed candidate
            log_gains = _greedy(state, IncrementalLU(factors, state.shown, state.target), log_r2, noise)
        gains = np.exp(log_gains).tolist()
        filled_from = len(state.picks) if state.more() else None
        if filled_from is not None:
            take_by_relevance(state, candidates)
        gains += [0.0] * (len(state.picks) - len(gains))
        return make_selection(candidates, state.picks, gains, product=True, filled_from=filled_from)

    def _factors(self, candidates: Candidates) -> Factors:
        """The factors of the kernel, or of E Eᵀ if there is none."""
        if self.kernel is None:
            return factors_of_unit_rows(candidates.vectors, DEFAULT_RIDGE if self.ridge is None else self.ridge)
        # __post_init__ has loaded a file.
        V, B, C = cast(Kernel, self.kernel).factors(candidates)
        Z = np.concatenate([V, B], axis=1, dtype=np.float64)
        # The rows of a LowRankKernel are float64 whatever the candidates' vectors are.
        tolerance = RANK_TOLERANCE[Z.dtype if isinstance(self.kernel, LowRankKernel) else candidates.dtype]
        return Factors(Z, np.asarray(C, np.float64), self.ridge or 0.0, tolerance)

    def _log_r2(self, candidates: Candidates) -> tuple[Matrix, Matrix]:
        """log r² and its tie tolerance. r itself would underflow where relevance or the temperature is low."""
        exact, given = np.zeros(len(candidates.vectors)), candidates.relevance_given
        # log_relevance is not part of the Kernel protocol: a kernel with factors alone is valid.
        of_kernel = getattr(self.kernel, "log_relevance", None)
        if of_kernel is not None and self.relevance_mapping is None and not given:
            learned = of_kernel(candidates)
            if learned is not None:
                log_r = as_float64(learned, "log_relevance of the kernel")
                if log_r.shape != exact.shape or not np.isfinite(log_r).all():
                    raise KernelError(
                        f"log_relevance of the kernel must return finite numbers of shape {exact.shape}, one for each "
                        f"candidate, got {quoted(learned)}"
                    )
                return 2 * log_r, exact
        is_linear, temperature = self.relevance_mapping == "linear", self.temperature
        if not is_linear and not isinstance(temperature, float):
            several = len(candidates.questions) > 1 and not given
            log_r2, noise = log_relevance(
                *standard_relevance(candidates), SEVERAL_TEMPERATURE if several else AUTO_TEMPERATURE
            )
            return log_r2, exact + noise
        relevance = candidates.relevance.astype(np.float64)
        if not is_linear and isinstance(temperature, float):
            return 2 * log_exponential(relevance, temperature), exact
        r: Matrix = np.maximum(relevance, LINEAR_FLOOR)
        # The rounding error of a cosine weighs more in the log of a small one. The floor is exact.
        known = given | (relevance <= LINEAR_FLOOR)
        return 2 * np.log(r), np.where(known, 0.0, 2 * FLOAT64_TIE / r)


def standard_relevance(candidates: Candidates) -> tuple[Matrix, Matrix]:
    """The relevance in standard deviations, shape (n,); and 1 / σ, or 0 if it was given.

    Of several questions the highest value counts. So a sub-question whose cosines are all low counts as much as others.
    """
    if candidates.relevance_given:
        z, per_sigma = standardise(candidates.relevance.astype(np.float64), any_size=True)
        return z, 0.0 * per_sigma
    z, per_sigma = standardise(candidates.cosines)
    return (z[0], per_sigma[0]) if len(z) == 1 else (z.max(axis=0), per_sigma.max(axis=0))


def log_relevance(z: Matrix, per_sigma: Matrix, temperature: float) -> tuple[Matrix, Matrix]:
    """log r² for a relevance in standard deviations, the highest is 0; and its tie tolerance."""
    # A cosine has an absolute rounding error, which σ and the temperature divide.
    return (z - z[z.argmax()]) / temperature, per_sigma * (2 * FLOAT64_TIE / temperature)


class Factors(NamedTuple):
    """Z = (V, B), shape (n, K + K'), and C (K', K') of a kernel, and the ridge α.

    A determinant ratio below ``tolerance`` times the numbers it was computed from is rounding error.
    """

    Z: FloatArray
    C: Matrix
    alpha: float
    tolerance: float


def factors_of_unit_rows(rows: FloatArray, alpha: float) -> Factors:
    """The factors of E Eᵀ + αI."""
    return Factors(rows, _NO_SKEW_PART, alpha, RANK_TOLERANCE[rows.dtype])


def _greedy(state: GreedyState, lu: IncrementalLU, log_r2: Matrix, noise: Matrix) -> list[float]:
    """The greedy method (NDPP paper, 4.4.2), until no ratio is above 0; returns the logarithm of each gain."""
    gains = []
    while state.more():
        log_gains = log_r2 + lu.log_ratios()  # log of r_i² det(L_{S+i}) / det(L_S)
        best = int(log_gains.argmax())
        if log_gains[best] == -np.inf:
            break
        # argmax returns the place of an overflowed number (inf or NaN) if there is one.
        if not math.isfinite(lu.d[best]):
            raise KernelError(_OVERFLOW)
        i = lowest_of_best(log_gains, state.tie + lu.log_noise(best) + float(noise[best]))
        gains.append(float(log_gains[i]))
        lu.add(i)
        state.take(i, log_r2)
    return gains


def run_coverage(
    state: GreedyState,
    rows: FloatArray,
    alpha: float,
    log_weight: Matrix,
    noise: Matrix,
    terms: tuple[Any, ...] = _NO_PARTS + NO_REFERENCES,
) -> ArrayLike | None:
    """The greedy method on unit rows, compiled: the logarithm of each gain; None if numpy has to do it."""
    if state.constraints or state.shown:
        return None
    picks, gains = np.empty(state.target, np.int64), np.empty(state.target)
    tolerance = RANK_TOLERANCE[rows.dtype]
    count = run_compiled("coverage", rows, alpha, tolerance, log_weight, noise, *terms, state.tie, picks, gains)
    if count is None:
        return None
    state.picks += picks[:count].tolist()
    return gains[:count]


class IncrementalLU:
    """det(L_{S+i}) / det(L_S) for every candidate i, updated as S grows: an LU without pivoting, one step per pick.

    The ratio is d_i, the pivot of candidate i if it were the next step. L is never formed: with z_i = (V_i, B_i), row i
    of Z, L_ij = z_i·left(z_j) and L_ji = z_i·right(z_j), where left(z_j) = (V_j, C B_j), right(z_j) = (V_j, −C B_j). In
    the same way Z left_t is column t of the lower factor, and Z right_t is row t of the upper one. Without B the two
    are equal. The caller multiplies each ratio by r_i², which is the effect of R.
    """

    def __init__(self, factors: Factors, shown: list[int], k: int) -> None:
        # Sums in float32 would leave ratios above the tolerance after the rank is used up.
        self.Z, self.C = factors.Z.astype(np.float64), factors.C
        self.alpha, self.tolerance = factors.alpha, factors.tolerance
        width = self.Z.shape[1]
        self.K = width - len(self.C)
        self.symmetric = len(self.C) == 0
        # d_i starts as the diagonal of L. The skew part B C Bᵀ adds 0 to it. The ridge is on the diagonal alone, so the
        # LU meets it here and in the block of the shown candidates.
        V = self.Z[:, : self.K]
        self.d: Matrix = np.vecdot(V, V) + self.alpha
        # The largest number that d_i was computed from.
        self.scale = self.d.copy()
        self.left = np.empty((len(shown) + k, width))
        self.right = self.left if self.symmetric else np.empty_like(self.left)
        self.t = 0
        if shown:
            self._condition_on(shown)

    def log_ratios(self) -> Matrix:
        """log d; -inf where d is rounding error, because the rank is used up."""
        logs: Matrix = np.log(self.d * (self.d > self.tolerance * self.scale))
        return logs

    def log_noise(self, i: int) -> float:
        """The tie tolerance for the logarithm of the ratio of ``i``."""
        return FLOAT64_TIE * float(self.scale[i] / self.d[i])

    def add(self, i: int) -> None:
        """Add ``i`` to S: one step of the LU, whose share is subtracted from each d."""
        t, z = self.t, self.Z[i]
        left, right = self._sides(z)
        root = math.sqrt(self.d[i])
        self.left[t] = (left - self.right[:t].dot(z).dot(self.left[:t])) / root
        if not self.symmetric:
            self.right[t] = (right - self.left[:t].dot(z).dot(self.right[:t])) / root
        self.t += 1
        lower = self.Z.dot(self.left[t])
        product = lower * (lower if self.symmetric else self.Z.dot(self.right[t]))
        self.d -= product
        # With a symmetric kernel d only falls, so the first d is the largest number.
        if not self.symmetric:
            np.maximum(self.scale, np.abs(product), out=self.scale)

    def _sides(self, z: Matrix) -> tuple[Matrix, Matrix]:
        """left(z) and right(z) of one row of Z, or of several."""
        if self.symmetric:
            return z, z
        V, skew_part = z[..., : self.K], z[..., self.K :].dot(self.C.T)
        return np.concatenate([V, skew_part], axis=-1), np.concatenate([V, -skew_part], axis=-1)

    def _condition_on(self, shown: list[int]) -> None:
        # One solve for all shown candidates, because a single pivot of a skew part may be 0 although the whole block is
        # regular. Pseudo-inverses, because the block is singular if the reader has seen the same text twice.
        Z = self.Z
        left, right = self._sides(Z[shown])
        block = right.dot(Z[shown].T) + self.alpha * np.eye(len(shown))
        _check_finite(block)
        if self.symmetric:
            values, vectors = np.linalg.eigh(block)
            kept = values > max(values[-1], 0.0) * 1e-10
            left = right = (vectors[:, kept] / np.sqrt(values[kept])).T.dot(left)
        else:
            left = np.linalg.lstsq(block.T, left, rcond=1e-10)[0]
        self.t = len(left)
        self.left[: self.t], self.right[: self.t] = left, right
        lower, upper = left.dot(Z.T), right.dot(Z.T)
        self.d -= (lower * upper).sum(axis=0)
        # The solve leaves an error of the size of its largest number in each of its numbers, also in those that are 0.
        largest = np.abs(lower).max(axis=0, initial=0.0) * np.abs(upper).max(axis=0, initial=0.0)
        np.maximum(self.scale, largest, out=self.scale)
        _check_finite(self.d)


def _check_finite(numbers: Matrix) -> None:
    if not np.isfinite(numbers).all():
        raise KernelError(_OVERFLOW)
