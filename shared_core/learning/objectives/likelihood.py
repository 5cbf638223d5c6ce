"""How probable the labelled subsets are under a kernel: the regularised objective of the NDPP paper (equation 9)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ..._validation import check_number, check_one_of
from ...errors import InvalidInputError, InvalidParameterError
from .factors import Factors
from .ragged import Ragged
from .row_pool import Grams

NORMALISATIONS = ("pool", "candidates")
RIDGE = 1e-5

# Rows of V and B that are gathered at once where no gradient is wanted.
_ROWS_AT_ONCE = 65536

Subsets = Iterable[ArrayLike]


class Likelihood:
    """The loss of a batch of labelled subsets: minus the regularised mean log-likelihood (NDPP paper, 4.3.3).

    −(1/n) Σ [log det(L_S + ridge·I) − normaliser] + α Σ 1/γ_i ||v_i||² + β Σ 1/γ_i ||b_i||²; the sums of the
    penalties go over all M items, γ_i is the number of subsets that hold item i, and 1 where none does. The
    normaliser log det(L + I) is computed as log det(I + ZᵀZ X) with Z = [V B] and X = blkdiag(I, C): linear in the
    pool and right for any rank, where the published form through C⁻¹ fails for an odd one.

    Parameters
    ----------
    factors : RowFactors or LinearFactors
        Trained through the gradient of the loss.
    subsets : iterable of N sequences of int
        Rows of the pool, of any sizes.
    alpha, beta : float >= 0
        Weights of the penalties.
    ridge : float >= 0
        Added to the diagonal of L_S, so that a subset beyond the rank, or with a text twice, stays finite; with 0
        it does not.
    normalisation : str
        ``"pool"``: over all subsets of the pool. ``"candidates"``: over those of the candidates of each subset's
        query, as the kernel is used: L' = R L R of the candidates, log det(L'_S) − log det(L' + I). Each step
        gathers the candidates of its batch, of which V and B are (batch, candidates, K) and (…, K').
    candidates : iterable of N sequences of int
        For ``"candidates"``: rows of the pool, those of the subset among them.
    relevance : iterable of N sequences of float > 0, optional
        r of each candidate; 1 by default. The ridge is added to L_S, so log det(L'_S) is 2 Σ log r more than with
        r = 1 and a small r hides nothing.

    Raises
    ------
    InvalidInputError
        A subset is empty, holds a row twice or one that the pool has not, or is not among its candidates; or the
        lengths or values of ``relevance`` are not as above. The message names the subset.
    InvalidParameterError
        A parameter is out of its range, or ``candidates`` do not go with ``normalisation``.

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
        """How many labelled subsets there are."""
        return len(self._labels.subsets)

    def __call__(self, batch: Tensor) -> Tensor:
        """The loss of these subsets, a float64 scalar.

        Parameters
        ----------
        batch : Tensor, int64, shape (m,)
            Which of the subsets, 0..N-1.
        """
        labels, factors = self._labels.taken(batch), self.factors
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
    """log P(S) of each subset: over the pool, or over its candidates where there are some; no gradient.

    Parameters and errors as :class:`Likelihood`.

    Returns
    -------
    ndarray, float64, shape (N,)

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
            some = labels.taken(torch.arange(start, min(start + step, len(labels.subsets))))
            found.append(some.log_likelihoods(factors, *factors.rows(some.items), grams, ridge))
        values: NDArray[np.float64] = torch.cat(found).cpu().numpy()
    return values


class _Batch(NamedTuple):
    """Subsets as places among the items to gather, which are theirs or, where there are some, the candidates'."""

    items: Tensor
    shape: tuple[int, int]
    held: Tensor
    places: Tensor
    mask: Tensor
    relevance: Tensor | None

    def log_likelihoods(self, factors: Factors, v: Tensor, b: Tensor, grams: Grams | None, ridge: float) -> Tensor:
        """log P of each, from the rows of ``items`` and, without candidates, the Grams of the pool."""
        v, b = (rows.reshape(*self.shape, rows.shape[1]) * self.held[..., None] for rows in (v, b))
        if grams is not None:
            return _log_dets(factors, v, b, self.mask, ridge) - _normaliser(factors, grams)
        own_v, own_b = (
            rows.gather(1, self.places[..., None].expand(-1, -1, rows.shape[2])) * self.mask[..., None]
            for rows in (v, b)
        )
        inside = _log_dets(factors, own_v, own_b, self.mask, ridge)
        if self.relevance is not None:
            # A place without an item has relevance 1 here, and zero rows above.
            inside = inside + 2 * (self.relevance.gather(1, self.places).log() * self.mask).sum(1)
            v, b = (rows * self.relevance[..., None] for rows in (v, b))
        if v.shape[1] <= v.shape[2] + b.shape[2]:
            return inside - _log_dets(factors, v, b, self.held, 1.0)
        return inside - _normaliser(factors, Grams(v.mT @ v, v.mT @ b, b.mT @ b))


class _Labels:
    """Labelled subsets with their candidates and relevance, all checked."""

    def __init__(
        self, factors: Factors, subsets: Subsets, candidates: Subsets | None, relevance: Iterable[ArrayLike] | None
    ) -> None:
        self.subsets = Ragged(subsets, "subset", rows=len(factors), device=factors.device)
        self.widest, self.has_candidates = self.subsets.widest, candidates is not None
        if candidates is None:
            if relevance is not None:
                raise InvalidParameterError("relevance is that of candidates: pass candidates= too")
            return
        self.candidates = Ragged(candidates, "candidates of subset", rows=len(factors), device=factors.device)
        self.widest = self.candidates.widest
        self.places = Ragged(self._places(), "subset", rows=self.widest, device=factors.device)
        self.relevance = None
        if relevance is not None:
            self.relevance = Ragged(relevance, "relevance of subset", device=factors.device)
            self._check_lengths(self.relevance)

    def taken(self, batch: Tensor) -> _Batch:
        """These subsets, padded."""
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
        """Where each row of a subset stands among its candidates."""
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

    def _check_lengths(self, relevance: Ragged) -> None:
        wanted, got = self.candidates.lengths.tolist(), relevance.lengths.tolist()
        if wanted != got:
            n = next((n for n, pair in enumerate(zip(wanted, got, strict=False)) if pair[0] != pair[1]), None)
            where = (
                f"{len(got)} lists for {len(wanted)} subsets"
                if n is None
                else (f"{got[n]} numbers for the {wanted[n]} candidates of subset {n}")
            )
            raise InvalidInputError(f"relevance must have a number for each candidate, got {where}")


def _log_dets(factors: Factors, v: Tensor, b: Tensor, mask: Tensor, diagonal: float) -> Tensor:
    """log det(V Vᵀ + B C Bᵀ + diagonal·I) of each set of rows (m, s, K); a place without an item counts nothing."""
    added = mask.to(torch.float64) * (diagonal - 1) + 1
    return _log_abs_det(v @ v.mT + factors.times_c(b) @ b.mT + torch.diag_embed(added))


def _normaliser(factors: Factors, grams: Grams) -> Tensor:
    """log det(L + I) = log det(I + ZᵀZ X), which is K + K' wide whatever the pool is."""
    upper = torch.cat((grams.vv, factors.times_c(grams.vb)), -1)
    lower = torch.cat((grams.vb.mT, factors.times_c(grams.bb)), -1)
    product = torch.cat((upper, lower), -2)
    return _log_abs_det(product + torch.eye(product.shape[-1], dtype=product.dtype, device=product.device))


def _log_abs_det(matrices: Tensor) -> Tensor:
    # Both kinds of determinant above are positive, whatever the skew part: another sign could only be rounding's.
    found: Tensor = torch.linalg.slogdet(matrices).logabsdet
    return found
