"""Selections for files and tables of queries, in one process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shared_core import (
    MMR,
    NDPP,
    Coverage,
    InvalidInputError,
    InvalidParameterError,
    LowRankKernel,
    Selector,
    SetSelectWarning,
    TopK,
    VectorSourceError,
    select,
)
from shared_core.batch.tables import TableSelector, select_dataset
from tests.shared_core.batch.corpus import (
    FETCH_K,
    D,
    K,
    N,
    Q,
    by_brute_force,
    corpus,
    flat_index,
    names,
    nearest,
    queries,
    table,
    write_index,
    write_queries,
)

SETTINGS: dict[str, Any] = {"k": K, "fetch_k": FETCH_K, "selector": MMR(0.5)}
GIVEN: dict[str, Any] = {"candidates_column": "hits", "relevance_column": "scores"}


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return flat_index(tmp_path / "index.faiss")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_queries(tmp_path / "queries.parquet")


def select_table(queries: Any, index: Any, k: int = K, **settings: Any) -> Any:
    return TableSelector(index, k, **settings)(queries)


def brute_force(rows: Any = None) -> list[list[int]]:
    return [by_brute_force(query)[0] for query in (queries() if rows is None else rows)]


# --- files ----------------------------------------------------------------------------------------


# Blocks of 41 over row groups of 37: no block after the first starts where a row group starts.
@pytest.mark.parametrize(("block_rows", "parts"), [(41, 6), (Q + 1, 1)])
def test_every_row_is_written_once_in_order_with_the_picks_of_brute_force(
    block_rows: int, parts: int, index: Path, files: Path, tmp_path: Path
) -> None:
    done = select_dataset(files, index, out=tmp_path / "sets", block_rows=block_rows, **SETTINGS)
    assert (done.rows, done.errors, done.parts) == (Q, 0, parts)
    assert sorted(f.name for f in (tmp_path / "sets").iterdir()) == [f"part-{i:05d}.parquet" for i in range(parts)]
    written = pq.read_table(tmp_path / "sets")
    assert written.column_names == ["id", "ids", "gains", "relevance", "error"]
    rows = written.to_pylist()
    assert [row["id"] for row in rows] == names()
    for query, row in zip(queries(), rows, strict=True):
        ids, expected = by_brute_force(query)
        assert (row["ids"], row["error"]) == (ids, None)
        np.testing.assert_allclose(row["gains"], expected.gains, atol=1e-5)
        np.testing.assert_allclose(row["relevance"], expected.relevance[list(expected.picks)], atol=1e-5)


def test_a_stopped_run_resumes_and_other_settings_than_those_of_the_folder_are_named(
    index: Path, files: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sets"
    select_dataset(files, index, out=out, block_rows=50, **SETTINGS)
    whole = pq.read_table(out)
    (out / "part-00004.parquet").unlink()
    (out / "part-00001.parquet").write_bytes((out / "part-00001.parquet").read_bytes()[:300])
    (out / "part-00003.parquet").write_bytes(b"")
    kept = (out / "part-00002.parquet").stat().st_mtime_ns
    # A file with the same content under another name counts as the same.
    files = files.rename(tmp_path / "moved.parquet")
    select_dataset(files, index, out=out, block_rows=50, **SETTINGS)
    assert (out / "part-00002.parquet").stat().st_mtime_ns == kept
    assert pq.read_table(out) == whole
    for differs, change in {
        "k: 4 there, 3 now": {"k": 3},
        "block_rows: 50 there, 60 now": {"block_rows": 60},
        r"selector: MMR\(lambda_mult=0\.5.* there, MMR\(lambda_mult=0\.25": {"selector": MMR(0.25)},
    }.items():
        with pytest.raises(InvalidParameterError, match=differs):
            select_dataset(files, index, out=out, **{"block_rows": 50, **SETTINGS, **change})
    content = bytearray(index.read_bytes())
    content[len(content) // 2] ^= 1
    index.write_bytes(content)
    with pytest.raises(InvalidParameterError, match=r"index: .*sha256"):
        select_dataset(files, index, out=out, block_rows=50, **SETTINGS)
    # A file of somebody else under the name of a part is not overwritten.
    pq.write_table(table(), out / "part-00000.parquet")
    with pytest.raises(InvalidParameterError, match="k: None there, 4 now"):
        select_dataset(files, index, out=out, block_rows=50, **SETTINGS)


def test_tables_of_bad_rows_alone_and_of_no_rows_are_written(index: Path, tmp_path: Path) -> None:
    empty = table().slice(0, 0)
    bad = pa.table({"id": ["a"], "vector": pa.array([None], pa.list_(pa.float32()))})
    pq.write_table(bad, tmp_path / "bad.parquet")
    done = select_dataset(tmp_path / "bad.parquet", index, out=tmp_path / "sets", **SETTINGS)
    assert (done.rows, done.errors, done.first_error) == (1, 1, "the vector is null")
    pq.write_table(empty, tmp_path / "empty.parquet")
    pq.ParquetWriter(tmp_path / "no group.parquet", empty.schema).close()
    for name in ("empty", "no group"):
        done = select_dataset(tmp_path / f"{name}.parquet", index, out=tmp_path / name, **SETTINGS)
        assert (done.rows, done.parts) == (0, 1)
        # With the same columns as every other run.
        assert pq.read_table(tmp_path / name).schema == pq.read_table(tmp_path / "sets").schema


def test_a_damaged_file_is_named_with_the_rows_that_cannot_be_read(index: Path, files: Path, tmp_path: Path) -> None:
    content = bytearray(files.read_bytes())
    page = pq.ParquetFile(files).metadata.row_group(3).column(0).dictionary_page_offset
    content[page : page + 20] = b"\xff" * 20
    files.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"queries\.parquet cannot be read"):
        select_dataset(files, index, out=tmp_path / "sets", block_rows=100, **SETTINGS)
    assert [f.name for f in (tmp_path / "sets").glob("*.parquet")] == ["part-00000.parquet"]


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"id_column": "name"}, InvalidInputError, "0 columns 'name' among id, unread, vector"),
        ({"id_column": "ids"}, InvalidParameterError, "id_column .*'ids'"),
        ({"fetch_k": 3}, InvalidParameterError, "fetch_k .*k = 4"),
        ({"relevance_column": "unread"}, InvalidParameterError, "without candidates_column"),
        ({"queries": "nowhere.parquet"}, InvalidInputError, r"no file .*nowhere\.parquet"),
        ({"index": "nowhere.faiss"}, InvalidInputError, r"index .*nowhere\.faiss cannot be used"),
    ],
)
def test_impossible_settings_are_refused_before_anything_is_written(
    change: dict[str, Any], error: type[Exception], says: str, index: Path, files: Path, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"queries": files, "index": index, "out": tmp_path / "sets", **SETTINGS, **change}
    with pytest.raises(error, match=says):
        select_dataset(**settings)
    assert not list((tmp_path / "sets").glob("*"))


# --- vectors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lists", "number"),
    [(pa.list_, pa.float16()), (pa.large_list, pa.float32()), (lambda number: pa.list_(number, D), pa.float64())],
)
def test_lists_of_every_float_type_are_read(lists: Any, number: Any, index: Path) -> None:
    rounded = queries().astype(np.float16)
    column = pa.array([row.astype(number.to_pandas_dtype()) for row in rounded], lists(number))
    # A slice starts in the middle of the buffers; Parquet gives chunks.
    chunked = pa.chunked_array([column.slice(0, 10), column.slice(10, 0), column.slice(10)])
    for start in (0, 17):
        found = select_table(pa.table({"id": names(), "vector": chunked}).slice(start), index, **SETTINGS)
        assert found["ids"].to_pylist() == brute_force(rounded[start:].astype(np.float32))
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(queries())
    found = select_table(pa.table({"id": names(), "vector": tensors}).slice(3), index, **SETTINGS)
    assert found["ids"].to_pylist() == brute_force(queries()[3:])
    with pytest.raises(InvalidInputError, match="'vector' must contain lists of numbers"):
        select_table(pa.table({"id": names(), "vector": names()}), index, **SETTINGS)


ROWS: list[dict[str, Any]] = [{"id": "x", "vector": [2.0, 0.0]}, {"id": "y", "vector": [0.0, 1.0]}]
TABLES: list[Callable[[list[dict[str, Any]]], Any]] = [
    list, pd.DataFrame, pa.Table.from_pylist, pa.RecordBatch.from_pylist,
    # So Polars hands out its tables: with its own kind of strings.
    lambda rows: pa.Table.from_pylist(rows, pa.schema({"id": pa.string_view(), "vector": pa.large_list(pa.float32())})),
]  # fmt: skip


@pytest.mark.parametrize("make", TABLES, ids=range(len(TABLES)))
def test_a_table_of_any_library_gives_a_selection_for_each_row(make: Callable[[Any], Any]) -> None:
    def search(vectors: Any, k: int) -> Any:
        return [["a", "b"]] * len(vectors), [np.eye(2, dtype=np.float32)] * len(vectors)

    found = select_table(make(ROWS), search, 1)
    assert (found["id"].to_pylist(), found["ids"].to_pylist()) == (["x", "y"], [["a"], ["b"]])


def test_a_bad_row_has_an_error_and_its_neighbours_have_selections(index: Path) -> None:
    good = queries()[0].tolist()
    cases: list[tuple[Any, str | None]] = [
        (good, None),
        ([float("nan"), *good[1:]], "the vector contains nan (as float32)"),
        (None, "the vector is null"),
        ([0.0] * D, "the vector is zero and has no direction"),
        ([*good[1:], None], "the vector contains nan (as float32)"),
        (good[:-1], f"the vector has length {D - 1}, not {D}"),
        ([1e39, *good[1:]], "the vector contains inf (as float32)"),
        (good, None),
    ]
    found = select_table(
        pa.table({"id": range(len(cases)), "vector": [row for row, _ in cases]}), index, **SETTINGS
    ).to_pylist()
    expected, _ = by_brute_force(queries()[0])
    for row, (_, error) in zip(found, cases, strict=True):
        assert (row["error"], row["ids"]) == (error, expected if error is None else None)
        assert (row["gains"] is None) == (row["relevance"] is None) == (error is not None)


# --- the index, or a database ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["Flat", "HNSW32,Flat", "IVF4,Flat", "IDMap,Flat", "IDMap2,IVF4,Flat", "IVF4,PQ12x4fs,RFlat"]
)
def test_every_kind_of_index_is_searched_and_read_by_label_and_named_if_it_is_truncated(kind: str, index: Path) -> None:
    labels = write_index(kind, index)
    found = select_table(table(), index, **SETTINGS)
    expected = [[labels[i] for i in own] for own in brute_force()]
    assert found["ids"].to_pylist() == expected
    hits = [[labels[i] for i in nearest(query)] for query in queries()]
    given = table().append_column("hits", pa.array(hits))
    assert select_table(given, index, **SETTINGS, candidates_column="hits")["ids"].to_pylist() == expected
    whole = index.read_bytes()
    for damaged in (b"", whole[:3], whole[: len(whole) // 2]):
        index.write_bytes(damaged)
        with pytest.raises(InvalidInputError, match=r"index\.faiss .*FAISS"):
            select_table(table(), index, **SETTINGS)


@pytest.mark.parametrize("kind", ["IVF4,Flat", "IDMap2,Flat"])
def test_labels_may_have_gaps(kind: str, index: Path) -> None:
    made = faiss.index_factory(D, kind, faiss.METRIC_INNER_PRODUCT)
    made.train(corpus())
    own = np.random.default_rng(22).permutation(N) * 1_000_003 + 5
    made.add_with_ids(corpus(), own)
    made.remove_ids(own[2:3])
    faiss.write_index(made, str(index))
    lists = [[int(own[1]), int(own[5])], [int(own[2])], [3], [-1]]
    rows = pa.table({"id": range(4), "vector": [queries()[0]] * 4, "hits": lists})
    first, *others = select_table(rows, index, 2, selector=TopK(), candidates_column="hits").to_pylist()
    assert sorted(first["ids"]) == sorted(lists[0])
    assert [row["error"] for row in others] == [f"there is no vector of candidate {i}" for [i] in lists[1:]]


def test_an_index_without_vectors_is_refused_before_it_ends_the_process(index: Path) -> None:
    hashes = faiss.IndexIVFSpectralHash(faiss.IndexFlatL2(D), D, 4, 16, 1.0)
    hashes.train(corpus())
    named = faiss.IndexIDMap(hashes)
    named.add_with_ids(corpus(), np.arange(N))
    write_index("IVF4,PQ12x4fs,RFlat", index)
    codes = faiss.read_index(str(index))
    for kind, error, says in (
        (faiss.IndexFlatIP(D), InvalidInputError, ".*is empty"),
        (hashes, InvalidInputError, ".*IndexIVFSpectralHash"),
        (named, InvalidInputError, ".*IndexIVFSpectralHash"),
        (faiss.extract_index_ivf(codes), InvalidInputError, ".*IndexIVFPQFastScan"),
    ):
        faiss.write_index(kind, str(index))
        with pytest.raises(error, match=rf"index\.faiss {says}"):
            select_table(table(), index, **SETTINGS)


def test_a_search_must_answer_every_query_and_its_unusable_vectors_are_errors_of_their_row() -> None:
    def search(vectors: Any, k: int) -> tuple[list[Any], list[Any]]:
        rows = corpus()[:3].copy()
        rows[1, 0] = np.nan
        return [["a", "b"], ["a", "b", "c"]], [corpus()[:2], rows]

    few, unusable = select_table(table().slice(0, 2), search, **SETTINGS).to_pylist()
    assert (sorted(few["ids"]), few["error"]) == (["a", "b"], None)
    assert unusable["error"].startswith("vectors: row 1 ")
    with pytest.raises(VectorSourceError, match=r" 4 queries .* 2 lists"):
        select_table(table().slice(0, 4), search, **SETTINGS)


def test_a_kernel_gets_the_ids(index: Path) -> None:
    rng = np.random.default_rng(3)
    known = sorted(set(range(N)) - {by_brute_force(queries()[1])[0][0]})
    kernel = LowRankKernel(rng.standard_normal((len(known), 6)), ids=known)
    first, second = select_table(table().slice(0, 2), index, K, selector=NDPP(kernel), fetch_k=6).to_pylist()
    assert len(first["ids"]) == K
    assert second["ids"] is None


# --- candidates and relevance from columns --------------------------------------------------------


@pytest.mark.parametrize("selector", [TopK(), MMR(0.3), NDPP()], ids=repr)
def test_given_candidates_and_relevance_have_the_selection_of_a_single_call(selector: Selector, index: Path) -> None:
    rng = np.random.default_rng(20)
    hits = [rng.permutation(N)[: (20, 20, 7, 2, 60)[i % 5]].tolist() for i in range(40)]
    scores = [(np.round(rng.normal(size=len(own)), 1) * 10.0 ** (i % 4 - 1)).tolist() for i, own in enumerate(hits)]
    given = pa.table({"id": range(40), "vector": list(queries()[:40]), "hits": hits, "scores": scores})
    calls = []

    def vectors_by_id(ids: list[int]) -> dict[int, Any]:
        calls.append(ids)
        return {i: corpus()[i] for i in ids}

    settings = {"selector": selector, "fetch_k": 1, **GIVEN}
    found = select_table(given, index, 4, **settings)
    for row, query, own, worth in zip(found.to_pylist(), queries(), hits, scores, strict=False):
        one = select(query, corpus()[own], min(4, len(own)), selector, relevance=worth)
        assert (row["ids"], row["error"]) == ([own[i] for i in one.indices], None)
        assert row["relevance"] == [worth[i] for i in one.indices], "as it was given, not as it was scaled"
    # Numbers are passed on as numbers, each once, and are written as text.
    numbered = select_table(given, vectors_by_id, 4, **settings)["ids"].to_pylist()
    assert numbered == [[str(i) for i in own] for own in found["ids"].to_pylist()]
    assert [sorted(ids) for ids in calls] == [sorted({i for own in hits for i in own})]


def test_a_bad_list_is_an_error_of_its_row(index: Path) -> None:
    cases: list[tuple[Any, Any, str | None]] = [
        ([1, 2, 3], [0.1, 0.2, 0.3], None),
        (None, [0.1], "there are no candidates"),
        ([], [], "there are no candidates"),
        ([1, None, 3], [0.1, 0.2, 0.3], "there is no vector of candidate None"),
        ([1, 2, 1], [0.1, 0.2, 0.3], "a candidate is in the list twice"),
        ([1, 2, N], [0.1, 0.2, 0.3], f"there is no vector of candidate {N}"),
        ([1, 2, 3], None, "the list of relevance is null"),
        ([1, 2, 3], [0.1, 0.2], r"relevance must have shape (3,)"),
        ([1, 2, 3], [0.1, float("nan"), 0.3], "relevance: row 1 is nan"),
        ([1, 2, 3], [None, 0.2, 0.3], "relevance must be numbers"),
        ([3, 2, 1], [0.3, 0.2, 0.1], None),
    ]
    ids, numbers, errors = zip(*cases, strict=True)
    rows = pa.table({"id": range(len(cases)), "vector": [queries()[0]] * len(cases), "hits": ids, "scores": numbers})
    for row, error in zip(select_table(rows, index, 1, selector=TopK(), **GIVEN).to_pylist(), errors, strict=True):
        assert row["ids"] == ([3] if error is None else None)
        assert (row["error"] is None) if error is None else (error in row["error"])


# --- words and references -------------------------------------------------------------------------

COUNT = 25
WORDS = ["river", "harbour", "engine", "bread", "violin", "north", "old", "red", "loud", "glass"]
TEXTS = [" ".join(np.random.default_rng([9, i]).choice(WORDS, 6)) for i in range(N)]
QUESTIONS = [" ".join(np.random.default_rng([10, i]).choice(WORDS, 3)) for i in range(COUNT)]
TITLES = [f"Place {i // 2} Hill" if i % 3 else None for i in range(N)]
NUMBERS = [f"{i // 20 + 1}.{i % 20 + 1}" for i in range(N)]
BOOKS = ["B" if i % 2 else "A" for i in range(N)]
CITING = [f"{text} by {TITLES[(i * 7) % N]}, see Rule {NUMBERS[(i * 5) % N]}" for i, text in enumerate(TEXTS)]
ASKED: dict[str, Any] = {"question_column": "question"}


def asked(**columns: Any) -> Any:
    rows: dict[str, Any] = {"id": range(COUNT), "vector": list(queries()[:COUNT]), "question": QUESTIONS}
    return pa.table(rows | columns)


def expected(texts: list[str] = TEXTS, selector: Any = "coverage", **called: Any) -> list[Any]:
    """The ids of the picks of each query, and of the texts that lead to them, by single calls."""
    found = []
    for query, question in zip(queries(), QUESTIONS, strict=False):
        near = nearest(query)
        own = {name: [column[i] for i in near] for name, column in called.items()}
        one = select(query, corpus()[near], 4, selector, question=question, texts=[texts[i] for i in near], **own)
        assert one.referred_by is not None
        found.append(([int(near[i]) for i in one.indices], [None if i < 0 else int(near[i]) for i in one.referred_by]))
    return found


def written(found: Any) -> list[Any]:
    assert found["error"].null_count == COUNT, found["error"]
    return list(zip(found["ids"].to_pylist(), found["referred_by"].to_pylist(), strict=True))


def test_words_and_references_are_read_from_the_usual_columns(index: Path, tmp_path: Path) -> None:
    # Ids of two types, and a file without the other columns.
    columns = {"id": range(300), "text": CITING[:300], "title": TITLES[:300], "section": NUMBERS[:300]}
    columns |= {"source": BOOKS[:300], "vector": [[0.0]] * 300}
    (tmp_path / "texts").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "texts" / "a.parquet")
    others = {"text": CITING[300:], "id": [*map(str, range(300, N))]}
    pq.write_table(pa.table(others), tmp_path / "texts" / "b.parquet")
    settings = {"texts": tmp_path / "texts", **ASKED}
    none = [None] * 100
    called = {"titles": TITLES[:300] + none, "identifiers": NUMBERS[:300] + none, "sources": BOOKS[:300] + none}
    found = select_table(asked(), index, **settings)
    assert found.column_names == ["id", "ids", "gains", "relevance", "referred_by", "error"]
    assert written(found) == expected(CITING, **called)
    assert any(by is not None for _, referring in written(found) for by in referring)
    without = select_table(asked(), index, **settings, selector=Coverage(reference_weight=0, neighbour_weight=0))
    assert without.column_names == ["id", "ids", "gains", "relevance", "error"]
    of_vectors = select_table(asked(), index)["ids"].to_pylist()
    assert of_vectors != without["ids"].to_pylist() != found["ids"].to_pylist()
    with pytest.warns(SetSelectWarning, match="^texts .*MMR"):
        select_table(asked(), index, selector=MMR(), **settings)


def test_neighbours_are_read_from_the_usual_columns(index: Path, tmp_path: Path) -> None:
    columns = {"id": range(N), "text": TEXTS, "source": ["A"] * N, "chunk": range(N)}
    pq.write_table(pa.table(columns), tmp_path / "texts.parquet")
    settings = {"texts": tmp_path / "texts.parquet", "selector": Coverage(neighbour_weight=20, reference_weight=0)}
    found = written(select_table(asked(), index, **settings, **ASKED))
    led = [(name, by) for ids, referring in found for name, by in zip(ids, referring, strict=True)]
    assert {abs(name - by) for name, by in led if by is not None} == {1}


def test_a_row_without_question_or_text_has_an_error(index: Path, tmp_path: Path) -> None:
    near = int(nearest(queries()[1])[0])
    kept = [i for i in range(N) if i != near]
    texts = pa.table({"id": kept, "text": pa.array([None] * len(kept), pa.string())})
    pq.write_table(texts, tmp_path / "texts.parquet")
    found = select_table(asked(question=[None, *QUESTIONS[1:]]), index, texts=tmp_path / "texts.parquet", **ASKED)
    errors = found["error"].to_pylist()
    assert errors[:2] == ["the question is null or blank", f"there is no text of candidate '{near}'"]
    # A text that is null has no words.
    row = errors.index(None)
    assert found["ids"][row].as_py() == select_table(asked(), index)["ids"][row].as_py()
