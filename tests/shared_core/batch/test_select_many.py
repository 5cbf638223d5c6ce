"""Many queries in one call: each gets the selection of a single call, for every kind of input and number of threads."""

from __future__ import annotations

import dataclasses
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
    MMR,
    NDPP,
    VRSD,
    Candidates,
    InvalidInputError,
    InvalidParameterError,
    KernelError,
    LowRankKernel,
    Selection,
    Selections,
    Selector,
    SetSelectError,
    TopK,
    make_selection,
    select,
    select_many,
    select_stream,
)
from shared_core.batch import _blocks, _threads
from shared_core.candidates import CandidateBlock
from shared_core.selectors.base import BlockSelection
from tests.shared_core.cases import PAIRS, RELEVANCE_PAIRS, UNUSABLE, Pair, names

pytestmark = pytest.mark.usefixtures("either_way")

FIELDS = ("indices", "gains", "relevance", "objective", "filled_from")
every_pair = pytest.mark.parametrize("pair", PAIRS, ids=names)


def cut(array: NDArray[Any], *lengths: int) -> Iterator[NDArray[Any]]:
    """Blocks of these lengths, as an iterator that can be read once."""
    ends = np.cumsum(lengths)
    assert ends[-1] == len(array)
    return (array[end - length : end] for end, length in zip(ends, lengths, strict=True))


def assert_equal(many: Selections, expected: Selections) -> None:
    for name in FIELDS:
        assert np.array_equal(getattr(many, name), getattr(expected, name)), name
        assert not getattr(many, name).flags.writeable


def join(parts: list[Selections]) -> Selections:
    whole = [np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS]
    for array in whole:
        array.flags.writeable = False
    return Selections(*whole)


def select_each(queries: NDArray[Any], vectors: NDArray[Any], k: int, selector: Any) -> list[Selection]:
    return [select(q, vectors if vectors.ndim == 2 else vectors[i], k, selector) for i, q in enumerate(queries)]


@every_pair
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shared", [True, False])
def test_workers_and_block_sizes_do_not_change_the_selections_of_a_loop(
    pair: Pair, dtype: Any, shared: bool, either_way: str
) -> None:
    rng = np.random.default_rng(500)
    queries = rng.normal(size=(23, 6)).astype(dtype)
    vectors = rng.normal(size=(30, 6) if shared else (23, 30, 6)).astype(dtype)
    expected = select_each(queries, vectors, 5, pair.selector)
    # Compiled loops sum a dot product in another order than BLAS. The picks do not depend on who does the work.
    tolerance = 0 if either_way == "numpy" else 64 * np.finfo(dtype).eps
    alone = select_many(queries, vectors, 5, pair.selector)
    for workers in (1, 2, 5, 40):
        many = select_many(queries, vectors, 5, pair.selector, workers=workers)
        assert len(many) == 23
        assert_equal(many, alone)
        for i, one in enumerate(expected):
            for name in ("gains", "relevance", "objective"):
                np.testing.assert_allclose(getattr(many[i], name), getattr(one, name), rtol=tolerance, atol=tolerance)
            assert many.indices[i].tolist() == one.indices.tolist()
            assert many[i].filled_from == one.filled_from
        for block_size in (1, 7, 23, 24):
            parts = list(select_stream(queries, vectors, 5, pair.selector, workers=workers, block_size=block_size))
            assert [len(part) for part in parts] == [
                len(q) for q in np.split(queries, range(block_size, 23, block_size))
            ]
            assert_equal(join(parts), many)


# --- iterators and memory maps --------------------------------------------------------------------


def test_the_blocks_of_iterators_are_the_blocks_of_the_result() -> None:
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
        assert_equal(join(parts), own)
    assert_equal(select_many(cut(queries, *lengths), vectors, 3, "mmr", quality=quality), own)


def test_a_stream_reads_one_block_per_step() -> None:
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


