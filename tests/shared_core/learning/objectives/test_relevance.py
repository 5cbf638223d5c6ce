from __future__ import annotations

import numpy as np
import pytest

from shared_core import Candidates, LinearKernel
from tests import oracles

torch = pytest.importorskip("torch")

from shared_core.learning.objectives.factors import unit_rows  # noqa: E402
from shared_core.learning.objectives.listwise import LearnedRelevance  # noqa: E402

RNG = np.random.default_rng(5)
VECTORS = RNG.normal(size=(9, 4)) * RNG.uniform(0.3, 4, size=(9, 1))
UNIT = oracles.unit_rows(VECTORS)
QUERIES, ITEMS = [2, 7], [[0, 1, 8], [3, 3, 2]]


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def test_a_trained_map_and_temperature_are_used() -> None:
    relevance = LearnedRelevance(unit_rows(VECTORS), 0.2)
    w_r = RNG.normal(size=(4, 4))
    with torch.no_grad():
        relevance.W_R.copy_(torch.from_numpy(w_r))
        relevance.log_temperature.fill_(np.log(0.7))
    logs = relevance.logs(torch.tensor(QUERIES), torch.tensor(ITEMS))
    for n, query in enumerate(QUERIES):
        expected = [cosine(UNIT[query] @ w_r, UNIT[item] @ w_r) / 1.4 for item in ITEMS[n]]
        np.testing.assert_allclose(logs[n].detach().numpy(), expected, rtol=1e-12)


def test_a_kernel_with_these_numbers_has_the_same_relevance_up_to_its_maximum() -> None:
    relevance = LearnedRelevance(unit_rows(VECTORS), 0.3)
    with torch.no_grad():
        relevance.W_R.add_(0.3 * torch.from_numpy(RNG.normal(size=(4, 4))))
        relevance.log_temperature.sub_(0.5)
    w_r, temperature = relevance.numbers()
    assert temperature == pytest.approx(0.3 * np.exp(-0.5))
    kernel = LinearKernel(np.eye(4), W_R=w_r, temperature=temperature)
    logs = relevance.logs(torch.tensor([4]), torch.arange(9)[None])[0].detach().numpy()
    found = kernel.log_relevance(Candidates(VECTORS[4], VECTORS))
    assert found is not None
    np.testing.assert_allclose(found, logs - logs.max(), atol=1e-12)


def test_numbers_are_copies_and_without_a_map_w_r_is_none() -> None:
    relevance = LearnedRelevance(unit_rows(VECTORS), 0.25)
    w_r, _ = relevance.numbers()
    assert w_r is not None
    w_r[:] = 0
    assert relevance.W_R.detach().numpy().tolist() == np.eye(4).tolist()
    without = LearnedRelevance(unit_rows(VECTORS), 0.25, mapped=False)
    assert without.numbers() == (None, pytest.approx(0.25))
    assert [name for name, _ in without.named_parameters()] == ["log_temperature"]


def test_a_zero_row_has_cosine_zero_and_a_finite_gradient() -> None:
    vectors = VECTORS.copy()
    vectors[1] = 0
    relevance = LearnedRelevance(unit_rows(vectors), 0.2)
    logs = relevance.logs(torch.tensor([2]), torch.tensor([[1, 3]]))
    assert logs[0, 0] == 0
    logs.sum().backward()
    assert np.isfinite(relevance.W_R.grad.numpy()).all()
