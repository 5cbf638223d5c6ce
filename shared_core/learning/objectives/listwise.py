"""The listwise objective: of one query's subsets, those that serve it better get the larger determinant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..._validation import check_number
from ...errors import InvalidInputError
from ..labels.labelling import LabelledSubset
from .factors import Factors
from .likelihood import RIDGE
from .relevance import LearnedRelevance


class _List(NamedTuple):
    """Subsets of one query and one size: their places among its rows, and the share of each in the target."""

    places: NDArray[np.int64]
    target: NDArray[np.float64]


class Listwise:
    """The loss of a batch of queries: cross-entropy between what subsets are worth and what the kernel makes of them.

    For each query and size, Σ_S t_S (log t_S − log p_S) with t = softmax(score / τ) and p = softmax(log det L'_S),
    L' = R L R as it is served, over the subsets S of this size: the Kullback–Leibler divergence, so 0 is the best
    there is. Its mean over the lists, plus ``pull`` times the squared distance of the trained matrices from where they
    began. Subsets of one query that differ in their last item teach what greedy MAP chooses between.

    τ = ``sharpness`` times the mean standard deviation of the scores in a list, whatever unit the feedback has.

    Parameters
    ----------
    factors : RowFactors or LinearFactors
    relevance : LearnedRelevance
    labels : iterable of LabelledSubset
        Lists in which all scores are equal teach nothing and are left out.
    sharpness : float > 0
    pull : float >= 0
    ridge : float >= 0
        Added to the diagonal of L_S.

    Raises
    ------
    InvalidInputError
        No list is left: every query has one subset of a size, or scores that are all equal.
    InvalidParameterError
        A parameter is out of its range.

    Examples
    --------
    >>> from shared_core.learning.objectives.factors import LinearFactors
    >>> factors = LinearFactors([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> labels = [LabelledSubset(0, (1,), 0.2), LabelledSubset(0, (2,), 0.9)]
    >>> loss = Listwise(factors, LearnedRelevance(factors.unit, 0.5), labels)
    >>> len(loss), loss(torch.tensor([0])).item() > 0
    (1, True)
    """

    def __init__(
        self,
        factors: Factors,
        relevance: LearnedRelevance,
        labels: Iterable[LabelledSubset],
        *,
        sharpness: float = 0.6,
        pull: float = 1e-3,
        ridge: float = RIDGE,
    ) -> None:
        self.factors, self.relevance = factors, relevance
        self.pull, self.ridge = check_number(pull, "pull", 0), check_number(ridge, "ridge", 0)
        grouped = _grouped(labels)
        spreads = [scores.std() for lists in grouped.values() for _, scores in lists]
        if not spreads:
            raise InvalidInputError(
                "labels: no item has two subsets of one size with different scores, so there is nothing to learn; "
                "draw more subsets, or see whether the feedback tells good subsets from bad ones"
            )
        self.tau = check_number(sharpness, "sharpness", 1e-9) * float(np.mean(spreads))
        self.queries = list(grouped)
        self._rows, self._lists = [], []
        for lists in grouped.values():
            rows = np.unique(np.concatenate([subsets.ravel() for subsets, _ in lists]))
            self._rows.append(rows)
            self._lists.append([_List(np.searchsorted(rows, s), _softmax(scores / self.tau)) for s, scores in lists])
        self._began = [(part, part.detach().clone()) for part in self._matrices()]

    def __len__(self) -> int:
        """How many queries have something to teach."""
        return len(self.queries)

    def __call__(self, batch: Tensor) -> Tensor:
        """The loss of these queries, a float64 scalar.

        Parameters
        ----------
        batch : Tensor, int64, shape (m,)
            Which of :attr:`queries`, 0..len-1.
        """
        chosen = batch.tolist()
        kernel, relevance = self._kernel(chosen)
        sizes: dict[int, list[tuple[int, _List]]] = {}
        for place, query in enumerate(chosen):
            for found in self._lists[query]:
                sizes.setdefault(found.places.shape[1], []).append((place, found))
        losses = [self._divergence(kernel, relevance, lists) for lists in sizes.values()]
        loss = torch.cat(losses).mean()
        for part, start in self._began:
            loss = loss + self.pull * ((part - start) ** 2).sum()
        return loss

    def _matrices(self) -> list[nn.Parameter]:
        parts = [*self.factors.parameters(), *self.relevance.parameters()]
        return [part for part in parts if part.ndim == 2]

    def _kernel(self, chosen: list[int]) -> tuple[Tensor, Tensor]:
        """L (m, c, c) and log r² (m, c) of the rows of each query, padded."""
        device = self.factors.device
        width = max(len(self._rows[query]) for query in chosen)
        items = np.zeros((len(chosen), width), dtype=np.int64)
        for place, query in enumerate(chosen):
            items[place, : len(self._rows[query])] = self._rows[query]
        index = torch.from_numpy(items).to(device)
        v, b = (rows.reshape(*index.shape, -1) for rows in self.factors.rows(index.flatten()))
        kernel = v @ v.mT
        if b.shape[-1]:
            kernel = kernel + self.factors.times_c(b) @ b.mT
        asked = torch.tensor([self.queries[query] for query in chosen], device=device)
        return kernel, 2 * self.relevance.logs(asked, index)

    def _divergence(self, kernel: Tensor, weights: Tensor, lists: list[tuple[int, _List]]) -> Tensor:
        """KL(t || p) of each list; all of one size."""
        longest, size = max(len(found.target) for _, found in lists), lists[0][1].places.shape[1]
        places = np.zeros((len(lists), longest, size), dtype=np.int64)
        target = np.zeros((len(lists), longest))
        held = np.zeros((len(lists), longest), dtype=bool)
        for n, (_, found) in enumerate(lists):
            # What fills up a shorter list is a subset of its own: any other might be singular, its gradient NaN.
            places[n] = found.places[0]
            places[n, : len(found.target)], target[n, : len(found.target)] = found.places, found.target
            held[n, : len(found.target)] = True
        index, t = torch.from_numpy(places).to(kernel.device), torch.from_numpy(target).to(kernel.device)
        of = torch.tensor([place for place, _ in lists], device=kernel.device)[:, None, None]
        if size == 1:
            logs = torch.log(kernel[of, index, index][..., 0] + self.ridge)
        else:
            inside = kernel[of[..., None], index[..., :, None], index[..., None, :]]
            logs = torch.linalg.slogdet(
                inside + self.ridge * torch.eye(size, dtype=inside.dtype, device=inside.device)
            ).logabsdet
        logs = logs + weights[of, index].sum(-1)
        logs = logs.masked_fill(~torch.from_numpy(held).to(kernel.device), -torch.inf).log_softmax(-1)
        return torch.where(t > 0, t * (t.clamp_min(1e-300).log() - logs), 0.0).sum(-1)


def _grouped(
    labels: Iterable[LabelledSubset],
) -> dict[int, list[tuple[NDArray[np.int64], NDArray[np.float64]]]]:
    """Subsets and scores of each query, size by size; lists that teach nothing are left out."""
    found: dict[int, dict[int, list[LabelledSubset]]] = {}
    for entry in labels:
        found.setdefault(entry.query, {}).setdefault(len(entry.subset), []).append(entry)
    grouped = {}
    for query, sizes in found.items():
        lists = []
        for size in sorted(sizes):
            scores = np.array([entry.score for entry in sizes[size]])
            if np.ptp(scores) > 0:
                lists.append((np.array([entry.subset for entry in sizes[size]], dtype=np.int64), scores))
        if lists:
            grouped[query] = lists
    return grouped


def _softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    shares = np.exp(values - values.max())
    softmax: NDArray[np.float64] = shares / shares.sum()
    return softmax
