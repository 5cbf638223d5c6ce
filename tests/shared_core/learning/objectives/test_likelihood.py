from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from shared_core.learning.objectives.factors import RowFactors  # noqa: E402
from shared_core.learning.objectives.likelihood import Likelihood, log_likelihood  # noqa: E402
from tests.shared_core.learning.objectives.dense import (  # noqa: E402
    KINDS,
    M,
    Matrix,
    check_gradient,
    dense,
    factors_of,
    of_rank_one_with_an_item_twice,
    rows_of,
)

SUBSETS = [[0, 1], [4], [8, 2, 5], [1, 7], [0, 6, 3, 1]]
# Some lists are longer than K + K' and some are shorter, so both ways to compute the normaliser are tested.
CANDIDATES = [[1, 0], [4, 5, 6], [2, 3, 5, 8], [*range(M)], [6, 0, 3, 1, 8]]
RELEVANCE = [np.random.default_rng(9).uniform(0.05, 1, len(c)).tolist() for c in CANDIDATES]
SETTINGS: dict[str, dict[str, Any]] = {"pool": {}, "candidates": {"candidates": CANDIDATES, "relevance": RELEVANCE}}
every_setting = pytest.mark.parametrize("setting", SETTINGS)
every_kind = pytest.mark.parametrize("kind", KINDS)
every_shape = pytest.mark.parametrize(("kind", "K", "K_skew"), [("rows", 3, 4), ("linear", 2, 3), ("linear", 4, 0)])


def loss_of(factors: Any, setting: str, subsets: Sequence[Sequence[int]] = SUBSETS, **more: Any) -> Likelihood:
    return Likelihood(factors, subsets, **SETTINGS[setting], **more)


# --- dense formulas, in numpy ---------------------------------------------------------------------


def dense_log_likelihoods(kernel: Matrix, setting: str, ridge: float) -> Matrix:
    found = []
    for n, subset in enumerate(SUBSETS):
        items = CANDIDATES[n] if setting != "pool" else list(range(M))
        r = np.ones(M)
        if setting != "pool":
            r[items] = RELEVANCE[n]
        inside = np.linalg.det(kernel[np.ix_(subset, subset)] + ridge * np.eye(len(subset)))
        adapted = (r[:, None] * kernel * r)[np.ix_(items, items)]
        whole = np.linalg.det(adapted + np.eye(len(items)))
        found.append(np.log(inside) + 2 * np.log(r[subset]).sum() - np.log(whole))
    return np.array(found)


def dense_penalty(v: Matrix, b: Matrix, alpha: float, beta: float) -> float:
    counts = [sum(i in subset for subset in SUBSETS) for i in range(M)]
    return sum(
        (alpha * float(v[i] @ v[i]) + beta * float(b[i] @ b[i])) / (counts[i] if counts[i] else 1) for i in range(M)
    )


# --- the value ------------------------------------------------------------------------------------


@every_shape
@every_setting
@pytest.mark.parametrize("ridge", [1e-5, 0.1])
def test_the_loss_equals_that_of_dense_determinants(kind: str, K: int, K_skew: int, setting: str, ridge: float) -> None:
    v, b, kernel = rows_of(kind, K, K_skew)
    expected = dense_log_likelihoods(kernel, setting, ridge)
    factors = factors_of(kind, K, K_skew)
    loss = loss_of(factors, setting, alpha=0.03, beta=0.2, ridge=ridge)
    assert len(loss) == len(SUBSETS)
    penalty = dense_penalty(v, b, 0.03, 0.2)
    for batch in ([0, 1, 2, 3, 4], [4, 1], [2]):
        found = loss(torch.tensor(batch))
        assert found.dtype == torch.float64
        assert found.item() == pytest.approx(penalty - expected[batch].mean(), rel=1e-8)
    given = SETTINGS[setting]
    np.testing.assert_allclose(log_likelihood(factors, SUBSETS, **given, ridge=ridge), expected, rtol=1e-7)


@every_shape
def test_the_probabilities_of_all_subsets_sum_to_one(kind: str, K: int, K_skew: int) -> None:
    """Σ det(L_S) = det(L + I), the empty set having determinant 1."""
    everything = [list(s) for size in range(1, M + 1) for s in itertools.combinations(range(M), size)]
    factors = factors_of(kind, K, K_skew)
    kernel = rows_of(kind, K, K_skew)[2]
    empty = 1 / np.linalg.det(kernel + np.eye(M))
    assert np.exp(log_likelihood(factors, everything, ridge=0)).sum() + empty == pytest.approx(1, rel=1e-9)


