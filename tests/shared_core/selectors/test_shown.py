from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core import NDPP, Candidates, InvalidParameterError, choose, select
from tests import oracles
from tests.shared_core.cases import GREEDY_PAIRS, PAIRS, Case, Pair, gaussian, grids, names, random_cases

pytestmark = pytest.mark.usefixtures("either_way")

every_pair = pytest.mark.parametrize("pair", PAIRS, ids=names)
greedy_pairs = pytest.mark.parametrize("pair", GREEDY_PAIRS, ids=names)


def shown_of(pair: Pair, case: Case) -> list[int]:
    n = len(case.vectors)
    shown: list[int] = case.rng.permutation(n)[: int(case.rng.integers(0, min(n, 6)))].tolist()
    if isinstance(pair.selector, NDPP):
        rows = oracles.unit_rows(case.vectors)
        while shown and oracles.ndpp_determinant(oracles.ndpp_dense(rows), shown) < 1e-3:
            # A shown set that is linearly dependent has no determinant to condition on.
            shown.pop()
    return shown


@every_pair
def test_agrees_with_the_reference(pair: Pair) -> None:
    for case in random_cases(80, 300):
        shown = shown_of(pair, case)
        pair.check(case, k=min(case.k, len(case.vectors) - len(shown)), shown=shown)


@every_pair
@settings(deadline=None, derandomize=True)
@given(data=grids(), drawn=st.data())
def test_what_was_shown_does_not_come_again(
    pair: Pair, data: tuple[np.ndarray, np.ndarray, int], drawn: st.DataObject
) -> None:
    query, vectors, _ = data
    n = len(vectors)
    # Any set, dependent ones and zero rows among them: the answer must be a proper one.
    shown = drawn.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=n - 1))
    k = drawn.draw(st.integers(1, n - len(shown)))
    selection = pair.selector.select(Candidates(query, vectors), k, shown=shown)
    picks = selection.indices.tolist()
    assert len(set(picks)) == k
    assert not set(picks) & set(shown)
    assert np.all(np.isfinite(selection.gains))
    assert np.isfinite(selection.objective)


@greedy_pairs
@settings(deadline=None, derandomize=True, max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 20), data=st.data())
def test_to_go_on_is_to_have_gone_on(pair: Pair, seed: int, n: int, data: st.DataObject) -> None:
    candidates = Candidates(*gaussian(seed, n, 24))
    k = data.draw(st.integers(2, n))
    j = data.draw(st.integers(1, k - 1))
    whole = pair.selector.select(candidates, k)
    first = pair.selector.select(candidates, j)
    rest = pair.selector.select(candidates, k - j, shown=first.indices)
    assert [*first.indices, *rest.indices] == whole.indices.tolist()
    np.testing.assert_allclose(rest.gains, whole.gains[j:], rtol=1e-6, atol=1e-12)


@every_pair
@settings(deadline=None, derandomize=True, max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), order=st.permutations([0, 3, 7, 9]))
def test_the_order_in_which_it_was_shown_does_not_matter(pair: Pair, seed: int, order: list[int]) -> None:
    candidates = Candidates(*gaussian(seed, 15, 20))
    one = pair.selector.select(candidates, 4, shown=[0, 3, 7, 9])
    other = pair.selector.select(candidates, 4, shown=order)
    assert one.indices.tolist() == other.indices.tolist()
    np.testing.assert_allclose(one.gains, other.gains, rtol=1e-9, atol=1e-12)


@every_pair
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_copy_of_what_was_shown_is_avoided(pair: Pair, dtype: Any) -> None:
    if pair.name == "TopK":
        pytest.skip("similarity does not look at what was shown")
    # Row 1 is row 0 again, and the most similar of all; row 2 completes it.
    vectors = np.array([[0.8, 0.6, 0.0], [0.8, 0.6, 0.0], [0.7, -0.6, 0.1]], dtype=dtype)
    query = np.array([1.0, 0.0, 0.0], dtype=dtype)
    assert pair.selector.select(Candidates(query, vectors), 1, shown=[0]).indices.tolist() == [2]


@every_pair
@pytest.mark.parametrize("shown", [np.array([2, 5]), (2, 5), range(2, 4), [np.int32(2), np.int64(5)]])
def test_shown_may_be_any_sequence_of_integers(pair: Pair, shown: Any) -> None:
    candidates = Candidates(*gaussian(1, 11, 12))
    expected = pair.selector.select(candidates, 3, shown=[int(i) for i in shown])
    assert pair.selector.select(candidates, 3, shown=shown).indices.tolist() == expected.indices.tolist()


@every_pair
@pytest.mark.parametrize("shown", [[11], [-1], [0, 100], [2, 2], [1.0], [1.5], ["1"], [True], [None]])
def test_shown_that_names_no_candidate_is_rejected(pair: Pair, shown: Any) -> None:
    with pytest.raises(InvalidParameterError, match="shown"):
        pair.selector.select(Candidates(*gaussian(1, 11, 12)), 3, shown=shown)


@every_pair
def test_k_is_limited_to_what_was_not_shown(pair: Pair) -> None:
    candidates = Candidates(*gaussian(1, 11, 12))
    assert len(pair.selector.select(candidates, 8, shown=[1, 2, 3]).indices) == 8
    with pytest.raises(InvalidParameterError, match=r"(?s)9.*8|8.*9"):
        pair.selector.select(candidates, 9, shown=[1, 2, 3])
    with pytest.raises(InvalidParameterError):
        pair.selector.select(candidates, 1, shown=range(11))


@every_pair
@pytest.mark.parametrize("shown", [5, 2.5, np.array(3)])
def test_shown_that_is_no_collection_is_rejected(pair: Pair, shown: Any) -> None:
    candidates = Candidates(*gaussian(1, 11, 12))
    for ask in (pair.selector.select, lambda c, k, shown: choose(c, pair.selector, k, shown=shown)):
        with pytest.raises(InvalidParameterError, match="shown"):
            ask(candidates, 3, shown=shown)


@every_pair
def test_shown_as_an_array_works_in_every_way_to_choose(pair: Pair) -> None:
    query, vectors = gaussian(1, 11, 12)
    candidates = Candidates(query, vectors)
    expected = pair.selector.select(candidates, 3, shown=[2, 5]).indices.tolist()
    for dtype in (np.int64, np.int32, np.uint8):
        shown = np.array([2, 5], dtype=dtype)
        assert select(query, vectors, 3, pair.selector, shown=shown).indices.tolist() == expected
        for score_threshold in (None, -1.0):
            chosen = choose(candidates, pair.selector, 3, shown=shown, score_threshold=score_threshold)
            assert chosen.indices.tolist() == expected
    nothing = pair.selector.select(candidates, 3).indices.tolist()
    assert pair.selector.select(candidates, 3, shown=np.array([])).indices.tolist() == nothing
