"""The objectives of a fit: the likelihood of the NDPP paper, and the listwise order of subsets by their feedback."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from ..errors import InvalidInputError
from ..selectors.kernels import LinearKernel, LowRankKernel
from .kernel import Factors, unit_rows
from .labels import LabelledSubset, best
from .pool import Split
from .settings import FitSettings

RIDGE = 1e-5

# Rows of V and B that are gathered at the same time.
_ROWS_AT_ONCE = 65536
# With the listwise objective, the learning rate of scalars (temperature, λ) is this many times that of matrices.
_FASTER = 20.0


# --- likelihood -------------------------------------------------------------------------------------


class Likelihood:
    """The loss of a batch of labelled subsets: minus the regularised mean log-likelihood (NDPP paper, 4.3.3).

    −(1/n) Σ [log det(L_S + ridge·I) − log det(L + I)] + α Σ 1/γ_i ‖v_i‖² + β Σ 1/γ_i ‖b_i‖², where γ_i is the number of
    subsets that hold item i, at least 1. With the ridge, a subset that is larger than the rank or holds the same text
    twice has a finite loss.
    """

    def __init__(
        self,
        factors: Factors,
        subsets: Iterable[ArrayLike],
        alpha: float = 0.01,
        beta: float = 0.01,
        ridge: float = RIDGE,
    ) -> None:
        self.factors, self.alpha, self.beta, self.ridge = factors, alpha, beta, ridge
        sets = [np.asarray(rows, dtype=np.int64) for rows in subsets]
        self._items, self._inside = _pad(sets, factors.device)
        counts = np.bincount(np.concatenate(sets), minlength=len(factors))
        self._weighing = factors.weigh(torch.from_numpy(1 / np.maximum(counts, 1)))

    def __len__(self) -> int:
        """The number of labelled subsets."""
        return len(self._items)

    def __call__(self, batch: Tensor) -> Tensor:
        """The loss, a float64 scalar, of the subsets with the numbers ``batch`` (int64, shape (m,), 0..N-1)."""
        squares_v, squares_b = self.factors.squares(self._weighing)
        return self.alpha * squares_v + self.beta * squares_b - self._log_likelihoods(batch).mean()

    def values(self) -> NDArray[np.float64]:
        """log P(S) of each subset, float64, shape (N,); no gradient."""
        step = max(1, _ROWS_AT_ONCE // self._items.shape[1])
        with torch.no_grad():
            parts = [self._log_likelihoods(batch) for batch in torch.split(torch.arange(len(self)), step)]
        values: NDArray[np.float64] = torch.cat(parts).cpu().numpy()
        return values

    def _log_likelihoods(self, batch: Tensor) -> Tensor:
        batch = batch.to(self.factors.device)
        inside = self._inside[batch]
        rows = self.factors.rows(self._items[batch].flatten())
        v, b = (part.reshape(*inside.shape, part.shape[1]) * inside[..., None] for part in rows)
        # Padding has 1 on the diagonal and 0 beside it.
        diagonal = inside.to(torch.float64) * (self.ridge - 1) + 1
        # Every determinant here is positive, whatever the skew part; a negative sign would be a rounding error.
        matrices = v @ v.mT + self.factors.times_c(b) @ b.mT + torch.diag_embed(diagonal)
        logs: Tensor = torch.linalg.slogdet(matrices).logabsdet - self._normaliser()
        return logs

    def _normaliser(self) -> Tensor:
        """log det(L + I) = log det(I + ZᵀZ X) with Z = [V B] and X = blkdiag(I, C), a determinant of size K + K'."""
        # The published form through C⁻¹ fails for an odd rank.
        vv, vb, bb = self.factors.grams()
        upper = torch.cat((vv, self.factors.times_c(vb)), -1)
        lower = torch.cat((vb.mT, self.factors.times_c(bb)), -1)
        product = torch.cat((upper, lower), -2)
        logs: Tensor = torch.linalg.slogdet(product + torch.eye(len(product)).to(product)).logabsdet
        return logs


def _pad(lists: Sequence[NDArray[Any]], device: torch.device) -> tuple[Tensor, Tensor]:
    """The lists as one tensor (N, longest), padded with 0, and the mask of their own entries."""
    lengths = np.array([len(entry) for entry in lists])
    mask = np.arange(lengths.max()) < lengths[:, None]
    padded = np.zeros(mask.shape, lists[0].dtype)
    padded[mask] = np.concatenate(lists)
    return torch.from_numpy(padded).to(device), torch.from_numpy(mask).to(device)


# --- listwise ---------------------------------------------------------------------------------------


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
        mapped = self.unit.index_select(0, rows)
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


# Subsets of one query and one size, a row each, and their scores or the share of each in the target.
_List = tuple[NDArray[np.int64], NDArray[np.float64]]


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
            self._lists.append([(np.searchsorted(rows, s), _softmax(scores / self.tau)) for s, scores in lists])
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
                sizes.setdefault(entry[0].shape[1], []).append((place, entry))
        losses = [self._divergence(kernel, relevance, lists) for lists in sizes.values()]
        loss = torch.cat(losses).mean()
        for part, start in self._start:
            loss = loss + self.pull * ((part - start) ** 2).sum()
        return loss

    def _kernel(self, numbers: list[int]) -> tuple[Tensor, Tensor]:
        """L (m, c, c) and log r² (m, c) of the rows of each query, padded."""
        device = self.factors.device
        index, _ = _pad([self._rows[number] for number in numbers], device)
        v, b = (rows.reshape(*index.shape, -1) for rows in self.factors.rows(index.flatten()))
        kernel = v @ v.mT
        if b.shape[-1]:
            kernel = kernel + self.factors.times_c(b) @ b.mT
        queries = torch.tensor([self.queries[number] for number in numbers], device=device)
        return kernel, 2 * self.relevance.logs(queries, index)

    def _divergence(self, kernel: Tensor, weights: Tensor, lists: list[tuple[int, _List]]) -> Tensor:
        """KL(t ‖ p) of each list; their subsets have the same size."""
        targets, held = _pad([target for _, (_, target) in lists], kernel.device)
        # A shorter list is padded with one of its own subsets: another might be singular, with a gradient of NaN.
        numbers, _ = _pad([np.arange(len(target)) for _, (_, target) in lists], torch.device("cpu"))
        places = [subsets[of_list] for of_list, (_, (subsets, _)) in zip(numbers.numpy(), lists, strict=True)]
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
        return torch.where(targets > 0, targets * (targets.clamp_min(1e-300).log() - logs), 0.0).sum(-1)


