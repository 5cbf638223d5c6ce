"""What only PostgreSQL has: indexes and their options, half precision, rows without a vector, filters, hybrid search,
ids of any type, broken connections."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode

from langchain_setselect import SetSelectCompressor, SetSelectRetriever
from langchain_setselect.stores.postgres import COLLECTION_READER
from llamaindex_setselect import SetSelectIndexRetriever
from shared_core.errors import InvalidParameterError, SetSelectWarning
from tests.stores.cases import postgres as cases
from tests.stores.cases.postgres_server import database, execute
from tests.stores.harness import (
    BY_ID,
    DIMENSION,
    FETCH_K,
    QUERIES,
    ROWS,
    TableEmbeddings,
    fetch_nodes,
    fill,
    index_over,
    langchain_reader,
    needs,
    node_vectors,
    stored,
)

QUERY = "query 3"
NOBODY = "00000000-0000-0000-0000-00000000dead"


@contextmanager
def statements(engine: Any) -> Iterator[list[str]]:
    """The statements that an engine sends."""
    from sqlalchemy import event

    sent: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        sent.append(statement)

    event.listen(getattr(engine, "sync_engine", engine), "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(getattr(engine, "sync_engine", engine), "before_cursor_execute", note)


@pytest.fixture(scope="module")
def collection() -> Iterator[Any]:
    with cases._collection("cosine", TableEmbeddings(), Path()) as store:
        yield store


@pytest.fixture(scope="module")
def table() -> Iterator[Any]:
    with cases._table("COSINE_DISTANCE", ("colour",), TableEmbeddings(), Path()) as store:
        yield store


@pytest.fixture(scope="module")
def index() -> Iterator[VectorStoreIndex]:
    with cases._node_store({"use_jsonb": True}, Path()) as store:
        yield index_over(store)


def assert_own(store: Any, query: str = QUERY, k: int = FETCH_K, exact: Any = lambda x: x, **kwargs: Any) -> list[Any]:
    """Check that the reader finds what the store finds, with the inserted vectors."""
    reader = langchain_reader(store)
    documents, vectors = reader.search(store, QUERIES[query], k, **kwargs)
    assert list(documents) == store.similarity_search_by_vector(QUERIES[query], k=k, **kwargs)
    wanted = exact(stored(BY_ID[document.id or ""] for document in documents))
    np.testing.assert_array_equal(np.array(vectors).reshape(-1, DIMENSION), wanted)
    return list(documents)


class TestStatements:
    def test_langchain_sends_one(self, collection: Any, table: Any) -> None:
        for store, engine, own in ((collection, collection._engine, 2), (table, table._engine._pool, 1)):
            with statements(engine) as sent:
                store.similarity_search_by_vector(QUERIES[QUERY], k=5)
                assert len(sent) == own
                sent.clear()
                found = SetSelectRetriever(vectorstore=store).invoke(QUERY)
                assert len(sent) == 1
                sent.clear()
                SetSelectCompressor(vectorstore=store).compress_documents(found, QUERY)
                assert len(sent) == 1

    def test_llamaindex_sends_one_more(self, index: VectorStoreIndex) -> None:
        with statements(index.vector_store._engine) as sent:  # type: ignore[attr-defined]
            SetSelectIndexRetriever(index).retrieve(QUERY)
        assert ["vector_send" in statement for statement in sent] == [False, True]

    def test_only_the_vectors_of_found_rows_are_converted_to_bytes(self, collection: Any) -> None:
        with statements(collection._engine) as sent:
            assert_own(collection)
        place = sent[0].index
        assert place("vector_send") < place("FROM (SELECT") < place("ORDER BY") < place("LIMIT")


class TestFilters:
    RICH = (
        {"$and": [{"colour": {"$ne": "red"}}, {"$or": [{"number": {"$lt": 30}}, {"number": {"$gte": 200}}]}]},
        {"colour": {"$like": "%e%"}, "number": {"$gt": 17}},
    )

    @pytest.mark.parametrize("condition", RICH, ids=str)
    def test_of_langchain_in_their_own_syntax(self, collection: Any, table: Any, condition: Any) -> None:
        found = assert_own(collection, filter=condition)
        assert 0 < len(found) <= FETCH_K
        assert [d.id for d in assert_own(table, filter=condition)] == [d.id for d in found]

    def test_unknown_arguments_are_refused(self, collection: Any, table: Any) -> None:
        for store in (collection, table):
            with pytest.raises(InvalidParameterError, match="no argument 'where'"):
                langchain_reader(store).search(store, QUERIES[QUERY], 5, where={})


class TestIndexes:
    """With an index and without full scans, an option of the index limits how many rows are found."""

    def test_of_a_table_with_the_stores_query_options(self) -> None:
        needs("langchain_postgres")
        from langchain_postgres.v2 import indexes

        options = indexes.HNSWQueryOptions(10), indexes.HNSWQueryOptions(100)
        with database() as (name, address):
            execute(f"ALTER DATABASE {name} SET enable_seqscan = off")
            with cases.table(address("asyncpg"), TableEmbeddings()) as store:
                fill(store)
                store.apply_vector_index(indexes.HNSWIndex())
                inner, numbers = store._PGVectorStore__vs, []
                for inner.index_query_options in options:
                    with statements(store._engine._pool) as sent:
                        numbers.append(len(assert_own(store)))
                    # Ours and the store's own search each send an option and a statement.
                    assert len(sent) == 4
                assert 0 < numbers[0] < FETCH_K == numbers[1]


def test_a_table_of_half_vectors_returns_the_stored_numbers() -> None:
    with database() as (name, address), cases.table(address("asyncpg"), TableEmbeddings()) as store:
        execute(f'ALTER TABLE "Passages" ALTER embedding TYPE halfvec({DIMENSION})', name)
        fill(store)
        assert len(assert_own(store, exact=lambda x: x.astype(np.float16).astype(np.float32))) == FETCH_K


class TestRowsWithoutAVector:
    gone = ROWS[17].id

    @pytest.mark.parametrize("kind", ["collection", "table"])
    def test_langchain_leaves_them_out(self, kind: str) -> None:
        place = {"collection": "langchain_pg_embedding", "table": '"Passages"'}[kind]
        key = {"collection": "id", "table": "langchain_id"}[kind]
        with (
            database() as (name, address),
            getattr(cases, kind)(address("psycopg"), TableEmbeddings()) as store,
        ):
            fill(store)
            execute(f"ALTER TABLE {place} ALTER embedding DROP NOT NULL", name)
            execute(f"UPDATE {place} SET embedding = NULL WHERE {key} = '{self.gone}'", name)
            with pytest.warns(SetSelectWarning, match=f"no vector for '{self.gone}'"):
                found = SetSelectRetriever(vectorstore=store, k=len(ROWS), fetch_k=len(ROWS)).invoke(QUERY)
            assert {d.id for d in found} == BY_ID.keys() - {self.gone}
            fetched = langchain_reader(store).fetch(store, [self.gone, ROWS[3].id])
            assert {i: np.asarray(row).tolist() for i, row in fetched.items()} == {ROWS[3].id: ROWS[3].vector}

    def test_llamaindex_leaves_them_out(self) -> None:
        with database() as (name, address):
            store = cases.node_store(address)
            index = index_over(store)
            execute(f"UPDATE data_passages SET embedding = NULL WHERE node_id = '{self.gone}'", name)
            retriever = SetSelectIndexRetriever(index, top_n=len(ROWS), fetch_k=len(ROWS))
            with pytest.warns(SetSelectWarning, match=f"has no vector for 1 of 240 nodes.*{self.gone}"):
                found = retriever.retrieve(QUERY)
            assert {node.node_id for node in found} == BY_ID.keys() - {self.gone}
            store._engine.dispose()


class TestIds:
    @pytest.mark.parametrize(
        ("driver", "id_type"), [("asyncpg", "UUID"), ("psycopg", "UUID"), ("asyncpg", "INTEGER"), ("asyncpg", "TEXT")]
    )
    def test_of_a_table_are_of_any_type_and_impossible_ones_are_left_out(self, driver: str, id_type: str) -> None:
        names = [str(i) if id_type == "INTEGER" else row.id for i, row in enumerate(ROWS)]
        with (
            database() as (_, address),
            cases.table(address(driver), TableEmbeddings(), id_type=id_type) as store,
        ):
            # The store passes ids to asyncpg unchanged, and asyncpg does not read a string as a number.
            keys = [int(name) if (id_type, driver) == ("INTEGER", "asyncpg") else name for name in names]
            store.add_texts([row.text for row in ROWS], ids=keys)
            fetch = langchain_reader(store).fetch
            assert fetch is not None
            asked = np.random.default_rng(4).permutation(names).tolist()
            for strangers in ([], [NOBODY], ["a keyword index's id"]):
                found = fetch(store, [*asked, *strangers])
                assert found.keys() == set(names)
                wanted = dict(zip(names, ROWS, strict=True))
                assert all(found[name].tolist() == wanted[name].vector for name in names)  # type: ignore[union-attr]
            assert fetch(store, []) == {}

    def test_of_a_collection_and_of_nodes(self, collection: Any, index: VectorStoreIndex) -> None:

        asked = [ROWS[i].id for i in np.random.default_rng(4).permutation(len(ROWS))]
        for found in (
            COLLECTION_READER.fetch(collection, [*asked, "gone"]),
            fetch_nodes(index.vector_store, [*asked, "gone"]),
        ):
            assert found.keys() == set(asked)
            assert all(found[name].tolist() == BY_ID[name].vector for name in asked)  # type: ignore[union-attr]
        assert COLLECTION_READER.fetch(collection, []) == fetch_nodes(index.vector_store, []) == {}

    def test_a_node_added_again_has_its_latest_vector(self, tmp_path: Path) -> None:
        with cases._node_store({}, tmp_path) as store:
            node = TextNode(id_="a", text="first", embedding=ROWS[0].vector)
            store.add([node])
            store.add([node.model_copy(update={"text": "second", "embedding": ROWS[1].vector})])
            found = node_vectors([node], vector_store=store)
            assert np.asarray(found["a"]).tolist() == ROWS[1].vector

    def test_of_another_collection_are_unknown(self) -> None:
        with (
            database() as (_, address),
            cases.collection(address("psycopg"), TableEmbeddings(), collection_name="one") as one,
            cases.collection(address("psycopg"), TableEmbeddings(), collection_name="two") as two,
        ):
            one.add_texts(["passage 0"], ids=["a"])
            two.add_texts(["passage 1"], ids=["b"])
            assert langchain_reader(one).fetch(one, ["a", "b"]).keys() == {"a"}
            assert [d.id for d in SetSelectRetriever(vectorstore=two).invoke(QUERY)] == ["b"]


class TestHybridSearch:
    def test_of_a_table_is_the_stores_own_and_one_statement_more(self, table: Any) -> None:
        from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig, reciprocal_rank_fusion

        config = HybridSearchConfig(
            fts_query="passage 77", fusion_function=reciprocal_rank_fusion, primary_top_k=20, secondary_top_k=20
        )
        with statements(table._engine._pool) as sent:
            found = assert_own(table, k=10, hybrid_search_config=config, filter={"colour": {"$ne": "red"}})
        assert ROWS[77].id in [document.id for document in found]
        assert len(sent) == 3 + 2


class TestErrors:
    async def test_a_deleted_collection_raises_the_stores_error(self) -> None:
        with database() as (_, address):
            with cases.collection(address("psycopg"), TableEmbeddings()) as store:
                assert SetSelectRetriever(vectorstore=store).invoke(QUERY) == []
                store.delete_collection()
                with pytest.raises(ValueError, match="Collection not found"):
                    SetSelectRetriever(vectorstore=store).invoke(QUERY)
            async with cases.async_collection(address("psycopg"), TableEmbeddings()) as other:
                assert await SetSelectRetriever(vectorstore=other).ainvoke(QUERY) == []
                await other.adelete_collection()
                with pytest.raises(ValueError, match="Collection not found"):
                    await SetSelectRetriever(vectorstore=other).ainvoke(QUERY)
                with pytest.raises(ValueError, match="async"):
                    SetSelectRetriever(vectorstore=other).invoke(QUERY)

    async def test_the_inner_store_can_only_be_awaited(self, tmp_path: Path) -> None:
        async with cases._async_table("asyncpg", "COSINE_DISTANCE", (), TableEmbeddings(), tmp_path) as store:
            inner = store._PGVectorStore__vs  # type: ignore[attr-defined]
            found = await SetSelectRetriever(vectorstore=inner).ainvoke(QUERY)
            assert found == await SetSelectRetriever(vectorstore=store).ainvoke(QUERY)
            assert await SetSelectCompressor(vectorstore=inner).acompress_documents(found, QUERY)
            with pytest.raises(NotImplementedError, match="has async methods only"):
                SetSelectRetriever(vectorstore=inner).invoke(QUERY)
