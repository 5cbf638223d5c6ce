from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from setselect import MMR, Candidates, rescale, with_quality_column, with_quality_weight


def column_case(seed: int, n: int = 200, d: int = 24) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d)) * rng.uniform(0.1, 30, size=(n, 1))
    return rng.standard_normal(d), rows, rescale(rng.standard_normal(n), "rank")


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
    mmr = MMR(lambda_mult=0.6, lambda_b=0.8)
    from_index = mmr.select(Candidates(query, joined[:, :-1], quality=joined[:, -1]), 10)
    direct = mmr.select(Candidates(query, rows, quality=quality), 10)
    assert from_index.indices.tolist() == direct.indices.tolist()
