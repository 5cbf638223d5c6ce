from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from shared_core import MMR, Candidates, InvalidParameterError
from tests import oracles
from tests.shared_core.cases import Grid, draw_relevance, gaussian, grids, random_cases

pytestmark = pytest.mark.usefixtures("either_way")


@pytest.mark.parametrize("given_relevance", [False, True], ids=["cosine", "given relevance"])
def test_any_lambda_agrees_with_the_reference(given_relevance: bool) -> None:
    for case in random_cases(45 if given_relevance else 42, 96):
        # At the ends of the range a term vanishes.
        d, b = (float(case.rng.choice([0.0, 1.0, case.rng.random()])) for _ in range(2))
        more: dict[str, Any] = {"quality": case.quality if case.number % 3 else None}
        if given_relevance:
            # With relevance near 1e6, novelty decides only ties. With relevance near 1e-3, it decides nearly all picks.
            more["relevance"] = draw_relevance(case) * case.rng.choice([1e-3, 1.0, 1e6])
        actual = MMR(d, b).select(Candidates(case.query, case.vectors, **more), case.k)
        expected = oracles.mmr(case.query, case.vectors, case.k, lambda_mult=d, lambda_b=b, **more)
        oracles.assert_agrees(actual, expected, f"MMR({d}, {b}), {case}")


@settings(deadline=None, derandomize=True, max_examples=60)
@given(grids(), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
def test_any_lambda_agrees_with_the_reference_where_scores_tie(data: Grid, lambda_mult: float) -> None:
    query, vectors, k = data
    actual = MMR(lambda_mult).select(Candidates(query, vectors), k)
    oracles.assert_agrees(actual, oracles.mmr(query, vectors, k, lambda_mult=lambda_mult), data)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("quality", [None, np.zeros(9)], ids=["without quality", "with quality"])
def test_the_first_pick_is_the_most_relevant_by_however_little(quality: Any, dtype: Any) -> None:
    query, vectors = gaussian(46, 9, 6, dtype)
    # Row 2 is nearest to the query, and rows 0 and 5 have the same relevance.
    vectors[2] = query
    relevance = [0.7, 0.7 - 1e-9, 0.7 - 1e-9, 0.1, 0.7 + 1e-9, 0.7, 0.0, -0.7, 0.7 + 1e-9]
    selection = MMR(1.0, 0.5).select(Candidates(query, vectors, relevance=relevance, quality=quality), 6)
    assert selection.indices.tolist() == [4, 8, 0, 5, 1, 2]
    # With novelty the first pick is the same. For later picks 1e-9 weighs less than the cosines between the vectors.
    selection = MMR(0.25).select(Candidates(query, vectors, relevance=relevance, quality=quality), 1)
    assert selection.indices.tolist() == [4]


def test_a_tie_goes_to_the_lower_index_whatever_the_bounds_of_the_scores_are() -> None:
    # After row 5 the scores of rows 0 and 4 differ by less than rounding. The compiled loop computes row 4 first,
    # because its relevance is a little higher.
    step = 8 * np.finfo(np.float32).eps
    relevance = np.array([0.5 - step, 0.1, 0.1, 0.1, 0.5, 0.9, 0.1, 0.1])
    vectors = np.zeros((8, 10), dtype=np.float32)
    vectors[:, 0] = relevance
    vectors[np.arange(8), np.arange(8) + 1] = np.sqrt(1 - relevance**2)
    query = np.eye(10, dtype=np.float32)[0]
    assert MMR(0.9).select(Candidates(query, vectors), 2).indices.tolist() == [5, 0]


def test_langchain_selects_the_same_for_every_lambda() -> None:
    for case in random_cases(43, 48):
        if case.vectors.dtype != np.float64 or case.flavour in ("grid", "zero rows", "duplicates"):
            # LangChain has no rule for ties.
            continue
        for lambda_mult in (0.0, 0.25, 0.5, 0.9, 1.0):
            if len(case.query) == 1:
                # In one dimension all cosines are 1 or -1, so they tie.
                continue
            theirs = maximal_marginal_relevance(case.query, list(case.vectors), lambda_mult, case.k)
            ours = MMR(lambda_mult=lambda_mult).select(case.candidates, case.k)
            assert ours.indices.tolist() == theirs, (str(case), lambda_mult)


def test_by_hand() -> None:
    # cos: 0.8, 0.6, 0.0; between: (0,1) 0.96, (0,2) 0.6, (1,2) 0.8.
    candidates = Candidates([1.0, 0.0], [[4.0, 3.0], [3.0, 4.0], [0.0, 1.0]], quality=[0.0, 1.0, 3.0])
    plain = MMR(lambda_mult=0.5).select(Candidates(candidates.query, candidates.vectors), 3)
    assert plain.indices.tolist() == [0, 1, 2]
    np.testing.assert_allclose(plain.gains, [0.4, 0.3 - 0.48, 0.0 - 0.4], atol=1e-12)
    np.testing.assert_allclose(plain.objective, 0.4 - 0.18 - 0.4, atol=1e-12)
    # v = cos / 2 + b / 2: 0.4, 0.8, 1.5.
    biased = MMR(lambda_mult=0.5, lambda_b=0.5).select(candidates, 2)
    assert biased.indices.tolist() == [2, 1]
    np.testing.assert_allclose(biased.gains, [0.75, 0.4 - 0.4], atol=1e-12)


@pytest.mark.parametrize("name", ["lambda_mult", "lambda_b"])
def test_lambdas_out_of_range_are_refused(name: str) -> None:
    for value in (-0.01, 1.01, np.nan, np.inf):
        with pytest.raises(InvalidParameterError, match=name):
            MMR(**{name: value})
