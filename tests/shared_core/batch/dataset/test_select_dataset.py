"""Selections for files and tables of queries, in one process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shared_core import (
    MMR,
    VRSD,
    InvalidInputError,
    InvalidParameterError,
    LowRankKernel,
    Selector,
    VectorSourceError,
    select,
)
from shared_core.batch.dataset import _worker, select_dataset, select_table
from shared_core.batch.dataset._output_folder import OutputFolder
from shared_core.batch.dataset._worker import Worker
from tests.shared_core.batch.dataset.corpus import (
    FETCH_K,
    D,
    K,
    N,
    Q,
    by_brute_force,
    corpus,
    flat_index,
    names,
    queries,
    table,
    write_index,
    write_queries,
)

SETTINGS = {"k": K, "fetch_k": FETCH_K, "selector": "mmr", "lambda_mult": 0.5}


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return flat_index(tmp_path / "index.faiss")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_queries(tmp_path / "queries.parquet")


# Blocks of 41 over row groups of 37: no block after the first starts where a row group starts.
@pytest.mark.parametrize(("block_rows", "parts"), [(41, 6), (Q + 1, 1)])
def test_every_row_is_written_once_in_order_with_the_picks_of_brute_force(
    block_rows: int, parts: int, index: Path, files: Path, tmp_path: Path
) -> None:
    done = select_dataset(files, index, out=tmp_path / "sets", block_rows=block_rows, **SETTINGS)
    assert (done.rows, done.errors, done.parts, done.resumed) == (Q, 0, parts, 0)
    assert sorted(f.name for f in (tmp_path / "sets").iterdir()) == [
        "_settings.json", *(f"part-{i:05d}.parquet" for i in range(parts))
    ]  # fmt: skip
    written = pq.read_table(tmp_path / "sets")
    assert written.column_names == ["id", "ids", "gains", "relevance", "error"]
    rows = written.to_pylist()
    assert [row["id"] for row in rows] == names()
    for query, row in zip(queries(), rows, strict=True):
        ids, expected = by_brute_force(query)
        assert row["ids"] == ids, (row["id"], row["ids"], ids)
        np.testing.assert_allclose(row["gains"], expected.gains, atol=1e-5)
        np.testing.assert_allclose(row["relevance"], expected.relevance[list(expected.picks)], atol=1e-5)
        assert row["error"] is None


def test_files_are_read_in_order_and_rows_are_numbered_over_all_of_them(index: Path, tmp_path: Path) -> None:
    folder = tmp_path / "queries"
    folder.mkdir()
    for i, start in enumerate(range(0, Q, 100)):
        pq.write_table(table().slice(start, 100).drop_columns("id"), folder / f"{i}.parquet", row_group_size=30)
    (folder / "_leftover.parquet").write_text("no Parquet")
    select_dataset(folder, index, out=tmp_path / "sets", block_rows=33, id_column=None, **SETTINGS)
    written = pq.read_table(tmp_path / "sets")
    assert written["row"].to_pylist() == list(range(Q))
    assert written["ids"].to_pylist() == select_table(table(), index, **SETTINGS)["ids"].to_pylist()


@pytest.mark.parametrize(
    ("lists", "number"),
    [(pa.list_, pa.float16()), (pa.large_list, pa.float32()), (lambda number: pa.list_(number, D), pa.float64())],
)
def test_lists_of_every_float_type_are_read(lists: Any, number: Any, index: Path) -> None:
    rounded = queries().astype(np.float16)
    column = pa.array([row.astype(number.to_pandas_dtype()) for row in rounded], lists(number))
    # A slice starts in the middle of the buffers; Parquet gives chunks.
    chunked = pa.chunked_array([column.slice(0, 10), column.slice(10, 0), column.slice(10)])
    for start in (0, 5, 17):
        found = select_table(pa.table({"id": names(), "vector": chunked}).slice(start), index, **SETTINGS)
        assert found["ids"].to_pylist() == [by_brute_force(row.astype(np.float32))[0] for row in rounded[start:]]


@pytest.mark.parametrize("fixed", [False, True])
def test_a_bad_row_has_an_error_and_its_neighbours_have_selections(fixed: bool, index: Path) -> None:
    good = queries()[0].tolist()
    rows: list[Any] = [
        good, [float("nan"), *good[1:]], good, None, [0.0] * D, [*good[:-1], float("-inf")], [*good[1:], None], good,
    ]  # fmt: skip
    errors = [
        None, "the vector contains nan (as float32)", None, "the vector is null",
        "the vector is zero and has no direction", "the vector contains -inf (as float32)",
        "the vector contains nan (as float32)", None,
    ]  # fmt: skip
    if not fixed:
        rows += [good[:-1], [], [1e39, *good[1:]], good]
        errors += [
            f"the vector has length {D - 1}, not {D}", f"the vector has length 0, not {D}",
            "the vector contains inf (as float32)", None,
        ]  # fmt: skip
    column = pa.array(rows, pa.list_(pa.float64(), D if fixed else -1))
    found = select_table(pa.table({"id": range(len(rows)), "vector": column}), index, **SETTINGS).to_pylist()
    expected, _ = by_brute_force(queries()[0])
    assert [row["error"] for row in found] == errors
    for row in found:
        assert row["ids"] == (expected if row["error"] is None else None), row
        assert (row["gains"] is None) == (row["relevance"] is None) == (row["error"] is not None)


def test_tables_of_bad_rows_alone_and_of_no_rows_are_written(index: Path, tmp_path: Path) -> None:
    empty = table().slice(0, 0)
    assert select_table(empty, index, **SETTINGS).num_rows == 0
    bad = pa.table({"id": ["a"], "vector": pa.array([None], pa.list_(pa.float32()))})
    pq.write_table(bad, tmp_path / "bad.parquet")
    done = select_dataset(tmp_path / "bad.parquet", index, out=tmp_path / "sets", **SETTINGS)
    assert (done.rows, done.errors, done.first_error) == (1, 1, "the vector is null")
    assert pq.read_table(tmp_path / "sets").schema == select_table(empty, index, **SETTINGS).schema
    pq.write_table(empty, tmp_path / "empty.parquet")
    pq.ParquetWriter(tmp_path / "no group.parquet", empty.schema).close()
    for name in ("empty", "no group"):
        done = select_dataset(tmp_path / f"{name}.parquet", index, out=tmp_path / name, **SETTINGS)
        assert (done.rows, done.parts) == (0, 1)
        # With the same columns as every other run.
        assert pq.read_table(tmp_path / name).schema == pq.read_table(tmp_path / "sets").schema


@pytest.mark.parametrize(
    "kind", ["Flat", "HNSW32,Flat", "IVF4,Flat", "IDMap,Flat", "IDMap2,IVF4,Flat", "IVF4,PQ12x4fs,RFlat"]
)
def test_every_kind_of_index_gives_the_same_picks_and_is_named_if_it_is_truncated(kind: str, index: Path) -> None:
    labels = write_index(kind, index)
    found = select_table(table(), index, **SETTINGS)
    assert found["ids"].to_pylist() == [[labels[i] for i in by_brute_force(query)[0]] for query in queries()]
    whole = index.read_bytes()
    for damaged in (b"", whole[:3], whole[: len(whole) // 2]):
        index.write_bytes(damaged)
        with pytest.raises(InvalidInputError, match=r"index\.faiss .*FAISS"):
            select_table(table(), index, **SETTINGS)


def test_a_search_that_faiss_refuses_names_the_index_and_restores_the_threads(index: Path) -> None:
    before = faiss.omp_get_max_threads()
    try:
        faiss.omp_set_num_threads(2)
        select_table(table(), index, **SETTINGS)
        assert faiss.omp_get_max_threads() == 2
        write_index("IVF4,Flat", index)
        ivf = faiss.read_index(str(index))
        ivf.nprobe = 0
        faiss.write_index(ivf, str(index))
        with pytest.raises(VectorSourceError, match=r"index\.faiss.*nprobe"):
            select_table(table(), index, **SETTINGS)
        assert faiss.omp_get_max_threads() == 2
    finally:
        faiss.omp_set_num_threads(before)


def test_an_index_without_vectors_is_refused_before_it_ends_the_process(index: Path) -> None:
    hashes = faiss.IndexIVFSpectralHash(faiss.IndexFlatL2(D), D, 4, 16, 1.0)
    hashes.train(corpus())
    named = faiss.IndexIDMap(hashes)
    named.add_with_ids(corpus(), np.arange(N))
    write_index("IVF4,PQ12x4fs,RFlat", index)
    codes = faiss.read_index(str(index))
    for kind, error, says in (
        (faiss.IndexFlatIP(D), InvalidInputError, "is empty"),
        (hashes, VectorSourceError, ".*IndexIVFSpectralHash"),
        (named, VectorSourceError, ".*IndexIVFSpectralHash"),
        (faiss.extract_index_ivf(codes), VectorSourceError, ".*IndexIVFPQFastScan"),
    ):
        faiss.write_index(kind, str(index))
        with pytest.raises(error, match=rf"index\.faiss {says}"):
            select_table(table(), index, **SETTINGS)


def test_a_database_is_searched_through_a_function() -> None:
    calls = []

    def search(vectors: Any, k: int) -> tuple[list[Any], list[Any]]:
        calls.append((len(vectors), k))
        places = [np.argsort(-(corpus() @ v), kind="stable")[:k] for v in vectors]
        return [[f"doc {i}" for i in one] for one in places], [corpus()[one] for one in places]

    found = select_table(table(), search, **SETTINGS)
    assert calls == [(Q, FETCH_K)]
    assert found["ids"].to_pylist() == [[f"doc {i}" for i in by_brute_force(query)[0]] for query in queries()]


def test_a_search_may_find_few_or_none_or_unusable_vectors_but_must_answer_every_query() -> None:
    def search(vectors: Any, k: int) -> tuple[list[Any], list[Any]]:
        rows = corpus()[:3].copy()
        rows[1, 0] = np.nan
        return [["a", "b"], [], ["a", "b", "c"]], [corpus()[:2], corpus()[:0], rows]

    few, none, unusable = select_table(table().slice(0, 3), search, **SETTINGS).to_pylist()
    assert (sorted(few["ids"]), few["error"]) == (["a", "b"], None)
    assert (none["ids"], none["error"]) == (None, "the search found nothing")
    assert unusable["ids"] is None
    assert "InvalidInputError: vectors: row 1" in unusable["error"]
    with pytest.raises(VectorSourceError, match=r" 4 queries .* 3 lists"):
        select_table(table().slice(0, 4), search, **SETTINGS)

    def unreachable(vectors: Any, k: int) -> tuple[list[Any], list[Any]]:
        raise ConnectionError("no connection")

    with pytest.raises(ConnectionError, match="no connection"):
        select_table(table(), unreachable, **SETTINGS)


@pytest.mark.parametrize("selector", [MMR(0.5), VRSD(refine=True)])
def test_any_mixture_of_candidates_has_the_selections_of_single_calls(selector: Selector) -> None:
    counts = [7, 3, 0, 7, 1, 9, 7, 3, 12, 7]
    types: list[Any] = [np.float32, np.float64, list]

    def search(vectors: Any, k: int) -> tuple[list[Any], list[Any]]:
        rows = [corpus()[i : i + counts[i]] for i in range(len(vectors))]
        typed = [row.tolist() if types[i % 3] is list else row.astype(types[i % 3]) for i, row in enumerate(rows)]
        return [range(len(row)) for row in rows], typed

    found = select_table(table().slice(0, 10), search, K, selector=selector).to_pylist()
    for i, (row, query, count) in enumerate(zip(found, queries(), counts, strict=False)):
        if not count:
            assert row["error"] == "the search found nothing"
            continue
        expected = select(query, corpus()[i : i + count], min(K, count), selector)
        assert (row["ids"], row["error"]) == ([str(j) for j in expected.indices], None)
        np.testing.assert_allclose(row["gains"], expected.gains, rtol=0, atol=1e-6)
        np.testing.assert_allclose(row["relevance"], expected.relevance, rtol=0, atol=1e-6)


def test_a_kernel_gets_the_ids(index: Path) -> None:
    rng = np.random.default_rng(3)
    known = sorted(set(range(N)) - {by_brute_force(queries()[1])[0][0]})
    kernel = LowRankKernel(rng.standard_normal((len(known), 6)), ids=known)
    first, second = select_table(table().slice(0, 2), index, K, selector="ndpp", kernel=kernel, fetch_k=6).to_pylist()
    assert len(first["ids"]) == K
    assert "KernelError" in second["error"]


class CornerModel:
    """Embeds a text as the direction of its first letter."""

    def embed_queries(self, texts: list[str]) -> Any:
        return np.eye(4, dtype=np.float32)[["abcd".index(text[0]) for text in texts]]


def test_texts_are_embedded_and_bad_texts_have_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_worker, "load_model", lambda name: CornerModel())
    index = faiss.IndexFlatIP(4)
    index.add(np.eye(4, dtype=np.float32))
    faiss.write_index(index, str(tmp_path / "index.faiss"))
    given = pa.table({"id": range(4), "text": ["bread", None, " ", "a violin"]})
    found = select_table(given, tmp_path / "index.faiss", k=1, text_column="text")
    assert found["ids"].to_pylist() == [[1], None, None, [0]]
    assert found["error"].to_pylist() == [None, "the text is null", "the text is blank", None]
    with pytest.raises(InvalidInputError, match=r"model.* 4, .*index.* 24"):
        select_table(given, flat_index(tmp_path / "other.faiss"), k=1, text_column="text")


def test_other_settings_than_those_of_the_folder_are_named(index: Path, files: Path, tmp_path: Path) -> None:
    out = tmp_path / "sets"
    select_dataset(files, index, out=out, block_rows=100, **SETTINGS)
    before = {f.name: f.read_bytes() for f in out.iterdir()}
    for differs, change in {
        "k: 4 there, 3 now": {"k": 3},
        "block_rows: 100 there, 50 now": {"block_rows": 50},
        r"\(selector\.MMR\.lambda_mult: 0\.5 there, 0\.25 now\)": {"lambda_mult": 0.25},
        "fetch_k: 50 there, 51 now": {"fetch_k": 51},
    }.items():
        with pytest.raises(InvalidParameterError, match=differs):
            select_dataset(files, index, out=out, **{"block_rows": 100, **SETTINGS, **change})
    # A file with the same content under another name and date counts as the same.
    moved = files.rename(tmp_path / "moved.parquet")
    assert select_dataset(moved, index, out=out, block_rows=100, **SETTINGS).resumed == 3
    assert {f.name: f.read_bytes() for f in out.iterdir()} == before


@pytest.mark.parametrize("changed", ["index.faiss", "queries.parquet"])
def test_a_changed_file_is_seen_whatever_its_date_says(changed: str, index: Path, files: Path, tmp_path: Path) -> None:
    select_dataset(files, index, out=tmp_path / "sets", **SETTINGS)
    file = tmp_path / changed
    stat, content = file.stat(), bytearray(file.read_bytes())
    # In the middle of a vector.
    content[stat.st_size // 2] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(InvalidParameterError, match=f"'{stat.st_size} bytes, .* there, '{stat.st_size} b"):
        select_dataset(files, index, out=tmp_path / "sets", **SETTINGS)


def test_parts_of_a_run_during_which_a_file_changes_are_removed(
    index: Path, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_part, out = Worker.write_part, tmp_path / "sets"
    select_dataset(files, index, out=out, block_rows=50, **SETTINGS)
    for number in (1, 2, 3):
        (out / f"part-{number:05d}.parquet").unlink()
    kept = sorted(out.iterdir())

    def write_and_change(worker: Worker, rows: Any, folder: OutputFolder) -> None:
        write_part(worker, rows, folder)
        if rows.number == 2:
            # Replaced as an atomic writer does.
            (tmp_path / "new").write_bytes(index.read_bytes() + b"more")
            (tmp_path / "new").replace(index)

    monkeypatch.setattr(Worker, "write_part", write_and_change)
    with pytest.raises(InvalidInputError, match=" changed "):
        select_dataset(files, index, out=out, block_rows=50, **SETTINGS)
    assert sorted(out.iterdir()) == kept


def test_a_second_run_into_the_same_folder_stops(index: Path, files: Path, tmp_path: Path) -> None:
    out = tmp_path / "sets"
    with OutputFolder(out).hold():
        for change in ({}, {"k": 3}):
            with pytest.raises(
                InvalidParameterError,
                match=f"sets .* process {os.getpid()} ",
            ):
                select_dataset(files, index, out=out, **{**SETTINGS, **change})
    assert list(out.iterdir()) == []
    assert select_dataset(files, index, out=out, **SETTINGS).parts == 1


def test_folders_and_files_of_others_are_not_changed(index: Path, files: Path, tmp_path: Path) -> None:
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "holiday.jpg").write_text("picture")
    with pytest.raises(InvalidParameterError, match=r"holiday\.jpg .*_settings\.json"):
        select_dataset(files, index, out=tmp_path / "sets", **SETTINGS)
    assert [f.name for f in (tmp_path / "sets").iterdir()] == ["holiday.jpg"]
    with pytest.raises(InvalidParameterError, match=r"^out .*folder"):
        select_dataset(files, index, out=files, **SETTINGS)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"id_column": "name"}, InvalidInputError, "name .*id_column=None.* id, unread, vector"),
        ({"vector_column": "unread"}, InvalidInputError, "lists of floats.* int64"),
        ({"text_column": "vector"}, InvalidInputError, " text"),
        ({"text_column": "id", "vector_column": "vector"}, InvalidParameterError, "or texts"),
        ({"id_column": "ids"}, InvalidParameterError, "id_column .*'ids'"),
        ({"fetch_k": 3}, InvalidParameterError, "fetch_k .*k = 4"),
        ({"concurrency": 0}, InvalidParameterError, "concurrency"),
        ({"out": None}, InvalidParameterError, "^out "),
        ({"queries": "nowhere.parquet"}, InvalidInputError, r"no file .*nowhere\.parquet"),
        ({"index": "nowhere.faiss"}, InvalidInputError, "no index file"),
    ],
)
def test_impossible_settings_are_refused_before_anything_is_written(
    change: dict[str, Any], error: type[Exception], says: str, index: Path, files: Path, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"queries": files, "index": index, "out": tmp_path / "sets", **SETTINGS, **change}
    with pytest.raises(error, match=says):
        select_dataset(**settings)
    assert not (tmp_path / "sets").exists()


def test_tensors_of_one_dimension_are_vectors(index: Path) -> None:
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(queries())
    found = select_table(pa.table({"id": names(), "vector": tensors}).slice(3), index, **SETTINGS)
    assert found["ids"].to_pylist() == [by_brute_force(query)[0] for query in queries()[3:]]
    halves = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(queries()[:, : D // 2]))
    with pytest.raises(InvalidInputError, match=f" {D // 2}, .*index {D}"):
        select_table(pa.table({"id": names(), "vector": halves}), index, **SETTINGS)
    matrices = pa.FixedShapeTensorArray.from_numpy_ndarray(queries().reshape(Q, 2, -1))
    with pytest.raises(InvalidInputError, match=r"lists of floats.* extension"):
        select_table(pa.table({"id": names(), "vector": matrices}), index, **SETTINGS)


def test_a_damaged_file_is_named_with_the_rows_that_cannot_be_read(index: Path, files: Path, tmp_path: Path) -> None:
    content = bytearray(files.read_bytes())
    page = pq.ParquetFile(files).metadata.row_group(3).column(0).dictionary_page_offset
    content[page : page + 20] = b"\xff" * 20
    files.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"queries\.parquet: rows 100 to 199 "):
        select_dataset(files, index, out=tmp_path / "sets", block_rows=100, **SETTINGS)
    assert [f.name for f in (tmp_path / "sets").glob("*.parquet")] == ["part-00000.parquet"]


def test_a_truncated_part_is_written_again_and_damaged_settings_are_named(
    index: Path, files: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sets"
    select_dataset(files, index, out=out, block_rows=50, **SETTINGS)
    whole = {f.name: f.read_bytes() for f in out.iterdir()}
    (out / "part-00001.parquet").write_bytes(whole["part-00001.parquet"][:300])
    (out / "part-00003.parquet").write_bytes(b"")
    assert select_dataset(files, index, out=out, block_rows=50, **SETTINGS).resumed == 3
    assert {f.name: f.read_bytes() for f in out.iterdir()} == whole
    (out / "_settings.json").write_bytes(b'{"version')
    with pytest.raises(InvalidParameterError, match=r"_settings\.json is damaged"):
        select_dataset(files, index, out=out, block_rows=50, **SETTINGS)
