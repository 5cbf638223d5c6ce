"""The papers' measures against arithmetic by hand, from their formulas."""

from __future__ import annotations

import math
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from shared_core import select
from shared_core.evaluation.measures import mean_pairwise_cosine, sum_cosine

reals = st.floats(-100, 100, allow_subnormal=False)


def close(value: float, expected: Any) -> bool:
    return value == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


# Vectors

FIVE_WAYS = [[math.cos(2 * math.pi * i / 5), math.sin(2 * math.pi * i / 5)] for i in range(5)]


def test_sum_cosine_by_hand() -> None:
    # Unit rows (3/5, 4/5) and (1, 0) sum to (8/5, 4/5); its cosine with (0, 1) is (4/5) / sqrt(80/25) = 1/sqrt 5.
    assert close(sum_cosine([0, 2], [[3, 4], [7, 0]]), 1 / math.sqrt(5))


def test_sum_cosine_is_the_objective_that_vrsd_reports() -> None:
    rng = np.random.default_rng(3)
    query, vectors = rng.normal(size=16), rng.normal(size=(40, 16))
    chosen = select(query, vectors, 6, selector="vrsd")
    assert close(sum_cosine(query, vectors[chosen.indices]), chosen.objective)


@pytest.mark.parametrize(
    "vectors",
    [[[1, 0], [-1, 0]], [[0, 0], [0, 0]], [[0.1, 0.2], [0.3, 0.6], [-0.1, -0.2], [-7, -14]], FIVE_WAYS],
    ids=["opposite", "zero rows", "two and two", "five directions that cancel up to rounding"],
)
def test_sum_cosine_without_a_direction_is_zero(vectors: list[list[float]]) -> None:
    assert sum_cosine([2, 1], vectors) == 0.0


def test_mean_pairwise_cosine_by_hand() -> None:
    # Pairs of (1, 0), (3/5, 4/5), (0, 1): cosines 3/5, 0 and 4/5.
    assert close(mean_pairwise_cosine([[2, 0], [3, 4], [0, 9]]), (F(3, 5) + 0 + F(4, 5)) / 3)
    assert close(mean_pairwise_cosine([[1, 2], [-2, -4]]), -1)
