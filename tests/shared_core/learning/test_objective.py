from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from shared_core import NDPP, Candidates, InvalidInputError, LinearKernel, LowRankKernel
from shared_core.learning import FitSettings, LabelledSubset, Split
from tests import oracles

torch = pytest.importorskip("torch")

from shared_core.learning.kernel import unit_rows  # noqa: E402
from shared_core.learning.objective import LearnedRelevance, Likelihood, Listwise, make_task  # noqa: E402
from tests.shared_core.learning.dense import (  # noqa: E402
    KINDS,
    UNIT,
    VECTORS,
    D,
    M,
    Matrix,
    check_gradient,
    dense,
    factors_of,
    of_rank_one_with_an_item_twice,
    rows_of,
)

# --- likelihood -----------------------------------------------------------------------------------

every_kind = pytest.mark.parametrize("kind", KINDS)
SUBSETS = [[0, 1], [4], [8, 2, 5], [1, 7], [0, 6, 3, 1]]
every_shape = pytest.mark.parametrize(("kind", "K", "K_skew"), [("rows", 3, 4), ("linear", 2, 3), ("linear", 4, 0)])


def dense_log_likelihoods(kernel: Matrix, ridge: float) -> Matrix:
    whole = np.linalg.det(kernel + np.eye(M))
    inside = [np.linalg.det(kernel[np.ix_(s, s)] + ridge * np.eye(len(s))) for s in SUBSETS]
    return np.log(inside) - np.log(whole)


def dense_penalty(v: Matrix, b: Matrix, alpha: float, beta: float) -> float:
    counts = [sum(i in subset for subset in SUBSETS) for i in range(M)]
    return sum(
        (alpha * float(v[i] @ v[i]) + beta * float(b[i] @ b[i])) / (counts[i] if counts[i] else 1) for i in range(M)
    )


@every_shape
@pytest.mark.parametrize("ridge", [1e-5, 0.1])
def test_the_loss_equals_that_of_dense_determinants(kind: str, K: int, K_skew: int, ridge: float) -> None:
    v, b, kernel = rows_of(kind, K, K_skew)
    expected = dense_log_likelihoods(kernel, ridge)
    factors = factors_of(kind, K, K_skew)
    loss = Likelihood(factors, SUBSETS, alpha=0.03, beta=0.2, ridge=ridge)
    assert len(loss) == len(SUBSETS)
    penalty = dense_penalty(v, b, 0.03, 0.2)
    for batch in ([0, 1, 2, 3, 4], [4, 1], [2]):
        found = loss(torch.tensor(batch))
        assert found.dtype == torch.float64
        assert found.item() == pytest.approx(penalty - expected[batch].mean(), rel=1e-8)
    np.testing.assert_allclose(loss.values(), expected, rtol=1e-7)


@every_shape
def test_the_probabilities_of_all_subsets_sum_to_one(kind: str, K: int, K_skew: int) -> None:
    """Σ det(L_S) = det(L + I), the empty set having determinant 1."""
    everything = [list(s) for size in range(1, M + 1) for s in itertools.combinations(range(M), size)]
    factors = factors_of(kind, K, K_skew)
    kernel = rows_of(kind, K, K_skew)[2]
    empty = 1 / np.linalg.det(kernel + np.eye(M))
    assert np.exp(Likelihood(factors, everything, ridge=0).values()).sum() + empty == pytest.approx(1, rel=1e-9)


@every_shape
def test_the_gradient_equals_central_differences(kind: str, K: int, K_skew: int) -> None:
    factors = factors_of(kind, K, K_skew)
    # With a ridge of 1e-5 the loss near a set beyond the rank is too curved for finite differences.
    check_gradient(Likelihood(factors, SUBSETS, alpha=0.03, beta=0.2, ridge=0.05), torch.tensor([4, 0, 2]), factors)


# --- listwise ---------------------------------------------------------------------------------------

# Each kind stands with each map, and each rank once.
every_map = pytest.mark.parametrize(
    ("kind", "K", "K_skew", "mapped"),
    [("rows", 3, 4, True), ("linear", 2, 3, True), ("linear", 4, 0, False), ("rows", 5, 2, False)],
)


