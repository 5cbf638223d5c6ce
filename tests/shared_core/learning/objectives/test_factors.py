from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shared_core import Candidates, LinearKernel
from tests import oracles

torch = pytest.importorskip("torch")

from shared_core.learning.objectives.factors import LinearFactors, RowFactors, principal_directions  # noqa: E402
from tests.shared_core.learning.objectives.dense import KINDS, UNIT, VECTORS, D, M, parts  # noqa: E402

every_rank = pytest.mark.parametrize(("K", "K_skew"), [(3, 4), (2, 3), (3, 0)])
every_kind = pytest.mark.parametrize("kind", KINDS)


def plain(tensor: Any) -> NDArray[np.float64]:
    return np.asarray(tensor.detach())


# --- C --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1e-12, 1e-3, 1.0, 19.9, 20.1, 41.0, 1e6])
def test_rates_are_unchanged_by_their_parametrisation(rate: float) -> None:
    factors = RowFactors(np.ones((2, 1)), np.ones((2, 2)), [rate])
    assert factors.rates.item() == pytest.approx(rate, rel=1e-10)


# --- kernels ----------------------------------------------------------------------------------------


@every_rank
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linear_factors_have_the_rows_that_their_kernel_serves(K: int, K_skew: int, dtype: type) -> None:
    vectors = VECTORS.astype(dtype)
    factors = LinearFactors(vectors, *parts(D, K, K_skew))
    kernel = factors.to_kernel()
    assert isinstance(kernel, LinearKernel)
    v, b, c = kernel.factors(Candidates(np.ones(D, dtype), vectors))
    np.testing.assert_allclose(plain(factors.rows()[0]), v, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(plain(factors.rows()[1]), b, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(plain(factors.C()), c)


@every_kind
def test_the_given_arrays_are_copied_and_unchanged(kind: str) -> None:
    given = [array.copy() for array in parts(M if kind == "rows" else D, 2, 2)]
    vectors = UNIT.copy()
    factors = RowFactors(*given) if kind == "rows" else LinearFactors(vectors, *given)
    with torch.no_grad():
        for tensor in (*factors.parameters(), *factors.buffers()):
            tensor += 1.0
    for array, original in zip(given, parts(M if kind == "rows" else D, 2, 2), strict=True):
        np.testing.assert_array_equal(array, original)
    np.testing.assert_array_equal(vectors, UNIT)


# --- where training starts --------------------------------------------------------------------------


@pytest.mark.parametrize("K", [1, 3, D])
def test_v_starts_as_the_best_approximation_of_the_gram_matrix(K: int) -> None:
    left, singular, _ = np.linalg.svd(UNIT)
    best = (left[:, :K] * singular[:K] ** 2) @ left[:, :K].T
    for cls in (RowFactors, LinearFactors):
        v = plain(cls.principal(VECTORS, K, 2, seed=0).rows()[0])
        np.testing.assert_allclose(v @ v.T, best, atol=1e-12)


def test_the_signs_of_the_directions_are_fixed() -> None:
    directions, squares = principal_directions(torch.from_numpy(UNIT))
    largest = directions[np.abs(directions).argmax(axis=0), np.arange(D)]
    assert (largest > 0).all()
    np.testing.assert_allclose(squares, np.linalg.svd(UNIT)[1] ** 2, rtol=1e-12)


@pytest.mark.parametrize("cls", [RowFactors, LinearFactors])
def test_a_start_depends_on_its_seed_only(cls: Any) -> None:
    first, same, other = (cls.principal(VECTORS, 3, 4, seed=seed).rows() for seed in (1, 1, 2))
    np.testing.assert_array_equal(plain(first[1]), plain(same[1]))
    assert not np.allclose(plain(first[1]), plain(other[1]))
    np.testing.assert_array_equal(plain(first[0]), plain(other[0]))


@pytest.mark.parametrize("cls", [RowFactors, LinearFactors])
def test_b_starts_with_the_given_length(cls: Any) -> None:
    many = np.random.default_rng(0).normal(size=(500, 50))
    factors = cls.principal(many, 3, 40, seed=0, scale=0.3)
    assert np.linalg.norm(plain(factors.rows()[1]), axis=1).mean() == pytest.approx(0.3, rel=0.1)
    np.testing.assert_allclose(plain(factors.rates), 1)


def test_columns_beyond_the_rank_of_the_vectors_are_not_zero() -> None:
    flat = np.random.default_rng(0).normal(size=(M, 2)) @ np.random.default_rng(1).normal(size=(2, D))
    for vectors in (flat, flat[:, :3]):
        v = plain(RowFactors.principal(vectors, 5, 0, seed=0).V)
        assert (np.abs(v).max(axis=0) > 1e-3).all()
        np.testing.assert_allclose(
            v[:, :2] @ v[:, :2].T, oracles.unit_rows(vectors) @ oracles.unit_rows(vectors).T, atol=1e-12
        )
