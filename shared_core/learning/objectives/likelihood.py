"""The probability of labelled subsets under a kernel: the regularised objective of the NDPP paper (equation 9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from .factors import Factors, Grams

RIDGE = 1e-5

# Rows of V and B that are gathered at the same time where no gradient is needed.
_ROWS_AT_ONCE = 65536

Lists = Iterable[ArrayLike]


class Likelihood:
    """The loss of a batch of labelled subsets: minus the regularised mean log-likelihood (NDPP paper, 4.3.3).

    −(1/n) Σ [log det(L_S + ridge·I) − log det(L + I)] + α Σ 1/γ_i ‖v_i‖² + β Σ 1/γ_i ‖b_i‖², where γ_i is the number of
    subsets that hold item i, at least 1. With ``candidates`` (N lists of rows that include those of the subset) the
    probability is over the subsets of these, under L' = R L R; ``relevance`` holds the r of each candidate.
    """

    # With the ridge, a subset that is larger than the rank or holds the same text twice has a finite loss. It is added
    # to L_S and not to L'_S, where it could exceed r² L_ii of a candidate with a small r.

    def __init__(
        self,
        factors: Factors,
        subsets: Lists,
        alpha: float = 0.01,
        beta: float = 0.01,
        ridge: float = RIDGE,
        *,
        candidates: Lists | None = None,
        relevance: Lists | None = None,
    ) -> None:
        self.factors, self.alpha, self.beta, self.ridge = factors, alpha, beta, ridge
        self._labels = _Labels(factors, subsets, candidates, relevance)
        self._weighing = factors.weighing(torch.from_numpy(1 / np.maximum(self._labels.counts, 1)))

    def __len__(self) -> int:
        """The number of labelled subsets."""
        return len(self._labels.items)

    def __call__(self, batch: Tensor) -> Tensor:
        """The loss, a float64 scalar, of the subsets with the numbers ``batch`` (int64, shape (m,), 0..N-1)."""
        labels, batch = self._labels, batch.to(self.factors.device)
        grams = labels.candidates is None
        pool = self.factors.pool(labels.items[batch].flatten(), self._weighing, grams)
        values = labels.log_likelihoods(self.factors, batch, pool.v, pool.b, pool.grams, self.ridge)
        return self.alpha * pool.squares_v + self.beta * pool.squares_b - values.mean()


def log_likelihood(
    factors: Factors,
    subsets: Lists,
    *,
    candidates: Lists | None = None,
    relevance: Lists | None = None,
    ridge: float = RIDGE,
) -> NDArray[np.float64]:
    """log P(S) of each subset, float64, shape (N,), with the parameters of :class:`Likelihood`; no gradient."""
    labels = _Labels(factors, subsets, candidates, relevance)
    number, width = labels.items.shape
    step = max(1, _ROWS_AT_ONCE // width)
    with torch.no_grad():
        grams = None if labels.candidates else factors.grams()
        parts = []
        for start in range(0, number, step):
            batch = torch.arange(start, min(start + step, number))
            rows = factors.rows(labels.items[batch].flatten())
            parts.append(labels.log_likelihoods(factors, batch, *rows, grams, ridge))
    values: NDArray[np.float64] = torch.cat(parts).cpu().numpy()
    return values


class _Labels:
    """Labelled subsets, padded."""

    def __init__(self, factors: Factors, subsets: Lists, candidates: Lists | None, relevance: Lists | None) -> None:
        sets = _as_rows(subsets)
        self.candidates = None if candidates is None else _as_rows(candidates)
        self.counts = np.bincount(np.concatenate(sets), minlength=len(factors))
        lists, places = sets if self.candidates is None else self.candidates, []
        for subset, items in zip(sets, lists, strict=True):
            place = {row: i for i, row in enumerate(items.tolist())}
            places.append(np.array([place[row] for row in subset.tolist()]))
        # Rows of the pool (N, c) with their mask: the candidates of each subset, or the subset if there are none.
        self.items, self.held = pad(lists, factors.device)
        # The places of each subset (N, s) among these rows, with their mask.
        self.places, self.inside = pad(places, factors.device)
        if relevance is not None:
            numbers, _ = pad([np.asarray(entry, dtype=np.float64) for entry in relevance], factors.device)
            self.relevance = numbers.masked_fill(~self.held, 1.0)

    def log_likelihoods(
        self, factors: Factors, batch: Tensor, v: Tensor, b: Tensor, grams: Grams | None, ridge: float
    ) -> Tensor:
        """log P of each subset of a batch, from V and B of its items and, without candidates, the Grams of the pool."""
        held, places, inside = self.held[batch], self.places[batch], self.inside[batch]
        v, b = (rows.reshape(*held.shape, rows.shape[1]) * held[..., None] for rows in (v, b))
        own_v, own_b = (
            rows.gather(1, places[..., None].expand(-1, -1, rows.shape[2])) * inside[..., None] for rows in (v, b)
        )
        logs = _log_dets(factors, own_v, own_b, inside, ridge)
        if grams is not None:
            return logs - _normaliser(factors, grams)
        relevance = self.relevance[batch]
        logs = logs + 2 * (relevance.gather(1, places).log() * inside).sum(1)
        v, b = (rows * relevance[..., None] for rows in (v, b))
        if v.shape[1] <= v.shape[2] + b.shape[2]:
            return logs - _log_dets(factors, v, b, held, 1.0)
        return logs - _normaliser(factors, Grams(v.mT @ v, v.mT @ b, b.mT @ b))


def _as_rows(lists: Lists) -> list[NDArray[np.int64]]:
    return [np.asarray(entry, dtype=np.int64) for entry in lists]


def pad(lists: Sequence[NDArray[Any]], device: torch.device) -> tuple[Tensor, Tensor]:
    """The lists as one tensor (N, longest), padded with 0, and the mask of their own entries."""
    lengths = np.array([len(entry) for entry in lists])
    mask = np.arange(lengths.max()) < lengths[:, None]
    padded = np.zeros(mask.shape, lists[0].dtype)
    padded[mask] = np.concatenate(lists)
    return torch.from_numpy(padded).to(device), torch.from_numpy(mask).to(device)


def _log_dets(factors: Factors, v: Tensor, b: Tensor, mask: Tensor, diagonal: float) -> Tensor:
    """log det(V Vᵀ + B C Bᵀ + diagonal·I) of each set of rows (m, s, K); padding contributes 0."""
    added = mask.to(torch.float64) * (diagonal - 1) + 1
    return _log_abs_det(v @ v.mT + factors.times_c(b) @ b.mT + torch.diag_embed(added))


def _normaliser(factors: Factors, grams: Grams) -> Tensor:
    """log det(L + I) = log det(I + ZᵀZ X) with Z = [V B] and X = blkdiag(I, C), a determinant of size K + K'."""
    # The published form through C⁻¹ fails for an odd rank.
    upper = torch.cat((grams.vv, factors.times_c(grams.vb)), -1)
    lower = torch.cat((grams.vb.mT, factors.times_c(grams.bb)), -1)
    product = torch.cat((upper, lower), -2)
    return _log_abs_det(product + torch.eye(product.shape[-1], dtype=product.dtype, device=product.device))


def _log_abs_det(matrices: Tensor) -> Tensor:
    # Both determinants above are positive for every skew part; a negative sign would be a rounding error.
    logs: Tensor = torch.linalg.slogdet(matrices).logabsdet
    return logs
