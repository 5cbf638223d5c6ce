"""The listwise objective: among the subsets of one query, a better one gets a larger determinant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...errors import InvalidInputError
from ..labels.labelling import LabelledSubset
from .factors import Factors
from .likelihood import RIDGE, pad


class LearnedRelevance(nn.Module):
    """log r_i = cos(q W_R, e_i W_R) / (2·temperature): a trained relevance (NDPP paper, 4.4.1: separate encoders).

    W_R starts at the identity; with ``mapped=False`` there is none. ``vectors`` (n, d) are the pool's unit vectors.
    """

    unit: Tensor

    def __init__(self, vectors: Tensor, temperature: float = 0.1, *, mapped: bool = True) -> None:
        super().__init__()
        self.register_buffer("unit", vectors, persistent=False)
        eye = torch.eye(vectors.shape[1], dtype=torch.float64)
        self.W_R = nn.Parameter(eye) if mapped else None
        self.log_temperature = nn.Parameter(torch.tensor(float(np.log(temperature)), dtype=torch.float64))

    def logs(self, queries: Tensor, items: Tensor) -> Tensor:
        """log r of items (m, c) for queries (m,): float64, shape (m, c), not shifted by the maximum."""
        rows, places = torch.unique(torch.cat((queries, items.flatten())), return_inverse=True)
        mapped = self.unit.index_select(0, rows).to(torch.float64)
        if self.W_R is not None:
            mapped = mapped @ self.W_R
        mapped = nn.functional.normalize(mapped, dim=1, eps=1e-12).index_select(0, places)
        of_queries, of_items = mapped[: len(queries)], mapped[len(queries) :].reshape(*items.shape, -1)
        cosines: Tensor = (of_items @ of_queries[:, :, None])[..., 0]
        return cosines / (2 * self.log_temperature.exp())

    def numbers(self) -> tuple[NDArray[np.float64] | None, float]:
        """W_R (d, d) or None, and the temperature, in the form that a kernel takes."""
        w_r = None if self.W_R is None else np.array(self.W_R.detach().cpu().numpy())
        return w_r, float(self.log_temperature.detach().exp())


class _List(NamedTuple):
    """Subsets of one query and one size: their places among its rows, and the share of each in the target."""

    places: NDArray[np.int64]
    target: NDArray[np.float64]


class Listwise:
    """The loss of a batch of queries: how far the kernel's distribution over subsets is from that of the feedback.

    The subsets of one query that have the same size are a list. Its loss is KL(t ‖ p) with t = softmax(score / τ) and
    p = softmax(log det L'_S), where L' = R L R. τ is ``sharpness`` times the scores' mean standard deviation in a list,
    so the unit of the feedback does not matter. ``pull`` weighs the distance of the trained matrices from their start.
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
        self.pull, self.ridge = pull, ridge
        grouped = _group(labels)
        spreads = [scores.std() for lists in grouped.values() for _, scores in lists]
        if not spreads:
            raise InvalidInputError(
                "labels: no item has two subsets of the same size with different scores, so there is nothing to learn; "
                "draw more subsets, or check that the feedback tells good subsets from bad ones"
            )
        self.tau = sharpness * float(np.mean(spreads))
        self.queries = list(grouped)
        self._rows, self._lists = [], []
        for lists in grouped.values():
            rows = np.unique(np.concatenate([subsets.ravel() for subsets, _ in lists]))
            self._rows.append(rows)
            self._lists.append([_List(np.searchsorted(rows, s), _softmax(scores / self.tau)) for s, scores in lists])
        parts = (*factors.parameters(), *relevance.parameters())
        self._start = [(part, part.detach().clone()) for part in parts if part.ndim == 2]

    def __len__(self) -> int:
        """The number of queries with at least one list."""
        return len(self.queries)

    def __call__(self, batch: Tensor) -> Tensor:
        """The loss, a float64 scalar, of the queries with the numbers ``batch`` (int64, shape (m,), 0..len - 1)."""
        numbers = batch.tolist()
        kernel, relevance = self._kernel(numbers)
        sizes: dict[int, list[tuple[int, _List]]] = {}
        for place, number in enumerate(numbers):
            for entry in self._lists[number]:
                sizes.setdefault(entry.places.shape[1], []).append((place, entry))
        losses = [self._divergence(kernel, relevance, lists) for lists in sizes.values()]
        loss = torch.cat(losses).mean()
        for part, start in self._start:
            loss = loss + self.pull * ((part - start) ** 2).sum()
        return loss

    def _kernel(self, numbers: list[int]) -> tuple[Tensor, Tensor]:
        """L (m, c, c) and log r² (m, c) of the rows of each query, padded."""
        device = self.factors.device
        index, _ = pad([self._rows[number] for number in numbers], device)
        v, b = (rows.reshape(*index.shape, -1) for rows in self.factors.rows(index.flatten()))
        kernel = v @ v.mT
        if b.shape[-1]:
            kernel = kernel + self.factors.times_c(b) @ b.mT
        queries = torch.tensor([self.queries[number] for number in numbers], device=device)
        return kernel, 2 * self.relevance.logs(queries, index)

    def _divergence(self, kernel: Tensor, weights: Tensor, lists: list[tuple[int, _List]]) -> Tensor:
        """KL(t ‖ p) of each list; their subsets have the same size."""
        target, held = pad([entry.target for _, entry in lists], kernel.device)
        # A shorter list is padded with one of its own subsets: another might be singular, with a gradient of NaN.
        numbers, _ = pad([np.arange(len(entry.target)) for _, entry in lists], torch.device("cpu"))
        places = [entry.places[of_list] for of_list, (_, entry) in zip(numbers.numpy(), lists, strict=True)]
        index = torch.from_numpy(np.stack(places)).to(kernel.device)
        of = torch.tensor([place for place, _ in lists], device=kernel.device)[:, None, None]
        size = index.shape[-1]
        if size == 1:
            logs = torch.log(kernel[of, index, index][..., 0] + self.ridge)
        else:
            inside = kernel[of[..., None], index[..., :, None], index[..., None, :]]
            ridge = self.ridge * torch.eye(size, dtype=inside.dtype, device=inside.device)
            logs = torch.linalg.slogdet(inside + ridge).logabsdet
        logs = (logs + weights[of, index].sum(-1)).masked_fill(~held, -torch.inf).log_softmax(-1)
        return torch.where(target > 0, target * (target.clamp_min(1e-300).log() - logs), 0.0).sum(-1)


def _group(
    labels: Iterable[LabelledSubset],
) -> dict[int, list[tuple[NDArray[np.int64], NDArray[np.float64]]]]:
    """Subsets and scores of each query, a list for each size; lists of equal scores are left out."""
    by_size: dict[int, dict[int, list[LabelledSubset]]] = {}
    for entry in labels:
        by_size.setdefault(entry.query, {}).setdefault(len(entry.subset), []).append(entry)
    grouped: dict[int, list[tuple[NDArray[np.int64], NDArray[np.float64]]]] = {}
    for query, sizes in by_size.items():
        for _, entries in sorted(sizes.items()):
            scores = np.array([entry.score for entry in entries])
            if np.ptp(scores) > 0:
                subsets = np.array([entry.subset for entry in entries], dtype=np.int64)
                grouped.setdefault(query, []).append((subsets, scores))
    return grouped


def _softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    shares = np.exp(values - values.max())
    softmax: NDArray[np.float64] = shares / shares.sum()
    return softmax
