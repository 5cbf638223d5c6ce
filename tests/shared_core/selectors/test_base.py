from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core import (
    MMR,
    NDPP,
    VRSD,
    BudgetError,
    Candidates,
    InvalidInputError,
    InvalidParameterError,
    KernelError,
    LowRankKernel,
    PerspectiveError,
    Selection,
    Selector,
    SetSelectError,
    TopK,
    make_selector,
    register_selector,
    select,
    selector_names,
)
from tests import oracles
from tests.shared_core.cases import GREEDY_PAIRS, PAIRS, Pair, gaussian, grids, names

pytestmark = pytest.mark.usefixtures("either_way")

NAMES = ("similarity", "vrsd", "mmr", "ndpp")
every_pair = pytest.mark.parametrize("pair", PAIRS, ids=names)


def same(a: Selection, b: Selection) -> bool:
    return (
        np.array_equal(a.indices, b.indices)
        and np.array_equal(a.gains, b.gains)
        and np.array_equal(a.relevance, b.relevance)
        and a.objective == b.objective
        and a.filled_from == b.filled_from
    )


# --- what every selector does ---------------------------------------------------------------------


@every_pair
@settings(deadline=None, derandomize=True)
@given(data=grids())
def test_shape_of_a_selection(pair: Pair, data: tuple[np.ndarray, np.ndarray, int]) -> None:
    query, vectors, k = data
    selection = pair.selector.select(Candidates(query, vectors), k)
    assert selection.indices.dtype == np.int64
    assert selection.gains.dtype == selection.relevance.dtype == np.float64
    assert selection.indices.shape == selection.gains.shape == selection.relevance.shape == (k,)
    assert len(set(selection.indices.tolist())) == k
    assert set(selection.indices.tolist()) <= set(range(len(vectors)))
    assert isinstance(selection.objective, float)
    assert selection.filled_from is None or isinstance(selection.filled_from, int)
    assert np.all(np.isfinite(selection.gains))
    assert np.all(np.isfinite(selection.relevance))
    cos = oracles.cosines(query, vectors)
    np.testing.assert_allclose(selection.relevance, cos[selection.indices], rtol=0, atol=1e-12)


@pytest.mark.parametrize("pair", GREEDY_PAIRS, ids=names)
@settings(deadline=None, derandomize=True)
@given(data=grids())
def test_the_first_j_of_k_picks_are_the_picks_for_j(pair: Pair, data: tuple[np.ndarray, np.ndarray, int]) -> None:
    query, vectors, k = data
    candidates = Candidates(query, vectors)
    longest = pair.selector.select(candidates, k)
    for j in range(1, k):
        shorter = pair.selector.select(candidates, j)
        assert shorter.indices.tolist() == longest.indices[:j].tolist()
        np.testing.assert_allclose(shorter.gains, longest.gains[:j], rtol=1e-12, atol=1e-15)


@every_pair
@settings(deadline=None, derandomize=True, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 20), d=st.integers(2, 12), data=st.data())
def test_a_permutation_of_the_candidates_permutes_the_answer(
    pair: Pair, seed: int, n: int, d: int, data: st.DataObject
) -> None:
    query, vectors = gaussian(seed, n, d)
    k = data.draw(st.integers(1, min(n, d)))
    order = np.array(data.draw(st.permutations(range(n))), dtype=np.int64)
    straight = pair.selector.select(Candidates(query, vectors), k)
    permuted = pair.selector.select(Candidates(query, vectors[order]), k)
    assert order[permuted.indices].tolist() == straight.indices.tolist()
    np.testing.assert_allclose(permuted.gains, straight.gains, rtol=1e-6, atol=1e-12)


@every_pair
@settings(deadline=None, derandomize=True, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 20), d=st.integers(2, 12), data=st.data())
def test_the_lengths_of_the_vectors_do_not_matter(pair: Pair, seed: int, n: int, d: int, data: st.DataObject) -> None:
    query, vectors = gaussian(seed, n, d)
    k = data.draw(st.integers(1, min(n, d)))
    scales = np.array(data.draw(st.lists(st.floats(1e-6, 1e6), min_size=n, max_size=n)))
    factor = data.draw(st.floats(1e-6, 1e6))
    straight = pair.selector.select(Candidates(query, vectors), k)
    scaled = pair.selector.select(Candidates(query * factor, vectors * scales[:, None]), k)
    assert scaled.indices.tolist() == straight.indices.tolist()
    np.testing.assert_allclose(scaled.gains, straight.gains, rtol=1e-6, atol=1e-12)