def labelled(query: int, *scored: tuple[tuple[int, ...], float]) -> list[LabelledSubset]:
    return [LabelledSubset(query, subset, score) for subset, score in scored]


# Queries with different numbers of sizes, of subsets and of rows, so that everything has to be padded.
LABELS = [
    *labelled(0, ((1,), 0.2), ((2,), 0.9), ((1, 2), 0.5), ((3, 4), 0.1), ((5, 1), 0.8)),
    *labelled(3, ((1, 2, 8), 0.3), ((2, 8, 9), 0.7)),
    *labelled(9, ((4,), 0.4), ((0,), 0.4)),
    *labelled(7, ((6,), 1.0), ((5,), 0.0), ((4,), 0.5), ((6, 5), 0.6), ((6, 4), 0.6), ((0, 1, 2, 3), 0.9)),
]
# The lists that teach: sizes 1 and 2 of query 0, size 3 of query 3, size 1 of query 7. The others have equal scores or
# one subset.
LISTS = [
    (0, [(1,), (2,)], [0.2, 0.9]),
    (0, [(1, 2), (3, 4), (5, 1)], [0.5, 0.1, 0.8]),
    (3, [(1, 2, 8), (2, 8, 9)], [0.3, 0.7]),
    (7, [(6,), (5,), (4,)], [1.0, 0.0, 0.5]),
]


def moved(relevance: LearnedRelevance) -> LearnedRelevance:
    """Away from the identity, as it is in the middle of training."""
    rng = np.random.default_rng(4)
    with torch.no_grad():
        if relevance.W_R is not None:
            relevance.W_R.add_(0.4 * torch.from_numpy(rng.normal(size=(D, D))))
        relevance.log_temperature.fill_(np.log(0.35))
    return relevance


def relevance_of(mapped: bool) -> LearnedRelevance:
    return moved(LearnedRelevance(unit_rows(VECTORS), 0.2, mapped=mapped))


def served(kernel: Matrix, relevance: LearnedRelevance, query: int) -> Matrix:
    """R L R of the whole pool for one query."""
    w_r, temperature = relevance.numbers()
    rows = UNIT if w_r is None else oracles.unit_rows(UNIT @ w_r)
    r = np.exp(rows @ rows[query] / (2 * temperature))
    return np.diag(r) @ kernel @ np.diag(r)


def divergences(kernel: Matrix, relevance: LearnedRelevance, sharpness: float, ridge: float) -> dict[int, list[float]]:
    """KL of each list by hand; the ridge is on L_S, so it is scaled with R."""
    tau = sharpness * np.mean([np.std(scores) for _, _, scores in LISTS])
    found: dict[int, list[float]] = {}
    for query, subsets, scores in LISTS:
        adapted = served(kernel + ridge * np.eye(M), relevance, query)
        dets = np.array([np.linalg.det(adapted[np.ix_(s, s)]) for s in subsets])
        p = dets / dets.sum()
        t = np.exp(np.array(scores) / tau)
        t /= t.sum()
        found.setdefault(query, []).append(float(sum(t * np.log(t / p))))
    return found


@every_map
@pytest.mark.parametrize(("sharpness", "ridge"), [(0.3, 1e-5), (1.0, 0.1)])
def test_the_listwise_loss_equals_that_of_dense_determinants(
    kind: str, K: int, K_skew: int, mapped: bool, sharpness: float, ridge: float
) -> None:
    relevance = relevance_of(mapped)
    expected = divergences(rows_of(kind, K, K_skew)[2], relevance, sharpness, ridge)
    loss = Listwise(factors_of(kind, K, K_skew), relevance, LABELS, sharpness=sharpness, pull=0, ridge=ridge)
    assert loss.queries == [0, 3, 7]
    for batch in ([0, 1, 2], [2], [1, 0]):
        lists = [value for place in batch for value in expected[loss.queries[place]]]
        found = loss(torch.tensor(batch))
        assert found.dtype == torch.float64
        assert found.item() == pytest.approx(np.mean(lists), rel=1e-8)


