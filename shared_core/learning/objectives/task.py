"""What a fit trains: parameters, the loss of a batch, and the kernel that comes of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...selectors.kernels.low_rank import LinearKernel, LowRankKernel
from ..labels.labelling import LabelledSubset
from ..neighbours import Neighbours
from .factors import Factors, LinearFactors, RowFactors
from .likelihood import Likelihood
from .listwise import Listwise
from .principal import unit_rows
from .relevance import LearnedRelevance

# How much faster than matrices single numbers (temperature, λ) may move under the listwise objective.
_FASTER = 20.0


@dataclass(frozen=True)
class Task:
    """An objective with all that the training loop needs of it.

    Attributes
    ----------
    parts : ModuleDict
        Everything that is trained.
    groups : list
        Parameters with their learning rates, for Adam.
    loss : callable
        From int64 (m,), places among 0..size-1, to a scalar Tensor.
    size : int
    likelihood : callable or None
        Mean log-likelihood of held-out subsets.
    kernel : callable
        The kernel as it stands.
    """

    parts: nn.ModuleDict
    groups: list[dict[str, object]]
    loss: Callable[[Tensor], Tensor]
    size: int
    likelihood: Callable[[], float] | None
    kernel: Callable[[], LinearKernel | LowRankKernel]


def make_factors(
    kernel: str, vectors: NDArray[np.floating], rank: int, skew_rank: int, seed: int, device: Any, size: int | None
) -> Factors:
    """Factors that begin at the embeddings: ``"linear"`` maps of the vectors, or ``"rows"`` of their own.

    With a ``size`` they are scaled so that the subsets of V Vᵀ have so many items on average, and the rows of B are as
    long as those of V. Where V is much the larger, B stays where it began: its gradient is cubic in B.

    Examples
    --------
    >>> type(make_factors("rows", np.eye(2), 2, 0, 0, "cpu", None)).__name__
    'RowFactors'
    """
    began: type[LinearFactors | RowFactors] = LinearFactors if kernel == "linear" else RowFactors
    made = began.principal(vectors, rank, skew_rank, seed=seed, scale=0.1 if size is None else 1.0)
    if size is not None:
        with torch.no_grad():
            by = _scale(torch.linalg.eigvalsh(made.grams().vv).clamp_min(0).numpy(), size)
            for part in made.parameters():
                if part.ndim == 2:
                    part.mul_(by)
    return made.to(device)


def _scale(eigenvalues: NDArray[np.float64], size: int) -> float:
    """s for which a DPP with kernel s² L has so many items on average, Σ s²λ / (1 + s²λ), or half its rank."""
    low, high = -40.0, 40.0
    wanted = min(size, int((eigenvalues > 1e-10 * eigenvalues.max()).sum()) / 2)
    for _ in range(60):
        middle = (low + high) / 2
        scaled = eigenvalues * np.exp(2 * middle)
        low, high = (middle, high) if (scaled / (1 + scaled)).sum() < wanted else (low, middle)
    return float(np.exp(high))


def listwise_task(
    factors: Factors,
    vectors: NDArray[np.floating],
    labels: Sequence[LabelledSubset],
    *,
    ids: Sequence[Hashable] | None,
    temperature: float,
    learn_relevance: bool,
    sharpness: float,
    pull: float,
    learning_rate: float,
) -> Task:
    """The listwise objective, its relevance trained along; see :class:`Listwise`."""
    unit = factors.unit if isinstance(factors, LinearFactors) else unit_rows(vectors)
    relevance = LearnedRelevance(unit, temperature, mapped=learn_relevance).to(factors.device)
    loss = Listwise(factors, relevance, labels, sharpness=sharpness, pull=pull)
    parts = nn.ModuleDict({"factors": factors, "relevance": relevance})
    parameters = list(parts.parameters())
    groups: list[dict[str, object]] = [
        {"params": [part for part in parameters if part.ndim == 2], "lr": learning_rate},
        {"params": [part for part in parameters if part.ndim < 2], "lr": _FASTER * learning_rate},
    ]
    return Task(parts, groups, loss, len(loss), None, lambda: _kernel(factors, ids, *relevance.numbers()))


def likelihood_task(
    factors: Factors,
    neighbours: Neighbours,
    vectors: NDArray[np.floating],
    labels: Sequence[LabelledSubset],
    held_out: Sequence[LabelledSubset],
    *,
    ids: Sequence[Hashable] | None,
    temperature: float,
    fetch_k: int,
    normalisation: str,
    alpha: float,
    beta: float,
    ridge: float,
    learning_rate: float,
) -> Task:
    """The paper's objective; see :class:`Likelihood`."""

    def among(some: Sequence[LabelledSubset]) -> dict[str, Any]:
        if normalisation == "pool":
            return {}
        candidates, relevance = _candidates(neighbours, vectors, some, fetch_k, temperature)
        return {"candidates": candidates, "relevance": relevance}

    loss = Likelihood(
        factors, [entry.subset for entry in labels], alpha, beta, ridge, normalisation=normalisation, **among(labels)
    )
    likelihood = None
    if held_out:
        subsets, inside = [entry.subset for entry in held_out], among(held_out)

        def likelihood() -> float:
            return loss.held_out(subsets, **inside)

    parts = nn.ModuleDict({"factors": factors})
    groups: list[dict[str, object]] = [{"params": list(parts.parameters()), "lr": learning_rate}]
    return Task(parts, groups, loss, len(loss), likelihood, lambda: _kernel(factors, ids, None, temperature))


def _kernel(
    factors: Factors, ids: Sequence[Hashable] | None, w_r: NDArray[np.float64] | None, temperature: float
) -> LinearKernel | LowRankKernel:
    if isinstance(factors, RowFactors):
        rows = factors.to_kernel(ids)
        return LowRankKernel(rows.V, rows.B, rows.C, ids=rows.ids, W_R=w_r, temperature=temperature)
    maps = factors.to_kernel()
    return LinearKernel(maps.W_V, maps.W_B, maps.C, W_R=w_r, temperature=temperature)


def _candidates(
    neighbours: Neighbours,
    vectors: NDArray[np.floating],
    labels: Sequence[LabelledSubset],
    fetch_k: int,
    temperature: float,
) -> tuple[list[list[int]], list[NDArray[np.float64]]]:
    """For each label its query's nearest, and whatever else the subset holds, with their relevance."""
    queries = list(dict.fromkeys(entry.query for entry in labels))
    nearest = {query: rows.tolist() for query, rows in zip(queries, neighbours.nearest(queries, fetch_k), strict=True)}
    candidates, relevance = [], []
    unit = unit_rows(vectors).numpy().astype(np.float64)
    for entry in labels:
        rows = list(dict.fromkeys([*nearest[entry.query], *entry.subset]))
        cosines = unit[rows].dot(unit[entry.query])
        candidates.append(rows)
        # Under a low temperature the far ones would be 0, which has no logarithm.
        relevance.append(np.maximum(np.exp((cosines - cosines.max()) / (2 * temperature)), 1e-150))
    return candidates, relevance