@every_pair
@settings(deadline=None, derandomize=True, max_examples=40)
@given(data=grids())
def test_inputs_stay_as_they_are_and_reruns_agree_to_the_bit(
    pair: Pair, data: tuple[np.ndarray, np.ndarray, int]
) -> None:
    query, vectors, k = data
    before = query.tobytes(), vectors.tobytes()
    candidates = Candidates(query, vectors)
    kept = candidates.query.tobytes(), candidates.vectors.tobytes(), candidates.relevance.tobytes()
    first = pair.selector.select(candidates, k)
    second = pair.selector.select(candidates, k)
    third = pair.selector.select(Candidates(query.copy(), vectors.copy()), k)
    assert same(first, second)
    assert same(first, third)
    assert (query.tobytes(), vectors.tobytes()) == before
    assert (candidates.query.tobytes(), candidates.vectors.tobytes(), candidates.relevance.tobytes()) == kept


@every_pair
@settings(deadline=None, derandomize=True)
@given(data=grids())
def test_gains_make_up_the_objective(pair: Pair, data: tuple[np.ndarray, np.ndarray, int]) -> None:
    query, vectors, k = data
    selection = pair.selector.select(Candidates(query, vectors), k)
    if isinstance(pair.selector, NDPP):
        assert selection.objective == pytest.approx(float(np.prod(selection.gains)), rel=1e-12, abs=0)
    else:
        assert selection.objective == pytest.approx(float(np.sum(selection.gains)), abs=1e-12)


@every_pair
@pytest.mark.parametrize("k", [0, -1, 12, 100])
def test_k_out_of_range_names_k_and_n(pair: Pair, k: int) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        pair.selector.select(Candidates(*gaussian(1, 11, 5)), k)
    assert str(k) in str(caught.value)
    assert "11" in str(caught.value)


@every_pair
@pytest.mark.parametrize("k", [True, 2.5, 2.0, "2", np.nan, [2]])
def test_k_that_is_no_integer_is_rejected(pair: Pair, k: Any) -> None:
    with pytest.raises(InvalidParameterError, match="k"):
        pair.selector.select(Candidates(*gaussian(1, 11, 5)), k)


@every_pair
def test_k_may_be_a_numpy_integer(pair: Pair) -> None:
    candidates = Candidates(*gaussian(1, 11, 5))
    assert same(pair.selector.select(candidates, np.int32(3)), pair.selector.select(candidates, 3))


@every_pair
def test_neither_k_nor_budget_is_rejected(pair: Pair) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)\bk\b.*budget|budget.*\bk\b"):
        pair.selector.select(Candidates(*gaussian(1, 11, 5)))


# --- the objects ----------------------------------------------------------------------------------


@every_pair
def test_selectors_are_frozen_hashable_and_tell_their_parameters(pair: Pair) -> None:
    selector = pair.selector
    assert isinstance(selector, Selector)
    assert dataclasses.is_dataclass(selector)
    twin = dataclasses.replace(selector)
    assert twin == selector
    assert hash(twin) == hash(selector)
    assert type(selector).__name__ in repr(selector)
    for field in dataclasses.fields(selector):
        assert field.name in repr(selector)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(selector, field.name, None)


def test_selectors_with_different_parameters_differ() -> None:
    assert VRSD() != VRSD(refine=True)
    assert MMR(0.5) != MMR(0.75)
    assert NDPP() != NDPP(relevance="exponential")
    assert len({TopK(), TopK(), VRSD(), MMR(), NDPP()}) == 4


def test_a_selector_with_a_kernel_is_hashable() -> None:
    kernel = LowRankKernel(np.eye(3))
    assert hash(NDPP(kernel)) == hash(NDPP(kernel))
    assert NDPP(kernel) == NDPP(kernel)


def test_defaults() -> None:
    assert MMR() == MMR(lambda_d=0.75, lambda_b=0.95)
    assert VRSD() == VRSD(refine=False)
    assert NDPP() == NDPP(kernel=None, relevance=None, temperature=None)


def test_a_selection_is_frozen() -> None:
    selection = TopK().select(Candidates(*gaussian(1, 4, 3)), 2)
    assert isinstance(selection, Selection)
    with pytest.raises(dataclasses.FrozenInstanceError):
        selection.objective = 1.0  # type: ignore[misc]


def test_the_family_of_errors() -> None:
    for error in (InvalidInputError, InvalidParameterError, BudgetError, KernelError, PerspectiveError):
        assert issubclass(error, SetSelectError)
        assert issubclass(error, ValueError)


# --- the registry ---------------------------------------------------------------------------------


def test_the_registry_knows_the_four() -> None:
    assert set(NAMES) <= set(selector_names())
    for name, kind in zip(NAMES, (TopK, VRSD, MMR, NDPP), strict=True):
        assert make_selector(name) == kind()


def test_parameters_reach_the_selector() -> None:
    assert make_selector("vrsd", refine=True) == VRSD(refine=True)
    assert make_selector("mmr", lambda_d=0.2, lambda_b=0.3) == MMR(0.2, 0.3)
    assert make_selector("mmr", lambda_mult=0.2) == MMR(lambda_d=0.2)
    assert make_selector("ndpp", relevance="exponential", temperature=0.5) == NDPP(None, "exponential", 0.5)


