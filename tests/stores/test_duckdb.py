"""What only DuckDB has: one connection that threads share, and rows without a vector."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from langchain_setselect import SetSelectRetriever
from langchain_setselect.stores.duckdb import READER
from shared_core.errors import SetSelectWarning
from shared_core.stores.duckdb import search_with_vectors, vectors_by_id
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


class Counting:
    """Wraps a connection or relation, and counts the queries that run to the end."""

    def __init__(self, inside: Any, asked: list[str]) -> None:
        self.inside = inside
        self.asked = asked

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inside, name)

        def call(*arguments: Any) -> Any:
            if name.startswith(("fetch", "execute")):
                self.asked.append(name)
            result = found(*arguments)
            return Counting(result, self.asked) if type(result).__name__ == "DuckDBPyRelation" else result

        return call


def test_threads_share_one_connection(store: Any) -> None:
    names = list(QUERIES) * 4
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda name: READER.search(store, QUERIES[name], FETCH_K), names))
    for name, (documents, vectors) in zip(names, found, strict=True):
        assert documents == own_search(store, QUERIES[name], FETCH_K)
        np.testing.assert_array_equal(vectors, stored(BY_TEXT[d.page_content] for d in documents))


def test_uncommitted_rows_of_the_connection_are_found(store: Any) -> None:
    store._connection.begin()
    store.add_texts(["query 1"], [{"colour": "red", "number": 999}], ids=["new"])
    documents, vectors = READER.search(store, QUERY, 1)
    assert (documents[0].page_content, vectors[0].tolist()) == ("query 1", QUERY)
    store._connection.rollback()


def test_a_document_without_a_vector_is_left_out_with_its_name(store: Any) -> None:
    store._connection.execute("INSERT INTO embeddings VALUES ('bare', 'no vector', NULL, '{}')")
    everything = len(ROWS) + 1
    assert "no vector" in [d.page_content for d in own_search(store, QUERY, everything)]
    retriever = SetSelectRetriever(vectorstore=store, search_type="similarity", k=everything, fetch_k=everything)
    with pytest.warns(SetSelectWarning, match="no vector for 'bare'"):
        found = retriever.invoke("query 1")
    assert len(found) == len(ROWS)
    assert "no vector" not in [d.page_content for d in found]


def test_a_document_without_metadata_is_as_the_store_returns_it(store: Any) -> None:
    store._connection.execute("UPDATE embeddings SET metadata = NULL WHERE id < ?", [ROWS[120].id])
    documents, _ = READER.search(store, QUERY, FETCH_K)
    assert documents == own_search(store, QUERY, FETCH_K)
    assert {bool(document.metadata) for document in documents} == {True, False}


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


def test_an_empty_table(store: Any) -> None:
    store._connection.execute("DELETE FROM embeddings")
    documents, vectors = READER.search(store, QUERY, 5)
    assert list(documents) == list(vectors) == []
    assert vectors_by_id(store._connection, "embeddings", [ROWS[0].id]) == {}


def test_a_search_is_one_query_and_so_is_a_look_up(store: Any) -> None:
    asked: list[str] = []
    search_with_vectors(store._connection, Counting(store._table, asked), QUERY, FETCH_K)
    assert asked == ["fetchnumpy"]
    asked.clear()
    vectors_by_id(Counting(store._connection, asked), "embeddings", [row.id for row in ROWS])
    assert asked == ["execute"]


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