def test_a_memory_map_is_read_in_small_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_blocks, "MAX_BYTES", 1)
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
    # In float32, the working dtype, the whole map takes 3 MB and one query's candidates take 51 kB.
    assert peak < 10 * n * d * 4


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_wrong_query_is_named_for_any_number_of_workers(workers: int) -> None:
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
        r"the blocks of vectors have 2 rows, queries has shape \(4, 5\): they must have the same number of rows",
        {"vectors": lambda: iter([np.ones((2, 3, 5))])},
    ),
    "no block of vectors": (
        "vectors: no block is left for the queries from 4 on",
        {"queries": lambda: iter([ONES] * 2), "vectors": lambda: iter([np.ones((4, 3, 5))])},
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
    "fewer queries": (
        "must have the same number of rows",
        {"queries": lambda: iter([ONES]), "vectors": lambda: np.ones((5, 3, 5))},
    ),
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
        r"queries \(4, 5\), quality \(5, 3\): they must have a row for each query",
        {"vectors": lambda: iter([np.ones((4, 3, 5))]), "quality": lambda: np.ones((5, 3))},
    ),
    "relevance flat": (
        r"relevance: the block from query 0 on must have shape \(4, 3\), got \(4,\)",
        {"relevance": lambda: ONES[0, :4]},
    ),
    "relevance too few": (
        r"queries \(4, 5\), relevance \(3, 3\): they must have a row for each query",
        {"relevance": lambda: ONES[:3, :3]},
    ),
    "relevance of other candidates": (
        r"relevance: the block from query 0 on must have shape \(4, 3\), got \(4, 5\)",
        {"relevance": lambda: ONES},
    ),
    "relevance of other own candidates": (
        r"relevance: the block from query 0 on must have shape \(4, 3\), got \(4, 5\)",
        {"vectors": lambda: np.ones((4, 3, 5)), "relevance": lambda: ONES},
    ),
    "no block of relevance": (
        "relevance: no block is left for the queries from 4 on",
        {"queries": lambda: iter([ONES] * 2), "relevance": lambda: iter([ONES[:, :3]])},
    ),
    "a block of relevance too long": (
        r"relevance: the block from query 0 on must have shape \(4, 3\), got \(5, 3\)",
        {"queries": lambda: iter([ONES]), "relevance": lambda: iter([np.ones((5, 3))])},
    ),
    "relevance too many": (
        "relevance: there are more blocks than the 4",
        {"queries": lambda: iter([ONES]), "relevance": lambda: iter([ONES[:, :3]] * 2)},
    ),
    "relevance of words": (r"^relevance", {"relevance": lambda: [["high"] * 3] * 4}),
    "ids": ("ids are for shared candidates", {"vectors": lambda: iter([np.ones((4, 3, 5))]), "ids": lambda: [1, 2, 3]}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_blocks_of_wrong_shapes_are_refused(what: str) -> None:
    message, made = REFUSED[what]
    given: dict[str, Any] = {"queries": ONES, "vectors": np.ones((3, 5)), "k": 1, "selector": "mmr"}
    with pytest.raises(InvalidInputError, match=message):
        select_many(**(given | {name: make() for name, make in made.items()}))


@pytest.mark.parametrize(
    "setting",
    [{"relevance_scale": "log"}, {"workers": 0}, {"workers": 1.5}, {"workers": True}, {"block_size": 0}, {"lambda": 1}],
)
def test_settings_out_of_range_are_refused_at_once(setting: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=next(iter(setting))):
        select_stream(ONES, ONES, 1, **setting)


# --- given relevance -------------------------------------------------------------------------------

with_relevance = pytest.mark.parametrize("pair", RELEVANCE_PAIRS, ids=names)


@with_relevance
@pytest.mark.parametrize("scale", ["minmax", "rank", "sigmoid", None])
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
def test_given_relevance_is_scaled_and_used_query_by_query(pair: Pair, shared: bool, scale: Any) -> None:
    for dtype in (np.float32, np.float64):
        rng = np.random.default_rng(511)
        queries = rng.normal(size=(11, 6)).astype(dtype)
        vectors = rng.normal(size=(20, 6) if shared else (11, 20, 6)).astype(dtype)
        # The sizes differ from query to query, and some values are equal.
        relevance = np.round(rng.normal(size=(11, 20)), 1) * rng.choice([0.1, 1.0, 20.0], size=(11, 1))
        settings = {"relevance_scale": scale}
        many = select_many(queries, vectors, 8, pair.selector, relevance=relevance, **settings)
        for i, (found, query) in enumerate(zip(many, queries, strict=True)):
            own = vectors if shared else vectors[i]
            expected = select(query, own, 8, pair.selector, relevance=relevance[i], **settings)
            assert found.indices.tolist() == expected.indices.tolist()
            assert found.filled_from == expected.filled_from
            tolerance = 1e-12 if dtype == np.float64 else 1e-5
            np.testing.assert_allclose(found.gains, expected.gains, rtol=tolerance, atol=tolerance)
            assert found.relevance.tolist() == relevance[i, found.indices].tolist()
        for workers in (2, 5):
            given = iter(np.split(relevance, [4, 5]))
            blocks = cut(queries, 4, 1, 6)
            parts = list(select_stream(blocks, vectors, 8, pair.selector, relevance=given, workers=workers, **settings))
            assert [len(part) for part in parts] == [4, 1, 6]
            assert_equal(join(parts), many)
            cut_parts = select_stream(
                queries, vectors, 8, pair.selector, relevance=relevance, block_size=3, workers=workers, **settings
            )
            assert_equal(join(list(cut_parts)), many)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("selector", ["similarity", "mmr", "ndpp", "vrsd"])
def test_relevance_that_is_not_finite_is_found_by_query_and_row(selector: str, workers: int) -> None:
    rng = np.random.default_rng(512)
    queries, vectors, relevance = rng.normal(size=(20, 4)), rng.normal(size=(9, 4)), rng.normal(size=(20, 9))
    relevance[[17, 18], [3, 1]] = np.nan, -np.inf
    first = "query 0: VRSD" if selector == "vrsd" else "query 17: relevance: row 3 is nan; every value must be finite"
    for own in (vectors, np.stack([vectors] * 20)):
        with pytest.raises(SetSelectError, match=f"^{first}"):
            select_many(queries, own, 2, selector, relevance=relevance, workers=workers)
        blocks = select_stream(queries, own, 2, selector, relevance=iter(np.split(relevance, 4)), workers=workers)
        with pytest.raises(SetSelectError, match=f"^{first}"):
            list(blocks)


@pytest.mark.parametrize("refine", [False, True])
def test_vrsd_refuses_given_relevance_and_names_the_others(refine: bool) -> None:
    message = "^query 0: VRSD selects by angles.*use 'mmr', 'ndpp' or 'similarity'"
    for vectors in (np.eye(5), np.stack([np.eye(5)] * 4)):
        with pytest.raises(InvalidParameterError, match=message):
            select_many(ONES, vectors, 2, "vrsd", relevance=ONES, refine=refine)


def test_relevance_by_name_is_a_parameter_of_ndpp() -> None:
    rng = np.random.default_rng(513)
    queries, vectors = rng.normal(size=(4, 5)), rng.normal(size=(12, 5))
    by_name = select_many(queries, vectors, 4, "ndpp", relevance_mapping="exponential", temperature=0.5)
    assert_equal(by_name, select_many(queries, vectors, 4, NDPP(relevance_mapping="exponential", temperature=0.5)))
    with pytest.raises(InvalidParameterError, match="no parameter 'relevance'"):
        select_many(queries, vectors, 4, "mmr", relevance_mapping="exponential")


# --- threads --------------------------------------------------------------------------------------


class Watching:
    """A selector that records the number of BLAS threads while it selects, and raises if ``fails``."""

    def __init__(self, fails: bool = False) -> None:
        self.seen: list[int] = []
        self.fails = fails

    def select(self, candidates: Candidates, k: int | None = None, *, budget: Any = None, shown: Any = ()) -> Selection:
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
        assert blas_threads() == 2
        with pytest.raises(RuntimeError, match="on purpose"):
            select_many(ONES, ONES, 1, Watching(fails=True), workers=workers)
        assert blas_threads() == 2
        # Between two blocks the caller has all BLAS threads.
        for _ in select_stream(ONES, ONES, 1, watching, workers=workers, block_size=2):
            assert blas_threads() == 2
        assert watching.seen == [1] * 8


def test_the_last_of_overlapping_calls_restores_the_blas_threads() -> None:
    with threadpool_limits(2, user_api="blas"):
        first, second = _threads.one_blas_thread(), _threads.one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == 1
        second.__exit__(None, None, None)
        assert blas_threads() == 2


def test_without_threadpoolctl_the_selections_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = select_many(ONES, np.eye(5), 2)
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    _threads._controller.cache_clear()
    try:
        assert _threads._controller() is None
        assert_equal(select_many(ONES, np.eye(5), 2, workers=2), expected)
    finally:
        _threads._controller.cache_clear()


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


def test_a_bar_without_tqdm_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"pip install \"setselect\[batch\]\""):
        select_stream(ONES, ONES, 1, progress=True)


