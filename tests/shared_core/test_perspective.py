from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shared_core import MMR, PAP, Candidates, PerspectiveError
from tests import oracles
from tests.shared_core.cases import gaussian

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 12)


def triple(seed: int, d: int, n: int = 7) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    query, vectors = gaussian(seed, n, d)
    return query, vectors, np.random.default_rng([seed, 1]).normal(size=d)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("corpus", [False, True])
def test_removing_leaves_no_component_along_the_perspective(dtype: Any, corpus: bool) -> None:
    query, vectors, perspective = triple(6, 8, 20)
    # Nearly parallel: the projection is short, so rounding errors are large beside it.
    query = perspective + 1e-2 * query
    result = PAP(perspective, corpus).apply(Candidates(query.astype(dtype), vectors.astype(dtype)))
    p = oracles.unit(perspective)
    tolerance = 1e-12 if dtype == np.float64 else 2e-5
    assert abs(oracles.unit(result.query) @ p) <= tolerance
    if corpus:
        assert np.max(np.abs(np.asarray(result.vectors, dtype=np.float64) @ p)) <= tolerance
    assert result.vectors.dtype == result.query.dtype == dtype


@settings(deadline=None, derandomize=True)
@given(seeds, sizes, st.sampled_from(["remove", "emphasize"]))
def test_project_gives_the_query_for_the_search(seed: int, d: int, direction: str) -> None:
    query, vectors, perspective = triple(seed, d)
    pap = PAP(perspective, direction=direction)
    projected = pap.project(query)
    assert projected.shape == (d,)
    expected = oracles.pap(query, perspective, direction)
    np.testing.assert_allclose(oracles.unit(projected), oracles.unit(expected), rtol=0, atol=1e-9)
    through = Candidates(projected, vectors).relevance
    np.testing.assert_allclose(pap.apply(Candidates(query, vectors)).relevance, through, rtol=0, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("factor", [1.0, -1.0, 3.7, 1e-3])
def test_a_row_along_the_perspective_becomes_a_zero_row(dtype: Any, factor: float) -> None:
    for seed in range(20):
        query, vectors, perspective = triple(seed, 7)
        perspective = perspective.astype(dtype)
        vectors = vectors.astype(dtype)
        vectors[2] = perspective * dtype(factor)
        result = PAP(perspective, corpus=True).apply(Candidates(query.astype(dtype), vectors))
        assert np.all(result.vectors[2] == 0), seed
        assert result.relevance[2] == 0
        assert np.all(np.any(np.delete(result.vectors, 2, axis=0), axis=1))


def test_other_fields_are_kept_and_the_input_is_not_changed() -> None:
    query, vectors, perspective = triple(10, 7)
    candidates = Candidates(query, vectors, quality=range(7), ids=list("abcdefg"), costs=range(7))
    before = candidates.query.tobytes(), candidates.vectors.tobytes()
    result = PAP(perspective, corpus=True).apply(candidates)
    for name in ("ids", "quality", "costs"):
        assert np.array_equal(getattr(result, name), getattr(candidates, name)), name
    assert (candidates.query.tobytes(), candidates.vectors.tobytes()) == before


@pytest.mark.parametrize("corpus", [False, True])
def test_a_given_relevance_stays_and_the_vectors_are_projected(corpus: bool) -> None:
    query, vectors = gaussian(3, 9, 6)
    relevance, perspective = np.linspace(-5, 3, 9), np.arange(6.0)
    pap = PAP(perspective, corpus=corpus)
    projected = pap.apply(Candidates(query, vectors, relevance=relevance))
    assert projected.relevance_given
    assert projected.relevance.tolist() == relevance.tolist()
    rows = vectors if not corpus else pap.apply(Candidates(query, vectors)).vectors
    expected = oracles.mmr(query, rows, 4, relevance=relevance, lambda_mult=0.25)
    oracles.assert_agrees(MMR(0.25).select(projected, 4), expected)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (np.zeros(5), "zero vector"),
        ([np.nan, 1, 1, 1, 1], "NaN"),
        ([np.inf, 0, 0, 0, 0], "inf"),
        (np.ones(4), "length 4"),
        (np.ones((1, 5)), "one vector"),
    ],
)
def test_a_perspective_without_direction_or_of_another_shape_is_refused(bad: Any, says: str) -> None:
    query, vectors = gaussian(1, 4, 5)
    with pytest.raises(PerspectiveError, match=says):
        PAP(bad).apply(Candidates(query, vectors))
    with pytest.raises(PerspectiveError, match=says):
        PAP(bad).project(query)


@pytest.mark.parametrize("corpus", [False, True])
def test_a_perspective_parallel_within_float32_rounding_is_rejected(corpus: bool) -> None:
    for seed in range(15):
        rng = np.random.default_rng(seed)
        query = rng.normal(size=int(rng.integers(2, 1000)))
        noisy = np.float32(rng.normal()) * query.astype(np.float32)
        for perspective in (noisy, noisy.tolist(), -0.37 * query, 1e3 * query.astype(np.float32)):
            pap = PAP(perspective, corpus=corpus)
            for asked in (query, query.tolist(), query.astype(np.float32), query.astype(np.float32).tolist()):
                with pytest.raises(PerspectiveError, match="parallel"):
                    pap.project(asked)
                with pytest.raises(PerspectiveError, match="parallel"):
                    pap.apply(Candidates(asked, rng.normal(size=(3, len(query)))))
