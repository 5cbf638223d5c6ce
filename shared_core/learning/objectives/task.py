"""What a fit trains: the parameters, the loss of a batch, and the kernel that they make."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...selectors.kernels import LinearKernel, LowRankKernel
from ..labels.labelling import LabelledSubset, best
from ..neighbours import Neighbours
from ..settings import FitSettings
from .factors import Factors, LinearFactors, RowFactors, unit_rows
from .likelihood import Likelihood
from .listwise import LearnedRelevance, Listwise

# With the listwise objective, the learning rate of scalars (temperature, λ) is this many times that of matrices.
_FASTER = 20.0


@dataclass(frozen=True)
class Task:
    """An objective with all that the training loop needs of it.

    ``parts`` is everything that is trained, ``groups`` the parameters with their learning rates (for Adam), ``loss``
    maps int64 (m,), numbers of examples in 0..size-1, to a scalar, ``likelihood`` is the mean log-likelihood of the
    held-out subsets if the objective has one, and ``kernel`` makes the current kernel.
    """

    parts: nn.ModuleDict
    groups: list[dict[str, object]]
    loss: Callable[[Tensor], Tensor]
    size: int
    likelihood: Callable[[], float] | None
    kernel: Callable[[], LinearKernel | LowRankKernel]


def make_task(
    settings: FitSettings,
    neighbours: Neighbours,
    vectors: NDArray[np.floating],
    trained: Sequence[LabelledSubset],
    held_out: Sequence[LabelledSubset],
    ids: Sequence[Hashable] | None,
) -> Task:
    """The task of the settings' objective, its factors at the embeddings ``vectors`` (n, d)."""
    factors, rate = _make_factors(settings, vectors), settings.adam_rate
    if settings.listwise:
        unit = factors.unit if isinstance(factors, LinearFactors) else unit_rows(vectors)
        relevance = LearnedRelevance(unit, settings.temperature, mapped=settings.learn_relevance).to(factors.device)
        listwise = Listwise(factors, relevance, trained, sharpness=settings.sharpness, pull=settings.pull)
        parts = nn.ModuleDict({"factors": factors, "relevance": relevance})
        matrices, numbers = ([p for p in parts.parameters() if (p.ndim == 2) is matrix] for matrix in (True, False))
        groups = [{"params": matrices, "lr": rate}, {"params": numbers, "lr": _FASTER * rate}]
        return Task(
            parts, groups, listwise, len(listwise), None, lambda: _make_kernel(factors, ids, *relevance.numbers())
        )

    def among(labels: Sequence[LabelledSubset]) -> dict[str, Any]:
        if settings.normalisation == "pool":
            return {}
        candidates, relevance = _find_candidates(settings, neighbours, vectors, labels)
        return {"candidates": candidates, "relevance": relevance}

    # The best labels of each part are taken separately: held-out labels must not decide which labels are trained on.
    trained, held_out = best(trained, settings.share), best(held_out, settings.share)
    loss = Likelihood(
        factors, [entry.subset for entry in trained], settings.alpha, settings.beta, settings.ridge,
        normalisation=settings.normalisation, **among(trained),
    )  # fmt: skip
    subsets, inside = [entry.subset for entry in held_out], among(held_out)
    parts = nn.ModuleDict({"factors": factors})
    return Task(
        parts, [{"params": list(parts.parameters()), "lr": rate}], loss, len(loss),
        lambda: loss.held_out(subsets, **inside), lambda: _make_kernel(factors, ids, None, settings.temperature),
    )  # fmt: skip


def _make_factors(settings: FitSettings, vectors: NDArray[np.floating]) -> Factors:
    """Factors that start at the embeddings, for the likelihood scaled to subsets of about k items."""
    kind: type[LinearFactors | RowFactors] = LinearFactors if settings.kernel == "linear" else RowFactors
    rank = settings.rank or vectors.shape[1]
    scale = 0.1 if settings.listwise else 1.0
    made = kind.principal(vectors, rank, settings.skew_rank, seed=settings.seed, scale=scale)
    if not settings.listwise:
        # The likelihood is over all subsets of the pool. It starts where a subset of V Vᵀ has k items on average, and
        # with rows of B as long as those of V: with far shorter rows B would not change, as its gradient is cubic in B.
        with torch.no_grad():
            by = _find_scale(torch.linalg.eigvalsh(made.grams().vv).clamp_min(0).numpy(), settings.k)
            for part in made.parameters():
                if part.ndim == 2:
                    part.mul_(by)
    return made.to(settings.device)


def _find_scale(eigenvalues: NDArray[np.float64], size: int) -> float:
    """s for which subsets of a DPP with kernel s² L have ``size`` items on average, at most half the rank of L."""
    # The average is Σ s²λ / (1 + s²λ) over the eigenvalues λ of L; it grows with s, so s is found by bisection.
    low, high = -40.0, 40.0
    wanted = min(size, int((eigenvalues > 1e-10 * eigenvalues.max()).sum()) / 2)
    for _ in range(60):
        middle = (low + high) / 2
        scaled = eigenvalues * np.exp(2 * middle)
        low, high = (middle, high) if (scaled / (1 + scaled)).sum() < wanted else (low, middle)
    return float(np.exp(high))


def _make_kernel(
    factors: Factors, ids: Sequence[Hashable] | None, w_r: NDArray[np.float64] | None, temperature: float
) -> LinearKernel | LowRankKernel:
    if isinstance(factors, RowFactors):
        rows = factors.to_kernel(ids)
        return LowRankKernel(rows.V, rows.B, rows.C, ids=rows.ids, W_R=w_r, temperature=temperature)
    maps = factors.to_kernel()
    return LinearKernel(maps.W_V, maps.W_B, maps.C, W_R=w_r, temperature=temperature)


def _find_candidates(
    settings: FitSettings,
    neighbours: Neighbours,
    vectors: NDArray[np.floating],
    labels: Sequence[LabelledSubset],
) -> tuple[list[list[int]], list[NDArray[np.float64]]]:
    """For each label its query's nearest items and those of the subset, and their relevance."""
    queries = list(dict.fromkeys(entry.query for entry in labels))
    nearest = dict(zip(queries, neighbours.nearest(queries, settings.fetch_k), strict=True))
    candidates, relevance = [], []
    unit = unit_rows(vectors).numpy().astype(np.float64)
    for entry in labels:
        rows = list(dict.fromkeys([*nearest[entry.query].tolist(), *entry.subset]))
        cosines = unit[rows].dot(unit[entry.query])
        candidates.append(rows)
        # With a low temperature, distant items would have relevance 0, which has no logarithm.
        relevance.append(np.maximum(np.exp((cosines - cosines.max()) / (2 * settings.temperature)), 1e-150))
    return candidates, relevance