# --- each query gets the selection of a single call -----------------------------------------------


@every_pair
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shared", [True, False])
def test_select_many_is_select_for_each(pair: Pair, dtype: Any, shared: bool) -> None:
    rng = np.random.default_rng(7)
    queries = rng.normal(size=(9, 5)).astype(dtype)
    vectors = rng.normal(size=(30, 5) if shared else (9, 30, 5)).astype(dtype)
    # There are more picks than dimensions, so NDPP fills picks in.
    many = select_many(queries, vectors, 7, pair.selector)
    assert many.indices.shape == many.gains.shape == many.relevance.shape == (9, 7)
    assert many.objective.shape == many.filled_from.shape == (9,)
    assert many.indices.dtype == many.filled_from.dtype == np.int64
    for row, query in enumerate(queries):
        block = vectors if shared else vectors[row]
        one = select(query, block, 7, pair.selector)
        assert many.indices[row].tolist() == one.indices.tolist()
        tolerance = 1e-12 if dtype == np.float64 else 1e-5
        np.testing.assert_allclose(many.gains[row], one.gains, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(many.relevance[row], one.relevance, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(many.objective[row], one.objective, rtol=tolerance, atol=tolerance)
        assert many.filled_from[row] == (-1 if one.filled_from is None else one.filled_from)


@pytest.mark.parametrize("name", ["similarity", "vrsd", "mmr", "ndpp"])
def test_select_many_by_name(name: str) -> None:
    rng = np.random.default_rng(8)
    queries, vectors = rng.normal(size=(3, 5)), rng.normal(size=(10, 5))
    many = select_many(queries, vectors, 4, name)
    for row, query in enumerate(queries):
        assert many.indices[row].tolist() == select(query, vectors, 4, name).indices.tolist()


def test_select_many_passes_on_quality_ids_and_parameters() -> None:
    rng = np.random.default_rng(9)
    queries, vectors, quality = rng.normal(size=(4, 5)), rng.normal(size=(12, 5)), rng.normal(size=12)
    many = select_many(queries, vectors, 4, "mmr", quality=quality, lambda_mult=0.3, lambda_b=0.5)
    ids = [f"doc {i}" for i in range(12)]
    kernel = LowRankKernel(rng.normal(size=(12, 6)), ids=ids[::-1])
    kernels = select_many(queries, vectors, 4, "ndpp", ids=ids, kernel=kernel)
    for row, query in enumerate(queries):
        one = MMR(0.3, 0.5).select(Candidates(query, vectors, quality=quality), 4)
        assert many.indices[row].tolist() == one.indices.tolist()
        other = NDPP(kernel).select(Candidates(query, vectors, ids=ids), 4)
        assert kernels.indices[row].tolist() == other.indices.tolist()


def test_filled_from_is_minus_one_where_nothing_was_filled() -> None:
    rng = np.random.default_rng(10)
    vectors = np.stack([rng.normal(size=(6, 4)), np.ones((6, 4))])
    many = select_many(np.ones((2, 4)), vectors, 3, "ndpp", ridge=0)
    assert many.filled_from.tolist() == [-1, 1]


def test_selections_are_frozen() -> None:
    many = select_many(np.ones((2, 3)), np.eye(3), 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        many.indices = np.zeros(2)  # type: ignore[misc, assignment]


@pytest.mark.parametrize(
    ("queries", "vectors"),
    [
        (np.ones(5), np.ones((10, 5))),
        (np.ones((3, 4)), np.ones((10, 5))),
        (np.ones((3, 5)), np.ones((2, 10, 5))),
        (np.ones((3, 5)), np.ones(5)),
        (np.zeros((3, 5)), np.ones((10, 5))),
        (np.ones((3, 5)), np.full((10, 5), np.nan)),
        (np.array([[1.0, 2.0], [np.nan, 1.0]]), np.ones((4, 2))),
    ],
)
def test_select_many_validates_as_candidates_do(queries: Any, vectors: Any) -> None:
    with pytest.raises(InvalidInputError):
        select_many(queries, vectors, 1)


@pytest.mark.parametrize("k", [0, 11, 2.5, True, None])
def test_select_many_rejects_the_same_k(k: Any) -> None:
    with pytest.raises(InvalidParameterError):
        select_many(np.ones((2, 5)), np.ones((10, 5)), k)


def test_select_many_rejects_parameters_beside_a_selector_object() -> None:
    with pytest.raises(InvalidParameterError):
        select_many(np.ones((2, 5)), np.ones((10, 5)), 2, VRSD(), refine=True)


@dataclasses.dataclass(frozen=True)
class Demanding:
    """A selector whose error is made from two arguments."""

    def select(
        self, candidates: Candidates, k: int | None = None, *, budget: float | None = None, shown: Any = ()
    ) -> Selection:
        raise TwoPartError("too", "demanding")


class TwoPartError(SetSelectError):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"queries": [[1.0, 1.0], [0.0, 0.0]]}, InvalidInputError, "query 1: query is the zero vector"),
        ({"queries": [[1.0, 1.0], [np.nan, 0.0]]}, InvalidInputError, "query 1: query holds NaN"),
        ({"vectors": [[[1.0, 1.0]] * 2, [[1.0, 1.0], [np.inf, 1.0]]]}, InvalidInputError, "query 1: vectors: row 1"),
        ({"ids": 5}, InvalidInputError, "ids must be a collection"),
        ({"quality": [1.0], "selector": "mmr"}, InvalidInputError, "quality"),
        ({"k": 3}, InvalidParameterError, "query 0: k must be in 1..n, got k=3"),
        ({"selector": "ndpp", "kernel": LowRankKernel(np.eye(3))}, KernelError, "query 0: 2 candidates without ids"),
        ({"selector": Demanding()}, TwoPartError, "query 0: too demanding"),
    ],
)
def test_every_error_names_its_query(settings: dict[str, Any], error: type[Exception], words: str) -> None:
    given = {"queries": np.ones((2, 2)), "vectors": np.ones((2, 2)), "k": 1, **settings}
    with pytest.raises(error, match=rf"^{words}"):
        select_many(given.pop("queries"), given.pop("vectors"), given.pop("k"), **given)


