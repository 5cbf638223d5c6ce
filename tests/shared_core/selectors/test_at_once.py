"""The whole choice in one compiled call: when it is made so, and that it is the reference's."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from shared_core import (
    MMR,
    NDPP,
    VRSD,
    Candidates,
    InvalidInputError,
    Selection,
    Selector,
    SetSelectError,
    TopK,
    select,
    select_many,
)
from shared_core.selectors import compiled
from shared_core.selectors.at_once import select_at_once
from tests import oracles
from tests.shared_core.cases import MMR_PLAIN, VRSD_GREEDY, VRSD_REFINED, Case, Pair, gaussian, grids, random_cases

pytest.importorskip("numba")

QUERY, VECTORS = gaussian(3, 30, 16, np.float32)
SELECTORS = [VRSD(), VRSD(refine=True), MMR(), MMR(0.3)]
every_selector = pytest.mark.parametrize("selector", SELECTORS, ids=repr)
GREEDY = [VRSD_GREEDY, MMR_PLAIN]
every_greedy_pair = pytest.mark.parametrize("pair", GREEDY, ids=lambda pair: pair.name)
every_pair = pytest.mark.parametrize("pair", [*GREEDY, VRSD_REFINED], ids=lambda pair: pair.name)


def agree(one: Selection, other: Selection, atol: float = 1e-5) -> None:
    assert one.indices.tolist() == other.indices.tolist()
    np.testing.assert_allclose(one.gains, other.gains, atol=atol)
    np.testing.assert_allclose(one.relevance, other.relevance, atol=atol)
    assert one.objective == pytest.approx(other.objective, abs=10 * atol)
    assert one.filled_from is other.filled_from is None


def agrees_with_the_reference(found: Selection, pair: Pair, case: Case, k: int) -> None:
    expected = pair.reference(case.query, case.vectors, k)
    if pair.refined:
        oracles.assert_refined(found, expected, case.query, case.vectors, case, k=k)
    else:
        oracles.assert_agrees(found, expected, case)


def read_only(array: Any) -> Any:
    array = array.copy()
    array.setflags(write=False)
    return array


@every_pair
def test_the_choice_is_the_references(pair: Pair) -> None:
    for case in random_cases(930, 1000):
        before = case.query.copy(), case.vectors.copy()
        found = select_at_once(case.query, case.vectors, case.k, pair.selector)
        assert found is not None, case
        agrees_with_the_reference(found, pair, case, case.k)
        assert np.array_equal(case.query, before[0])
        assert np.array_equal(case.vectors, before[1])


def test_so_it_is_with_a_quality() -> None:
    for case in random_cases(931, 500):
        for selector in (MMR(), MMR(0.7, 0.3), MMR(0.5, 0.0)):
            found = select_at_once(case.query, case.vectors, case.k, selector, case.quality)
            assert found is not None, case
            weights = {"lambda_d": selector.lambda_d, "lambda_b": selector.lambda_b}
            expected = oracles.mmr(case.query, case.vectors, case.k, quality=case.quality, **weights)
            oracles.assert_agrees(found, expected, f"{case}, {selector}")


@every_pair
def test_to_the_last_candidate_the_order_is_the_references(pair: Pair) -> None:
    for case in random_cases(932, 200):
        n = len(case.vectors)
        found = select_at_once(case.query, case.vectors, n, pair.selector)
        assert found is not None
        agrees_with_the_reference(found, pair, case, n)


@every_selector
@given(given_=grids())
def test_where_there_are_ties_the_picks_are_those_of_numpy(selector: Selector, given_: Any) -> None:
    query, vectors, k = given_
    found = select_at_once(query, vectors, k, selector)
    assert found is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_loops", lambda: None)
        agree(found, selector.select(Candidates(query, vectors), k), 1e-9)


@every_selector
@given(order=hnp.arrays(np.int64, 30, unique=True, elements={"min_value": 0, "max_value": 29}))
def test_the_order_of_the_rows_does_not_matter(selector: Selector, order: Any) -> None:
    straight = select_at_once(QUERY, VECTORS, 12, selector)
    permuted = select_at_once(QUERY, VECTORS[order], 12, selector)
    assert straight is not None
    assert permuted is not None
    assert order[permuted.indices].tolist() == straight.indices.tolist()


@every_greedy_pair
def test_fewer_picks_are_the_first_of_more(pair: Pair) -> None:
    longest = select_at_once(QUERY, VECTORS, 30, pair.selector)
    assert longest is not None
    for k in range(1, 30):
        shorter = select_at_once(QUERY, VECTORS, k, pair.selector)
        assert shorter is not None
        assert shorter.indices.tolist() == longest.indices[:k].tolist()
        assert shorter.gains.tolist() == longest.gains[:k].tolist()


@every_selector
@pytest.mark.parametrize(
    "query",
    [
        QUERY,
        QUERY.astype(np.float64),
        QUERY.tolist(),
        np.repeat(QUERY, 2)[::2],
        1e12 * QUERY,
        read_only(QUERY),
    ],
    ids=["float32", "float64", "list", "strided", "long", "read-only"],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_queries_of_every_kind(selector: Selector, query: Any, dtype: Any) -> None:
    vectors = VECTORS.astype(dtype)
    found = select_at_once(query, vectors, 6, selector)
    assert found is not None
    agree(found, selector.select(Candidates(query, vectors), 6))


class Subclass(VRSD):
    """What it would choose, nobody knows."""


LEFT: dict[str, tuple[Any, Any, Any, Any]] = {
    "float16": (QUERY, VECTORS.astype(np.float16), 3, VRSD()),
    "integers": (QUERY, (100 * VECTORS).astype(np.int16), 3, VRSD()),
    "other byte order": (QUERY, VECTORS.astype(">f4"), 3, VRSD()),
    "columns": (QUERY, np.asfortranarray(VECTORS), 3, VRSD()),
    "strided": (QUERY, VECTORS[::2], 3, VRSD()),
    "read-only": (QUERY, read_only(VECTORS), 3, VRSD()),
    "masked": (QUERY, np.ma.masked_array(VECTORS), 3, VRSD()),
    "one row": (QUERY, VECTORS[0], 3, VRSD()),
    "no row": (QUERY, VECTORS[:0], 3, VRSD()),
    "no column": (QUERY, VECTORS[:, :0].copy(), 3, VRSD()),
    "k is 0": (QUERY, VECTORS, 0, VRSD()),
    "k above n": (QUERY, VECTORS, 31, VRSD()),
    "k a bool": (QUERY, VECTORS, True, VRSD()),
    "k of numpy": (QUERY, VECTORS, np.int64(3), VRSD()),
    "top-k": (QUERY, VECTORS, 3, TopK()),
    "NDPP": (QUERY, VECTORS, 3, NDPP()),
    "subclass": (QUERY, VECTORS, 3, Subclass()),
    "query of integers": (np.arange(16), VECTORS, 3, VRSD()),
    "query of another length": (QUERY[:5], VECTORS, 3, VRSD()),
    "query of two": (VECTORS[:2], VECTORS, 3, VRSD()),
    "query zero": (0 * QUERY, VECTORS, 3, VRSD()),
    "query tiny": (1e-300 * QUERY.astype(np.float64), VECTORS, 3, VRSD()),
    "query NaN": (QUERY * np.nan, VECTORS, 3, VRSD()),
    "row NaN": (QUERY, np.where(np.arange(30)[:, None] == 7, np.nan, VECTORS), 3, MMR()),
    "row inf": (QUERY, np.where(np.arange(30)[:, None] == 7, np.inf, VECTORS), 3, VRSD()),
    "row tiny": (QUERY, np.where(np.arange(30)[:, None] == 7, np.float32(1e-30), VECTORS), 3, VRSD()),
}


@pytest.mark.parametrize("arguments", LEFT.values(), ids=LEFT)
def test_what_is_left_to_the_long_way_and_ends_as_there(arguments: tuple[Any, ...]) -> None:
    query, vectors, k, selector = arguments
    assert select_at_once(query, vectors, k, selector) is None
    expected = outcome(lambda: selector.select(Candidates(query, vectors), k))
    found = outcome(lambda: select(query, vectors, k, selector))
    if isinstance(expected, Selection):
        agree(found, expected, 0)
    else:
        assert found == expected


def outcome(run: Callable[[], Selection]) -> Any:
    try:
        return run()
    except SetSelectError as error:
        return type(error), str(error)


@every_selector
def test_lists_are_as_good_as_arrays(selector: Selector) -> None:
    vectors = VECTORS.astype(np.float64)
    for rows in (vectors.tolist(), list(vectors), tuple(vectors.tolist())):
        agree(select(QUERY.tolist(), rows, 4, selector), select(QUERY, vectors, 4, selector), 0)


def test_zero_rows_are_kept_and_come_last() -> None:
    vectors = VECTORS.copy()
    vectors[[2, 9]] = 0
    for selector in SELECTORS:
        found = select_at_once(QUERY, vectors, 30, selector)
        assert found is not None
        agree(found, selector.select(Candidates(QUERY, vectors), 30))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("selector", [*SELECTORS, MMR(0.0)], ids=repr)
def test_lengths_just_within_the_range_bring_no_infinity(selector: Selector, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    longest = float(np.finfo(dtype).max) ** 0.5
    for _ in range(400):
        direction = rng.normal(size=48)
        row = (direction / np.linalg.norm(direction) * longest * (1 - rng.uniform(0, 3e-7))).astype(dtype)
        vectors = np.vstack([[row] * 4, np.ones((1, 48))]).astype(dtype)
        for found in (select(row, vectors, 4, selector), select_many(row[None], vectors[None], 4, selector)[0]):
            assert np.isfinite(found.gains).all()
            np.testing.assert_allclose(found.relevance, oracles.cosines(row, vectors)[found.indices], atol=1e-5)


@every_selector
def test_a_thread_that_writes_meanwhile_does_no_more_than_spoil_the_answer(selector: Selector) -> None:
    # An index out of NaN would end the process.
    vectors = np.random.default_rng(1).normal(size=(1500, 8)).astype(np.float32)
    sound, query, stop = vectors.copy(), vectors[0].copy(), threading.Event()

    def write() -> None:
        while not stop.is_set():
            vectors[:] = np.nan
            vectors[:] = sound

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        for _ in range(300):
            with contextlib.suppress(InvalidInputError):
                assert select(query, vectors, 20, selector).indices.max() < 1500
        stop.set()
        writing.result()


@every_selector
def test_of_two_mistakes_the_first_is_named(selector: Selector) -> None:
    vectors = VECTORS.copy()
    vectors[5, 2] = np.nan
    with pytest.raises(InvalidInputError, match=r"^vectors: row 5 holds NaN or inf"):
        select(QUERY, vectors, 3, selector, quality=np.zeros(4))
    with pytest.raises(InvalidInputError, match=r"^query is the zero vector"):
        select(0 * QUERY, VECTORS, 3, selector, quality=np.full(30, np.nan))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@every_selector
def test_a_bad_quality_is_named(selector: Selector, value: float) -> None:
    quality = np.zeros(30)
    quality[4] = value
    with pytest.raises(InvalidInputError, match=r"^quality: row 4 is"):
        select(QUERY, VECTORS, 3, selector, quality=quality)
    with pytest.raises(InvalidInputError, match=r"^quality must have shape"):
        select(QUERY, VECTORS, 3, selector, quality=quality[1:])


@every_selector
def test_what_comes_back_cannot_be_written_to(selector: Selector) -> None:
    found = select_at_once(QUERY, VECTORS, 3, selector)
    assert found is not None
    assert (found.indices.dtype, found.gains.dtype, found.relevance.dtype) == (np.int64, np.float64, np.float64)
    for array in (found.indices, found.gains, found.relevance):
        assert not array.flags.writeable
    assert VECTORS.flags.writeable


@every_pair
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_both_sides_of_the_crossover_agree_with_the_reference(
    pair: Pair, more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "MOST_BYTES", VECTORS[:20].nbytes)
    monkeypatch.setattr(compiled, "MOST_BOUNDS", 20)
    vectors = VECTORS[: 20 + more].copy()
    assert (select_at_once(QUERY, vectors, 5, pair.selector) is None) == (more > 0)
    found, expected = select(QUERY, vectors, 5, pair.selector), pair.reference(QUERY, vectors, 5)
    if pair.refined:
        oracles.assert_refined(found, expected, QUERY, vectors, k=5)
    else:
        oracles.assert_agrees(found, expected)


@pytest.mark.parametrize(
    "more",
    [
        {"ids": list(range(30))},
        {"costs": np.ones(30), "budget": 3.0},
        {"sources": ["a"] * 30, "max_per_source": 3},
        {"drop_near_duplicates": 0.9},
        {"shown": [1]},
        {"shown": np.array([1])},
        {"shown": (1,)},
        {"quality": np.ones(30), "costs": np.ones(30)},
    ],
    ids=lambda more: "+".join(more),
)
def test_anything_else_that_is_asked_for_goes_the_long_way(more: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: Any) -> Any:
        raise AssertionError("the whole choice was made at once")

    monkeypatch.setattr("shared_core.selectors.choose.select_at_once", never)
    assert len(select(QUERY, VECTORS, 3, "mmr", **more)) == 3
    with pytest.raises(AssertionError, match="at once"):
        select(QUERY, VECTORS, 3, "mmr")