def test_many_subsets_are_scored_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = factors_of("rows", 3, 4)
    whole = [log_likelihood(factors, SUBSETS, **given) for given in SETTINGS.values()]
    monkeypatch.setattr("shared_core.learning.objectives.likelihood._ROWS_AT_ONCE", 8)
    for given, expected in zip(SETTINGS.values(), whole, strict=True):
        np.testing.assert_allclose(log_likelihood(factors, SUBSETS, **given), expected, rtol=1e-12)


# --- the gradient -----------------------------------------------------------------------------------


@every_shape
@every_setting
def test_the_gradient_equals_central_differences(kind: str, K: int, K_skew: int, setting: str) -> None:
    factors = factors_of(kind, K, K_skew)
    # With a ridge of 1e-5 the loss near a set beyond the rank is too curved for finite differences.
    check_gradient(loss_of(factors, setting, alpha=0.03, beta=0.2, ridge=0.05), torch.tensor([4, 0, 2]), factors)


@every_kind
@every_setting
def test_a_subset_beyond_the_rank_or_with_an_item_twice_stays_finite(kind: str, setting: str) -> None:
    _, factors = of_rank_one_with_an_item_twice(kind)
    loss = loss_of(factors, setting)
    value = loss(torch.arange(5))
    value.backward()
    assert np.isfinite(value.item())
    for parameter in factors.parameters():
        assert np.isfinite(parameter.grad.numpy()).all()
    assert np.isfinite(log_likelihood(factors, SUBSETS, **SETTINGS[setting])).all()


# --- learning ---------------------------------------------------------------------------------------


def probabilities(kernel: Matrix) -> tuple[list[list[int]], Matrix]:
    """Every subset that is not empty, and its probability among these."""
    n = len(kernel)
    subsets = [list(s) for size in range(1, n + 1) for s in itertools.combinations(range(n), size)]
    weights = np.array([max(float(np.linalg.det(kernel[np.ix_(s, s)])), 0.0) for s in subsets])
    return subsets, weights / weights.sum()


def train(factors: Any, subsets: list[list[int]]) -> None:
    rng = np.random.default_rng(0)
    loss = Likelihood(factors, subsets)
    adam = torch.optim.Adam(factors.parameters(), lr=0.02)
    for _ in range(40):
        for batch in torch.from_numpy(rng.permutation(len(subsets))).split(150):
            adam.zero_grad()
            loss(batch).backward()
            adam.step()


@pytest.mark.slow
def test_a_known_kernel_is_recovered_from_its_samples() -> None:
    """Held out, at least 95 % of the way from the first likelihood to that of the kernel that was sampled."""
    rng = np.random.default_rng(0)
    n, K, K_skew = 8, 4, 4
    v, b, rates = rng.normal(size=(n, K)), rng.normal(size=(n, K_skew)), np.array([1.5, 0.8])
    subsets, chances = probabilities(dense(v, b, rates))
    drawn = [subsets[i] for i in rng.choice(len(subsets), size=3000, p=chances)]
    labels, held_out = drawn[:2400], drawn[2400:]
    truth = log_likelihood(RowFactors(v, b, rates), held_out).mean()

    first = np.random.default_rng(100)
    factors = RowFactors(first.normal(size=(n, K)), 0.3 * first.normal(size=(n, K_skew)), [1.0, 1.0])
    before, rates_before = log_likelihood(factors, held_out).mean(), factors.rates.detach().clone()
    train(factors, labels)
    after = log_likelihood(factors, held_out).mean()
    assert before < truth
    assert (after - before) / (truth - before) >= 0.95
    assert np.abs((factors.rates - rates_before).detach().numpy()).min() > 0.01


@pytest.mark.slow
def test_items_that_come_together_need_the_skew_part() -> None:
    """det L_{ij} ≤ L_ii L_jj under a symmetric kernel: it cannot say that two items want each other."""
    rng = np.random.default_rng(2)
    v, b, rates = 0.3 * np.eye(4), np.eye(4), np.array([3.0, 2.0])
    subsets, chances = probabilities(dense(v, b, rates))
    drawn = [subsets[i] for i in rng.choice(len(subsets), size=2000, p=chances)]
    labels, held_out = drawn[:1500], drawn[1500:]
    truth = log_likelihood(RowFactors(v, b, rates), held_out).mean()
    found = {}
    for K_skew in (4, 0):
        factors = RowFactors(rng.normal(size=(4, 4)), 0.3 * rng.normal(size=(4, K_skew)), np.ones(K_skew // 2))
        train(factors, labels)
        found[K_skew] = log_likelihood(factors, held_out).mean()
    # Both may end in a local optimum; the optimum of the full-rank symmetric kernel is far below.
    assert found[0] < truth - 0.5
    assert found[4] > found[0] + 0.3
