"""What every registered selector promises.

Each test runs for every selector, with numpy and with the compiled loops where there are any. A new selector needs one
entry in ``REGISTERED`` of cases.py, with a slow reference, to be tested with the others.
"""

from __future__ import annotations

import dataclasses
import math
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shared_core import (
    NDPP,
    BudgetError,
    InvalidParameterError,
    Selector,
    SetSelectError,
    TopK,
)
from shared_core.errors import NothingLeftError
from shared_core.selectors import registry
from tests import oracles
from tests.shared_core.cases import (
    GREEDY_PAIRS,
    PAIRS,
    REGISTERED,
    RELEVANCE_PAIRS,
    Case,
    Grid,
    Pair,
    assert_alike,
    condition_on_regular,
    draw_conditions,
    draw_relevance,
    gaussian,
    grids,
    names,
    random_cases,
    same,
)
from tests.shared_core.selectors.loops import available_loops, use_loops

quick = settings(deadline=None, derandomize=True, max_examples=20)
# For tests that compare with the reference: they run both loops themselves and compute the reference once.
each_pair = pytest.mark.parametrize("pair", PAIRS, ids=names)


def _make_fixture(pairs: Sequence[Pair]) -> Any:
    """A fixture that runs every test of a pair, with the compiled loops too if its selector has one."""
    params = [
        (p, way) for p in pairs for way in ("numpy", "compiled") if way == "numpy" or not isinstance(p.selector, TopK)
    ]

    def run(request: pytest.FixtureRequest) -> Iterator[Pair]:
        pair, way = request.param
        if way not in available_loops():
            pytest.skip("needs numba")
        with use_loops(way):
            yield pair

    return pytest.fixture(run, scope="module", params=params, ids=[f"{p.name}-{way}" for p, way in params])


pair = _make_fixture(PAIRS)
greedy_pair = _make_fixture(GREEDY_PAIRS)
relevance_pair = _make_fixture(RELEVANCE_PAIRS)


def test_every_registered_selector_is_tested_here() -> None:
    # Doctests and other tests register selectors too; a class of this package is found in its module.
    registered = {
        name
        for name, kind in registry._REGISTRY.items()
        if kind.__module__.startswith("shared_core.")
        and getattr(sys.modules[kind.__module__], kind.__name__, None) is kind
    }
    assert registered == set(REGISTERED)
    for name, pairs in REGISTERED.items():
        assert all(type(pair.selector) is registry._REGISTRY[name] for pair in pairs)


# --- agreement with the reference -----------------------------------------------------------------


@each_pair
def test_agrees_with_the_reference(pair: Pair) -> None:
    for case in random_cases(30, 24):
        pair.check(case.query, case.vectors, case.k, case)
    for case in random_cases(31, 12, n_max=30):
        pair.check(case.query, case.vectors, len(case.vectors), case)
    for seed in range(4):
        query, vectors = gaussian(seed, 25, 30, np.float16)
        pair.check(query, vectors, 6, seed)


@each_pair
@quick
@given(data=grids(), drawn=st.data())
def test_agrees_with_the_reference_where_scores_tie(pair: Pair, data: Grid, drawn: st.DataObject) -> None:
    query, vectors, k = data
    pair.check(query, vectors, k, data)
    if pair.takes_relevance:
        quarters = st.lists(st.integers(-4, 4).map(lambda x: x / 4), min_size=len(vectors), max_size=len(vectors))
        relevance = drawn.draw(quarters)
        pair.check(query, vectors, k, (data, relevance), relevance=relevance)


# --- several queries ------------------------------------------------------------------------------


