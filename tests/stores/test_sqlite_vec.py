"""What only sqlite-vec has: connections that belong to a thread, and two tables that may disagree."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from langchain_setselect import SetSelectRetriever
from langchain_setselect.stores.clients import SQLITE_VEC as READER
from tests.stores.cases import sqlite_vec as sqlite_vec_cases
from tests.stores.harness import BY_TEXT, FETCH_K, QUERIES, K, TableEmbeddings, stored

QUERY = QUERIES["query 1"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    with sqlite_vec_cases.langchain(TableEmbeddings(), tmp_path) as store:
        yield store


@pytest.fixture(params=[True, False], ids=["tied to its thread", "for all threads"])
def tied_or_not(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with sqlite_vec_cases.langchain(TableEmbeddings(), tmp_path, check_same_thread=request.param) as store:
        yield store


async def test_a_closed_connection_raises_the_clients_own_error(store: Any) -> None:
    store._connection.close()
    for search in (asyncio.to_thread(READER.search, store, QUERY, 5), READER.asearch(store, QUERY, 5)):
        with pytest.raises(sqlite3.ProgrammingError):
            await search


async def test_parallel_searches_with_and_without_a_connection_of_one_thread(tied_or_not: Any) -> None:
    retriever = SetSelectRetriever(vectorstore=tied_or_not, k=K, fetch_k=FETCH_K)
    names = list(QUERIES)
    found = await asyncio.gather(*(retriever.ainvoke(name) for name in names))
    assert [[d.page_content for d in one] for one in found] == [
        [d.page_content for d in retriever.invoke(name)] for name in names
    ]


def test_the_vector_is_the_one_that_was_searched(store: Any) -> None:
    # The store keeps a second copy of the vector beside the text, and does not update it.
    store._connection.execute("UPDATE documents SET text_embedding = NULL")
    documents, vectors = READER.search(store, QUERY, FETCH_K)
    np.testing.assert_array_equal(vectors, stored(BY_TEXT[d.page_content] for d in documents))
