"""Greedy MAP of a nonsymmetric determinantal point process (NDPP paper, 4.4)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .._validation import check_number, check_one_of, quoted
from ..candidates import TIE_EPS, Candidates
from ..errors import InvalidParameterError, KernelError, SetSelectWarning
from ._greedy import GreedyState
from .base import Selection, make_selection, register_selector
from .kernels import Kernel, LowRankKernel
from .kernels._relevance import cosines_with_query, log_exponential, log_standardised
from .kernels.base import LearnedKernel
from .top_k import take_by_relevance

Matrix = NDArray[np.float64]

# Only r² enters the kernel, so with the paper's r = cos an opposite vector would count as a relevant one.
LINEAR_FLOOR = 1e-6
# temperature="auto" is this many standard deviations of the candidates' relevance.
AUTO_TEMPERATURE = 1.0
# A determinant ratio below this share of the numbers it was computed from is rounding error, by dtype of the vectors.
RANK_TOLERANCE = {"float32": 1e-6, "float64": 1e-10}


@register_selector("ndpp")
@dataclass(frozen=True)
class NDPP:
    """The set S of the largest determinant det(L'_S), L' = R L R, selected greedily (NDPP paper, eqs. 10 and 11).

    L says which candidates go together. With a learned ``kernel``, L = V Vᵀ + B C Bᵀ; its skew part B C Bᵀ can favour
    pairs of candidates. Without a kernel, L = E Eᵀ on the unit vectors E, a symmetric DPP. R = diag(r) holds the
    relevance r of each candidate for the query. A gain is det(L'_{S+i}) / det(L'_S). Objective: the product of the
    gains, det(L'_S). Cost: O(nkK + nk²) for rank K (d without a kernel). Memory: O(nk).

    Once the rank of the kernel is used up, every further determinant is 0. The remaining picks are filled in by
    relevance with gain 0, and ``Selection.filled_from`` is the position of the first of them.

    Parameters
    ----------
    kernel : LowRankKernel, LinearKernel or None
    relevance : {"linear", "exponential"} or None
        ``"exponential"``: r = exp(cos / (2·T)), divided by its maximum, with the temperature T. ``"linear"``:
        r = max(cos, 1e-6). The paper (4.4.1) has r = cos, with which an opposite vector would be as relevant as an
        equal one. In both, cos is the cosine of the vectors, whatever relevance the kernel has learned. None: the
        relevance that the kernel has learned (its ``log_relevance``); ``"exponential"`` if it has none. If the
        candidates have a given relevance, it takes the place of the cosine and of what the kernel has learned.
    temperature : "auto" or float > 0
        T of ``"exponential"``. The lower it is, the more relevance counts, and the less diversity. ``"auto"``: T = c·σ
        with c = 1, where σ is the population standard deviation of the relevance (the cosine, or the given relevance)
        of all candidates of the call. So r depends neither on the scale nor on the offset of the relevance, and the
        same setting suits every embedding model and every reranker. ``shown`` candidates count in σ: T is the same
        for each page of results. Candidates that a ``score_threshold`` has dropped do not count. If σ is 0 up to
        rounding (one candidate, or equal relevance), r = 1 for every candidate: only the kernel decides. Of two
        candidates with different relevance the less relevant one has r = exp(−1/c), however small the difference
        is. A number has no effect where r is linear or learned by the kernel, and a warning says so.

    Raises
    ------
    InvalidParameterError
        ``relevance`` is unknown, ``temperature`` is neither ``"auto"`` nor a number above 0, or ``kernel`` is not a
        kernel.

    Examples
    --------
    >>> from shared_core import NDPP, Candidates
    >>> c = Candidates([1.0, 0.4], [[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]])
    >>> NDPP().select(c, 3).filled_from
    2
    """

    kernel: Kernel | None = None
    relevance: str | None = None
    temperature: float | Literal["auto"] | None = "auto"

    uses_quality: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.relevance is not None:
            object.__setattr__(self, "relevance", check_one_of(self.relevance, "relevance", ("linear", "exponential")))
        if self.kernel is not None and not _is_kernel(self.kernel):
            raise InvalidParameterError(
                f"kernel must be a LowRankKernel, a LinearKernel or None, got {quoted(self.kernel)}; "
                "a file is loaded with .load(path)"
            )
        object.__setattr__(self, "temperature", _check_temperature(self.temperature))
        if self.temperature == "auto":
            return
        if self.relevance == "linear":
            warnings.warn("temperature has no effect with relevance='linear'", SetSelectWarning, stacklevel=3)
        elif self.relevance is None and isinstance(self.kernel, LearnedKernel) and self.kernel.temperature is not None:
            warnings.warn(
                "temperature has no effect on the relevance that the kernel has learned; relevance='exponential' "
                "takes its place",
                SetSelectWarning,
                stacklevel=3,
            )

    # A gain may overflow to inf, because r² is a factor of it. _IncrementalLU refuses a determinant that overflows.
    @np.errstate(over="ignore", invalid="ignore")
    def select(
        self,
        candidates: Candidates,
        k: int | None = None,
        *,
        budget: float | None = None,
        shown: Iterable[int] = (),
    ) -> Selection:
        """Select greedily; the kernel is conditioned on the ``shown`` candidates.

        Raises
        ------
        InvalidParameterError, BudgetError
            ``k``, ``shown`` or ``budget`` does not fit the candidates.
        KernelError
            The kernel does not know a candidate's id, takes vectors of another length, holds numbers so large that a
            determinant overflows, or its ``log_relevance`` returns something other than n finite numbers.
        """
        state = GreedyState(candidates, k, budget, shown)
        log_r, log_r_noise = self._log_r(candidates)
        log_r2 = state.close(2 * log_r)  # log r_i²; -inf for a closed candidate
        lu = _IncrementalLU(candidates, self.kernel, state.shown, state.target)
        gains: list[float] = []
        while state.more():
            log_gains = log_r2 + lu.log_ratios()  # log of r_i² det(L_{S+i}) / det(L_S)
            best = int(log_gains.argmax())
            if log_gains[best] == -np.inf:
                break
            i = state.best(log_gains, state.tie + lu.log_noise(best) + 2 * log_r_noise[best])
            gains.append(float(np.exp(log_gains[i])))
            state.take(i, log_r2)
            if state.more():
                lu.add(i)
        filled_from = len(state.picks) if state.more() else None
        take_by_relevance(state, candidates)
        gains += [0.0] * (len(state.picks) - len(gains))
        return make_selection(candidates, state.picks, gains, product=True, filled_from=filled_from)

    def _log_r(self, candidates: Candidates) -> tuple[Matrix, Matrix]:
        """log r, because r itself would underflow where it is small or the temperature is low; its tie tolerance."""
        exact = np.zeros(len(candidates))
        # log_relevance is not part of the Kernel protocol: a kernel with factors alone is valid.
        by_kernel = self.relevance is None and not candidates.relevance_given
        log_relevance = getattr(self.kernel, "log_relevance", None) if by_kernel else None
        learned = None if log_relevance is None else log_relevance(candidates)
        if learned is not None:
            log_r = np.asarray(learned, dtype=np.float64)
            if log_r.shape != (len(candidates),) or not np.isfinite(log_r).all():
                raise KernelError(
                    f"log_relevance of {quoted(self.kernel)} must be {len(candidates)} finite numbers, one for each "
                    f"candidate, got shape {log_r.shape}"
                    + ("" if np.isfinite(log_r).all() else f" with {log_r[~np.isfinite(log_r)][0]}")
                )
            return log_r, exact
        given = candidates.relevance_given
        cosines = candidates.relevance.astype(np.float64) if given else cosines_with_query(candidates)
        if isinstance(self.temperature, float) and self.relevance != "linear":
            return log_exponential(cosines, self.temperature), exact
        if self.relevance != "linear":
            log_r, T = log_standardised(cosines, AUTO_TEMPERATURE, None if given else candidates.dtype)
            # A cosine has an absolute rounding error, which the temperature divides.
            return log_r, exact if given else exact + TIE_EPS * np.finfo(np.float64).eps / (2 * T)
        r: Matrix = np.maximum(cosines, LINEAR_FLOOR)
        # The rounding error of a cosine weighs more in the log of a small one. The floor is exact.
        known = given | (cosines <= LINEAR_FLOOR)
        return np.log(r), np.where(known, 0.0, TIE_EPS * np.finfo(np.float64).eps / r)


def _check_temperature(value: Any) -> float | Literal["auto"]:
    """A number above 0, or "auto", which None stands for too."""
    if value is None or (isinstance(value, str) and str.__str__(value) == "auto"):
        return "auto"
    try:
        temperature = check_number(value, "temperature", 0)
    except InvalidParameterError:
        temperature = 0.0
    if temperature == 0:
        raise InvalidParameterError(f"temperature must be a finite number above 0, or 'auto', got {quoted(value)}")
    return temperature


def _is_kernel(value: Any) -> bool:
    try:
        return isinstance(value, Kernel) and not isinstance(value, type)
    # Any exception: isinstance looks for the method factors, and the caller may pass any object.
    except Exception:
        return False


class _IncrementalLU:
    """det(L_{S+i}) / det(L_S) for every candidate i, updated as S grows: an LU without pivoting, one step per pick.

    The ratio is d_i, the pivot of candidate i if it were the next step. The row and the column of a pick are computed
    from the factors V, B and C, minus the share of earlier picks, so L itself is never formed. The caller multiplies
    each ratio by r_i², which is the effect of R.
    """

    def __init__(self, candidates: Candidates, kernel: Kernel | None, shown: list[int], k: int) -> None:
        if kernel is None:
            self.V, self.B, self.C = candidates.vectors.astype(np.float64), np.empty((len(candidates), 0)), np.empty(0)
        else:
            self.V, self.B, self.C = kernel.factors(candidates)
        self.symmetric = not self.B.shape[1]
        # d_i starts as the diagonal of L. The skew part B C Bᵀ adds 0 to a diagonal.
        self.d: Matrix = np.vecdot(self.V, self.V)
        # The largest number that d_i was computed from.
        self.scale = self.d.copy()
        # The rows of a LowRankKernel are float64 whatever the candidates' vectors are.
        self.tolerance = RANK_TOLERANCE["float64" if isinstance(kernel, LowRankKernel) else candidates.dtype.name]
        steps = len(shown) + k
        self.lower = np.empty((steps, len(candidates)))  # row t: column t of the lower factor, for all candidates
        self.upper = np.empty((steps, len(candidates)))
        self.t = 0
        if shown:
            self._condition_on(shown)

    def log_ratios(self) -> Matrix:
        """log d; -inf where d is rounding error, because the rank is used up."""
        _check_finite(self.d)
        logs = np.full(len(self.d), -np.inf)
        np.log(self.d, out=logs, where=self.d > self.tolerance * self.scale)
        return logs

    def log_noise(self, i: int) -> float:
        """The tie tolerance for the logarithm of the ratio of ``i``."""
        return TIE_EPS * float(np.finfo(np.float64).eps * self.scale[i] / self.d[i])

    def add(self, i: int) -> None:
        """Add ``i`` to S."""
        t = self.t
        column, row = self._column_and_row(i)
        column = column - self.upper[:t, i].dot(self.lower[:t])
        row = column if self.symmetric else row - self.lower[:t, i].dot(self.upper[:t])
        self.lower[t], self.upper[t] = column / self.d[i], row
        self._subtract(self.lower[t] * self.upper[t])
        self.t += 1

    def _subtract(self, product: Matrix) -> None:
        self.d -= product
        np.maximum(self.scale, np.abs(product), out=self.scale)

    def _column_and_row(self, i: int | list[int]) -> tuple[Matrix, Matrix]:
        """L[:, i] and L[i, :], both with the n candidates on the last axis."""
        symmetric_part = self.V.dot(self.V[i].T).T
        if self.symmetric:
            return symmetric_part, symmetric_part
        skew_part = self.B.dot(self.C.dot(self.B[i].T)).T
        return symmetric_part + skew_part, symmetric_part - skew_part

    def _condition_on(self, shown: list[int]) -> None:
        # One solve for all shown candidates, because a single pivot of a skew part may be 0 although the whole block is
        # regular. Pseudo-inverses, because the block is singular if the reader has seen the same text twice.
        columns, rows = self._column_and_row(shown)
        block = rows[:, shown]
        _check_finite(block)
        if self.symmetric:
            values, vectors = np.linalg.eigh(block)
            kept = values > max(values[-1], 0.0) * 1e-10
            left = right = (vectors[:, kept] / np.sqrt(values[kept])).T.dot(rows)
        else:
            left, right = np.linalg.lstsq(block.T, columns, rcond=1e-10)[0], rows
        self.t = len(left)
        self.lower[: self.t], self.upper[: self.t] = left, right
        self.d -= (left * right).sum(axis=0)
        # The solve leaves an error of the size of its largest number in each of its numbers, also in those that are 0.
        largest = np.abs(left).max(axis=0, initial=0.0) * np.abs(right).max(axis=0, initial=0.0)
        np.maximum(self.scale, largest, out=self.scale)


def _check_finite(numbers: Matrix) -> None:
    if not np.isfinite(numbers).all():
        raise KernelError(
            "the numbers of the kernel are so large that a determinant overflows: divide all of them by one number"
        )
