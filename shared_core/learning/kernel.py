"""The trained parts of a kernel, L = V Vᵀ + B C Bᵀ (NDPP paper, equation 6): a row per item, or maps of the vectors."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from .._validation import as_float64
from ..candidates import as_unit_rows
from ..selectors.kernels import LinearKernel, LowRankKernel

Matrix = NDArray[np.float64]


class Factors(nn.Module):
    """The rows of V and B of M items, E ``V`` and E ``B``, where ``V`` (n, K), ``B`` (n, K') and the rates are trained.

    With ``vectors`` (M, d) the kernel is linear: E are their unit vectors, and n = d. A step then needs the rows of E
    in the batch, EᵀE and Eᵀ diag(w) E, so its cost does not depend on M. Without them each of n items has its own row,
    and E are the rows ``pool`` of the identity; the other rows are not trained.

    C has a block [[0, λ], [−λ, 0]] for each two columns of B; λ is the softplus of a trained rate. If K' is odd, the
    last row and column of C are zero, so the last column of B has no effect.

    >>> factors = Factors([[1.0, 0.0], [0.0, 1.0]], vectors=[[2.0, 0.0], [3.0, 4.0]])
    >>> factors.rows(torch.arange(2))[0].detach().numpy().round(6).tolist()
    [[1.0, 0.0], [0.6, 0.8]]
    >>> Factors([[1.0], [2.0]], [[1.0, 0.0], [0.0, 1.0]], [0.5]).to_kernel()
    LowRankKernel(M=2, K=1, K'=2)
    """

    unit: Tensor | None
    pool: Tensor
    moment: Tensor

    def __init__(
        self,
        V: ArrayLike,
        B: ArrayLike | None = None,
        rates: ArrayLike = (),
        *,
        vectors: ArrayLike | None = None,
        pool: ArrayLike | None = None,
    ) -> None:
        super().__init__()
        v = as_float64(V, "V")
        b = np.zeros((len(v), 0)) if B is None else as_float64(B, "B")
        values = np.asarray(rates, dtype=np.float64)
        self.V, self.B = nn.Parameter(torch.from_numpy(v)), nn.Parameter(torch.from_numpy(b))
        self.free_rates = nn.Parameter(torch.from_numpy(values + np.log(-np.expm1(-values))))
        unit = None if vectors is None else unit_rows(vectors)
        rows = np.arange(len(v if unit is None else unit)) if pool is None else np.asarray(pool)
        self.register_buffer("unit", unit, persistent=False)
        self.register_buffer("pool", torch.from_numpy(rows), persistent=False)
        self.register_buffer("moment", self.weigh(torch.ones(len(rows))), persistent=False)

    @classmethod
    def principal(
        cls, vectors: ArrayLike, pool: ArrayLike, K: int, K_skew: int, *, linear: bool, seed: int, scale: float = 0.1
    ) -> Self:
        """Start at the embeddings (n, d): V Vᵀ is the best approximation of E Eᵀ of rank K for the rows ``pool``.

        Columns of V beyond the rank of the vectors start at random, as those of B do, because a column of zeros is
        never trained. ``scale`` is the approximate length of a row of B at the start.
        """
        rng, unit, pool = np.random.default_rng(seed), unit_rows(vectors).numpy(), np.asarray(pool)
        d = unit.shape[1]
        if linear:
            v = np.eye(d) if d == K else _principal_directions(unit[pool])[0][:, :K]
        else:
            directions, values = _principal_directions(unit[pool])
            kept = int((values[:K] > 1e-10 * values[0]).sum())
            v = rng.standard_normal((len(unit), K)) * (scale / K**0.5)
            v[:, :kept] = unit @ directions[:, :kept]
        b = rng.standard_normal((len(v), K_skew)) * (scale / max(K_skew, 1) ** 0.5)
        of = {"vectors": np.asarray(vectors)[pool]} if linear else {"pool": pool}
        return cls(v, b, np.ones(K_skew // 2), **of)

    def __len__(self) -> int:
        return len(self.pool)

    @property
    def rates(self) -> Tensor:
        """λ of each block of C, shape (K' // 2,)."""
        return nn.functional.softplus(self.free_rates, threshold=40.0)

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        return self.free_rates.device

    def C(self) -> Tensor:
        """C itself, shape (K', K')."""
        return self.times_c(torch.eye(self.B.shape[1], dtype=torch.float64, device=self.device))

    def times_c(self, b: Tensor) -> Tensor:
        """``b @ C`` for b of shape (..., K'); each entry takes one product instead of K'."""
        even, rates = self.B.shape[1] // 2 * 2, self.rates
        turned = torch.stack((-rates * b[..., 1:even:2], rates * b[..., 0:even:2]), -1).flatten(-2)
        return torch.cat((turned, torch.zeros_like(b[..., turned.shape[-1] :])), -1)

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of V (m, K) and B (m, K') of the items ``index`` (int64, shape (m,), 0..M-1)."""
        if self.unit is None:
            index = self.pool[index]
            return self.V.index_select(0, index), self.B.index_select(0, index)
        # The same items are often candidates of many queries in a batch; each item is multiplied once.
        items, places = torch.unique(index, return_inverse=True)
        e = self.unit.index_select(0, items)
        return (e @ self.V).index_select(0, places), (e @ self.B).index_select(0, places)

    def weigh(self, weights: Tensor) -> Tensor:
        """Eᵀ diag(w) E for weights w of the M items: shape (n, n), or if E selects rows its diagonal (n,)."""
        weights = weights.to(self.device, torch.float64)
        if self.unit is None:
            return torch.zeros_like(self.V[:, 0]).index_copy(0, self.pool, weights).detach()
        return self.unit.T @ (self.unit * weights[:, None])

    def grams(self) -> tuple[Tensor, Tensor, Tensor]:
        """VᵀV, VᵀB and BᵀB over all M items: log det(L + I) needs nothing else of them."""
        v, b = _times(self.moment, self.V), _times(self.moment, self.B)
        return self.V.T @ v, self.V.T @ b, self.B.T @ b

    def squares(self, weighing: Tensor) -> tuple[Tensor, Tensor]:
        """Σ w_i ‖v_i‖² and Σ w_i ‖b_i‖² over all M items, for the weights that :meth:`weigh` got."""
        return (self.V * _times(weighing, self.V)).sum(), (self.B * _times(weighing, self.B)).sum()

    def to_kernel(self, ids: Iterable[Hashable] | None = None) -> LinearKernel | LowRankKernel:
        """The current kernel; the rows of a :class:`LowRankKernel` are called ``ids`` (by default 0..n-1)."""
        v, b, c = (np.array(part.detach().cpu().numpy()) for part in (self.V, self.B, self.C()))
        skew = (b, c) if b.shape[1] else (None, None)
        if self.unit is not None:
            return LinearKernel(v, skew[0], skew[1])
        return LowRankKernel(v, skew[0], skew[1], ids)


def unit_rows(vectors: ArrayLike) -> Tensor:
    """The vectors (M, d) at length 1 in float64, as a copy; a zero row stays zero."""
    return torch.from_numpy(as_unit_rows(vectors).astype(np.float64, copy=False))


def _times(moment: Tensor, matrix: Tensor) -> Tensor:
    return moment @ matrix if moment.ndim == 2 else moment[:, None] * matrix


def _principal_directions(rows: Matrix) -> tuple[Matrix, Matrix]:
    """Right singular vectors of the rows (d, d), a column each, and the squares of the singular values (d,).

    The largest singular value comes first. The largest entry of each column is positive.
    """
    squares, vectors = np.linalg.eigh(rows.T @ rows)
    directions = vectors[:, ::-1]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[None], axis=0)
    return np.where(largest < 0, -directions, directions), squares[::-1]
