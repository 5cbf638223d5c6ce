"""What only LanceDB has: types of vectors, and stores without a table."""

from pathlib import Path

import pytest

from langchain_setselect.stores.lancedb import READER
from shared_core.errors import VectorSourceError
from shared_core.stores.lancedb import search_with_vectors, vectors_by_id
from tests.stores.harness import QUERIES, TableEmbeddings, fill, needs

QUERY = QUERIES["query 1"]


@pytest.fixture(autouse=True)
def client() -> None:
    needs("lancedb")


def test_look_up_by_id_leaves_out_what_is_unknown_and_what_has_no_vector(tmp_path: Path) -> None:
    import lancedb
    import pyarrow as pa

    schema = pa.schema({"Key": pa.string(), "numbers": pa.list_(pa.float32(), 2)})
    rows = [{"Key": "it's", "numbers": [1, 2]}, {"Key": "b", "numbers": [3, 4]}, {"Key": "bare", "numbers": None}]
    table = lancedb.connect(tmp_path).create_table("t", rows, schema=schema)
    found = vectors_by_id(table, ["gone", "bare", "b", "it's", "' OR true --"], "numbers", "`Key`")
    assert {name: row.tolist() for name, row in found.items()} == {"it's": [1, 2], "b": [3, 4]}
    assert vectors_by_id(table, [], "numbers", "`Key`") == {}
    # A search does not find rows without a vector either.
    hits, vectors = search_with_vectors(table, [1.0, 2.0], 3, "numbers")
    assert (hits["Key"].to_pylist(), vectors.tolist()) == (["it's", "b"], [[1, 2], [3, 4]])
    assert search_with_vectors(table, [1.0, 2.0], 1, "numbers", "`Key` = 'b'")[1].tolist() == [[3, 4]]


def test_several_vectors_per_row_are_refused(tmp_path: Path) -> None:
    import lancedb
    import pyarrow as pa

    schema = pa.schema({"id": pa.string(), "vector": pa.list_(pa.list_(pa.float32(), 2))})
    table = lancedb.connect(tmp_path).create_table("t", [{"id": "a", "vector": [[1, 2], [3, 4]]}], schema=schema)
    with pytest.raises(VectorSourceError, match="one vector per row"):
        vectors_by_id(table, ["a"])
    with pytest.raises(VectorSourceError, match="one vector per row"):
        search_with_vectors(table, [1.0, 2.0], 1)


def test_without_a_table_or_without_rows_there_is_nothing(tmp_path: Path) -> None:
    needs("langchain_lancedb")
    from langchain_lancedb import LanceDB

    store = LanceDB(TableEmbeddings(), tmp_path / "empty")
    assert READER.search(store, QUERY, 5) == ([], [])
    fill(store)
    store._get_or_create_table()[0].delete("true")
    documents, vectors = READER.search(store, QUERY, 5)
    assert (documents, len(vectors)) == ([], 0)
