from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, zscore

from shared_core import MMR, Candidates, InvalidInputError, InvalidParameterError
from shared_core.signals.quality import (
    QUALITY_SCALERS,
    scale_quality,
    with_quality_column,
    with_quality_weight,
)

every_scaler = pytest.mark.parametrize("method", QUALITY_SCALERS)
numbers = st.lists(st.integers(-50, 50).map(lambda i: i / 8), min_size=1, max_size=30)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(numbers)
def test_scalers_agree_with_scipy(values: list[float]) -> None:
    column = np.array(values)
    np.testing.assert_array_equal(scale_quality(values, "none"), column)
    if np.ptp(column) == 0:
        return
    np.testing.assert_allclose(scale_quality(values, "min-max"), (column - column.min()) / np.ptp(column), atol=1e-12)
    np.testing.assert_allclose(scale_quality(values, "rank"), (rankdata(column) - 1) / (len(column) - 1), atol=1e-12)
    np.testing.assert_allclose(scale_quality(values, "z-score"), zscore(column), atol=1e-12)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(numbers)
def test_scaling_never_changes_the_order(values: list[float]) -> None:
    for method in QUALITY_SCALERS:
        scaled = scale_quality(values, method)
        assert scaled.dtype == np.float64
        order = np.argsort(values, kind="stable")
        assert (np.diff(scaled[order])[np.diff(np.array(values)[order]) > 0] > 0).all()


@pytest.mark.parametrize(("method", "expected"), [("none", 3.0), ("min-max", 0.5), ("rank", 0.5), ("z-score", 0.0)])
@pytest.mark.parametrize("n", [1, 4])
def test_equal_values_become_the_middle_of_the_scale(method: str, expected: float, n: int) -> None:
    assert scale_quality([3.0] * n, method).tolist() == [expected] * n


@every_scaler
def test_no_values_scale_to_no_values(method: str) -> None:
    assert scale_quality([], method).shape == (0,)


@pytest.mark.parametrize("values", [[-1.7e308, 0.0, 1.7e308], [0.0, 5e-324, 1e-323]])
def test_extreme_values_do_not_overflow(values: list[float]) -> None:
    assert scale_quality(values, "min-max").tolist() == [0.0, 0.5, 1.0]
    assert scale_quality(values, "rank").tolist() == [0.0, 0.5, 1.0]
    np.testing.assert_allclose(scale_quality(values, "z-score"), np.array([-1, 0, 1]) * 1.5**0.5)


@every_scaler
def test_the_callers_array_is_not_changed(method: str) -> None:
    values = np.array([3.0, 1.0, 2.0])
    scaled = scale_quality(values, method)
    scaled[:] = 7
    assert values.tolist() == [3.0, 1.0, 2.0]


@every_scaler
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_named(method: str, bad: float) -> None:
    with pytest.raises(InvalidInputError, match="row 2 is"):
        scale_quality([0.0, 1.0, bad], method)


@pytest.mark.parametrize("values", [3.0, [[1.0, 2.0]], ["a", "b"], [[1.0], [1.0, 2.0]]])
def test_an_input_that_is_not_a_column_is_an_error(values: Any) -> None:
    with pytest.raises(InvalidInputError, match="quality"):
        scale_quality(values, "rank")


def test_an_unknown_scaler_lists_the_known_ones() -> None:
    with pytest.raises(InvalidParameterError, match="method must be one of none, min-max, rank, z-score, got 'minmax'"):
        scale_quality([1.0], "minmax")


def column_case(seed: int, n: int = 200, d: int = 24) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d)) * rng.uniform(0.1, 30, size=(n, 1))
    return rng.standard_normal(d), rows, scale_quality(rng.standard_normal(n), "rank")


@pytest.mark.parametrize("lambda_b", [0.0, 0.3, 0.95, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_an_inner_product_index_ranks_by_relevance_and_quality(seed: int, lambda_b: float) -> None:
    faiss = pytest.importorskip("faiss")
    query, rows, quality = column_case(seed)
    index = faiss.IndexFlatIP(rows.shape[1] + 1)
    index.add(with_quality_column(rows.astype(np.float32), quality))
    scores, found = index.search(with_quality_weight(query, lambda_b)[None].astype(np.float32), len(rows))
    # RAGSys, section 3.3: v_i, one document at a time.
    wanted = np.array(
        [
            lambda_b * (row @ query) / np.sqrt((row @ row) * (query @ query)) + (1 - lambda_b) * b
            for row, b in zip(rows, quality, strict=True)
        ]
    )
    np.testing.assert_allclose(scores[0], wanted[found[0]], atol=1e-6)
    ranked = np.sort(wanted)[::-1]
    np.testing.assert_allclose(wanted[found[0]], ranked, atol=1e-6)
    assert sorted(found[0].tolist()) == list(range(len(rows)))


def test_columns_are_exact_in_double_precision_and_inputs_are_not_changed() -> None:
    query, rows, quality = column_case(11)
    before = query.copy(), rows.copy(), quality.copy()
    joined = with_quality_column(rows, quality)
    assert joined.dtype == np.float64
    cosines = rows @ query / np.linalg.norm(rows, axis=1) / np.linalg.norm(query)
    np.testing.assert_allclose(
        joined @ with_quality_weight(query, 0.7), 0.7 * cosines + 0.3 * quality, rtol=0, atol=1e-14
    )
    np.testing.assert_array_equal(joined[:, -1], quality)
    for after, kept in zip((query, rows, quality), before, strict=True):
        np.testing.assert_array_equal(after, kept)
    assert with_quality_column(rows.astype(np.float32), quality).dtype == np.float32
    odd = with_quality_column([[0.0, 0.0], [1e300, 0.0]], [1, 2])
    np.testing.assert_allclose(odd, [[0, 0, 1], [1, 0, 2]], atol=1e-15)


def test_selecting_from_such_an_index_is_mmr_with_quality() -> None:
    query, rows, quality = column_case(12)
    joined = with_quality_column(rows, quality)
    mmr = MMR(lambda_d=0.6, lambda_b=0.8)
    from_index = mmr.select(Candidates(query, joined[:, :-1], quality=joined[:, -1]), 10)
    direct = mmr.select(Candidates(query, rows, quality=quality), 10)
    assert from_index.indices.tolist() == direct.indices.tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: with_quality_column([1.0, 2.0], [1.0]), r"shape \(n, d\).*\(2,\)"),
        (lambda: with_quality_column([[1.0, np.nan]], [1.0]), "row 0 holds NaN"),
        (lambda: with_quality_column([[1.0, 2.0]], [1.0, 2.0]), "quality"),
        (lambda: with_quality_column([[1.0, 2.0]], [np.inf]), "quality.*0"),
        (lambda: with_quality_weight([[1.0]], 0.5), r"one vector.*\(1, 1\)"),
        (lambda: with_quality_weight([0.0, 0.0], 0.5), "zero vector"),
        (lambda: with_quality_weight([1.0, 0.0], 1.5), "lambda_b"),
    ],
)
def test_bad_input_for_the_quality_column_is_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
