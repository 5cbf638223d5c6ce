"""``min_gain``: a set ends before the first gain that is too low."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from setselect import Coverage, InvalidParameterError, select
from tests.shared_core.cases import PAIRS, Pair, assert_alike, names, random_cases


@pytest.mark.parametrize("pair", PAIRS, ids=names)
def test_the_set_ends_before_the_first_gain_below_that_share(pair: Pair) -> None:
    ended = 0
    for case in random_cases(30, 25):
        query, vectors = case.candidates.query, case.candidates.vectors
        full = select(query, vectors, min(10, len(vectors)), pair.selector)
        worth = np.exp(np.minimum(full.gains, 0)) if isinstance(pair.selector, Coverage) else full.gains / full.gains[0]
        for min_gain, min_k in ((0.05, 1), (0.5, 1), (0.5, 3), (1.0, 2)):
            count = next((i for i in range(min_k, len(worth)) if worth[i] < min_gain), len(worth))
            found = select(query, vectors, len(full), pair.selector, min_gain=min_gain, min_k=min_k)
            smaller = select(query, vectors, min(count, len(full)), pair.selector)
            assert_alike(found, smaller)
            assert found.ended == (len(found) < len(full))
            ended += found.ended
    assert ended


def test_coverage_is_measured_by_the_most_relevant_candidate_alone() -> None:
    vectors, texts = [[1.0, 0.0], [1.0, 0.1], [0.2, 1.0], [-1.0, 0.0]], ["red", "red too", "blue", "green"]
    asked = {"question": "red or blue?", "texts": texts}
    gains = select([1.0, 0.5], vectors, 3, **asked).gains
    assert gains[0] > gains[1] > 0 > gains[2], "the second word is worth more than a candidate without words"
    assert len(select([1.0, 0.5], vectors, 3, **asked, min_gain=1.0, min_k=1)) == 2
    assert len(select([1.0, 0.5], vectors, 3, **asked, min_gain=float(np.exp(gains[2])) - 1e-6)) == 3


def test_nothing_is_selected_if_nothing_new_is_worth_enough() -> None:
    vectors = [[1.0, 0.5], [1.0, 0.4], [-1.0, 0.0]]
    (gain,) = select([1.0, 0.5], vectors, 1, shown=[0]).gains
    enough: dict[str, Any] = {"shown": [0], "min_k": 0, "min_gain": float(np.exp(gain))}
    assert select([1.0, 0.5], vectors, 1, **enough | {"min_gain": enough["min_gain"] - 1e-6}).indices.tolist() == [1]
    none = select([1.0, 0.5], vectors, 1, **enough | {"min_gain": enough["min_gain"] + 1e-6})
    assert (len(none), none.ended) == (0, True)
    # The most relevant candidate is always worth enough.
    for selector in ("coverage", "similarity", "mmr", "ndpp"):
        assert len(select([1.0, 0.5], vectors, 2, selector, min_gain=1.0, min_k=0)) >= 1


@pytest.mark.parametrize("given", [{"min_gain": 1.5}, {"min_gain": -0.1}, {"min_gain": 0.5, "min_k": -1}])
def test_a_min_gain_that_is_no_share_is_refused(given: Any) -> None:
    with pytest.raises(InvalidParameterError, match=[*given][-1]):
        select([1.0, 0.0], [[1.0, 0.0]], 1, **given)
