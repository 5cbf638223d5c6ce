"""Many queries in one call: each gets the selection of a single call, for every kind of input and number of threads."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
    Parts,
    Selection,
    Selections,
    Selector,
    TopK,
    match_words,
    select,
    select_many,
    select_stream,
)
from shared_core.batch import _blocks, _threads
from shared_core.candidates import References
from tests import oracles
from tests.shared_core.cases import PAIRS, RELEVANCE_PAIRS, Pair, names

either_way = pytest.mark.usefixtures("either_way")
FIELDS = ("indices", "gains", "relevance", "objective", "filled_from", "referred_by", "serves", "shares")
ONES = np.ones((4, 5))


def cut(array: NDArray[Any], *lengths: int) -> Iterator[NDArray[Any]]:
    """Blocks of these lengths, as an iterator that can be read once."""
    return iter(np.split(array, np.cumsum(lengths)[:-1]))


def assert_equal(many: Selections, expected: Selections) -> None:
    for name in FIELDS:
        found = getattr(many, name)
        assert np.array_equal(found, getattr(expected, name)), name
        assert found is None or not found.flags.writeable


def assert_same_as_single_calls(
    many: Selections, queries: NDArray[Any], vectors: NDArray[Any], k: int, selector: Any, **own: Any
) -> None:
    """``own`` has the quality or the relevance of each query's candidates."""
    # Compiled loops sum a dot product in another order than BLAS, and in blocks the dtype may be float32.
    tolerance = 1e-12 if vectors.dtype == queries.dtype == np.float64 else 1e-5
    assert len(many) == len(queries)
    for i, (found, query) in enumerate(zip(many, queries, strict=True)):
        more = {name: column[i] for name, column in own.items()}
        expected = select(query, vectors if vectors.ndim == 2 else vectors[i], k, selector, **more)
        assert found.indices.tolist() == expected.indices.tolist()
        assert found.filled_from == expected.filled_from
        for name in ("gains", "relevance", "objective"):
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), rtol=tolerance, atol=tolerance, err_msg=name
            )


def join(parts: list[Selections]) -> Selections:
    given = [name for name in FIELDS if getattr(parts[0], name) is not None]
    whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in given}
    for array in whole.values():
        array.flags.writeable = False
    return Selections(**whole)


# --- each query gets the selection of a single call -----------------------------------------------


@either_way
@pytest.mark.parametrize("pair", PAIRS, ids=names)
@pytest.mark.parametrize(("shared", "dtype", "workers"), [(True, np.float32, 1), (False, np.float64, 3)])
def test_each_query_gets_the_selection_of_a_single_call(pair: Pair, shared: bool, dtype: Any, workers: int) -> None:
    rng = np.random.default_rng(500)
    queries = rng.normal(size=(23, 5)).astype(dtype)
    vectors = rng.normal(size=(30, 5) if shared else (23, 30, 5)).astype(dtype)
    # There are more picks than dimensions, so NDPP fills picks in.
    many = select_many(queries, vectors, 7, pair.selector, workers=workers)
    assert_same_as_single_calls(many, queries, vectors, 7, pair.selector)
    assert_equal(select_many(queries, vectors, 7, pair.selector), many)
    parts = list(select_stream(queries, vectors, 7, pair.selector, workers=workers, block_size=9))
    assert [len(part) for part in parts] == [9, 9, 5]
    assert_equal(join(parts), many)


@either_way
@pytest.mark.parametrize("pair", RELEVANCE_PAIRS, ids=names)
@pytest.mark.parametrize(("shared", "scale"), [(True, "minmax"), (False, "rank")])
def test_given_relevance_is_scaled_query_by_query_and_reported_as_given(pair: Pair, shared: bool, scale: Any) -> None:
    rng = np.random.default_rng(511)
    queries, vectors = rng.normal(size=(11, 6)), rng.normal(size=(20, 6) if shared else (11, 20, 6))
    # The sizes differ from query to query, and some values are equal.
    relevance = np.round(rng.normal(size=(11, 20)), 1) * rng.choice([0.1, 1.0, 20.0], size=(11, 1))
    selector: Any = pair.selector
    many = select_many(queries, vectors, 8, selector, relevance=relevance, relevance_scale=scale, workers=2)
    for i, (found, query) in enumerate(zip(many, queries, strict=True)):
        own = vectors if shared else vectors[i]
        expected = select(query, own, 8, selector, relevance=relevance[i], relevance_scale=scale)
        assert found.indices.tolist() == expected.indices.tolist()
        np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-12, atol=1e-12)
        assert found.relevance.tolist() == relevance[i, found.indices].tolist()