def questions_of(case: Case) -> NDArray[Any]:
    """The query of a case, and up to three others: one of them resembles a candidate, another one is opposite."""
    others = [case.rng.normal(size=len(case.query)), 2 * case.vectors[0] + 0.1 * case.query, -case.query]
    rows: NDArray[Any] = np.stack([case.query, *others[: 1 + case.number // 2 % 3]])
    return rows.astype(case.query.dtype)


SEVERAL = [p for p in PAIRS if p.selector.capabilities.sub_questions]


@pytest.mark.parametrize("pair", SEVERAL, ids=names)
def test_agrees_with_the_reference_for_several_queries(pair: Pair) -> None:
    changed = 0
    for case in random_cases(34, 24, n_max=40):
        if case.vectors.dtype == np.float32:
            continue
        queries = questions_of(case)
        shown = case.rng.permutation(len(case.vectors))[: case.number // 2 % 3].tolist()
        if isinstance(pair.selector, NDPP) or len(shown) == len(case.vectors):
            shown = []
        k = min(case.k, len(case.vectors) - len(shown))
        pair.check(queries, case.vectors, k, case, shown=shown)
        found = pair.select(queries, case.vectors, k)
        changed += found.indices.tolist() != pair.select(case.query, case.vectors, k).indices.tolist()
        scores = oracles.served_best(queries, case.vectors)[:, found.indices]
        assert found.serves is not None
        assert not found.serves.flags.writeable
        np.testing.assert_allclose(scores[found.serves, range(k)], scores.max(axis=0), rtol=0, atol=1e-9)
    assert changed > 4


@quick
@given(data=grids(), seed=st.integers(0, 99))
def test_several_queries_in_another_order_or_twice_change_no_pick(pair: Pair, data: Grid, seed: int) -> None:
    query, vectors, k = data
    one = pair.select(query, vectors, k)
    assert same(pair.select(np.stack([query, query, 2 * query]), vectors, k), one)
    assert one.serves is None
    rng = np.random.default_rng(seed)
    others = rng.normal(size=(3, len(query)))
    if not pair.selector.capabilities.sub_questions:
        with pytest.raises(InvalidParameterError, match="cannot select for several"):
            pair.select(np.stack([query, -query]), vectors, k)
        return
    # Continuous cosines do not tie, unless the rows are equal.
    queries = np.stack([rng.normal(size=len(query)), *others])
    found, order = pair.select(queries, vectors, k), [0, *(1 + rng.permutation(3))]
    assert_alike(pair.select(queries[order], vectors, k), found)
    assert_alike(pair.select(np.vstack([queries, queries[2]]), vectors, k), found)


# --- agreement under conditions: shown, budget, constraints ---------------------------------------

CONDITIONS = [
    ("shown",),
    ("shown", "budget"),
    ("sources", "near"),
    ("sources", "near", "shown", "budget"),
    ("relevance", "shown"),
    ("relevance", "sources", "near", "shown", "budget"),
]


@pytest.mark.parametrize(
    ("pair", "about"),
    [
        pytest.param(pair, about, id=f"{pair.name}: {' and '.join(about)}")
        for pair in PAIRS
        for about in CONDITIONS
        if ({*about} == {"shown"} if pair.refined else pair.takes_relevance or "relevance" not in about)
    ],
)
def test_agrees_with_the_reference_under_conditions(pair: Pair, about: tuple[str, ...]) -> None:
    changed = 0
    for case in random_cases(40 + CONDITIONS.index(about), 24, n_max=40):
        more = {"relevance": draw_relevance(case)} if "relevance" in about else {}
        k, conditions = draw_conditions(case, about)
        if isinstance(pair.selector, NDPP):
            rows = oracles.unit_rows(case.vectors)
            condition_on_regular(conditions, rows @ rows.T)
        found = pair.check(case.query, case.vectors, k, f"{case}, {conditions}", **conditions, **more)
        free = pair.select(case.query, case.vectors, case.k)
        changed += found is None or found.indices.tolist() != free.indices.tolist()
    # The agreement says little if the conditions never matter.
    assert changed > 6


# --- the result -----------------------------------------------------------------------------------


@quick
@given(data=grids())
def test_the_result_is_whole_and_read_only(pair: Pair, data: Grid) -> None:
    query, vectors, k = data
    selection = pair.select(query, vectors, k)
    assert selection.indices.dtype == np.int64
    assert selection.gains.dtype == selection.relevance.dtype == np.float64
    assert selection.indices.shape == selection.gains.shape == selection.relevance.shape == (k,)
    assert len({*selection.indices.tolist()} & {*range(len(vectors))}) == k
    assert np.all(np.isfinite(selection.gains))
    cosines = oracles.cosines(query, vectors)
    np.testing.assert_allclose(selection.relevance, cosines[selection.indices], rtol=0, atol=1e-12)
    combine = math.prod if isinstance(pair.selector, NDPP) else math.fsum
    assert selection.objective == pytest.approx(combine(selection.gains), rel=1e-12, abs=1e-12)
    assert not any(getattr(selection, name).flags.writeable for name in ("indices", "gains", "relevance"))


@quick
@given(data=grids())
def test_inputs_do_not_change_and_the_result_is_the_same_to_the_bit(pair: Pair, data: Grid) -> None:
    query, vectors, k = data
    before = query.tobytes(), vectors.tobytes()
    candidates = pair.candidates(query, vectors)
    kept = candidates.query.tobytes(), candidates.vectors.tobytes(), candidates.relevance.tobytes()
    first = pair.selector.select(candidates, k)
    assert same(pair.selector.select(candidates, k), first)
    assert same(pair.select(query.copy(), vectors.copy(), k), first)
    assert (query.tobytes(), vectors.tobytes()) == before
    assert (candidates.query.tobytes(), candidates.vectors.tobytes(), candidates.relevance.tobytes()) == kept


# --- given relevance -------------------------------------------------------------------------------


def test_the_relevance_of_the_result_is_the_given_one(relevance_pair: Pair) -> None:
    query, vectors = gaussian(12, 9, 20)
    more: dict[str, Any] = {"quality": np.zeros(9)} if relevance_pair.with_quality else {}
    if relevance_pair.with_parts:
        # Else a candidate that covers much could be picked before the most relevant one.
        more |= {"words": None, "cover": None}
    relevance = np.linspace(-3, 4, 9)
    found = relevance_pair.select(query, vectors, 9, relevance=relevance, **more)
    assert found.indices[0] == 8
    assert found.relevance.tolist() == relevance[found.indices].tolist()
    assert relevance_pair.select(query, vectors, 9, relevance=-relevance, **more).indices[0] == 0
    # The query has no other use than the cosines.
    assert same(relevance_pair.select(-query, vectors, 9, relevance=relevance, **more), found)


# --- what is refused ------------------------------------------------------------------------------

COSTS = {"costs": [5.0, 3.0, 4.0, 2.5, 9.0, *[20.0] * 6]}
REFUSED: list[tuple[Any, dict[str, Any], type[SetSelectError], str]] = [
    *((k, {}, InvalidParameterError, rf"k={k} with n=11") for k in (0, -1, 12)),
    *((k, {}, InvalidParameterError, "k must be an integer") for k in (True, 2.5, "2", np.nan)),
    (None, {}, InvalidParameterError, "give k, budget or both"),
    (9, {"shown": [1, 2, 3]}, InvalidParameterError, r"k=9 with n=8 \(3 of 11"),
    *((3, {"shown": shown}, InvalidParameterError, "shown") for shown in ([11], [-1], [2, 2], [1.5], ["1"], [True])),
    (1, {"shown": range(11)}, NothingLeftError, "already shown"),
    (2, {"budget": 3.0}, BudgetError, "costs"),
    (2, {"budget": 2.0, **COSTS}, NothingLeftError, "costs 2.5"),
    # Candidate 3, the only one that would fit, is shown.
    (2, {"budget": 2.6, "shown": [3], **COSTS}, NothingLeftError, r"costs 3\b"),
    (12, {"budget": 9.0, **COSTS}, InvalidParameterError, "k=12"),
    *((2, {"budget": b, **COSTS}, InvalidParameterError, "budget") for b in (np.nan, np.inf, "many", True)),
    (2, {"sources": "a" * 11, "max_per_source": 1, "shown": [4]}, NothingLeftError, "n=11"),
    (2, {"drop_near_duplicates": -1.0, "shown": [4]}, NothingLeftError, "n=11"),
    # Those that fit the budget are of a source that has its share; the others do not fit.
    (2, {"budget": 6, "sources": "aaaaabbbbbb", "max_per_source": 1, "shown": [0], **COSTS}, NothingLeftError, "n=11"),
]


@each_pair
def test_what_is_wrong_is_refused(pair: Pair) -> None:
    for k, conditions, error, words in REFUSED:
        with pytest.raises(error, match=words):
            pair.select(*gaussian(1, 11, 12), k, **conditions)


# --- the selector as an object --------------------------------------------------------------------


@each_pair
def test_selectors_are_frozen_and_hashable_and_show_their_parameters(pair: Pair) -> None:
    selector = pair.selector
    assert isinstance(selector, Selector)
    twin = dataclasses.replace(selector)
    assert twin == selector
    assert hash(twin) == hash(selector)
    assert type(selector).__name__ in repr(selector)
    for field in dataclasses.fields(selector):
        assert field.name in repr(selector)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(selector, field.name, None)


@each_pair
def test_pickled_selectors_and_candidates_give_the_same_selection(pair: Pair) -> None:
    candidates = pair.candidates(*gaussian(1, 11, 5))
    selector, again = pickle.loads(pickle.dumps((pair.selector, candidates)))
    assert selector == pair.selector
    assert not again.vectors.flags.writeable
    selection = pair.selector.select(candidates, 4)
    assert same(selector.select(again, 4), selection)
    assert same(pickle.loads(pickle.dumps(selection)), selection)


# --- ties -----------------------------------------------------------------------------------------


def test_ties_between_copies_go_to_the_lower_index(greedy_pair: Pair) -> None:
    # BLAS sums the last rows of a block in another order, so the test needs many sizes.
    rng = np.random.default_rng(91)
    for number in range(120):
        dtype = (np.float32, np.float64)[number % 2]
        n, d = int(rng.integers(2, 70)), int(rng.integers(2, 80))
        copies = int(rng.integers(1, n))
        vectors = rng.normal(size=(n, d)).astype(dtype)
        original = rng.integers(0, n - copies, size=copies)
        vectors[n - copies :] = vectors[original]
        query = rng.normal(size=d).astype(dtype)
        kind = np.concatenate([np.arange(n - copies), original])
        # In two of three cases the copies have an equal relevance that was given.
        more = {"relevance": rng.normal(size=n)[kind]} if greedy_pair.takes_relevance and number % 3 else {}
        picks = greedy_pair.select(query, vectors, int(rng.integers(1, min(n, 12) + 1)), **more).indices
        for position, pick in enumerate(picks):
            earlier = [i for i in range(pick) if kind[i] == kind[pick] and i not in picks[:position]]
            assert not earlier, f"n={n} d={d}: {pick} was picked before its copy {earlier} ({picks})"


# --- small, zero and opposite vectors -------------------------------------------------------------


def test_only_zero_rows(pair: Pair) -> None:
    for dtype in (np.float32, np.float64):
        selection = pair.select(np.ones(4, dtype), np.zeros((6, 4), dtype), 4)
        assert selection.indices.tolist() == [0, 1, 2, 3]
        assert selection.relevance.tolist() == [0.0] * 4
        assert np.all(np.isfinite(selection.gains))
        if isinstance(pair.selector, NDPP):
            assert selection.filled_from == (0 if pair.selector.ridge == 0 else None)


# --- kinds of arrays ------------------------------------------------------------------------------

KINDS: dict[str, Callable[[NDArray[Any]], Any]] = {
    "lists": lambda a: a.tolist(),
    "list of rows": list,
    "Fortran order": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 3, axis=-1)[..., ::3],
    "backwards": lambda a: a[::-1].copy()[::-1],
    "byte-swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "broadcast": lambda a: np.broadcast_to(a, (2, *a.shape))[1],
}


def test_the_kind_of_array_does_not_matter(pair: Pair) -> None:
    query, vectors = gaussian(94, 30, 12)
    for rows in (vectors, oracles.unit_rows(vectors)):
        expected = pair.select(query, rows, 6)
        for kind in KINDS.values():
            for copy in (True, False):
                assert_alike(pair.select(kind(query), kind(rows), 6, copy=copy), expected, rtol=1e-9)


@pytest.mark.parametrize("pair", GREEDY_PAIRS, ids=names)
def test_a_sum_of_costs_that_is_the_budget_but_for_rounding_fits(pair: Pair) -> None:
    # In floating point 0.1 + 0.2 is above 0.3.
    assert len(pair.select(*gaussian(1, 2, 4), None, costs=[0.1, 0.2], budget=0.3)) == 2
