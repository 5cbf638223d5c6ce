"""Dense formulas in numpy for what the objectives compute in torch, and gradients by central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shared_core.learning.kernel import Factors
from tests import oracles

Matrix = NDArray[np.float64]

M, D = 10, 5
VECTORS = np.random.default_rng(11).normal(size=(M, D)) * np.random.default_rng(1).uniform(0.3, 3, size=(M, 1))
UNIT = oracles.unit_rows(VECTORS)
KINDS = ["rows", "linear"]


def parts(n: int, K: int, K_skew: int) -> tuple[Matrix, Matrix, Matrix]:
    rng = np.random.default_rng(100 * n + 10 * K + K_skew)
    return rng.normal(size=(n, K)), rng.normal(size=(n, K_skew)), rng.uniform(0.3, 2, size=K_skew // 2)


def factors_of(kind: str, K: int, K_skew: int) -> Any:
    return Factors(*parts(M, K, K_skew)) if kind == "rows" else Factors(*parts(D, K, K_skew), vectors=VECTORS)


def rows_of(kind: str, K: int, K_skew: int) -> tuple[Matrix, Matrix, Matrix]:
    """V, B and L of the pool."""
    v, b, rates = parts(M if kind == "rows" else D, K, K_skew)
    v, b = (v, b) if kind == "rows" else (UNIT @ v, UNIT @ b)
    return v, b, dense(v, b, rates)


def of_rank_one_with_an_item_twice(kind: str) -> tuple[Matrix, Any]:
    """Vectors of which two are equal, and factors of rank one."""
    vectors = VECTORS.copy()
    vectors[2] = vectors[1] = vectors[0]
    w_v = parts(D, 1, 0)[0]
    return vectors, Factors(oracles.unit_rows(vectors) @ w_v) if kind == "rows" else Factors(w_v, vectors=vectors)


def dense(v: Matrix, b: Matrix, rates: Matrix) -> Matrix:
    """V Vᵀ + B C Bᵀ, block by block of C."""
    kernel = v @ v.T
    for i, rate in enumerate(rates):
        even, odd = b[:, 2 * i], b[:, 2 * i + 1]
        kernel = kernel + rate * (np.outer(even, odd) - np.outer(odd, even))
    return kernel


def check_gradient(loss: Callable[[Any], Any], batch: Any, *modules: Any, step: float = 1e-5) -> None:
    """The gradient of each parameter equals central differences."""
    loss(batch).backward()
    for module in modules:
        for name, parameter in module.named_parameters():
            if not parameter.numel():
                continue
            numeric = np.zeros(parameter.numel())
            with torch.no_grad():
                flat = parameter.view(-1)
                for i in range(len(flat)):
                    middle, sides = flat[i].item(), []
                    for side in (step, -step):
                        flat[i] = middle + side
                        sides.append(loss(batch).item())
                    flat[i] = middle
                    numeric[i] = (sides[0] - sides[1]) / (2 * step)
            gradient = parameter.grad.numpy().ravel()
            np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7, err_msg=name)
            assert np.abs(gradient).max() > 1e-4, name
