"""What only PostgreSQL has: indexes and their options, half precision, rows without a vector, filters, hybrid search,
ids of any type, broken connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import TextNode

from langchain_setselect import SetSelectRetriever
from shared_core.errors import SetSelectWarning
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
    langchain_reader,
    needs,
    stored,
)

QUERY = "query 3"
NOBODY = "00000000-0000-0000-0000-00000000dead"


@pytest.fixture(scope="module")
def table() -> Iterator[Any]:
    with database() as (_, address), cases.table(address, TableEmbeddings()) as store:
        fill(store)
        yield store


def assert_own(store: Any, query: str = QUERY, k: int = FETCH_K, exact: Any = lambda x: x, **kwargs: Any) -> list[Any]:
    """Check that the reader finds what the store finds, with the inserted vectors."""
    reader = langchain_reader(store)
    documents, vectors = reader.search(store, QUERIES[query], k, **kwargs)
    assert list(documents) == store.similarity_search_by_vector(QUERIES[query], k=k, **kwargs)
    wanted = exact(stored(BY_ID[document.id or ""] for document in documents))
    np.testing.assert_array_equal(np.array(vectors).reshape(-1, DIMENSION), wanted)
    return list(documents)


class TestIndexes:
    """With an index and without full scans, an option of the index limits how many rows are found."""

    def test_of_a_table_with_the_stores_query_options(self) -> None:
        needs("langchain_postgres")
        from langchain_postgres.v2 import indexes

        options = indexes.HNSWQueryOptions(10), indexes.HNSWQueryOptions(100)
        with database() as (name, address):
            execute(f"ALTER DATABASE {name} SET enable_seqscan = off")
            with cases.table(address, TableEmbeddings()) as store:
                fill(store)
                store.apply_vector_index(indexes.HNSWIndex())
                inner, numbers = store._PGVectorStore__vs, []
                for inner.index_query_options in options:
                    numbers.append(len(assert_own(store)))
                assert 0 < numbers[0] < FETCH_K == numbers[1]


def test_a_table_of_half_vectors_returns_the_stored_numbers() -> None:
    with database() as (name, address), cases.table(address, TableEmbeddings()) as store:
        execute(f'ALTER TABLE "Passages" ALTER embedding TYPE halfvec({DIMENSION})', name)
        fill(store)
        assert len(assert_own(store, exact=lambda x: x.astype(np.float16).astype(np.float32))) == FETCH_K


class TestIds:
    @pytest.mark.parametrize(("driver", "id_type"), [("psycopg", "UUID"), ("asyncpg", "INTEGER"), ("asyncpg", "TEXT")])
    def test_of_a_table_are_of_any_type_and_impossible_ones_are_left_out(self, driver: str, id_type: str) -> None:
        names = [str(i) if id_type == "INTEGER" else row.id for i, row in enumerate(ROWS)]
        with (
            database() as (_, address),
            cases.table(address, TableEmbeddings(), columns=(), driver=driver, id_type=id_type) as store,
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

    def test_a_node_added_again_has_its_latest_vector(self) -> None:
        with database() as (_, address), cases.node_store(address) as store:
            node = TextNode(id_="a", text="first", embedding=ROWS[0].vector)
            store.add([node])
            store.add([node.model_copy(update={"text": "second", "embedding": ROWS[1].vector})])
            assert np.asarray(fetch_nodes(store, ["a"])["a"]).tolist() == ROWS[1].vector


class TestHybridSearch:
    def test_of_a_table_is_the_stores_own(self, table: Any) -> None:
        from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig, reciprocal_rank_fusion

        config = HybridSearchConfig(
            fts_query="passage 77", fusion_function=reciprocal_rank_fusion, primary_top_k=20, secondary_top_k=20
        )
        found = assert_own(table, k=10, hybrid_search_config=config, filter={"colour": {"$ne": "red"}})
        assert ROWS[77].id in [document.id for document in found]


class TestErrors:
    async def test_an_empty_or_deleted_collection_gives_a_warning(self) -> None:
        with database() as (_, address):
            with cases.collection(address, TableEmbeddings()) as store:
                for change in (lambda: None, store.delete_collection):
                    change()
                    with pytest.warns(SetSelectWarning, match="found no documents"):
                        assert SetSelectRetriever(vectorstore=store).invoke(QUERY) == []
            async with cases.async_collection(address, TableEmbeddings()) as other:
                with pytest.warns(SetSelectWarning, match="found no documents"):
                    assert await SetSelectRetriever(vectorstore=other).ainvoke(QUERY) == []
                with pytest.raises(ValueError, match="async"):
                    SetSelectRetriever(vectorstore=other).invoke(QUERY)
