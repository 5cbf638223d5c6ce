from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shared_core import Candidates, LinearKernel
from tests import oracles

torch = pytest.importorskip("torch")

from shared_core.learning.kernel import Factors  # noqa: E402
from tests.shared_core.learning.dense import UNIT, VECTORS, D, M, parts  # noqa: E402

every_rank = pytest.mark.parametrize(("K", "K_skew"), [(3, 4), (2, 3), (3, 0)])
EVERY = torch.arange(M)


def plain(tensor: Any) -> NDArray[np.float64]:
    return np.asarray(tensor.detach())


# --- C --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1e-12, 1e-3, 1.0, 19.9, 20.1, 41.0, 1e6])
def test_rates_are_unchanged_by_their_parametrisation(rate: float) -> None:
    factors = Factors(np.ones((2, 1)), np.ones((2, 2)), [rate])
    assert factors.rates.item() == pytest.approx(rate, rel=1e-10)


# --- kernels ----------------------------------------------------------------------------------------


@every_rank
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linear_factors_have_the_rows_that_their_kernel_serves(K: int, K_skew: int, dtype: type) -> None:
    vectors = VECTORS.astype(dtype)
    factors = Factors(*parts(D, K, K_skew), vectors=vectors)
    kernel = factors.to_kernel()
    assert isinstance(kernel, LinearKernel)
    v, b, c = kernel.factors(Candidates(np.ones(D, dtype), vectors))
    np.testing.assert_allclose(plain(factors.rows(EVERY)[0]), v, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(plain(factors.rows(EVERY)[1]), b, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(plain(factors.C()), c)


# --- where training starts --------------------------------------------------------------------------


@pytest.mark.parametrize("K", [1, 3, D])
def test_v_starts_as_the_best_approximation_of_the_gram_matrix(K: int) -> None:
    left, singular, _ = np.linalg.svd(UNIT)
    best = (left[:, :K] * singular[:K] ** 2) @ left[:, :K].T
    for linear in (True, False):
        v = plain(Factors.principal(VECTORS, range(M), K, 2, linear=linear, seed=0).rows(EVERY)[0])
        np.testing.assert_allclose(v @ v.T, best, atol=1e-12)


def test_columns_beyond_the_rank_of_the_vectors_are_not_zero() -> None:
    flat = np.random.default_rng(0).normal(size=(M, 2)) @ np.random.default_rng(1).normal(size=(2, D))
    for vectors in (flat, flat[:, :3]):
        v = plain(Factors.principal(vectors, range(M), 5, 0, linear=False, seed=0).V)
        assert (np.abs(v).max(axis=0) > 1e-3).all()
        np.testing.assert_allclose(
            v[:, :2] @ v[:, :2].T, oracles.unit_rows(vectors) @ oracles.unit_rows(vectors).T, atol=1e-12
        )
