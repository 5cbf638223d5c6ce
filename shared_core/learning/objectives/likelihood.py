"""The probability of labelled subsets under a kernel: the regularised objective of the NDPP paper (equation 9)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ..._validation import as_numeric, check_number, check_one_of
from ...errors import InvalidInputError, InvalidParameterError
from ..settings import NORMALISATIONS
from .factors import Factors, Grams

RIDGE = 1e-5

# Rows of V and B that are gathered at the same time where no gradient is needed.
_ROWS_AT_ONCE = 65536

Subsets = Iterable[ArrayLike]


class Likelihood:
    """The loss of a batch of labelled subsets: minus the regularised mean log-likelihood (NDPP paper, 4.3.3).

    −(1/n) Σ [log det(L_S + ridge·I) − normaliser] + α Σ 1/γ_i ‖v_i‖² + β Σ 1/γ_i ‖b_i‖². The penalties are summed over
    all M items; γ_i is the number of subsets that hold item i, or 1 if none does. The normaliser log det(L + I) is
    computed as log det(I + ZᵀZ X) with Z = [V B] and X = blkdiag(I, C). This is linear in the size of the pool and
    correct for any rank; the published form through C⁻¹ fails for an odd rank.

    Parameters
    ----------
    factors : RowFactors or LinearFactors
        Trained through the gradient of the loss.
    subsets : iterable of N sequences of int
        Rows of the pool, of any sizes.
    alpha, beta : float >= 0
        Weights of the penalties.
    ridge : float >= 0
        Added to the diagonal of L_S, so that a subset larger than the rank, or with the same text twice, has a finite
        loss. With 0 its loss is infinite.
    normalisation : "pool" or "candidates"
        ``"pool"``: over all subsets of the pool. ``"candidates"``: over the subsets of the candidates of each subset's
        query, as the kernel is used: L' = R L R of the candidates, log det(L'_S) − log det(L' + I). Each step gathers
        V (batch, candidates, K) and B (batch, candidates, K') of the candidates in its batch.
    candidates : iterable of N sequences of int
        For ``"candidates"``: rows of the pool; they include those of the subset.
    relevance : iterable of N sequences of float > 0, optional
        r of each candidate; default: 1. The ridge is added to L_S, so log det(L'_S) is 2 Σ log r plus its value for
        r = 1, and a small r does not vanish beside the ridge.

    Raises
    ------
    InvalidInputError
        A subset is empty, holds a row twice or a row outside the pool, or is not among its candidates; or the lengths
        or values of ``relevance`` are wrong. The message names the subset.
    InvalidParameterError
        A parameter is out of its range, or ``candidates`` does not fit ``normalisation``.

    Examples
    --------
    >>> from shared_core.learning.objectives.factors import RowFactors
    >>> loss = Likelihood(RowFactors([[1.0, 0.0], [0.0, 1.0]]), [[0], [0, 1]], alpha=0.0)
    >>> round(loss(torch.tensor([0, 1])).item(), 4)
    1.3863
    """

    def __init__(
        self,
        factors: Factors,
        subsets: Subsets,
        alpha: float = 0.01,
        beta: float = 0.01,
        ridge: float = RIDGE,
        *,
        normalisation: str = "pool",
        candidates: Subsets | None = None,
        relevance: Iterable[ArrayLike] | None = None,
    ) -> None:
        self.factors = factors
        self.alpha, self.beta = check_number(alpha, "alpha", 0), check_number(beta, "beta", 0)
        self.ridge = check_number(ridge, "ridge", 0)
        self.normalisation = check_one_of(normalisation, "normalisation", NORMALISATIONS)
        self._check_candidates(candidates)
        self._labels = _Labels(factors, subsets, candidates, relevance)
        counts = np.bincount(self._labels.subsets.values.cpu().numpy(), minlength=len(factors))
        self.weights: NDArray[np.float64] = 1 / np.maximum(counts, 1)
        self._weighing = factors.weighing(torch.from_numpy(self.weights))

    def __len__(self) -> int:
        """The number of labelled subsets."""
        return len(self._labels.subsets)

    def __call__(self, batch: Tensor) -> Tensor:
        """The loss, a float64 scalar, of the subsets with the numbers ``batch`` (int64, shape (m,), 0..N-1)."""
        labels, factors = self._labels.take(batch), self.factors
        pool = factors.pool(labels.items, self._weighing, grams=not self._labels.has_candidates)
        values = labels.log_likelihoods(factors, pool.v, pool.b, pool.grams, self.ridge)
        return self.alpha * pool.squares_v + self.beta * pool.squares_b - values.mean()

    def held_out(
        self,
        subsets: Subsets,
        *,
        candidates: Subsets | None = None,
        relevance: Iterable[ArrayLike] | None = None,
    ) -> float:
        """Mean log-likelihood of other subsets, without the penalties; see :func:`log_likelihood`."""
        self._check_candidates(candidates)
        found = log_likelihood(self.factors, subsets, candidates=candidates, relevance=relevance, ridge=self.ridge)
        return float(found.mean())

    def _check_candidates(self, candidates: Subsets | None) -> None:
        if (candidates is None) == (self.normalisation == "candidates"):
            raise InvalidParameterError(
                f"normalisation={self.normalisation!r} {'needs' if candidates is None else 'takes no'} candidates="
            )


def log_likelihood(
    factors: Factors,
    subsets: Subsets,
    *,
    candidates: Subsets | None = None,
    relevance: Iterable[ArrayLike] | None = None,
    ridge: float = RIDGE,
) -> NDArray[np.float64]:
    """log P(S) of each subset, float64, shape (N,): over the pool, or over its candidates if given; no gradient.

    Parameters and errors are those of :class:`Likelihood`.

    Examples
    --------
    >>> from shared_core.learning.objectives.factors import RowFactors
    >>> factors = RowFactors([[1.0, 0.0], [0.0, 1.0]])
    >>> log_likelihood(factors, [[0], [0, 1]], ridge=0).round(4).tolist()
    [-1.3863, -1.3863]
    >>> log_likelihood(factors, [[0]], candidates=[[0]], ridge=0).round(4).tolist()
    [-0.6931]
    """
    ridge = check_number(ridge, "ridge", 0)
    labels = _Labels(factors, subsets, candidates, relevance)
    step = max(1, _ROWS_AT_ONCE // labels.widest)
    with torch.no_grad():
        grams = None if labels.has_candidates else factors.grams()
        found = []
        for start in range(0, len(labels.subsets), step):
            some = labels.take(torch.arange(start, min(start + step, len(labels.subsets))))
            found.append(some.log_likelihoods(factors, *factors.rows(some.items), grams, ridge))
        values: NDArray[np.float64] = torch.cat(found).cpu().numpy()
    return values


class _Batch(NamedTuple):
    """A batch of subsets: ``items`` to gather (their own or their candidates), and each subset's places among them."""

    items: Tensor
    shape: tuple[int, int]
    held: Tensor
    places: Tensor
    mask: Tensor
    relevance: Tensor | None

    def log_likelihoods(self, factors: Factors, v: Tensor, b: Tensor, grams: Grams | None, ridge: float) -> Tensor:
        """log P of each subset, from the rows of ``items`` and, without candidates, the Grams of the pool."""
        v, b = (rows.reshape(*self.shape, rows.shape[1]) * self.held[..., None] for rows in (v, b))
        if grams is not None:
            return _log_dets(factors, v, b, self.mask, ridge) - _normaliser(factors, grams)
        own_v, own_b = (
            rows.gather(1, self.places[..., None].expand(-1, -1, rows.shape[2])) * self.mask[..., None]
            for rows in (v, b)
        )
        inside = _log_dets(factors, own_v, own_b, self.mask, ridge)
        if self.relevance is not None:
            # Padding has relevance 1 here, and zero rows above.
            inside = inside + 2 * (self.relevance.gather(1, self.places).log() * self.mask).sum(1)
            v, b = (rows * self.relevance[..., None] for rows in (v, b))
        if v.shape[1] <= v.shape[2] + b.shape[2]:
            return inside - _log_dets(factors, v, b, self.held, 1.0)
        return inside - _normaliser(factors, Grams(v.mT @ v, v.mT @ b, b.mT @ b))


class _Labels:
    """Labelled subsets with their candidates and relevance, checked."""

    def __init__(
        self, factors: Factors, subsets: Subsets, candidates: Subsets | None, relevance: Iterable[ArrayLike] | None
    ) -> None:
        self.subsets = _Ragged(subsets, "subset", rows=len(factors), device=factors.device)
        self.widest, self.has_candidates = self.subsets.widest, candidates is not None
        if candidates is None:
            if relevance is not None:
                raise InvalidParameterError("relevance belongs to candidates: pass candidates= too")
            return
        self.candidates = _Ragged(candidates, "candidates of subset", rows=len(factors), device=factors.device)
        self.widest = self.candidates.widest
        self.places = _Ragged(self._places(), "subset", rows=self.widest, device=factors.device)
        self.relevance = None
        if relevance is not None:
            self.relevance = _Ragged(relevance, "relevance of subset", device=factors.device)
            self._check_lengths(self.relevance)

    def take(self, batch: Tensor) -> _Batch:
        """The subsets of a batch, padded."""
        if not len(batch):
            raise InvalidParameterError("the batch is empty: it must hold at least one of the subsets")
        batch = batch.to(self.subsets.values.device)
        if not self.has_candidates:
            items, mask = self.subsets.padded(batch)
            return _Batch(items.flatten(), (items.shape[0], items.shape[1]), mask, items, mask, None)
        items, held = self.candidates.padded(batch)
        places, mask = self.places.padded(batch)
        relevance = None if self.relevance is None else self.relevance.padded(batch)[0].masked_fill(~held, 1.0)
        return _Batch(items.flatten(), (items.shape[0], items.shape[1]), held, places, mask, relevance)

    def _places(self) -> list[list[int]]:
        """The place of each row of a subset among its candidates."""
        if len(self.candidates) != len(self.subsets):
            raise InvalidInputError(
                f"candidates must be {len(self.subsets)} lists, one for each subset, got {len(self.candidates)}"
            )
        places = []
        for n in range(len(self.subsets)):
            place = {row: i for i, row in enumerate(self.candidates[n])}
            try:
                places.append([place[row] for row in self.subsets[n]])
            except KeyError as error:
                raise InvalidInputError(
                    f"subset {n} holds row {error.args[0]}, which is not among its candidates"
                ) from None
        return places

    def _check_lengths(self, relevance: _Ragged) -> None:
        wanted, got = self.candidates.lengths.tolist(), relevance.lengths.tolist()
        if wanted != got:
            n = next((n for n, pair in enumerate(zip(wanted, got, strict=False)) if pair[0] != pair[1]), None)
            where = f"{len(got)} lists for {len(wanted)} subsets"
            if n is not None:
                where = f"{got[n]} numbers for the {wanted[n]} candidates of subset {n}"
            raise InvalidInputError(f"relevance must have a number for each candidate, got {where}")


class _Ragged:
    """N lists of different lengths: rows of a pool of ``rows`` items (none twice), or without it positive numbers."""

    def __init__(
        self,
        lists: Iterable[ArrayLike],
        what: str,
        *,
        rows: int | None = None,
        device: torch.device | None = None,
    ) -> None:
        arrays = [_check_list(entry, f"{what} {n}", rows) for n, entry in enumerate(lists)]
        if not arrays:
            raise InvalidInputError(f"there must be at least one {what}, got none")
        lengths = np.array([len(array) for array in arrays])
        self.widest = int(lengths.max())
        self.values = torch.from_numpy(np.concatenate(arrays)).to(device)
        self.lengths = torch.from_numpy(lengths).to(device)
        self.starts = self.lengths.cumsum(0) - self.lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, n: int) -> list[int]:
        """The n-th list."""
        start = int(self.starts[n])
        found: list[int] = self.values[start : start + int(self.lengths[n])].tolist()
        return found

    def padded(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        """The lists ``batch`` (int64, shape (m,)) as one array (m, longest of them), and a mask; padding is 0."""
        lengths, starts = self.lengths[batch], self.starts[batch]
        places = torch.arange(int(lengths.max()), device=batch.device)
        mask = places < lengths[:, None]
        return self.values[torch.where(mask, starts[:, None] + places, 0)].masked_fill(~mask, 0), mask


def _check_list(entry: ArrayLike, name: str, rows: int | None) -> NDArray[Any]:
    if np.size(entry) == 0:
        raise InvalidInputError(f"{name} is empty; leave it out")
    array = as_numeric(entry, name)
    if array.ndim != 1:
        raise InvalidInputError(f"{name} must be a list of numbers, got shape {array.shape}")
    if rows is None:
        wrong = np.flatnonzero(~(np.isfinite(array) & (array > 0)))
        if wrong.size:
            raise InvalidInputError(f"{name}: number {wrong[0]} is {array[wrong[0]]}; each must be positive and finite")
        return array.astype(np.float64)
    if array.dtype.kind not in "iu":
        raise InvalidInputError(f"{name} must hold rows of the pool, integers; got {array.tolist()}")
    wrong = np.flatnonzero((array < 0) | (array >= rows))
    if wrong.size:
        raise InvalidInputError(f"{name} holds row {array[wrong[0]]}, but the pool has rows 0 to {rows - 1}")
    if len(set(array.tolist())) < len(array):
        raise InvalidInputError(f"{name} holds a row twice: {array.tolist()}")
    return array.astype(np.int64)


def _log_dets(factors: Factors, v: Tensor, b: Tensor, mask: Tensor, diagonal: float) -> Tensor:
    """log det(V Vᵀ + B C Bᵀ + diagonal·I) of each set of rows (m, s, K); padding contributes 0."""
    added = mask.to(torch.float64) * (diagonal - 1) + 1
    return _log_abs_det(v @ v.mT + factors.times_c(b) @ b.mT + torch.diag_embed(added))


def _normaliser(factors: Factors, grams: Grams) -> Tensor:
    """log det(L + I) = log det(I + ZᵀZ X), a determinant of size K + K'."""
    upper = torch.cat((grams.vv, factors.times_c(grams.vb)), -1)
    lower = torch.cat((grams.vb.mT, factors.times_c(grams.bb)), -1)
    product = torch.cat((upper, lower), -2)
    return _log_abs_det(product + torch.eye(product.shape[-1], dtype=product.dtype, device=product.device))


def _log_abs_det(matrices: Tensor) -> Tensor:
    # Both determinants above are positive for every skew part; a negative sign would be a rounding error.
    found: Tensor = torch.linalg.slogdet(matrices).logabsdet
    return found