@pytest.mark.parametrize("selector", [VRSD(), VRSD(refine=True), MMR(), NDPP(), TopK()], ids=repr)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_vectors_of_any_length_and_dtype_are_used_and_not_changed(selector: Selector, dtype: Any) -> None:
    rng = np.random.default_rng(5)
    queries, vectors = rng.normal(size=(12, 7)), (100 * rng.normal(size=(12, 9, 7))).astype(dtype)
    # Beyond the range of float32, in which the candidates are computed.
    queries[1] *= 1e300
    queries[5] *= 1e-200
    vectors[3, 4] = 0
    vectors[8] = vectors[7]
    if dtype in (np.float32, np.float64):
        vectors[:, 1] *= 1e30
        vectors[9, 2] *= 1e-30
    before = vectors.copy()
    for own in (vectors, vectors[3]):
        assert_same_as_single_calls(select_many(queries, own, 9, selector), queries, own, 9, selector)
    assert np.array_equal(vectors, before)
    assert vectors.flags.writeable


def test_quality_ids_and_parameters_are_passed_on() -> None:
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
    queries = rng.normal(size=(9, 3, 6))
    return {"queries": queries}, [{"query": query} for query in queries]


def ragged_questions(rng: np.random.Generator, shared: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    queries = [rng.normal(size=(1 + i % 4, 6)) for i in range(9)]
    return {"queries": queries}, [{"query": query} for query in queries]


@pytest.mark.parametrize(("shared", "workers"), [(True, 1), (False, 2)], ids=["shared candidates", "own candidates"])
@pytest.mark.parametrize("make", [words, references, sub_questions, ragged_questions])
def test_what_is_known_of_each_query_and_its_candidates(make: Any, shared: bool, workers: int) -> None:
    rng = np.random.default_rng(512)
    columns, each = make(rng, shared)
    vectors = rng.normal(size=(20, 6) if shared else (9, 20, 6))
    columns = {"queries": rng.normal(size=(9, 6)), "vectors": vectors, "k": 5, "workers": workers} | columns
    many = select_many(**columns)
    for i, own in enumerate(each):
        query = own.pop("query") if "query" in own else columns["queries"][i]
        one = select(query, vectors if shared else vectors[i], 5, **own)
        assert many[i].indices.tolist() == one.indices.tolist()
        np.testing.assert_allclose(many[i].gains, one.gains, rtol=1e-12)
        np.testing.assert_allclose(many[i].shares, one.shares, atol=1e-9)
        if many.referred_by is not None:
            assert many.referred_by[i].tolist() == one.referred_by.tolist()  # type: ignore[union-attr]
        if many.serves is not None:
            assert many.serves[i].tolist() == ([0] * 5 if one.serves is None else one.serves.tolist())
    by_query = {name for name, column in columns.items() if hasattr(column, "__len__") and len(column) == 9}
    cut_columns = {name: iter([columns[name][:2], columns[name][2:]]) for name in by_query}
    parts = list(select_stream(**columns | cut_columns))
    assert [len(part) for part in parts] == [2, 7]
    assert_equal(join(parts), many)
    assert_equal(join(list(select_stream(**columns, block_size=4))), many)
    mixed = columns | {"queries": iter([columns["queries"][:4], columns["queries"][4:]])}
    assert_equal(join(list(select_stream(**mixed))), many)
    if make is words:
        assert not np.array_equal(many.indices, select_many(columns["queries"], vectors, 5).indices)
    if make is references:
        assert (many.referred_by >= 0).any()  # type: ignore[operator]
        assert select_many(columns["queries"], vectors, 5).referred_by is None


def test_references_may_be_an_array_and_other_selectors_serve_sub_questions() -> None:
    rng = np.random.default_rng(513)
    queries, vectors = rng.normal(size=(9, 6)), rng.normal(size=(9, 20, 6))
    arrays = np.float32(rng.random((9, 20, 20)) > 0.9)
    alone = select_many(queries, vectors, 5, references=arrays)
    assert alone.referred_by is not None
    oracles.assert_referred_by(alone.referred_by[3], arrays[3], alone.indices[3].tolist())
    several = [rng.normal(size=(1 + i % 4, 6)) for i in range(9)]
    for selector in (NDPP(), MMR(), TopK()):
        many = select_many(several, vectors, 5, selector)
        for i, query in enumerate(several):
            assert many[i].indices.tolist() == select(query, vectors[i], 5, selector).indices.tolist()
    with pytest.raises(InvalidParameterError, match="query 1: VRSD"):
        select_many(several, vectors, 5, "vrsd")
    several[3] = several[3][:0]
    with pytest.raises(InvalidInputError, match="query 3: query "):
        select_many(several, vectors, 5)


# --- iterators and memory maps --------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(data=st.data(), workers=st.integers(1, 3), shared=st.booleans())
def test_any_columns_may_be_iterators_whose_blocks_are_those_of_the_result(
    data: st.DataObject, workers: int, shared: bool
) -> None:
    rng = np.random.default_rng(502)
    columns = {"queries": rng.normal(size=(9, 4)), "vectors": rng.normal(size=(9, 12, 4))}
    columns |= {"quality": rng.normal(size=(9, 12)), "relevance": rng.normal(size=(9, 12))}
    can_be_cut = {"queries", "relevance"} if shared else set(columns)
    if shared:
        columns |= {"vectors": columns["vectors"][0], "quality": columns["quality"][0]}
    lengths = data.draw(st.permutations([1, 2, 6]) | st.just([9]))
    in_blocks = data.draw(st.sets(st.sampled_from(sorted(can_be_cut)), min_size=1))
    whole: Any = select_many(**columns, k=3, selector="mmr")
    cut_columns: Any = columns | {name: cut(columns[name], *lengths) for name in in_blocks}
    parts = list(select_stream(**cut_columns, k=3, selector="mmr", workers=workers))
    assert [len(part) for part in parts] == lengths
    assert_equal(join(parts), whole)


def test_a_stream_reads_one_block_per_step() -> None:
    read: list[int] = []

    def blocks() -> Iterator[NDArray[Any]]:
        for number in range(1000):
            read.append(number)
            yield ONES

    stream = select_stream(blocks(), np.eye(5), 2, workers=2)
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

OWN = np.ones((4, 3, 5))
WORDS = Parts(np.ones((3, 2)), np.ones(2))
ODD = np.full((3, 3), 1.5)
NAMES = References(np.ones((3, 3)), np.arange(2))
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("^queries: .*empty", {"queries": lambda: iter(())}),
    (r"^queries .*query 4 on.*\(5,\)", {"queries": lambda: iter([ONES, ONES[0]])}),
    (r"^queries .*\(0, 5\)", {"queries": ONES[:0]}),
    (r"^queries .*\(5,\)", {"queries": ONES[0]}),
    (r"^vectors .*query 0 on.*\(4, n, d\)", {"vectors": lambda: iter([ONES])}),
    ("^queries .*4 rows", {"vectors": lambda: iter([OWN[:2]])}),
    ("^vectors: no block", {"queries": lambda: iter([ONES] * 2), "vectors": lambda: iter([OWN])}),
    ("^queries: no block", {"queries": lambda: iter([ONES]), "vectors": lambda: iter([OWN] * 2)}),
    ("^vectors .*5 rows", {"queries": lambda: iter([ONES]), "vectors": np.ones((5, 3, 5))}),
    (r"queries \(4, 5\), vectors \(5, 3, 5\)", {"vectors": np.ones((5, 3, 5))}),
    ("^quality", {"quality": lambda: iter([ONES])}),
    (r"^quality .*\(4, 3\)", {"vectors": OWN, "quality": ONES}),
    (r"^relevance .*\(4, 3\), got \(4, 5\)", {"relevance": ONES}),
    ("^relevance", {"relevance": [["high"] * 3] * 4}),
    ("ids .*shared", {"vectors": OWN, "ids": [1, 2, 3]}),
    ("cover .*shared", {"vectors": OWN, "cover": [1, 2, 3]}),
    (r"words \(5,\)", {"words": [WORDS] * 5}),
    ("^words .*query 0 on.* 4, .*got 3", {"words": lambda: iter([[WORDS] * 3]), "queries": lambda: iter([ONES])}),
    ("^words .*query 0 on.* one query", {"words": lambda: iter([WORDS] * 4)}),
    ("^words: row 1 .*None", {"words": [WORDS, None, WORDS, WORDS]}),
    (r"^query 2: words .*\(3, m\)", {"words": [WORDS] * 2 + [Parts(ONES, ONES[0])] * 2}),
    (r"^references .*\(3, 3\)", {"references": OWN}),
    (r"references \(3,\)", {"vectors": OWN, "references": [OWN[0, :, :3]] * 3}),
    ("^references .* one query", {"vectors": OWN, "references": References(OWN[0], np.arange(3))}),
    (r"^query 1: references .* 3 documents, got \(2,\)", {"vectors": OWN, "references": [ODD * 0, NAMES] * 2}),
    ("^query 2: references: row 0 .*0 ", {"vectors": OWN, "references": [OWN[0, :, :3]] * 2 + [ODD] * 2}),
    ("^query 0: query ", {"queries": ONES[:, :4]}),
]


