"""The trained parts of a kernel, L = V Vᵀ + B C Bᵀ (NDPP paper, equation 6): a row per item, or maps of the vectors."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from .._validation import as_float64
from ..candidates import as_unit_rows
from ..selectors.kernels import LinearKernel, LowRankKernel

Matrix = NDArray[np.float64]

# Rows of a large pool that are converted to float64 at the same time.
_BLOCK = 16384


Grams = tuple[Tensor, Tensor, Tensor]
"""VᵀV (K, K), VᵀB (K, K') and BᵀB (K', K'): log det(L + I) needs nothing else of the pool."""


class _Factors(nn.Module):
    """C has a block [[0, λ], [−λ, 0]] for each two columns of B; λ is the softplus of the trained parameter."""

    # If K' is odd, the last row and column of C are zero, so the last column of B has no effect.

    def __init__(self, skew_rank: int, rates: ArrayLike) -> None:
        super().__init__()
        values = np.asarray(rates, dtype=np.float64)
        self.skew_rank = skew_rank
        self.free_rates = nn.Parameter(torch.from_numpy(values + np.log(-np.expm1(-values))))

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
        return self.times_c(torch.eye(self.skew_rank, dtype=torch.float64, device=self.device))

    def times_c(self, b: Tensor) -> Tensor:
        """``b @ C`` for b of shape (..., K'); each entry takes one product instead of K'."""
        even, rates = self.skew_rank // 2 * 2, self.rates
        turned = torch.stack((-rates * b[..., 1:even:2], rates * b[..., 0:even:2]), -1).flatten(-2)
        return torch.cat((turned, torch.zeros_like(b[..., turned.shape[-1] :])), -1)

    def _skew(self, b: Tensor) -> tuple[Matrix | None, Matrix | None]:
        return (_as_numpy(b), _as_numpy(self.C())) if self.skew_rank else (None, None)


class RowFactors(_Factors):
    """A row of V (M, K) and of B (M, K') for each of M items; V, B and λ (one for each two columns of B) are trained.

    >>> factors = RowFactors([[1.0], [2.0]], [[1.0, 0.0], [0.0, 1.0]], [0.5])
    >>> factors.to_kernel()
    LowRankKernel(M=2, K=1, K'=2)
    """

    def __init__(self, V: ArrayLike, B: ArrayLike | None = None, rates: ArrayLike = ()) -> None:
        v = as_float64(V, "V")
        b = np.zeros((len(v), 0)) if B is None else as_float64(B, "B")
        super().__init__(b.shape[1], rates)
        self.V, self.B = nn.Parameter(torch.from_numpy(v)), nn.Parameter(torch.from_numpy(b))

    @classmethod
    def principal(
        cls, vectors: ArrayLike, K: int, K_skew: int, *, seed: int, scale: float = 0.1, pool: ArrayLike | None = None
    ) -> Self:
        """Start at the embeddings (M, d): V Vᵀ is the best approximation of E Eᵀ of rank K for the rows ``pool``.

        Columns of V beyond the rank of the vectors start at random, as those of B do, because a column of zeros is
        never trained. ``scale`` is the approximate length of a row of B at the start.
        """
        rng, unit = np.random.default_rng(seed), unit_rows(vectors)
        directions, values = _principal_directions(unit if pool is None else unit[np.asarray(pool)])
        kept = int((values[:K] > 1e-10 * values[0]).sum())
        v = rng.standard_normal((len(unit), K)) * (scale / K**0.5)
        v[:, :kept] = np.concatenate([block.numpy() @ directions[:, :kept] for block in _blocks(unit)])
        b = rng.standard_normal((len(unit), K_skew)) * (scale / max(K_skew, 1) ** 0.5)
        return cls(v, b, np.ones(K_skew // 2))

    def __len__(self) -> int:
        return len(self.V)

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """V (m, K) and B (m, K') of the items ``index`` (int64, shape (m,))."""
        return self.V.index_select(0, index), self.B.index_select(0, index)

    def grams(self) -> Grams:
        """VᵀV, VᵀB and BᵀB of the whole pool."""
        return self.V.T @ self.V, self.V.T @ self.B, self.B.T @ self.B

    def weighing(self, weights: Tensor) -> Tensor:
        """The form of item weights w (M,) that :meth:`squares` takes: the weights themselves."""
        return weights.to(self.device, torch.float64)

    def squares(self, weighing: Tensor) -> tuple[Tensor, Tensor]:
        """Σ w_i ‖v_i‖² and Σ w_i ‖b_i‖² over the whole pool."""
        return self.V.square().sum(1) @ weighing, self.B.square().sum(1) @ weighing

    def to_kernel(self, ids: Iterable[Hashable] | None = None) -> LowRankKernel:
        """The current kernel, its rows called ``ids`` (by default 0..M-1)."""
        b, c = self._skew(self.B)
        return LowRankKernel(_as_numpy(self.V), b, c, ids)


class LinearFactors(_Factors):
    """V = E W_V and B = E W_B, E the unit vectors of ``vectors`` (M, d); W_V (d, K), W_B (d, K') and λ are trained.

    A step needs the rows of E in the batch, EᵀE and Eᵀ diag(w) E, so its cost does not depend on the pool's size.

    >>> factors = LinearFactors([[2.0, 0.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> factors.rows(torch.arange(2))[0].detach().numpy().round(6).tolist()
    [[1.0, 0.0], [0.6, 0.8]]
    """

    unit: Tensor
    moment: Tensor

    def __init__(self, vectors: ArrayLike, W_V: ArrayLike, W_B: ArrayLike | None = None, rates: ArrayLike = ()) -> None:
        unit = unit_rows(vectors)
        w_v = as_float64(W_V, "W_V")
        w_b = np.zeros((len(w_v), 0)) if W_B is None else as_float64(W_B, "W_B")
        super().__init__(w_b.shape[1], rates)
        self.W_V, self.W_B = nn.Parameter(torch.from_numpy(w_v)), nn.Parameter(torch.from_numpy(w_b))
        self.register_buffer("unit", unit, persistent=False)
        self.register_buffer("moment", _second_moment(unit), persistent=False)

    @classmethod
    def principal(cls, vectors: ArrayLike, K: int, K_skew: int, *, seed: int, scale: float = 0.1) -> Self:
        """Start at the embeddings: W_V is the identity if K = d, else the K ≤ d principal directions."""
        rng, unit = np.random.default_rng(seed), unit_rows(vectors)
        d = unit.shape[1]
        w_v = np.eye(d) if d == K else _principal_directions(unit)[0][:, :K]
        w_b = rng.standard_normal((d, K_skew)) * (scale / max(K_skew, 1) ** 0.5)
        return cls(unit.numpy(), w_v, w_b, np.ones(K_skew // 2))

    def __len__(self) -> int:
        return len(self.unit)

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """V (m, K) and B (m, K') of the items ``index`` (int64, shape (m,))."""
        # The same items are often candidates of many queries in a batch; each item is multiplied once.
        items, places = torch.unique(index, return_inverse=True)
        e = self.unit.index_select(0, items).to(torch.float64)
        return (e @ self.W_V).index_select(0, places), (e @ self.W_B).index_select(0, places)

    def grams(self) -> Grams:
        """VᵀV, VᵀB and BᵀB of the whole pool, through EᵀE."""
        mv, mb = self.moment @ self.W_V, self.moment @ self.W_B
        return self.W_V.T @ mv, self.W_V.T @ mb, self.W_B.T @ mb

    def weighing(self, weights: Tensor) -> Tensor:
        """The form of item weights w (M,) that :meth:`squares` takes: Eᵀ diag(w) E, shape (d, d)."""
        return _second_moment(self.unit, weights.to(self.device, torch.float64))

    def squares(self, weighing: Tensor) -> tuple[Tensor, Tensor]:
        """Σ w_i ‖v_i‖² and Σ w_i ‖b_i‖² over the whole pool."""
        return (self.W_V * (weighing @ self.W_V)).sum(), (self.W_B * (weighing @ self.W_B)).sum()

    def to_kernel(self) -> LinearKernel:
        """The current kernel."""
        b, c = self._skew(self.W_B)
        return LinearKernel(_as_numpy(self.W_V), b, c)


Factors = RowFactors | LinearFactors


def unit_rows(vectors: ArrayLike) -> Tensor:
    """The vectors (M, d) at length 1, float32 or float64, as a copy; a zero row stays zero."""
    return torch.from_numpy(as_unit_rows(vectors))


def _second_moment(rows: Tensor, weights: Tensor | None = None) -> Tensor:
    """EᵀE, or Eᵀ diag(w) E, of rows E (M, d) and weights w (M,): float64, shape (d, d)."""
    total = torch.zeros((rows.shape[1],) * 2, dtype=torch.float64, device=rows.device)
    start = 0
    for block in _blocks(rows):
        total.addmm_(block.T, block if weights is None else block * weights[start : start + len(block), None])
        start += len(block)
    return total


def _principal_directions(rows: Tensor) -> tuple[Matrix, Matrix]:
    """Right singular vectors of the rows (d, d), a column each, and the squares of the singular values (d,).

    The largest singular value comes first. The largest entry of each column is positive.
    """
    squares, vectors = np.linalg.eigh(_second_moment(rows).cpu().numpy())
    directions = vectors[:, ::-1]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[None], axis=0)
    return np.where(largest < 0, -directions, directions), squares[::-1]


def _blocks(rows: Tensor) -> Iterator[Tensor]:
    """The rows in float64, block by block."""
    for start in range(0, len(rows), _BLOCK):
        yield rows[start : start + _BLOCK].to(torch.float64)


def _as_numpy(tensor: Tensor) -> Matrix:
    return np.array(tensor.detach().cpu().numpy())
