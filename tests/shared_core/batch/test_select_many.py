"""Many queries in one call: each gets the selection of a single call, for every kind of input and number of threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

from shared_core import (
    InvalidInputError,
    InvalidParameterError,
    KernelError,
    LowRankKernel,
    Parts,
    Selection,
    Selections,
    TopK,
    match_words,
    select,
    select_many,
    select_stream,
)
from shared_core.candidates import References
from tests.shared_core.cases import PAIRS, RELEVANCE_PAIRS, Pair, names, same

ONES = np.ones((4, 5))


def assert_same_as_single_calls(many: Selections, each: list[dict[str, Any]], k: int, selector: Any) -> None:
    assert len(many) == len(each)
    for found, arguments in zip(many, each, strict=True):  # type: ignore[call-overload]
        expected = select(k=k, selector=selector, **arguments)
        assert found.indices.tolist() == expected.indices.tolist()
        assert found.filled_from == expected.filled_from
        for name in ("gains", "relevance", "objective", "serves", "shares", "referred_by", "reference_kinds"):
            one, other = getattr(found, name), getattr(expected, name)
            assert (one is None) == (other is None), name
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12, err_msg=name)


# --- each query gets the selection of a single call -----------------------------------------------


@pytest.mark.parametrize("pair", PAIRS, ids=names)
@pytest.mark.parametrize(("shared", "dtype", "workers"), [(True, np.float32, 1), (False, np.float64, 3)])
def test_each_query_gets_the_selection_of_a_single_call(pair: Pair, shared: bool, dtype: Any, workers: int) -> None:
    rng = np.random.default_rng(500)
    queries = rng.normal(size=(70, 5)).astype(dtype)
    # Beyond the range of float32, in which some candidates are computed.
    queries = queries * 10.0 ** rng.choice([-200, 0, 200], size=(70, 1)) if dtype is np.float64 else queries
    vectors = rng.normal(size=(30, 5) if shared else (70, 30, 5)).astype(dtype)
    before = vectors.copy()
    # There are more picks than dimensions, so NDPP fills picks in.
    many = select_many(queries, vectors, 7, pair.selector, workers=workers)
    own = [vectors] * 70 if shared else vectors
    each = [{"query": query, "vectors": rows} for query, rows in zip(queries, own, strict=True)]
    assert_same_as_single_calls(many, each, 7, pair.selector)
    for array in (many.indices, many.gains, many.relevance, many.objective):
        assert not array.flags.writeable
    assert np.array_equal(vectors, before)
    assert vectors.flags.writeable
    stream = select_stream(iter(queries), vectors if shared else iter(vectors), 7, pair.selector, workers=workers)
    assert all(same(one, many[i]) for i, one in enumerate(stream))


@pytest.mark.parametrize("pair", RELEVANCE_PAIRS[::3], ids=names)
@pytest.mark.parametrize(("shared", "scale"), [(True, "minmax"), (False, "rank")])
def test_given_relevance_is_scaled_query_by_query_and_reported_as_given(pair: Pair, shared: bool, scale: Any) -> None:
    rng = np.random.default_rng(511)
    queries, vectors = rng.normal(size=(11, 6)), rng.normal(size=(20, 6) if shared else (11, 20, 6))
    # The sizes differ from query to query, and some values are equal.
    relevance = np.round(rng.normal(size=(11, 20)), 1) * rng.choice([0.1, 1.0, 20.0], size=(11, 1))
    more: dict[str, Any] = {"relevance_scale": scale}
    many = select_many(queries, vectors, 8, pair.selector, relevance=relevance, workers=2, **more)
    own = [vectors] * 11 if shared else vectors
    columns = zip(queries, own, relevance, strict=True)
    each = [{"query": query, "vectors": rows, "relevance": worth, **more} for query, rows, worth in columns]
    assert_same_as_single_calls(many, each, 8, pair.selector)
    assert np.array_equal(many.relevance, np.take_along_axis(relevance, many.indices, axis=1))


def test_quality_ids_and_parameters_are_passed_on() -> None:
    rng = np.random.default_rng(9)
    queries, vectors, quality = rng.normal(size=(4, 5)), rng.normal(size=(12, 5)), rng.normal(size=12)
    ids = [f"doc {i}" for i in range(12)]
    kernel = LowRankKernel(rng.normal(size=(12, 6)), ids=ids[::-1])
    for more in (
        {"selector": "mmr", "quality": quality, "lambda_mult": 0.3, "lambda_b": 0.5},
        {"selector": "ndpp", "ids": ids, "kernel": kernel},
    ):
        many = select_many(queries, vectors, 4, **more)  # type: ignore[arg-type]
        for one, query in zip(many, queries, strict=True):  # type: ignore[call-overload]
            assert same(one, select(query, vectors, 4, **more))  # type: ignore[arg-type]


def words(rng: np.random.Generator, shared: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    texts = [[" ".join(rng.choice(list("abcdefg"), size=4)) for _ in range(20)] for _ in range(1 if shared else 9)] * 9
    questions = [" ".join(rng.choice(list("abcdefg"), size=3)) for _ in range(9)]
    cover = {"cover": [None, "x", "y", ["x", "z"]] * 5} if shared else {}
    each = [{"question": question, "texts": own} | cover for question, own in zip(questions, texts, strict=False)]
    return {"words": [match_words(one["question"], one["texts"]) for one in each]} | cover, each


def references(rng: np.random.Generator, shared: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    each = [References(np.float32(rng.random((20, 20)) > 0.9), rng.integers(0, 9, 20)) for _ in range(9)]
    return ({"references": each[0]}, [{"references": each[0]}] * 9) if shared else (
        {"references": each}, [{"references": one} for one in each]
    )  # fmt: skip


def sub_questions(rng: np.random.Generator, shared: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    queries = [rng.normal(size=(1 + i % 4, 6)) for i in range(9)]
    return {"queries": queries}, [{"query": query} for query in queries]


@pytest.mark.parametrize(("shared", "workers"), [(True, 1), (False, 2)], ids=["shared candidates", "own candidates"])
@pytest.mark.parametrize("make", [words, references, sub_questions])
def test_what_is_known_of_each_query_and_its_candidates(make: Any, shared: bool, workers: int) -> None:
    rng = np.random.default_rng(512)
    columns, each = make(rng, shared)
    queries, vectors = rng.normal(size=(9, 6)), rng.normal(size=(20, 6) if shared else (9, 20, 6))
    columns = {"queries": queries, "vectors": vectors, "k": 5, "workers": workers} | columns
    many = select_many(**columns)
    single = [{"query": queries[i], "vectors": vectors if shared else vectors[i], **own} for i, own in enumerate(each)]
    for one, arguments in zip(many.members, single, strict=True):
        found = select(k=5, **arguments)
        assert one.indices.tolist() == found.indices.tolist()
        assert (one.serves is None) == (found.serves is None)
        np.testing.assert_allclose(one.shares, found.shares, atol=1e-9)  # type: ignore[arg-type]
    if make is references:
        assert any((one.referred_by >= 0).any() for one in many.members)  # type: ignore[operator]
    if make is sub_questions:
        with pytest.raises(InvalidParameterError, match="query 1: VRSD"):
            select_many(**columns | {"selector": "vrsd"})


# --- iterators and memory maps --------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stream_reads_some_queries_ahead_and_ends_its_threads(workers: int) -> None:
    read: list[int] = []

    def queries() -> Iterator[NDArray[Any]]:
        for number in range(10_000):
            read.append(number)
            yield ONES[0]

    stream = select_stream(queries(), np.eye(5), 2, workers=workers)
    assert read == []
    next(stream)
    assert len(read) <= 32 * 6
    stream.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


def test_a_memory_map_is_read_query_by_query(tmp_path: Path) -> None:
    vectors = np.lib.format.open_memmap(tmp_path / "v.npy", mode="w+", dtype=np.float16, shape=(60, 20, 8))
    vectors[:] = np.random.default_rng(504).normal(size=vectors.shape)
    queries = np.random.default_rng(505).normal(size=(60, 8)).astype(np.float32)
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    expected = select_many(queries, np.array(vectors), 4, "mmr")
    assert np.array_equal(select_many(queries, mapped, 4, "mmr").indices, expected.indices)


# --- errors ---------------------------------------------------------------------------------------

OWN = np.ones((4, 3, 5))
WORDS = Parts(np.ones((3, 2)), np.ones(2))
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("^queries is empty", {"queries": ONES[:0]}),
    ("^query 0: query has shape", {"queries": ONES[0]}),
    ("^vectors ends at query 2", {"vectors": lambda: iter(OWN[:2])}),
    ("^queries ends at query 1", {"queries": lambda: iter(ONES[:1]), "vectors": lambda: iter(OWN)}),
    ("^queries ends at query 4", {"vectors": np.ones((5, 3, 5))}),
    ("^queries ends at query 4", {"words": [WORDS] * 5}),
    (r"^query 0: relevance .*\(3,\)", {"relevance": ONES}),
    ("ids .*shared", {"vectors": OWN, "ids": [1, 2, 3]}),
    ("cover .*shared", {"vectors": OWN, "cover": [1, 2, 3]}),
    ("^words .* one query", {"words": WORDS}),
    ("^references .* one query", {"vectors": OWN, "references": References(OWN[0], np.arange(3))}),
    (r"^query 2: words .*\(3, m\)", {"words": [WORDS] * 2 + [Parts(ONES, ONES[0])] * 2}),
    (r"^query 3: query.*zero", {"queries": np.eye(4, 5)[::-1] * [0, 1, 1, 1, 1]}),
    (r"^query 1: vectors: row 2 holds NaN", {"vectors": np.where(np.arange(60).reshape(4, 3, 5) == 27, np.nan, OWN)}),
]


@pytest.mark.parametrize("workers", [1, 3])
def test_what_is_wrong_is_named_with_its_query(workers: int) -> None:
    for says, changes in REFUSED:
        made = {name: change() if callable(change) else change for name, change in changes.items()}
        given: dict[str, Any] = {"queries": ONES, "vectors": np.ones((3, 5)), "k": 1, "workers": workers}
        with pytest.raises(InvalidInputError, match=says):
            select_many(**given | made)
    with pytest.raises(KernelError, match=r"^query 0: 2 "):
        select_many(np.ones((2, 2)), np.ones((2, 2)), 1, "ndpp", kernel=LowRankKernel(np.eye(3)), workers=workers)
    queries = np.ones((100, 5))
    queries[[70, 71, 90]] = 0
    with pytest.raises(InvalidInputError, match=r"^query 70: "):
        select_many(queries, np.ones((3, 5)), 1, workers=workers)


@pytest.mark.parametrize(
    "setting", [{"relevance_scale": "log"}, {"workers": 0}, {"k": 2.5}, {"lambda": 1}, {"selector": TopK(), "ridge": 1}]
)
def test_settings_out_of_range_are_refused_at_once(setting: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError):
        select_stream(**{"queries": ONES, "vectors": ONES, "k": 1, **setting})


# --- threads --------------------------------------------------------------------------------------


class Watching:
    """A selector that records the number of BLAS threads while it selects, and raises if ``fails``."""

    def __init__(self, fails: bool = False) -> None:
        self.seen: list[int] = []
        self.fails = fails

    def select(self, candidates: Any, k: int | None = None, *, budget: Any = None, shown: Any = ()) -> Selection:
        self.seen.append(blas_threads())
        if self.fails:
            raise RuntimeError("on purpose")
        return TopK().select(candidates, k)


def blas_threads() -> int:
    # Of numpy's BLAS. Another package, such as scipy, may bring one that is not used here.
    return max(
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas" and "numpy" in library["filepath"]
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_blas_has_one_thread_during_a_call_and_its_own_number_afterwards(workers: int) -> None:
    with threadpool_limits(2, user_api="blas"):
        watching = Watching()
        select_many(ONES, ONES, 1, watching, workers=workers)
        assert watching.seen == [1] * 4
        with pytest.raises(RuntimeError):
            select_many(ONES, ONES, 1, Watching(fails=True), workers=workers)
        assert blas_threads() == 2
        # Two that overlap: the last one to end restores the number.
        first, second = (select_stream(ONES, ONES, 1, watching, workers=workers) for _ in range(2))
        next(first), next(second)
        assert len(list(first)) == 3
        assert blas_threads() == 1
        assert len(list(second)) == 3
        assert blas_threads() == 2
