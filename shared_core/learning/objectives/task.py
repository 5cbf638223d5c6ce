"""What a fit trains: the parameters, the loss of a batch, and the kernel that they make."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...selectors.kernels import LinearKernel, LowRankKernel
from ..held_out import Split
from ..labels.labelling import LabelledSubset, best
from ..neighbours import Neighbours
from ..settings import FitSettings
from .factors import Factors, LinearFactors, RowFactors, unit_rows
from .likelihood import Likelihood, log_likelihood
from .listwise import LearnedRelevance, Listwise

# With the listwise objective, the learning rate of scalars (temperature, λ) is this many times that of matrices.
_FASTER = 20.0


@dataclass(frozen=True)
class Task:
    """An objective with all that the training loop needs of it: what is trained, and how.

    ``groups`` are the parameters with their learning rates, for Adam. ``loss`` maps the numbers of m examples, int64
    (m,) in 0..size-1, to a scalar. ``likelihood`` computes log P of each of the held-out queries' subsets.
    """

    parts: nn.ModuleDict
    groups: list[dict[str, object]]
    loss: Callable[[Tensor], Tensor]
    size: int
    likelihood: Callable[[], NDArray[np.float64]] | None
    kernel: Callable[[], LinearKernel | LowRankKernel]


def make_task(
    settings: FitSettings,
    neighbours: Neighbours,
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
    factors, whole = _make_factors(settings, vectors, pool)
    rate = settings.adam_rate

    def make_kernel(w_r: NDArray[np.float64] | None, temperature: float) -> LinearKernel | LowRankKernel:
        if isinstance(factors, LinearFactors):
            return replace(factors.to_kernel(), W_R=w_r, temperature=temperature)
        assert whole is not None
        with torch.no_grad():
            whole.V[pool], whole.B[pool] = factors.V.cpu(), factors.B.cpu()
            whole.free_rates.copy_(factors.free_rates)
        return replace(whole.to_kernel(ids), W_R=w_r, temperature=temperature)

    def subsets(labels: Sequence[LabelledSubset]) -> list[NDArray[np.int64]]:
        return [place[list(entry.subset)] for entry in labels]

    if settings.listwise:
        unit = factors.unit if isinstance(factors, LinearFactors) else unit_rows(vectors[pool])
        relevance = LearnedRelevance(unit, settings.temperature, mapped=settings.learn_relevance).to(factors.device)
        placed = [
            LabelledSubset(int(place[entry.query]), tuple(rows.tolist()), entry.score)
            for entry, rows in zip(trained, subsets(trained), strict=True)
        ]
        listwise = Listwise(factors, relevance, placed, sharpness=settings.sharpness, pull=settings.pull)
        parts = nn.ModuleDict({"factors": factors, "relevance": relevance})
        matrices, numbers = ([p for p in parts.parameters() if (p.ndim == 2) is matrix] for matrix in (True, False))
        groups = [{"params": matrices, "lr": rate}, {"params": numbers, "lr": _FASTER * rate}]
        return Task(parts, groups, listwise, len(listwise), None, lambda: make_kernel(*relevance.numbers()))

    def among(labels: Sequence[LabelledSubset]) -> dict[str, Any]:
        if settings.normalisation == "pool":
            return {}
        candidates, relevance = _find_candidates(settings, neighbours, vectors, split, labels)
        return {"candidates": [place[rows] for rows in candidates], "relevance": relevance}

    # The best labels of each part are taken separately: held-out labels must not decide which labels are trained on.
    trained = best(trained, settings.share)
    loss = Likelihood(factors, subsets(trained), settings.alpha, settings.beta, settings.ridge, **among(trained))
    likelihood = None
    if held_out:
        held_out = best(held_out, settings.share)
        likelihood = partial(log_likelihood, factors, subsets(held_out), ridge=settings.ridge, **among(held_out))
    parts = nn.ModuleDict({"factors": factors})
    return Task(
        parts, [{"params": list(parts.parameters()), "lr": rate}], loss, len(loss), likelihood,
        lambda: make_kernel(None, settings.temperature),
    )  # fmt: skip


def _make_factors(
    settings: FitSettings, vectors: NDArray[np.floating], pool: NDArray[np.int64]
) -> tuple[Factors, RowFactors | None]:
    """Factors of the rows ``pool`` that start at the embeddings; for a row kernel also the start of all rows."""
    rank, whole = settings.rank or vectors.shape[1], None
    start: dict[str, Any] = {"seed": settings.seed, "scale": 0.1 if settings.listwise else 1.0}
    factors: Factors
    if settings.kernel == "linear":
        factors = LinearFactors.principal(vectors[pool], rank, settings.skew_rank, **start)
    else:
        whole = RowFactors.principal(vectors, rank, settings.skew_rank, pool=pool, **start)
        v, b, rates = (part.detach().numpy() for part in (whole.V, whole.B, whole.rates))
        factors = RowFactors(v[pool], b[pool], rates)
    if not settings.listwise:
        # The likelihood is over all subsets of the pool. It starts where a subset of V Vᵀ has k items on average, and
        # with rows of B as long as those of V: with far shorter rows B would not change, as its gradient is cubic in B.
        with torch.no_grad():
            scale = _find_scale(torch.linalg.eigvalsh(factors.grams().vv).clamp_min(0).numpy(), settings.k)
            for part in (*factors.parameters(), *(whole.parameters() if whole else ())):
                if part.ndim == 2:
                    part.mul_(scale)
    return factors.to(settings.device), whole


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


def _find_candidates(
    settings: FitSettings,
    neighbours: Neighbours,
    vectors: NDArray[np.floating],
    split: Split,
    labels: Sequence[LabelledSubset],
) -> tuple[list[list[int]], list[NDArray[np.float64]]]:
    """For each label its query's nearest examples and those of the subset, and their relevance."""
    queries = list(dict.fromkeys(entry.query for entry in labels))
    nearest = dict(zip(queries, neighbours.nearest(queries, settings.fetch_k, split.examples), strict=True))
    candidates, relevance = [], []
    unit = unit_rows(vectors).numpy().astype(np.float64)
    for entry in labels:
        rows = list(dict.fromkeys([*nearest[entry.query].tolist(), *entry.subset]))
        cosines = unit[rows].dot(unit[entry.query])
        candidates.append(rows)
        # With a low temperature, distant items would have relevance 0, which has no logarithm.
        relevance.append(np.maximum(np.exp((cosines - cosines.max()) / (2 * settings.temperature)), 1e-150))
    return candidates, relevance
