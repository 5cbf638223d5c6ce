"""The trained parts of a kernel, L = V Vᵀ + B C Bᵀ (NDPP paper, equation 6): a row per item, or maps of the vectors."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._validation import as_numeric, check_integer, check_number
from ...errors import InvalidInputError, InvalidParameterError
from ...selectors.kernels.low_rank import LinearKernel, LowRankKernel

try:
    import torch
except ImportError as error:
    raise ImportError('learning a kernel needs torch: pip install "setselect[train]"') from error

from torch import Tensor, nn

from .principal import blocks, principal_directions, second_moment, unit_rows
from .row_pool import Grams, Pool, row_pool

Matrix = NDArray[np.float64]


class _Factors(nn.Module):
    """C has a block [[0, λ], [−λ, 0]] for each two columns of B; λ is the softplus of what is trained.

    With an odd K' the last column of B meets only zeros.
    """

    def __init__(self, skew_rank: int, rates: ArrayLike) -> None:
        super().__init__()
        values = as_numeric(np.empty(0) if np.size(rates) == 0 else rates, "rates").astype(np.float64)
        if values.shape != (skew_rank // 2,):
            raise InvalidInputError(
                f"rates must have shape ({skew_rank // 2},), one for each two columns of B, got {values.shape}"
            )
        wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
        if wrong.size:
            raise InvalidInputError(f"rates: number {wrong[0]} is {values[wrong[0]]}; each must be positive and finite")
        self.skew_rank = skew_rank
        self.free_rates = nn.Parameter(torch.from_numpy(values + np.log(-np.expm1(-values))))

    @property
    def rates(self) -> Tensor:
        """λ of each block of C, shape (K' // 2,)."""
        return nn.functional.softplus(self.free_rates, threshold=40.0)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.free_rates.device

    def C(self) -> Tensor:
        """C itself, shape (K', K')."""
        return self.times_c(torch.eye(self.skew_rank, dtype=torch.float64, device=self.device))

    def times_c(self, b: Tensor) -> Tensor:
        """``b @ C`` for b of shape (..., K'), with 1 product a number in place of K'."""
        even, rates = self.skew_rank // 2 * 2, self.rates
        turned = torch.stack((-rates * b[..., 1:even:2], rates * b[..., 0:even:2]), -1).flatten(-2)
        return torch.cat((turned, torch.zeros_like(b[..., turned.shape[-1] :])), -1)

    def _skew(self, b: Tensor) -> tuple[Matrix | None, Matrix | None]:
        return (_numpy(b), _numpy(self.C())) if self.skew_rank else (None, None)


class RowFactors(_Factors):
    """A row of V and of B for each of M items; all of V, B and λ are trained.

    Parameters
    ----------
    V : array-like, shape (M, K)
    B : array-like, shape (M, K'), optional
        Without it (or with K' = 0) the kernel is a symmetric DPP.
    rates : array-like, shape (K' // 2,)
        λ > 0 of each block of C.

    Raises
    ------
    InvalidInputError
        Shapes do not agree, a value is NaN or inf (the message names the row), or a rate is not positive.

    Examples
    --------
    >>> factors = RowFactors([[1.0], [2.0]], [[1.0, 0.0], [0.0, 1.0]], [0.5])
    >>> factors.to_kernel().dense().round(6).tolist()
    [[1.0, 2.5], [1.5, 4.0]]
    """

    def __init__(self, V: ArrayLike, B: ArrayLike | None = None, rates: ArrayLike = ()) -> None:
        v = _matrix(V, "V")
        b = np.zeros((len(v), 0)) if B is None else _matrix(B, "B", len(v))
        super().__init__(b.shape[1], rates)
        self.V, self.B = nn.Parameter(torch.from_numpy(v)), nn.Parameter(torch.from_numpy(b))

    @classmethod
    def principal(
        cls, vectors: ArrayLike, K: int, K_skew: int, *, seed: int, scale: float = 0.1, rate: float = 1.0
    ) -> Self:
        """Start at the embeddings: V Vᵀ is the best approximation of E Eᵀ of rank K, E the unit vectors.

        Parameters
        ----------
        vectors : array-like, shape (M, d)
            The pool's embeddings, of any length.
        K, K_skew : int
            Columns of V (at least 1) and of B (at least 0). Columns of V beyond the rank of the vectors start at
            random like those of B, since a column of zeros is never trained.
        seed : int
            Of the random columns.
        scale : float > 0
            How long a row of B is at first, about. B = 0 would stay where it is.
        rate : float > 0
            Every λ at first.

        Raises
        ------
        InvalidInputError
            The vectors are no matrix, or hold NaN or inf.
        InvalidParameterError
            A parameter is out of its range.
        """
        rng = _start(K, K_skew, seed, scale, rate)
        unit = unit_rows(vectors)
        directions, values = principal_directions(unit)
        kept = int((values[:K] > 1e-10 * values[0]).sum())
        v = rng.standard_normal((len(unit), K)) * (scale / K**0.5)
        v[:, :kept] = np.concatenate([block.numpy() @ directions[:, :kept] for block in blocks(unit)])
        b = rng.standard_normal((len(unit), K_skew)) * (scale / max(K_skew, 1) ** 0.5)
        return cls(v, b, np.full(K_skew // 2, rate))

    def __len__(self) -> int:
        return len(self.V)

    def rows(self, index: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """V (m, K) and B (m, K') of these items; of all without ``index`` (int64, shape (m,))."""
        return (self.V, self.B) if index is None else (self.V.index_select(0, index), self.B.index_select(0, index))

    def grams(self) -> Grams:
        """VᵀV, VᵀB and BᵀB of the whole pool."""
        return Grams(self.V.T @ self.V, self.V.T @ self.B, self.B.T @ self.B)

    def weighing(self, weights: Tensor) -> Tensor:
        """The weights themselves."""
        return weights.to(self.device, torch.float64)

    def pool(self, index: Tensor, weighing: Tensor, grams: bool = True) -> Pool:
        """What a step needs of the pool; its gradient takes one pass over V and B. ``grams=False`` leaves these out."""
        return row_pool(self.V, self.B, weighing, index, grams)

    def to_kernel(self, ids: Iterable[Hashable] | None = None) -> LowRankKernel:
        """The kernel as it stands, its rows called ``ids`` (by default 0..M-1)."""
        b, c = self._skew(self.B)
        return LowRankKernel(_numpy(self.V), b, c, ids)


class LinearFactors(_Factors):
    """V = E W_V and B = E W_B, E the unit vectors: serves items that came after training; W_V, W_B, λ are trained.

    What a step costs does not depend on the pool: of E it needs the rows in the batch, EᵀE and Eᵀ diag(w) E.

    Parameters
    ----------
    vectors : array-like, shape (M, d)
        Embeddings of any length; copied, float32 stays float32. They are no part of ``state_dict``.
    W_V : array-like, shape (d, K)
    W_B : array-like, shape (d, K'), optional
    rates : array-like, shape (K' // 2,)

    Raises
    ------
    InvalidInputError
        As :class:`RowFactors`.

    Examples
    --------
    >>> factors = LinearFactors([[2.0, 0.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> factors.rows()[0].detach().numpy().round(6).tolist()
    [[1.0, 0.0], [0.6, 0.8]]
    """

    unit: Tensor
    moment: Tensor

    def __init__(self, vectors: ArrayLike, W_V: ArrayLike, W_B: ArrayLike | None = None, rates: ArrayLike = ()) -> None:
        unit = unit_rows(vectors)
        w_v = _matrix(W_V, "W_V", unit.shape[1])
        w_b = np.zeros((len(w_v), 0)) if W_B is None else _matrix(W_B, "W_B", len(w_v))
        super().__init__(w_b.shape[1], rates)
        self.W_V, self.W_B = nn.Parameter(torch.from_numpy(w_v)), nn.Parameter(torch.from_numpy(w_b))
        self.register_buffer("unit", unit, persistent=False)
        self.register_buffer("moment", second_moment(self.unit), persistent=False)

    @classmethod
    def principal(
        cls, vectors: ArrayLike, K: int, K_skew: int, *, seed: int, scale: float = 0.1, rate: float = 1.0
    ) -> Self:
        """Start at the embeddings: W_V is the identity where K = d, else the K principal directions.

        Parameters and errors as :meth:`RowFactors.principal`, but K is at most d.
        """
        rng = _start(K, K_skew, seed, scale, rate)
        unit = unit_rows(vectors)
        d = unit.shape[1]
        if d < K:
            raise InvalidParameterError(f"K must be at most {d}, the length of the vectors, got {K}")
        w_v = np.eye(d) if d == K else principal_directions(unit)[0][:, :K]
        w_b = rng.standard_normal((d, K_skew)) * (scale / max(K_skew, 1) ** 0.5)
        return cls(unit.numpy(), w_v, w_b, np.full(K_skew // 2, rate))

    def __len__(self) -> int:
        return len(self.unit)

    def rows(self, index: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """V (m, K) and B (m, K') of these items; of all without ``index`` (int64, shape (m,))."""
        if index is None:
            e = self.unit.to(torch.float64)
            return e @ self.W_V, e @ self.W_B
        # The candidates of a batch are often the same items again and again; each is multiplied once.
        items, places = torch.unique(index, return_inverse=True)
        e = self.unit.index_select(0, items).to(torch.float64)
        return (e @ self.W_V).index_select(0, places), (e @ self.W_B).index_select(0, places)

    def grams(self) -> Grams:
        """VᵀV, VᵀB and BᵀB of the whole pool, through EᵀE."""
        mv, mb = self.moment @ self.W_V, self.moment @ self.W_B
        return Grams(self.W_V.T @ mv, self.W_V.T @ mb, self.W_B.T @ mb)

    def weighing(self, weights: Tensor) -> Tensor:
        """Eᵀ diag(w) E, shape (d, d)."""
        return second_moment(self.unit, weights.to(self.device, torch.float64))

    def pool(self, index: Tensor, weighing: Tensor, grams: bool = True) -> Pool:
        """What a step needs of the pool; ``grams=False`` leaves these out."""
        v, b = self.rows(index)
        squares_v, squares_b = ((w * (weighing @ w)).sum() for w in (self.W_V, self.W_B))
        return Pool(v, b, squares_v, squares_b, self.grams() if grams else None)

    def to_kernel(self) -> LinearKernel:
        """The kernel as it stands."""
        b, c = self._skew(self.W_B)
        return LinearKernel(_numpy(self.W_V), b, c)


Factors = RowFactors | LinearFactors


def _start(K: int, K_skew: int, seed: int, scale: float, rate: float) -> np.random.Generator:
    check_integer(K, "K", 1)
    check_integer(K_skew, "K_skew", 0)
    for value, name in ((scale, "scale"), (rate, "rate")):
        check_number(value, name, float(np.finfo(np.float64).tiny))
    return np.random.default_rng(check_integer(seed, "seed", 0))


def _matrix(values: ArrayLike, name: str, rows: int | None = None) -> Matrix:
    matrix = as_numeric(values, name).astype(np.float64, order="C")
    if matrix.ndim != 2 or (rows is None and 0 in matrix.shape) or (rows is not None and len(matrix) != rows):
        wanted = "at least one row and one column" if rows is None else f"{rows} rows"
        raise InvalidInputError(f"{name} must be a matrix with {wanted}, got shape {matrix.shape}")
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if bad.size:
        raise InvalidInputError(f"{name}: row {bad[0]} holds NaN or inf")
    return matrix


def _numpy(tensor: Tensor) -> Matrix:
    return np.array(tensor.detach().cpu().numpy())
