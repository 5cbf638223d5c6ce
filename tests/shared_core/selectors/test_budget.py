from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared_core import BudgetError, Candidates, SetSelectError
from tests.shared_core.cases import GREEDY_PAIRS, PAIRS, Case, Pair, gaussian, names, random_cases

pytestmark = pytest.mark.usefixtures("either_way")

every_pair = pytest.mark.parametrize("pair", PAIRS, ids=names)


def costs_of(case: Case) -> np.ndarray:
    # Whole numbers, so that adding them up in another order gives the same sum.
    return case.rng.integers(0, 9, size=len(case.vectors)).astype(np.float64)


@every_pair
def test_agrees_with_the_reference(pair: Pair) -> None:
    for case in random_cases(70, 300):
        costs = costs_of(case)
        budget = float(case.rng.integers(int(costs.min()), 25))
        k = None if case.number % 3 == 0 else case.k
        pair.check(case, k=k, costs=costs, budget=budget)


@every_pair
def test_agrees_with_the_reference_after_something_was_shown(pair: Pair) -> None:
    for case in random_cases(71, 300):
        n, d = case.vectors.shape
        if case.flavour in ("duplicates", "zero rows", "grid") or d < 6 or n < 6:
            # A shown set that is linearly dependent has no determinant to condition on.
            continue
        costs = costs_of(case) + 1
        shown = case.rng.permutation(n)[:3].tolist()
        pair.check(case, k=None, costs=costs, budget=25.0, shown=shown)


@every_pair
def test_never_too_much_and_never_room_left(pair: Pair) -> None:
    for case in random_cases(72, 100):
        costs = costs_of(case)
        budget = float(costs.min()) + 10
        candidates = Candidates(case.query, case.vectors, costs=costs)
        picks = pair.selector.select(candidates, budget=budget).indices
        left = budget - costs[picks].sum()
        rest = np.delete(costs, picks)
        assert left >= 0
        assert np.all(rest > left), f"{case}: {left} left, {rest.min()} would have fitted"


@every_pair
def test_ample_budget_changes_nothing(pair: Pair) -> None:
    for case in random_cases(73, 50):
        plain = pair.selector.select(case.candidates, case.k)
        costs = costs_of(case)
        candidates = Candidates(case.query, case.vectors, costs=costs)
        ample = pair.selector.select(candidates, case.k, budget=float(costs.sum()))
        assert ample.indices.tolist() == plain.indices.tolist()
        # Limits are kept by numpy alone, whose products differ from those of compiled loops in the last bits.
        room = 64 * np.finfo(case.vectors.dtype).eps
        np.testing.assert_allclose(ample.gains, plain.gains, rtol=room, atol=room)
        everything = pair.selector.select(candidates, budget=float(costs.sum()))
        assert sorted(everything.indices.tolist()) == list(range(len(costs)))


@every_pair
def test_whichever_of_k_and_budget_comes_first(pair: Pair) -> None:
    candidates = Candidates(*gaussian(1, 20, 30), costs=[2.0] * 20)
    assert len(pair.selector.select(candidates, 3, budget=100).indices) == 3
    assert len(pair.selector.select(candidates, 10, budget=9).indices) == 4
    assert len(pair.selector.select(candidates, budget=9).indices) == 4
    assert len(pair.selector.select(candidates, 4, budget=8).indices) == 4


@every_pair
def test_what_costs_nothing_always_fits(pair: Pair) -> None:
    candidates = Candidates(*gaussian(1, 10, 30), costs=[0.0] * 5 + [1.0] * 5)
    assert set(pair.selector.select(candidates, budget=0).indices.tolist()) == set(range(5))


@pytest.mark.parametrize("pair", GREEDY_PAIRS, ids=names)
def test_the_best_that_fits_is_taken_and_not_the_best_of_all(pair: Pair) -> None:
    candidates = Candidates([1.0, 0.0], [[1.0, 0.0], [1.0, 1.0]], costs=[5.0, 1.0])
    assert pair.selector.select(candidates, budget=4).indices.tolist() == [1]


@every_pair
def test_a_budget_without_costs_is_rejected(pair: Pair) -> None:
    with pytest.raises(BudgetError, match="cost"):
        pair.selector.select(Candidates(*gaussian(1, 5, 3)), 2, budget=3)


@every_pair
def test_a_budget_under_the_cheapest_is_rejected(pair: Pair) -> None:
    candidates = Candidates(*gaussian(1, 5, 3), costs=[5.0, 3.0, 4.0, 2.5, 9.0])
    with pytest.raises(BudgetError, match=r"2\.5"):
        pair.selector.select(candidates, 2, budget=2)
    with pytest.raises(BudgetError):
        # The only one that would fit has been shown.
        pair.selector.select(candidates, 2, budget=2.6, shown=[3])


@every_pair
@pytest.mark.parametrize("budget", [np.nan, np.inf, -np.inf, -1.0, "many", True])
def test_a_budget_that_is_no_amount_is_rejected(pair: Pair, budget: Any) -> None:
    with pytest.raises(SetSelectError, match="budget"):
        pair.selector.select(Candidates(*gaussian(1, 5, 3), costs=[1.0] * 5), 2, budget=budget)


@every_pair
def test_k_is_checked_though_a_budget_is_given(pair: Pair) -> None:
    with pytest.raises(ValueError, match="5"):
        pair.selector.select(Candidates(*gaussian(1, 5, 3), costs=[1.0] * 5), 6, budget=2)