@pytest.mark.filterwarnings("ignore:quality has no effect:shared_core.errors.SetSelectWarning")
def test_columns_of_wrong_shapes_are_refused() -> None:
    for says, changes in REFUSED:
        made = {name: change() if callable(change) else change for name, change in changes.items()}
        given: dict[str, Any] = {"queries": ONES, "vectors": np.ones((3, 5)), "k": 1}
        with pytest.raises(InvalidInputError, match=says):
            select_many(**given | made)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"relevance_scale": "log"}, "relevance_scale"),
        ({"workers": 0}, "workers"),
        ({"block_size": 0}, "block_size"),
        ({"k": 2.5}, "k must be an integer"),
        ({"lambda": 1}, "lambda"),
        ({"selector": VRSD(), "refine": True}, "refine"),
    ],
)
def test_settings_out_of_range_are_refused_at_once(setting: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidParameterError, match=says):
        select_stream(**{"queries": ONES, "vectors": ONES, "k": 1, **setting})


@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_wrong_query_is_named_for_any_number_of_workers(workers: int) -> None:
    rng = np.random.default_rng(506)
    queries, vectors = rng.normal(size=(40, 4)), rng.normal(size=(9, 4))
    queries[[17, 18, 33]] = 0
    with pytest.raises(InvalidInputError, match=r"^query 17: query .*zero"):
        select_many(queries, vectors, 2, workers=workers)
    stream = select_stream(cut(queries, 8, 8, 24), vectors, 2, workers=workers)
    assert len(next(stream)) == len(next(stream)) == 8
    with pytest.raises(InvalidInputError, match=r"^query 17: "):
        next(stream)


