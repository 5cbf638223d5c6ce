"""An NDPP kernel that is computed from the stored vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...candidates import Candidates
from ...errors import KernelError
from .base import LearnedKernel, Matrix


@dataclass(frozen=True, eq=False, repr=False)
class LinearKernel(LearnedKernel):
    """An NDPP kernel computed from vectors, which also serves items that came after training.

    V = E W_V and B = E W_B, where the rows of E are the candidates' unit vectors.

    Parameters
    ----------
    W_V : array-like, shape (d, K)
        Linear map of the vectors to V.
    W_B : array-like, shape (d, K'), optional
        Linear map of the vectors to B. Needs ``C``.
    C : array-like, shape (K', K'), optional
        Skew-symmetric: C = −Cᵀ.
    W_R, temperature
        As in :class:`LowRankKernel`.

    Examples
    --------
    >>> import numpy as np
    >>> from setselect import NDPP, Candidates, LinearKernel
    >>> c = Candidates([1.0, 0.4], [[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]])
    >>> a, b = NDPP(LinearKernel(np.eye(2))).select(c, 2), NDPP().select(c, 2)
    >>> a.indices.tolist() == b.indices.tolist()
    True
    """

    W_V: ArrayLike
    W_B: ArrayLike | None = None
    C: ArrayLike | None = None
    W_R: ArrayLike | None = None
    temperature: float | None = None

    _kind: ClassVar[str] = "linear"
    _names: ClassVar[tuple[str, str, str]] = ("W_V", "W_B", "C")

    def __post_init__(self) -> None:
        self._set_checked()
        W_V, W_R = self._arrays()[0], self.W_R
        if W_R is not None and len(np.asarray(W_R)) != len(W_V):
            raise KernelError(
                f"W_V {W_V.shape} and W_R {np.shape(W_R)} must have the same number of rows: both take the same vectors"
            )

    def factors(self, candidates: Candidates) -> tuple[Matrix, Matrix, Matrix]:
        """V = E W_V (n, K), B = E W_B (n, K') and C of the candidates."""
        W_V, W_B, C = self._arrays()
        if candidates.query.shape[0] != W_V.shape[0]:
            raise KernelError(
                f"the kernel takes vectors of length {W_V.shape[0]}, the candidates have "
                f"{candidates.query.shape[0]}; it was most likely learned on another embedding model"
            )
        E = candidates.vectors.astype(np.float64, copy=False)
        return E.dot(W_V), E.dot(W_B), C
