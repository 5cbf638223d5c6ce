from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from shared_core import VRSD, Candidates, InvalidParameterError, select
from tests import oracles
from tests.shared_core.cases import Grid, grids


def test_by_hand() -> None:
    # The second pick is the mirror image of the first. The second most similar vector is row 1.
    vectors = [[4.0, 3.0], [4.0, 3.1], [3.0, -4.0]]
    selection = VRSD().select(Candidates([1.0, 0.0], vectors), 2)
    assert selection.indices.tolist() == [0, 2]
    np.testing.assert_allclose(selection.gains, [0.8, 1.4 / np.sqrt(2) - 0.8], atol=1e-12)
    np.testing.assert_allclose(selection.objective, 1.4 / np.sqrt(2), atol=1e-12)


def test_the_k_subset_sum_of_the_papers_proof() -> None:
    # VRSD paper, equation 4, for vectors of equal length: a set whose sum is parallel to the query has cosine 1.
    angles = np.array([0.3, -0.3, 0.7, -0.2])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    selection = VRSD(refine=True).select(Candidates([1.0, 0.0], vectors), 2)
    chosen, best = oracles.best_vrsd_set([1.0, 0.0], vectors, 2)
    assert best == pytest.approx(1.0)
    assert chosen == {0, 1}
    assert selection.objective <= best + 1e-12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_zero_sum_counts_as_cosine_zero(dtype: Any) -> None:
    query = np.array([1.0, 0.0, 0.0], dtype=dtype)
    # Row 1 cancels row 0, so its cosine is 0. Row 2 makes the sum point away from the query, so its cosine is negative.
    row = np.array([-0.3, 0.7, 0.2])
    vectors = np.array([row, -3 * row, [-1.0, -0.1, 0.0]], dtype=dtype)
    selection = VRSD().select(Candidates(query, vectors), 1, shown=[0])
    assert selection.indices.tolist() == [1]
    before = oracles.cosine(query, row)
    np.testing.assert_allclose(selection.gains, [0.0 - before], atol=1e-6)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(grids())
def test_the_refined_objective_lies_between_greedy_and_the_optimum(data: Grid) -> None:
    query, vectors, k = data
    candidates = Candidates(query, vectors)
    greedy = VRSD().select(candidates, k).objective
    refined = VRSD(refine=True).select(candidates, k).objective
    _, best = oracles.best_vrsd_set(query, vectors, k)
    assert greedy <= refined + 1e-12
    assert refined <= best + 1e-9


def test_float32_distinguishes_scores_that_differ_by_more_than_rounding() -> None:
    # After row 0, row 2 scores 5e-6 more than row 1. Row 3 almost cancels row 0, which has a large rounding error;
    # this error must not count for rows 1 and 2.
    a, b = 0.4, 0.39995
    rows = np.array([[1.0, 0.0, 0.0], [np.cos(a), np.sin(a), 0.0], [np.cos(b), 0.0, np.sin(b)], [-1.0, 0.01, 0.0]])
    for dtype in (np.float32, np.float64):
        candidates = Candidates(np.array([1.0, 0.0, 0.0], dtype), rows.astype(dtype))
        assert VRSD().select(candidates, 2).indices.tolist() == [0, 2]


@pytest.mark.parametrize("limit", [{"budget": 2, "costs": [1, 1]}, {"drop_near_duplicates": 0.9}], ids=min)
def test_the_exchanges_keep_to_no_constraint(limit: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=r"^refine=True .*leave out"):
        select([1.0, 0.0], np.eye(2), 1, VRSD(refine=True), **limit)
