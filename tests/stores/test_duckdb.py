"""What only DuckDB has: one connection that threads share, and columns of any name."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from langchain_setselect.stores.clients import DUCKDB as READER
from shared_core.stores.duckdb import vectors_by_id
from tests.stores.cases import duckdb as duckdb_cases
from tests.stores.cases.duckdb import own_search
from tests.stores.harness import BY_TEXT, FETCH_K, QUERIES, ROWS, TableEmbeddings, needs, stored

QUERY = QUERIES["query 1"]


@pytest.fixture(autouse=True)
def client() -> None:
    needs("duckdb")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    with duckdb_cases.langchain("in memory", TableEmbeddings(), tmp_path) as store:
        yield store


def test_threads_share_one_connection(store: Any) -> None:
    names = list(QUERIES) * 4
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda name: READER.search(store, QUERIES[name], FETCH_K), names))
    for name, (documents, vectors) in zip(names, found, strict=True):
        assert documents == own_search(store, QUERIES[name], FETCH_K)
        np.testing.assert_array_equal(vectors, stored(BY_TEXT[d.page_content] for d in documents))


def test_columns_of_other_names(tmp_path: Path) -> None:
    with duckdb_cases.langchain("on disk", TableEmbeddings(), tmp_path) as store:
        connection = store._connection  # type: ignore[attr-defined]
        other = type(store)(
            connection=connection,
            embedding=TableEmbeddings(),
            vector_key="numbers",
            id_key="key",
            text_key="words",
            table_name="other",
        )
        other.add_texts(["passage 1", "passage 2"], ids=["a", "b"])
        documents, vectors = READER.search(other, ROWS[2].vector, 2)
        assert documents == own_search(other, ROWS[2].vector, 2)
        assert [document.page_content for document in documents] == ["passage 2", "passage 1"]
        np.testing.assert_array_equal(vectors, stored([ROWS[2], ROWS[1]]))


def test_look_up_by_id_leaves_out_what_is_unknown_and_what_has_no_vector(store: Any) -> None:
    store._connection.execute("INSERT INTO embeddings VALUES ('it''s', '', [1, 2], NULL), ('bare', '', NULL, NULL)")
    found = vectors_by_id(store._connection, "embeddings", ["gone", "bare", ROWS[9].id, "it's", ROWS[2].id])
    assert {name: row.tolist() for name, row in found.items()} == {
        "it's": [1, 2],
        ROWS[2].id: ROWS[2].vector,
        ROWS[9].id: ROWS[9].vector,
    }
    assert {row.dtype for row in found.values()} == {np.dtype(np.float32)}
    assert vectors_by_id(store._connection, "embeddings", []) == {}
