from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import zscore

from setselect import SCALES, InvalidInputError, rescale
from tests import oracles

finite = st.floats(allow_nan=False, allow_infinity=False)
some_values = st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.3, 1e308, -1.7e308, 5e-324, -5e-324, 1e-310, 745.5, -745.5])
rows_of_values = st.one_of(st.lists(some_values, min_size=1, max_size=8), st.lists(finite, min_size=1, max_size=8))
every_scale = pytest.mark.parametrize("scale", [*SCALES, None])


@pytest.mark.parametrize("scale", ["minmax", "rank", "sigmoid"])
@settings(deadline=None, derandomize=True, max_examples=150)
@given(row=rows_of_values)
@example(row=[7.5])
@example(row=[-2.0] * 5)
@example(row=[1e-17, 1.0, -1.0])
def test_scaled_values_are_those_of_the_reference(row: list[float], scale: Any) -> None:
    before = np.array(row)
    scaled = rescale(before, scale)
    np.testing.assert_allclose(scaled, oracles.scaled_relevance(row, scale), rtol=1e-12, atol=1e-15)
    assert scaled.dtype == np.float64
    assert before.tolist() == row
    # Scaling changes no order, and equal values stay equal.
    for a in range(len(row)):
        for b in range(len(row)):
            assert row[a] != row[b] or scaled[a] == scaled[b]
            assert row[a] <= row[b] or scaled[a] >= scaled[b]


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.integers(-50, 50).map(lambda i: i / 8), min_size=2, max_size=30))
def test_scaled_values_agree_with_scipy(values: list[float]) -> None:
    column = np.array(values)
    np.testing.assert_array_equal(rescale(values, None), column)
    if np.ptp(column):
        np.testing.assert_allclose(rescale(values, "zscore"), zscore(column), atol=1e-12)


@every_scale
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (5, 1), (1, 6)])
def test_each_row_is_scaled_by_itself(shape: tuple[int, ...], scale: Any) -> None:
    values = np.random.default_rng(3).integers(-4, 5, size=shape) * 1.5
    scaled = rescale(values, scale)
    assert scaled.shape == shape
    assert not np.shares_memory(scaled, values)
    for place in np.ndindex(shape[:-1]):
        assert scaled[place].tolist() == rescale(values[place], scale).tolist()


@pytest.mark.parametrize(("scale", "middle"), [("minmax", 0.5), ("rank", 0.5), ("zscore", 0.0), (None, 3.0)])
@pytest.mark.parametrize("n", [1, 4])
def test_equal_values_become_the_middle_of_the_scale(scale: Any, middle: float, n: int) -> None:
    assert rescale([3.0] * n, scale).tolist() == [middle] * n


@pytest.mark.parametrize("values", [[-1.7e308, 0.0, 1.7e308], [0.0, 5e-324, 1e-323]])
def test_extreme_values_do_not_overflow(values: list[float]) -> None:
    assert rescale(values).tolist() == rescale(values, "rank").tolist() == [0.0, 0.5, 1.0]
    np.testing.assert_allclose(rescale(values, "zscore"), np.array([-1, 0, 1]) * 1.5**0.5)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1.0, np.inf], "^row 1 is inf"),
        ([[1.0, 2.0], [3.0, np.nan]], "^query 1, row 1 is nan"),
        (1.5, r"\(\)"),
        (np.ones((3, 0)), r"\(3, 0\)"),
        (["high"], "numbers"),
    ],
)
@every_scale
def test_values_that_cannot_be_scaled_are_refused(values: Any, says: str, scale: Any) -> None:
    with pytest.raises(InvalidInputError, match=says):
        rescale(values, scale)