@pytest.mark.parametrize("values", list(UNUSABLE.values()), ids=list(UNUSABLE))
def test_the_message_names_the_unusable_argument(values: Any) -> None:
    good = np.ones((2, 2))
    with pytest.raises(InvalidInputError, match=r"^queries"):
        select_many(values, good, 1)
    with pytest.raises(InvalidInputError, match=r"^vectors"):
        select_many(good, values, 1)
    with pytest.raises(InvalidInputError, match=r"^quality"):
        select_many(good, good, 1, "mmr", quality=values)
    with pytest.raises(InvalidInputError, match=r"^quality"):
        select_many(good, np.ones((2, 2, 2)), 1, "mmr", quality=values)


def test_an_error_raised_again_names_its_query_once() -> None:
    kept = InvalidInputError("not this one")

    @dataclasses.dataclass(frozen=True)
    class Stubborn:
        def select(
            self, candidates: Candidates, k: int | None = None, *, budget: float | None = None, shown: Any = ()
        ) -> Selection:
            raise kept

    for _ in range(2):
        with pytest.raises(InvalidInputError, match=r"^query 0: not this one$"):
            select_many(np.ones((2, 2)), np.ones((2, 2)), 1, Stubborn())
    assert str(kept) == "not this one"


@pytest.mark.parametrize("selector", [VRSD(), VRSD(refine=True), MMR()], ids=repr)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int16])
def test_queries_of_any_length_and_dtype_get_the_selections_of_single_calls(selector: Selector, dtype: Any) -> None:
    rng = np.random.default_rng(5)
    queries = rng.normal(size=(12, 7))
    vectors = (100 * rng.normal(size=(12, 9, 7))).astype(dtype)
    vectors[3, 4] = 0
    vectors[8] = vectors[7]
    queries[5] *= 1e-200
    if dtype == np.float64:
        vectors[9, 2] *= 1e-170
    before = vectors.copy()
    many = select_many(queries, vectors, 9, selector)
    assert np.array_equal(vectors, before)
    assert vectors.flags.writeable
    for i in range(12):
        one = select(queries[i], vectors[i], 9, selector)
        assert many.indices[i].tolist() == one.indices.tolist()
        np.testing.assert_allclose(many.gains[i], one.gains, atol=1e-5)
        np.testing.assert_allclose(many.relevance[i], one.relevance, atol=1e-5)