def with_value(shape: tuple[int, ...], place: tuple[int, ...], value: float) -> NDArray[np.float64]:
    made = np.random.default_rng(6).normal(size=shape)
    made[place] = value
    return made


# Quality is checked by every selector, also by one that does not use it.
@pytest.mark.filterwarnings("ignore:quality has no effect:shared_core.errors.SetSelectWarning")
@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"queries": with_value((6, 4), (1, 0), np.nan)}, InvalidInputError, "query 1: query holds NaN"),
        ({"vectors": with_value((6, 5, 4), (4, 2, 1), np.nan)}, InvalidInputError, "query 4: vectors: row 2 holds NaN"),
        ({"vectors": with_value((5, 4), (2, 1), np.inf)}, InvalidInputError, "vectors: row 2 holds NaN or inf"),
        ({"quality": with_value((6, 5), (1, 3), np.inf)}, InvalidInputError, "query 1: quality: row 3 is inf"),
        ({"relevance": with_value((6, 5), (3, 1), np.nan)}, InvalidInputError, "query 3: relevance: row 1"),
        ({"k": 6}, InvalidParameterError, "query 0: k .*1..n"),
    ],
)
def test_an_error_names_the_query_and_the_row(changes: dict[str, Any], error: type[Exception], says: str) -> None:
    rng = np.random.default_rng(6)
    given = {"queries": rng.normal(size=(6, 4)), "vectors": rng.normal(size=(6, 5, 4)), "k": 2, **changes}
    with pytest.raises(error, match=f"^{says}"):
        select_many(**given, selector="mmr")


def test_an_error_of_a_kernel_names_the_query() -> None:
    with pytest.raises(KernelError, match=r"^query 0: 2 "):
        select_many(np.ones((2, 2)), np.ones((2, 2)), 1, "ndpp", kernel=LowRankKernel(np.eye(3)))


def test_the_message_names_the_unusable_argument(unusable: Any) -> None:
    good = np.ones((2, 2))
    for name in ("queries", "vectors", "quality", "relevance"):
        with pytest.raises(InvalidInputError, match=f"^{name}"):
            select_many(**{"queries": good, "vectors": good, "k": 1, "selector": "mmr", name: unusable})


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
        # Between two blocks the caller has all BLAS threads.
        for _ in select_stream(ONES, ONES, 1, watching, workers=workers, block_size=2):
            assert blas_threads() == 2
        assert watching.seen == [1] * 4
        with pytest.raises(RuntimeError):
            select_many(ONES, ONES, 1, Watching(fails=True), workers=workers)
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


def test_the_bar_counts_the_queries_and_needs_tqdm(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    select_many(ONES, ONES, 1, workers=2, progress=True)
    select_many(cut(ONES, 1, 3), ONES, 1, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "4/4" in err
    assert "4query" in err
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"pip install \"setselect\[batch\]\""):
        select_stream(ONES, ONES, 1, progress=True)


@pytest.mark.parametrize(
    ("length", "selector"), [(1e-44, "mmr"), (1e-300, "ndpp"), (1e40, "vrsd"), (1e300, "coverage")]
)
def test_the_direction_of_a_query_of_any_length_counts(selector: str, length: float) -> None:
    # As float32 a query of length 1e-44 has 3 bits, and one of 1e40 is inf.
    queries, vectors = np.random.default_rng(0).normal(size=(20, 16)), np.random.default_rng(1).normal(size=(40, 16))
    many = select_many(queries * length, vectors.astype(np.float32), 5, selector)
    single = [select(query, vectors.astype(np.float32), 5, selector).indices for query in queries]
    np.testing.assert_array_equal(many.indices, single)