@every_kind
def test_the_pull_is_towards_the_start_of_the_matrices(kind: str) -> None:
    factors, relevance = factors_of(kind, 3, 4), relevance_of(True)
    plain = Listwise(factors, relevance, LABELS, pull=0)
    pulled = Listwise(factors, relevance, LABELS, pull=0.25)
    everything = torch.arange(3)
    assert pulled(everything).item() == plain(everything).item()
    moves = 0.0
    with torch.no_grad():
        for n, part in enumerate([*factors.parameters(), *relevance.parameters()]):
            part.add_(0.01 * (n + 1))
            # Single numbers, the rates and the temperature, are not pulled.
            moves += part.numel() * (0.01 * (n + 1)) ** 2 if part.ndim == 2 else 0.0
    assert moves > 0
    assert (pulled(everything) - plain(everything)).item() == pytest.approx(0.25 * moves, rel=1e-9)


@every_map
def test_the_listwise_gradient_equals_central_differences(kind: str, K: int, K_skew: int, mapped: bool) -> None:
    factors, relevance = factors_of(kind, K, K_skew), relevance_of(mapped)
    # With a small ridge the loss near a set beyond the rank is too curved for finite differences.
    loss, batch = Listwise(factors, relevance, LABELS, pull=0.02, ridge=0.05), torch.tensor([2, 0, 1])
    with torch.no_grad():
        for part in factors.parameters():
            part.add_(0.05)
    check_gradient(loss, batch, factors, relevance)


@every_kind
@pytest.mark.parametrize("objective", ["likelihood", "listwise"])
def test_a_subset_beyond_the_rank_or_with_a_text_twice_stays_finite(kind: str, objective: str) -> None:
    vectors, factors = of_rank_one_with_an_item_twice(kind)
    # A row of zeros has relevance 1.
    relevance = LearnedRelevance(unit_rows(np.where(np.arange(M)[:, None] == 6, 0, vectors)), 0.1)
    loss: Any = Likelihood(factors, SUBSETS) if objective == "likelihood" else Listwise(factors, relevance, LABELS)
    value = loss(torch.arange(3))
    value.backward()
    assert np.isfinite(value.item())
    for part in [*factors.parameters(), *relevance.parameters()]:
        assert part.grad is None or np.isfinite(part.grad.numpy()).all()


@every_map
def test_the_kernel_has_the_trained_parameters(kind: str, K: int, K_skew: int, mapped: bool) -> None:
    """NDPP's greedy choice under the kernel is that of determinants of R L R of the trained parameters."""
    settings = FitSettings(
        kernel=kind,
        rank=K,
        skew_rank=K_skew,
        temperature=0.2,
        learn_relevance=mapped,
        sharpness=0.3,
        learning_rate=0.01,
    )
    task = make_task(settings, VECTORS, Split((*range(M),), (), ()), LABELS, [], None)
    factors: Any = task.parts["factors"]
    adam = torch.optim.Adam(task.groups)
    for _ in range(15):
        adam.zero_grad()
        task.loss(torch.arange(len(task.loss))).backward()
        adam.step()
    relevance: Any = task.parts["relevance"]
    (v, b), rates = factors.rows(torch.arange(M)), factors.rates
    whole = dense(*(part.detach().numpy() for part in (v, b, rates)))
    kernel = task.kernel()
    assert isinstance(kernel, LowRankKernel if kind == "rows" else LinearKernel)
    assert (kernel.W_R is not None) == mapped
    for query in range(M):
        among = [row for row in range(M) if row != query]
        adapted = served(whole, relevance, query)
        picks: list[int] = []
        for _ in range(min(3, K + K_skew)):
            dets = [
                -np.inf if row in picks else np.linalg.det(adapted[np.ix_([*picks, row], [*picks, row])])
                for row in among
            ]
            picks.append(among[int(np.argmax(dets))])
        chosen = NDPP(kernel).select(Candidates(VECTORS[query], VECTORS[among], ids=among), len(picks))
        assert [among[i] for i in chosen.indices] == picks


@pytest.mark.parametrize(
    "labels",
    [
        [],
        labelled(0, ((1,), 0.5), ((2,), 0.5), ((1, 2), 0.7)),
        [*labelled(0, ((1,), 0.5)), *labelled(1, ((2,), 0.7))],
    ],
)
def test_labels_that_teach_nothing_are_refused(labels: list[LabelledSubset]) -> None:
    with pytest.raises(InvalidInputError, match="two subsets"):
        Listwise(factors_of("rows", 2, 2), relevance_of(True), labels)