# Quality is checked by every selector, also by one that does not use it.
@pytest.mark.filterwarnings("ignore:quality has no effect:shared_core.errors.SetSelectWarning")
@pytest.mark.parametrize("selector", [VRSD(), VRSD(refine=True), MMR()], ids=repr)
def test_nan_and_inf_are_found_by_query_and_row(selector: Selector) -> None:
    rng = np.random.default_rng(6)
    queries, vectors = rng.normal(size=(6, 4)), rng.normal(size=(6, 5, 4))
    bad = vectors.copy()
    bad[4, 2, 1] = np.nan
    with pytest.raises(InvalidInputError, match=r"^query 4: vectors: row 2 holds NaN or inf"):
        select_many(queries, bad, 2, selector)
    with pytest.raises(InvalidInputError, match=r"^vectors: row 2 holds NaN or inf"):
        select_many(queries, bad[4], 2, selector)
    quality = np.zeros((6, 5))
    quality[1, 3] = np.inf
    with pytest.raises(InvalidInputError, match=r"^query 1: quality: row 3 is inf"):
        select_many(queries, vectors, 2, selector, quality=quality)
    for k in (0, 6):
        with pytest.raises(InvalidParameterError, match=r"^query 0: k must be in 1..n"):
            select_many(queries, vectors, k, selector)
    for k in (2.5, "2", True, None):
        with pytest.raises(InvalidParameterError, match=r"^k must be an integer"):
            select_stream(queries, vectors, k, selector)  # type: ignore[arg-type]
    assert select_many(queries, vectors, np.int64(2), selector).indices.shape == (6, 2)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="query 0: query has shape"):
        select_many(queries[:, :3], vectors, 2, selector)


