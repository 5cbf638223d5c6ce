"""Many queries at once: the answers of one after the other, whatever comes in and however many work on it."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

from shared_core import (
    Candidates,
    InvalidInputError,
    InvalidParameterError,
    Selection,
    Selections,
    TopK,
    arrays,
    select,
    select_many,
    select_stream,
)
from shared_core.batch import _many as at_once
from shared_core.batch.select_many import _threads as threads
from tests.shared_core.cases import PAIRS, Pair, names

pytestmark = pytest.mark.usefixtures("either_way")

FIELDS = ("indices", "gains", "relevance", "objective", "filled_from")
every_pair = pytest.mark.parametrize("pair", PAIRS, ids=names)


def cut(array: NDArray[Any], *lengths: int) -> Iterator[NDArray[Any]]:
    """Blocks of these lengths, as an iterator that cannot be begun anew."""
    ends = np.cumsum(lengths)
    assert ends[-1] == len(array)
    return (array[end - length : end] for end, length in zip(ends, lengths, strict=True))


def assert_equal(many: Selections, expected: Selections) -> None:
    for name in FIELDS:
        assert np.array_equal(getattr(many, name), getattr(expected, name)), name
        assert not getattr(many, name).flags.writeable


def joined(parts: list[Selections]) -> Selections:
    whole = [np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS]
    for array in whole:
        array.flags.writeable = False
    return Selections(*whole)


def looped(queries: NDArray[Any], vectors: NDArray[Any], k: int, selector: Any) -> list[Selection]:
    return [select(q, vectors if vectors.ndim == 2 else vectors[i], k, selector) for i, q in enumerate(queries)]


@every_pair
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shared", [True, False])
def test_any_number_of_workers_and_any_block_gives_the_answers_of_a_loop(
    pair: Pair, dtype: Any, shared: bool, either_way: str
) -> None:
    rng = np.random.default_rng(500)
    queries = rng.normal(size=(23, 6)).astype(dtype)
    vectors = rng.normal(size=(30, 6) if shared else (23, 30, 6)).astype(dtype)
    expected = looped(queries, vectors, 5, pair.selector)
    # Compiled loops take a cosine in another order than BLAS does; a set is the same, whoever shares the work.
    room = 0 if either_way == "numpy" else 64 * np.finfo(dtype).eps
    alone = select_many(queries, vectors, 5, pair.selector)
    for workers in (1, 2, 5, 40):
        many = select_many(queries, vectors, 5, pair.selector, workers=workers)
        assert len(many) == 23
        assert_equal(many, alone)
        for i, one in enumerate(expected):
            for name in ("gains", "relevance", "objective"):
                np.testing.assert_allclose(getattr(many[i], name), getattr(one, name), rtol=room, atol=room)
            assert many.indices[i].tolist() == one.indices.tolist()
            assert many[i].filled_from == one.filled_from
        for block_size in (1, 7, 23, 24):
            parts = list(select_stream(queries, vectors, 5, pair.selector, workers=workers, block_size=block_size))
            assert [len(part) for part in parts] == [
                len(q) for q in np.split(queries, range(block_size, 23, block_size))
            ]
            assert_equal(joined(parts), many)


def test_above_the_size_of_one_pass_with_query_is_a_fresh_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(501)
    queries, vectors = rng.normal(size=(3, 5)).astype(np.float32), rng.normal(size=(203, 5)).astype(np.float32)
    exact = arrays.dots(vectors, queries[0])
    for cached in (vectors.nbytes - 1, vectors.nbytes, vectors.nbytes + 1, 1000):
        monkeypatch.setattr(arrays, "_CACHED", cached)
        shared = Candidates(queries[0], vectors)
        for query in queries:
            fresh = Candidates(query, vectors)
            assert np.array_equal(shared.with_query(query).relevance, fresh.relevance)
        squares, products = arrays.squares_and_dots(vectors, queries[0])
        np.testing.assert_allclose(squares, (vectors.astype(np.float64) ** 2).sum(axis=1), rtol=1e-6)
        np.testing.assert_allclose(products, exact, rtol=0, atol=1e-5)
        assert np.array_equal(products, arrays.dots(vectors, queries[0]))


# --- iterators and memory maps --------------------------------------------------------------------


def test_iterators_of_blocks_are_taken_as_they_come() -> None:
    rng = np.random.default_rng(502)
    queries, vectors, quality = rng.normal(size=(9, 4)), rng.normal(size=(9, 12, 4)), rng.normal(size=(9, 12))
    shared = select_many(queries, vectors[0], 3, "mmr")
    assert_equal(select_many(cut(queries, 2, 6, 1), vectors[0], 3, "mmr", workers=2), shared)
    own = select_many(queries, vectors, 3, "mmr", quality=quality)
    lengths = (4, 1, 4)
    for as_given in (lambda: queries, lambda: cut(queries, *lengths)):
        many = select_many(as_given(), cut(vectors, *lengths), 3, "mmr", quality=cut(quality, *lengths))
        assert_equal(many, own)
        parts = list(select_stream(as_given(), cut(vectors, *lengths), 3, "mmr", quality=quality))
        assert [len(part) for part in parts] == list(lengths)
        assert_equal(joined(parts), own)
    assert_equal(select_many(cut(queries, *lengths), vectors, 3, "mmr", quality=quality), own)


def test_a_stream_reads_no_further_than_it_is_asked() -> None:
    rng = np.random.default_rng(503)
    read: list[int] = []

    def blocks() -> Iterator[NDArray[Any]]:
        for number in range(1000):
            read.append(number)
            yield rng.normal(size=(3, 4))

    stream = select_stream(blocks(), rng.normal(size=(8, 4)), 2, workers=2)
    assert read == []
    next(stream)
    next(stream)
    assert read == [0, 1]
    stream.close()  # type: ignore[attr-defined]


def test_of_a_memory_map_one_query_is_read_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "CONVERTED", 1)
    n, d, count = 200, 64, 60
    vectors = np.lib.format.open_memmap(tmp_path / "v.npy", mode="w+", dtype=np.float16, shape=(count, n, d))
    vectors[:] = np.random.default_rng(504).normal(size=vectors.shape)
    queries = np.random.default_rng(505).normal(size=(count, d)).astype(np.float32)
    expected = select_many(queries, np.array(vectors), 4, "mmr")
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    select_many(queries[:1], mapped[:1], 4, "mmr")
    tracemalloc.start()
    try:
        many = select_many(queries, mapped, 4, "mmr")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert_equal(many, expected)
    # As float32, which all are computed in, the whole would be 3 MB and a query's share is 51 kB.
    assert peak < 10 * n * d * 4


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_query_that_is_wrong_is_named_whoever_finds_it(workers: int) -> None:
    rng = np.random.default_rng(506)
    queries, vectors = rng.normal(size=(40, 4)), rng.normal(size=(9, 4))
    queries[[17, 18, 33]] = 0
    with pytest.raises(InvalidInputError, match=r"^query 17: query is the zero vector"):
        select_many(queries, vectors, 2, workers=workers)
    stream = select_stream(cut(queries, 8, 8, 24), vectors, 2, workers=workers)
    assert len(next(stream)) == len(next(stream)) == 8
    with pytest.raises(InvalidInputError, match=r"^query 17: "):
        next(stream)


ONES = np.ones((4, 5))
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "no blocks": ("the iterator is empty", {"queries": lambda: iter(())}),
    "a flat block": (r"queries \(the block from query 4 on\).*\(5,\)", {"queries": lambda: iter([ONES, ONES[0]])}),
    "an empty block": (r"queries \(the block from query 0 on\).*\(0, 5\)", {"queries": lambda: iter([ONES[:0]])}),
    "flat vectors": (
        r"vectors: the block from query 0 on must have shape \(4, n, d\)",
        {"vectors": lambda: iter([ONES])},
    ),
    "vectors too few": (
        "vectors: no block is left for the queries from 2 on",
        {"vectors": lambda: iter([np.ones((2, 3, 5))])},
    ),
    "vectors too many": (
        "vectors: there are more blocks than the 4",
        {"vectors": lambda: iter([np.ones((4, 3, 5))] * 2)},
    ),
    "a block too long": (
        r"vectors: the block from query 0.*\(5, 3, 5\)",
        {"vectors": lambda: iter([np.ones((5, 3, 5))])},
    ),
    "one number": ("vectors: the block from query 0", {"vectors": lambda: iter([1.0])}),
    "fewer queries": ("must be as many", {"queries": lambda: iter([ONES]), "vectors": lambda: np.ones((5, 3, 5))}),
    "more queries": (
        "from query 4 on must have",
        {"queries": lambda: iter([ONES] * 2), "vectors": lambda: np.ones((4, 3, 5))},
    ),
    "quality in blocks": ("quality in blocks", {"quality": lambda: iter([ONES])}),
    "quality flat": (
        "quality: the block from query 0",
        {"vectors": lambda: iter([np.ones((4, 3, 5))]), "quality": lambda: iter([np.ones(3)])},
    ),
    "quality too long": (
        "must be as many",
        {"vectors": lambda: iter([np.ones((4, 3, 5))]), "quality": lambda: np.ones((5, 3))},
    ),
    "ids": ("ids go with shared", {"vectors": lambda: iter([np.ones((4, 3, 5))]), "ids": lambda: [1, 2, 3]}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_blocks_that_do_not_fit_are_refused(what: str) -> None:
    words, made = REFUSED[what]
    given: dict[str, Any] = {"queries": ONES, "vectors": np.ones((3, 5)), "k": 1}
    with pytest.raises(InvalidInputError, match=words):
        select_many(**(given | {name: make() for name, make in made.items()}))


@pytest.mark.parametrize(
    "setting", [{"workers": 0}, {"workers": 1.5}, {"workers": True}, {"block_size": 0}, {"lambda": 1}]
)
def test_settings_out_of_range_are_refused_at_once(setting: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=next(iter(setting))):
        select_stream(ONES, ONES, 1, **setting)


# --- threads --------------------------------------------------------------------------------------


class Watching:
    """A selector that notes how many threads BLAS has while it works, and fails when told."""

    def __init__(self, fails: bool = False) -> None:
        self.seen: list[int] = []
        self.fails = fails

    def select(self, candidates: Candidates, k: int | None = None, *, budget: Any = None, shown: Any = ()) -> Selection:
        self.seen.append(blas_threads())
        if self.fails:
            raise RuntimeError("told to")
        return TopK().select(candidates, k)


def blas_threads() -> int:
    # numpy's own: whatever brings another one later (scipy, say) does not compute here.
    return max(
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas" and "numpy" in library["filepath"]
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_blas_has_one_thread_while_it_runs_and_its_own_after_that(workers: int) -> None:
    with threadpool_limits(2, user_api="blas"):
        watching = Watching()
        select_many(ONES, ONES, 1, watching, workers=workers)
        assert watching.seen == [1] * 4
        assert blas_threads() == 2
        with pytest.raises(RuntimeError, match="told to"):
            select_many(ONES, ONES, 1, Watching(fails=True), workers=workers)
        assert blas_threads() == 2
        # Between two blocks it is the caller's.
        for _ in select_stream(ONES, ONES, 1, watching, workers=workers, block_size=2):
            assert blas_threads() == 2
        assert watching.seen == [1] * 8


def test_of_calls_that_overlap_the_last_one_gives_blas_back() -> None:
    with threadpool_limits(2, user_api="blas"):
        first, second = threads.one_blas_thread(), threads.one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == 1
        second.__exit__(None, None, None)
        assert blas_threads() == 2


def test_without_threadpoolctl_the_answers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = select_many(ONES, np.eye(5), 2)
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    threads._controller.cache_clear()
    try:
        assert threads._controller() is None
        assert_equal(select_many(ONES, np.eye(5), 2, workers=2), expected)
    finally:
        threads._controller.cache_clear()


# --- the bar --------------------------------------------------------------------------------------


def test_the_bar_counts_the_queries(capsys: pytest.CaptureFixture[str]) -> None:
    select_many(ONES, ONES, 1, workers=2)
    assert capsys.readouterr() == ("", "")
    select_many(ONES, ONES, 1, workers=2, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "4/4" in err
    select_many(cut(ONES, 1, 3), ONES, 1, progress=True)
    assert "4query" in capsys.readouterr().err


def test_a_bar_without_tqdm_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"pip install \"setselect\[batch\]\""):
        select_stream(ONES, ONES, 1, progress=True)
