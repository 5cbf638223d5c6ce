from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from shared_core import MMR, Candidates, InvalidParameterError
from tests import oracles
from tests.shared_core.cases import MMR_PLAIN, Pair, grids, random_cases

pytestmark = pytest.mark.usefixtures("either_way")


def test_a_thousand_cases_agree_with_the_reference() -> None:
    for case in random_cases(40):
        MMR_PLAIN.check(case)


def test_a_thousand_cases_with_quality_agree_with_the_reference() -> None:
    for case in random_cases(41):
        MMR_PLAIN.check(case, quality=True)


def test_a_thousand_cases_with_any_lambda_agree_with_the_reference() -> None:
    for case in random_cases(42):
        # The ends of the range are where a term drops out.
        d, b = (float(case.rng.choice([0.0, 1.0, case.rng.random()])) for _ in range(2))

        def reference(*args: object, d: float = d, b: float = b, **more: object) -> oracles.Reference:
            return oracles.mmr(*args, lambda_d=d, lambda_b=b, **more)  # type: ignore[arg-type]

        Pair(f"MMR({d}, {b})", MMR(d, b), reference).check(case, quality=case.number % 3 != 0)


def test_langchain_picks_the_same_for_every_lambda() -> None:
    for case in random_cases(43, 300):
        if case.vectors.dtype != np.float64 or case.flavour in ("grid", "zero rows", "duplicates"):
            # There is no rule for ties on the other side.
            continue
        for lambda_mult in (0.0, 0.25, 0.5, 0.9, 1.0):
            theirs = maximal_marginal_relevance(case.query, list(case.vectors), lambda_mult, case.k)
            if len(case.query) == 1:
                continue
            ours = MMR(lambda_d=lambda_mult).select(case.candidates, case.k)
            assert ours.indices.tolist() == theirs, (str(case), lambda_mult)


def test_by_hand() -> None:
    # cos: 0.8, 0.6, 0.0; between: (0,1) 0.96, (0,2) 0.6, (1,2) 0.8.
    candidates = Candidates([1.0, 0.0], [[4.0, 3.0], [3.0, 4.0], [0.0, 1.0]], quality=[0.0, 1.0, 3.0])
    plain = MMR(lambda_d=0.5).select(Candidates(candidates.query, candidates.vectors), 3)
    assert plain.indices.tolist() == [0, 1, 2]
    np.testing.assert_allclose(plain.gains, [0.4, 0.3 - 0.48, 0.0 - 0.4], atol=1e-12)
    np.testing.assert_allclose(plain.objective, 0.4 - 0.18 - 0.4, atol=1e-12)
    # v = cos / 2 + b / 2: 0.4, 0.8, 1.5.
    biased = MMR(lambda_d=0.5, lambda_b=0.5).select(candidates, 2)
    assert biased.indices.tolist() == [2, 1]
    np.testing.assert_allclose(biased.gains, [0.75, 0.4 - 0.4], atol=1e-12)


def test_every_pick_counts_and_not_only_the_last() -> None:
    # Row 2 is a near copy of the first pick and far from the second: the last pick alone would let it in.
    vectors = [[1.0, 0.1, 0.0], [0.6, -0.8, 0.0], [1.0, 0.11, 0.0], [0.5, 0.0, 0.9]]
    selection = MMR(lambda_d=0.5).select(Candidates([1.0, 0.0, 0.0], vectors), 3)
    assert 2 not in selection.indices.tolist()


def test_lambda_one_is_similarity() -> None:
    for case in random_cases(44, 50):
        selection = MMR(lambda_d=1.0).select(case.candidates, case.k)
        oracles.assert_same_picks(selection, oracles.top_k(case.query, case.vectors, case.k), str(case))


def test_quality_enters_as_given() -> None:
    candidates = Candidates([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], quality=[0.0, 1e6])
    assert MMR(lambda_b=0.95).select(candidates, 1).indices.tolist() == [1]
    assert MMR(lambda_b=1.0).select(candidates, 1).indices.tolist() == [0]


@settings(deadline=None, derandomize=True)
@given(grids())
def test_agrees_where_everything_ties(data: tuple[np.ndarray, np.ndarray, int]) -> None:
    query, vectors, k = data
    actual = MMR().select(Candidates(query, vectors), k)
    oracles.assert_agrees(actual, oracles.mmr(query, vectors, k), data)


@settings(deadline=None, derandomize=True)
@given(grids())
def test_objective_is_computed_directly(data: tuple[np.ndarray, np.ndarray, int]) -> None:
    query, vectors, k = data
    selection = MMR(lambda_d=0.3).select(Candidates(query, vectors), k)
    picks, rows = selection.indices.tolist(), oracles.unit_rows(vectors)
    value = 0.3 * sum(oracles.cosine(query, vectors[i]) for i in picks)
    for j in range(1, k):
        value -= 0.7 * max(float(rows[picks[j]] @ rows[i]) for i in picks[:j])
    assert selection.objective == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("value", [-0.01, 1.01, 2, -1, np.nan, np.inf])
@pytest.mark.parametrize("name", ["lambda_d", "lambda_b"])
def test_lambdas_outside_are_rejected(name: str, value: float) -> None:
    with pytest.raises(InvalidParameterError, match=name):
        MMR(**{name: value})