# --- blocks ---------------------------------------------------------------------------------------


class ByBlock:
    """A selector that picks the first k candidates of a whole block, and of a single query its last k."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def select(self, candidates: Candidates, k: int | None = None, *, budget: Any = None, shown: Any = ()) -> Selection:
        assert k is not None
        return make_selection(candidates, list(range(len(candidates) - k, len(candidates))), [0.0] * k)

    def select_block(self, block: CandidateBlock, k: int) -> BlockSelection | None:
        self.shapes.append(block.relevance.shape)
        b, n = block.relevance.shape
        picks = np.tile(np.arange(k), (b, 1))
        return BlockSelection(picks, np.zeros((b, k)), np.zeros(b), np.full(b, -1)) if k < n else None


def test_a_selector_with_select_block_gets_whole_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(509)
    queries, vectors = rng.normal(size=(8, 5)), rng.normal(size=(8, 6, 5))
    for given in (vectors, vectors[0]):
        selector = ByBlock()
        many = select_many(queries, given, 2, selector)
        assert selector.shapes == [(2, 6)] * 4
        assert many.indices.tolist() == [[0, 1]] * 8
        for one, query, own in zip(many, queries, [given] * 8 if given.ndim == 2 else given, strict=True):
            expected = Candidates(query, own).relevance[one.indices]
            np.testing.assert_allclose(one.relevance, expected, rtol=0, atol=1e-12)
    # In float64 the candidates of a query take 240 bytes.
    monkeypatch.setattr(_blocks, "MAX_BYTES", 479)
    selector = ByBlock()
    select_many(queries, vectors, 2, selector)
    assert selector.shapes == [(1, 6)] * 8


def test_a_selector_that_cannot_select_for_blocks_is_asked_once() -> None:
    selector = ByBlock()
    many = select_many(np.ones((8, 5)), np.ones((8, 2, 5)), 2, selector)
    assert many.indices.tolist() == [[0, 1]] * 8
    assert len(selector.shapes) == 1


@every_pair
@pytest.mark.parametrize("shared", [True, False])
def test_vectors_of_extreme_lengths_in_a_block_have_the_selections_of_a_loop(pair: Pair, shared: bool) -> None:
    rng = np.random.default_rng(510)
    queries, vectors = rng.normal(size=(6, 5)), rng.normal(size=(6, 8, 5)).astype(np.float32)
    # Beyond the range of float32, in which the candidates are computed.
    queries[1] *= 1e300
    queries[2] *= 1e-300
    vectors[:, 1] *= 1e30
    vectors[:, 2] *= 1e-30
    vectors[:, 3] = 0
    given = vectors[0] if shared else vectors
    many = select_many(queries, given, 4, pair.selector)
    for found, expected in zip(many, select_each(queries, given, 4, pair.selector), strict=True):
        assert found.indices.tolist() == expected.indices.tolist()
        np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-5, atol=1e-5)