def _group(labels: Iterable[LabelledSubset]) -> dict[int, list[_List]]:
    """Subsets and scores of each query, a list for each size; lists of equal scores are left out."""
    by_size: dict[int, dict[int, list[LabelledSubset]]] = {}
    for entry in labels:
        by_size.setdefault(entry.query, {}).setdefault(len(entry.subset), []).append(entry)
    grouped: dict[int, list[_List]] = {}
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


# --- what a fit trains ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """An objective with what is trained, ``groups`` of it for Adam, and the likelihood of held-out subsets."""

    parts: nn.ModuleDict
    groups: list[dict[str, object]]
    loss: Likelihood | Listwise
    held_out: Likelihood | None
    kernel: Callable[[], LinearKernel | LowRankKernel]


def make_task(
    settings: FitSettings,
    vectors: NDArray[np.floating],
    split: Split,
    trained: Sequence[LabelledSubset],
    held_out: Sequence[LabelledSubset],
    ids: Sequence[Hashable] | None,
) -> Task:
    """The task of the settings' objective, its factors at the embeddings ``vectors`` (n, d).

    The rows of the objective are places among the examples of the split, so no held-out item can take part in training.
    """
    pool = np.array(split.examples)
    place = np.full(len(vectors), -1)
    place[pool] = np.arange(len(pool))
    factors = _make_factors(settings, vectors, pool)
    rate = settings.learning_rate or (0.001 if settings.listwise else 0.01)

    def make_kernel(w_r: NDArray[np.float64] | None, temperature: float) -> LinearKernel | LowRankKernel:
        return replace(factors.to_kernel(ids), W_R=w_r, temperature=temperature)

    def subsets(labels: Sequence[LabelledSubset]) -> list[NDArray[np.int64]]:
        return [place[list(entry.subset)] for entry in labels]

    if settings.listwise:
        relevance = LearnedRelevance(unit_rows(vectors[pool]), settings.temperature, mapped=settings.learn_relevance)
        relevance.to(factors.device)
        placed = [
            LabelledSubset(int(place[entry.query]), tuple(rows.tolist()), entry.score)
            for entry, rows in zip(trained, subsets(trained), strict=True)
        ]
        listwise = Listwise(factors, relevance, placed, sharpness=settings.sharpness, pull=settings.pull)
        parts = nn.ModuleDict({"factors": factors, "relevance": relevance})
        matrices, numbers = ([p for p in parts.parameters() if (p.ndim == 2) is matrix] for matrix in (True, False))
        groups: list[dict[str, object]] = [{"params": matrices, "lr": rate}, {"params": numbers, "lr": _FASTER * rate}]
        return Task(parts, groups, listwise, None, lambda: make_kernel(*relevance.numbers()))

    def likelihood(labels: Sequence[LabelledSubset]) -> Likelihood:
        # The best labels of each part are taken separately: held-out labels must not decide which are trained on.
        best_sets = subsets(best(labels, settings.share))
        return Likelihood(factors, best_sets, settings.alpha, settings.beta, settings.ridge)

    parts = nn.ModuleDict({"factors": factors})
    return Task(
        parts,
        [{"params": list(parts.parameters()), "lr": rate}],
        likelihood(trained),
        likelihood(held_out) if held_out else None,
        lambda: make_kernel(None, settings.temperature),
    )


def _make_factors(settings: FitSettings, vectors: NDArray[np.floating], pool: NDArray[np.int64]) -> Factors:
    """Factors of the rows ``pool`` that start at the embeddings."""
    factors = Factors.principal(
        vectors, pool, settings.rank or vectors.shape[1], settings.skew_rank,
        linear=settings.kernel == "linear", seed=settings.seed, scale=0.1 if settings.listwise else 1.0,
    )  # fmt: skip
    if not settings.listwise:
        # The likelihood is over all subsets of the pool. It starts where a subset of V Vᵀ has k items on average, and
        # with rows of B as long as those of V: with far shorter rows B would not change, as its gradient is cubic in B.
        with torch.no_grad():
            scale = _find_scale(torch.linalg.eigvalsh(factors.grams()[0]).clamp_min(0).numpy(), settings.k)
            factors.V.mul_(scale)
            factors.B.mul_(scale)
    return factors.to(settings.device)


def _find_scale(eigenvalues: NDArray[np.float64], size: int) -> float:
    """s for which subsets of a DPP with kernel s² L have ``size`` items on average, at most half the rank of L."""
    # The average is Σ s²λ / (1 + s²λ) over the eigenvalues λ of L; it grows with s, so s is found by bisection.
    low, high = -40.0, 40.0
    average = min(size, int((eigenvalues > 1e-10 * eigenvalues.max()).sum()) / 2)
    for _ in range(60):
        middle = (low + high) / 2
        scaled = eigenvalues * np.exp(2 * middle)
        low, high = (middle, high) if (scaled / (1 + scaled)).sum() < average else (low, middle)
    return float(np.exp(high))