def test_an_unknown_name_lists_what_is_allowed() -> None:
    with pytest.raises(InvalidParameterError) as caught:
        make_selector("vsrd")
    assert "vsrd" in str(caught.value)
    assert all(name in str(caught.value) for name in NAMES)


@pytest.mark.parametrize(
    ("name", "parameters", "allowed"),
    [
        ("vrsd", {"refined": True}, ("refine",)),
        ("mmr", {"lambda": 0.5}, ("lambda_d", "lambda_b", "lambda_mult")),
        ("ndpp", {"temprature": 0.5}, ("kernel", "relevance", "temperature")),
        ("similarity", {"lambda_d": 0.5}, ()),
        ("vrsd", {"lambda_mult": 0.5}, ("refine",)),
    ],
)
def test_an_unknown_parameter_lists_what_is_allowed(
    name: str, parameters: dict[str, Any], allowed: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        make_selector(name, **parameters)
    assert next(iter(parameters)) in str(caught.value)
    assert all(word in str(caught.value) for word in allowed), str(caught.value)


def test_lambda_under_two_names_is_rejected() -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)lambda_d.*lambda_mult|lambda_mult.*lambda_d"):
        make_selector("mmr", lambda_d=0.5, lambda_mult=0.5)


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan])
def test_lambda_mult_has_the_same_limits(value: float) -> None:
    with pytest.raises(InvalidParameterError):
        make_selector("mmr", lambda_mult=value)


# --- select ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_select_is_the_selector_on_candidates(name: str) -> None:
    query, vectors = gaussian(2, 20, 8)
    expected = make_selector(name).select(Candidates(query, vectors), 5)
    found = select(query, vectors, 5, name)
    # But for rounding: the whole choice may be one call of compiled loops.
    assert found.indices.tolist() == expected.indices.tolist()
    np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-12)
    np.testing.assert_allclose(found.relevance, expected.relevance, rtol=1e-12)
    assert same(select(query, vectors, 5, make_selector(name)), found)
    assert same(select(query, vectors, k=5, selector=name), found)


def test_select_takes_vrsd_unless_told() -> None:
    query, vectors = gaussian(2, 20, 8)
    assert same(select(query, vectors, 5), select(query, vectors, 5, "vrsd"))
    assert select(query, vectors, 5).indices.tolist() == list(oracles.vrsd(query, vectors, 5).picks)


def test_select_hands_everything_on() -> None:
    query, vectors = gaussian(2, 20, 8)
    quality, costs = np.linspace(-1, 1, 20), np.arange(20) % 4 + 1.0
    candidates = Candidates(query, vectors, quality=quality, costs=costs)
    expected = MMR(0.4).select(candidates, 6, budget=9, shown=[3, 1])
    actual = select(query, vectors, 6, "mmr", quality=quality, costs=costs, budget=9, shown=[3, 1], lambda_mult=0.4)
    assert same(actual, expected)
    assert same(
        select(query, vectors, selector=VRSD(), costs=costs, budget=9),
        VRSD().select(candidates, budget=9),
    )
    ids = [f"doc {i}" for i in range(20)]
    kernel = LowRankKernel(np.random.default_rng(0).normal(size=(20, 6)), ids=ids[::-1])
    assert same(
        select(query, vectors, 4, "ndpp", ids=ids, kernel=kernel),
        NDPP(kernel).select(Candidates(query, vectors, ids=ids), 4),
    )


def test_select_rejects_parameters_beside_a_selector_object() -> None:
    query, vectors = gaussian(2, 20, 8)
    with pytest.raises(InvalidParameterError, match="refine"):
        select(query, vectors, 5, VRSD(), refine=True)


@pytest.mark.parametrize("selector", ["nothing", "VRSD ", 3, None, VRSD])
def test_select_rejects_what_is_no_selector(selector: Any) -> None:
    query, vectors = gaussian(2, 20, 8)
    with pytest.raises(InvalidParameterError):
        select(query, vectors, 5, selector)


@pytest.mark.parametrize("name", ["similarity", "vrsd", "mmr", "ndpp"])
def test_a_built_in_name_is_not_for_another_modules_class(name: str) -> None:
    before = make_selector(name)

    # Of the built-in's own name, as a copy of it in another module would be.
    class Other(TopK):
        pass

    Other.__name__ = Other.__qualname__ = type(before).__qualname__
    with pytest.raises(InvalidParameterError, match=f"'{name}' is taken by {type(before).__name__}"):
        register_selector(name)(dataclasses.dataclass(frozen=True)(Other))
    assert type(make_selector(name)) is type(before)
    # The class itself may come again.
    assert register_selector(name)(type(before)) is type(before)
