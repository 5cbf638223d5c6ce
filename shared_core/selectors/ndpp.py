"""Greedy MAP of a nonsymmetric determinantal point process (NDPP paper, 4.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import check_number
from ..arrays import TIE_EPS
from ..candidates import Candidates
from ..errors import InvalidParameterError, KernelError
from ._greedy import Pool
from .base import Selection, make_selection, register_selector
from .kernels.low_rank import Kernel, LowRankKernel
from .kernels.relevance import log_exponential, raw_cosines
from .top_k import take_by_relevance

Matrix = NDArray[np.float64]

# Only r² enters the kernel, so the paper's r = cos would let an opposite vector count as a relevant one.
LINEAR_FLOOR = 1e-6
DEFAULT_TEMPERATURE = 0.1
# Below this share of what it was computed from a determinant ratio is rounding, by the dtype of the vectors.
RANK_TOLERANCE = {"float32": 1e-6, "float64": 1e-10}


@register_selector("ndpp")
@dataclass(frozen=True)
class NDPP:
    """The set of the largest determinant under the kernel L' = R L R, greedily (NDPP paper, eqs. 10 and 11).

    L says which candidates go together: L = V Vᵀ + B C Bᵀ from a learned ``kernel``, whose skew part B C Bᵀ lets
    candidates ask for each other; without a kernel L = E Eᵀ on the unit vectors, a symmetric DPP. R = diag(r)
    brings in the query. A gain is det(L'_{S+i}) / det(L'_S); the objective is their product, det(L'_S).
    Cost: O(nkK + nk²) for rank K (d without a kernel), memory O(nk).

    Once the kernel's rank is used up every further determinant is 0: the rest is filled in relevance order with
    gain 0, and ``filled_from`` says from where.

    Parameters
    ----------
    kernel : LowRankKernel, LinearKernel or None
    relevance : {"linear", "exponential"} or None
        None: the relevance that the kernel was learned with (its ``log_relevance``); without any, ``"linear"``.
        ``"linear"``: r = max(cos, 1e-6). The paper (4.4.1) has r = cos, under which an opposite vector would
        be as relevant as an equal one. ``"exponential"``: r = exp(cos / (2·temperature)) over its maximum.
        Under both, cos is that of the vectors, whatever the kernel has learned.
    temperature : float > 0 or None
        Of ``"exponential"`` and of nothing else, a learned relevance has its own: the lower, the more relevance
        counts against diversity. None: 0.1.

    Raises
    ------
    InvalidParameterError
        An unknown ``relevance``, a temperature that is not above 0, or a kernel that is none.

    Examples
    --------
    >>> from shared_core import NDPP, Candidates
    >>> c = Candidates([1.0, 0.4], [[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]])
    >>> NDPP().select(c, 3).filled_from
    2
    """

    kernel: Kernel | None = None
    relevance: str | None = None
    temperature: float | None = None

    def __post_init__(self) -> None:
        if self.relevance not in (None, "linear", "exponential"):
            raise InvalidParameterError(f"relevance must be 'linear', 'exponential' or None, got {self.relevance!r}")
        if self.temperature is not None and check_number(self.temperature, "temperature", 0) == 0:
            raise InvalidParameterError("temperature must be above 0, got 0")
        if self.kernel is not None and (not isinstance(self.kernel, Kernel) or isinstance(self.kernel, type)):
            raise InvalidParameterError(
                f"kernel must be a LowRankKernel, a LinearKernel or None, got {self.kernel!r}; "
                "a file is loaded with .load(path)"
            )

    def select(
        self,
        candidates: Candidates,
        k: int | None = None,
        *,
        budget: float | None = None,
        shown: Iterable[int] = (),
    ) -> Selection:
        """Choose greedily; the kernel is conditioned on the ``shown`` candidates.

        Raises
        ------
        InvalidParameterError, BudgetError
            ``k``, ``shown`` or ``budget`` does not fit the candidates.
        KernelError
            The kernel does not know a candidate's id, is of another dimension, or brings a relevance that is none.
        """
        pool = Pool(candidates, k, budget, shown)
        ratios = _Ratios(candidates, self.kernel, pool.shown, pool.target)
        weights = pool.close(self._log_weights(candidates))
        gains: list[float] = []
        while pool.more():
            scores = ratios.logs()
            scores += weights
            best = int(scores.argmax())
            if scores[best] == -np.inf:
                break
            i = pool.best(scores, pool.tie + ratios.noise(best))
            gains.append(float(np.exp(scores[i])))
            pool.take(i, weights)
            if pool.more():
                ratios.condition_on(i)
        filled_from = None
        if pool.more():
            filled_from = len(pool.picks)
            take_by_relevance(pool, candidates)
            gains += [0.0] * (len(pool.picks) - filled_from)
        return make_selection(candidates, pool.picks, gains, product=True, filled_from=filled_from)

    def _log_weights(self, candidates: Candidates) -> Matrix:
        """log r²: in logarithms neither a small r nor a low temperature underflows."""
        learned = self._learned(candidates)
        if learned is not None:
            return 2 * learned
        cosines = raw_cosines(candidates)
        if self.relevance == "exponential":
            temperature = DEFAULT_TEMPERATURE if self.temperature is None else float(self.temperature)
            return 2 * log_exponential(cosines, temperature)
        return 2 * np.log(np.maximum(cosines, LINEAR_FLOOR))

    def _learned(self, candidates: Candidates) -> Matrix | None:
        # Not part of the Kernel protocol: a kernel with nothing but factors has always been one.
        log_relevance = getattr(self.kernel, "log_relevance", None)
        if self.relevance is not None or log_relevance is None:
            return None
        found = log_relevance(candidates)
        if found is None:
            return None
        learned = np.asarray(found, dtype=np.float64)
        if learned.shape != (len(candidates),) or not np.isfinite(learned).all():
            raise KernelError(
                f"log_relevance of {self.kernel!r} must be {len(candidates)} finite numbers, one for each candidate, "
                f"got shape {learned.shape}"
                + ("" if np.isfinite(learned).all() else f" with {learned[~np.isfinite(learned)][0]}")
            )
        return learned


class _Ratios:
    """det(L_{S+i}) / det(L_S) for every i, kept up to date as S grows: an unpivoted LU, one pick a step.

    Row and column of a pick come from the low-rank factors less what earlier steps explain, so L itself is never
    formed. R scales rows and columns alike and only multiplies each ratio by r², which the caller does.
    """

    def __init__(self, candidates: Candidates, kernel: Kernel | None, shown: list[int], k: int) -> None:
        if kernel is None:
            self.v, self.b, self.c = candidates.vectors.astype(np.float64), None, None
        else:
            self.v, b, c = kernel.factors(candidates)
            self.b, self.c = (b, c) if b.shape[1] else (None, None)
        n = len(candidates)
        steps = len(shown) + k
        self.lower = np.empty((steps, n))
        self.upper = self.lower if self.b is None else np.empty((steps, n))
        self.step = 0
        self.values: Matrix = np.vecdot(self.v, self.v)
        # The rows of a LowRankKernel are float64 whatever the candidates' vectors are.
        self.tolerance = RANK_TOLERANCE["float64" if isinstance(kernel, LowRankKernel) else candidates.dtype.name]
        # What each ratio has been computed from: its diagonal, and under a skew part whatever was larger.
        self.scale = self.values.copy()
        if shown:
            self._condition_on_shown(shown)

    def logs(self) -> Matrix:
        """Logarithm of each ratio; -inf where only rounding is left of it."""
        logs = np.full(len(self.values), -np.inf)
        np.log(self.values, out=logs, where=self.values > self.tolerance * self.scale)
        return logs

    def noise(self, i: int) -> float:
        """How far apart rounding may put the logarithms of ratios that equal that of ``i``."""
        return TIE_EPS * float(np.finfo(np.float64).eps * self.scale[i] / self.values[i])

    def condition_on(self, i: int) -> None:
        """Add ``i`` to S."""
        t = self.step
        lower, upper = self.lower[:t], self.upper[:t]
        column, row = self._column_and_row(i)
        column -= upper[:, i].dot(lower)
        pivot = self.values[i]
        if self.b is None:
            column /= pivot**0.5
            self.lower[t] = column
            self.values -= np.multiply(column, column, out=column)
        else:
            row -= lower[:, i].dot(upper)
            column /= pivot
            self.lower[t], self.upper[t] = column, row
            self.values -= np.multiply(column, row, out=column)
            np.maximum(self.scale, np.abs(column, out=column), out=self.scale)
        self.step += 1

    def _column_and_row(self, i: int | list[int]) -> tuple[Matrix, Matrix]:
        """L[:, i] and L[i, :], both with the n candidates last; the same array where L is symmetric."""
        even = self.v.dot(self.v[i].T).T
        if self.b is None or self.c is None:
            return even, even
        odd = self.b.dot(self.c.dot(self.b[i].T)).T
        return even + odd, even - odd

    def _condition_on_shown(self, shown: list[int]) -> None:
        # One solve, since single pivots of a skew part may be 0 where the block as a whole is regular. Least
        # squares, since the reader may have been shown the same text twice.
        columns, rows = self._column_and_row(shown)
        block = rows[:, shown]
        if self.b is None:
            self._condition_symmetric(block, rows)
            return
        left = np.linalg.lstsq(block.T, columns, rcond=1e-10)[0]
        self.lower[: len(shown)], self.upper[: len(shown)] = left, rows
        products = left * rows
        self.values -= products.sum(axis=0)
        np.maximum(self.scale, np.abs(products).max(axis=0), out=self.scale)
        self.step = len(shown)

    def _condition_symmetric(self, block: Matrix, rows: Matrix) -> None:
        values, vectors = np.linalg.eigh(block)
        kept = values > max(values[-1], 0.0) * 1e-10
        root = (vectors[:, kept] / np.sqrt(values[kept])).T.dot(rows)
        self.lower[: len(root)] = root
        self.values -= np.einsum("sn,sn->n", root, root)
        self.step = len(root)
