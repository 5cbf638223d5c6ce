"""Tables of queries, and the columns of Parquet files, as other programs write them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setselect import InvalidInputError
from shared_core.batch.dataset import read_vectors_by_id, select_dataset, select_table

ROWS: list[dict[str, Any]] = [{"id": "x", "vector": [2.0, 0.0]}, {"id": "y", "vector": [0.0, 1.0]}]


def search(vectors: Any, k: int) -> Any:
    return [["a", "b"]] * len(vectors), [np.eye(2, dtype=np.float32)] * len(vectors)


TABLES: list[Callable[[list[dict[str, Any]]], Any]] = [
    list, iter, pd.DataFrame, pa.Table.from_pylist, pa.RecordBatch.from_pylist,
    lambda rows: {"id": ["x", "y"], "vector": [row["vector"] for row in rows]},
    # So Polars hands out its tables: as a stream, with its own kind of strings.
    lambda rows: pa.Table.from_pylist(rows, pa.schema({"id": pa.string_view(), "vector": pa.large_list(pa.float32())})),
    lambda rows: pa.RecordBatchReader.from_batches(
        (batch := pa.RecordBatch.from_pylist(rows)).schema, [batch]
    ),
]  # fmt: skip


@pytest.mark.parametrize("table", TABLES, ids=range(len(TABLES)))
def test_a_table_of_any_library_gives_a_selection_for_each_row(table: Callable[[Any], Any]) -> None:
    found = select_table(table(ROWS), search, k=1)
    assert (found["id"].to_pylist(), found["ids"].to_pylist()) == (["x", "y"], [["a"], ["b"]])


@pytest.mark.parametrize(
    "given", ["queries.parquet", 7, [1, 2], ["a"], [{"id": object(), "vector": [1.0, 0.0]}], np.eye(2)]
)
def test_what_is_no_table_is_refused_by_name(given: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"queries.*{type(given).__name__}"):
        select_table(given, search, k=1)


VECTORS = [[2, 0], [0, -1]]
TENSORS = pa.FixedShapeTensorArray.from_numpy_ndarray(np.array(VECTORS, np.int8))


@pytest.mark.parametrize(
    "column",
    [
        pa.array(VECTORS, pa.large_list(pa.int64())), pa.array(VECTORS, pa.list_(pa.float64(), 2)), TENSORS,
        pa.chunked_array([pa.array(VECTORS[:1], pa.list_(pa.int16())), pa.array(VECTORS[1:], pa.list_(pa.int16()))]),
    ],
    ids=lambda column: str(column.type),
)  # fmt: skip
def test_vectors_are_lists_of_floats_or_signed_integers(tmp_path: Path, column: Any) -> None:
    pq.write_table(pa.table({"id": ["x", "y"], "vector": column}), tmp_path / "vectors.parquet")
    assert read_vectors_by_id(tmp_path / "vectors.parquet", ["y", "x"]).tolist() == VECTORS[::-1]
    found = select_table(pq.read_table(tmp_path / "vectors.parquet"), search, k=1)
    assert found["relevance"].to_pylist() == [[1.0], [0.0]]


IDS = ["x", None, "y"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(IDS).dictionary_encode(), pa.array(IDS, pa.large_string()).dictionary_encode(),
        pa.array(IDS, pa.dictionary(pa.int8(), pa.string())), pa.array(IDS, pa.string_view()),
        pa.array(["x", "", "y"]), pa.array(["x", " ", "y"]).dictionary_encode(),
        pa.array(pd.Series(IDS, dtype="category")), pa.array(pd.Series(IDS, dtype="string")),
    ],
    ids=str,
)  # fmt: skip
def test_ids_may_be_dictionaries_and_rows_without_one_are_nobodys(tmp_path: Path, column: Any) -> None:
    pq.write_table(pa.table({"id": column, "vector": [[1.0], [2.0], [3.0]]}), tmp_path / "vectors.parquet")
    assert read_vectors_by_id(tmp_path / "vectors.parquet", ["y", "x"]).tolist() == [[3.0], [1.0]]


@pytest.mark.parametrize("whole", [pa.int8(), pa.uint32(), pa.dictionary(pa.int8(), pa.int64())], ids=str)
def test_ids_and_labels_of_a_dataset_may_be_small_or_dictionaries(tmp_path: Path, whole: Any) -> None:
    index = faiss.IndexFlatIP(2)
    index.add(np.eye(2, dtype=np.float32))
    faiss.write_index(index, str(tmp_path / "index.faiss"))
    table = pa.table(
        {
            "id": pa.array(["x", "y", "x"]).dictionary_encode(),
            "vector": pa.array([*VECTORS, [1, 1]], pa.list_(pa.int8())),
            "candidates": pa.array([[1, 0], [1], None], pa.list_(whole)),
        }
    )
    pq.write_table(table, tmp_path / "queries.parquet")
    done = select_dataset(
        tmp_path / "queries.parquet",
        tmp_path / "index.faiss",
        out=tmp_path / "sets",
        k=1,
        candidates_column="candidates",
    )
    found = pq.read_table(tmp_path / "sets")
    assert (found["id"].to_pylist(), found["ids"].to_pylist(), done.errors) == (["x", "y", "x"], [[0], [1], None], 1)
