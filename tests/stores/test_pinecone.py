"""Pinecone: the requests that its client sends, namespaces, and errors."""

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from langchain_core.vectorstores import VectorStore
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

from langchain_setselect import SetSelectRetriever
from langchain_setselect.stores import pinecone as langchain_side
from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from shared_core import InvalidParameterError, SetSelectWarning
from shared_core.stores.pinecone import avectors_by_id, search_with_vectors, vectors_by_id
from tests.stores.cases.pinecone import alangchain_over, client, langchain_over, llamaindex_over
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
    needs,
)
from tests.stores.replay.pinecone import PineconeReplay, replaying

QUERY = QUERIES["query 3"]


@pytest.fixture
def replay() -> Iterator[PineconeReplay]:
    needs("pinecone")
    with replaying(DIMENSION) as replay:
        yield replay


@pytest.fixture
def store(replay: PineconeReplay) -> Iterator[VectorStore]:
    needs("langchain_pinecone")
    with langchain_over(replay, TableEmbeddings(), namespace="mine") as store:
        fill(store)
        replay.requests.clear()
        yield store


def test_a_search_is_one_request_that_asks_for_values(store: VectorStore, replay: PineconeReplay) -> None:
    SetSelectRetriever(vectorstore=store, k=5, fetch_k=FETCH_K).invoke("query 3")
    [request] = replay.requests
    assert (request.method, request.path) == ("POST", "/query")
    assert request.body == {
        "vector": QUERY,
        "topK": FETCH_K,
        "includeValues": True,
        "includeMetadata": True,
        "namespace": "mine",
    }


def test_filter_and_namespace_go_through_untouched(store: VectorStore, replay: PineconeReplay) -> None:
    store.add_texts(["passage 0"], [{"colour": "red"}], ids=["elsewhere"], namespace="theirs")
    rich = {"$or": [{"colour": {"$in": ["red", "blue"]}}, {"number": {"$gte": 200}}], "number": {"$lt": 230}}
    documents, vectors = langchain_side.search(store, QUERY, FETCH_K, filter=rich)
    assert replay.requests[-1].body["filter"] == rich
    assert list(documents) == store.similarity_search_by_vector(QUERY, k=FETCH_K, filter=rich)
    np.testing.assert_array_equal(vectors, np.array([BY_ID[d.id or ""].vector for d in documents], dtype=np.float32))
    documents, _ = langchain_side.search(store, QUERY, FETCH_K, namespace="theirs")
    assert [document.id for document in documents] == ["elsewhere"]
    with pytest.raises(InvalidParameterError, match="where"):
        langchain_side.search(store, QUERY, 5, where={})


def test_a_record_without_a_text_is_left_out(store: VectorStore, replay: PineconeReplay) -> None:
    with client(replay) as index:
        index.upsert(vectors=[{"id": "bare", "values": QUERY, "metadata": {"colour": "red"}}], namespace="mine")
    documents, vectors = langchain_side.search(store, QUERY, 5)
    assert [document.id for document in documents] == [d.id for d in store.similarity_search_by_vector(QUERY, k=5)]
    assert len(documents) == len(vectors) == 4


def test_a_record_without_a_dense_vector_is_left_out_with_its_name(store: VectorStore, replay: PineconeReplay) -> None:
    sparse = {"id": "sparse", "sparse_values": {"indices": [1], "values": [0.5]}, "metadata": {"text": "passage 0"}}
    with client(replay) as index:
        index.upsert(vectors=[{"values": [], **sparse}], namespace="mine")
        assert set(vectors_by_id(index, ["sparse", ROWS[0].id], "mine")) == {ROWS[0].id}
    with pytest.warns(SetSelectWarning, match="sparse"):
        found = SetSelectRetriever(vectorstore=store, k=len(ROWS) + 1, fetch_k=len(ROWS) + 1).invoke("query 3")
    assert {document.id for document in found} == set(BY_ID)


async def test_vectors_by_id_take_one_request_per_hundred_without_unknown_ids(
    store: VectorStore, replay: PineconeReplay
) -> None:
    ids = [row.id for row in ROWS] + ["gone"]
    found = langchain_side.fetch(store, ids)
    assert [len(request.arguments["ids"]) for request in replay.requests] == [100, 100, 41]
    assert {request.arguments["namespace"][0] for request in replay.requests} == {"mine"}
    assert set(found) == set(BY_ID)
    for name, vector in found.items():
        np.testing.assert_array_equal(vector, np.array(BY_ID[name].vector, dtype=np.float32))
    assert langchain_side.fetch(store, []) == {}
    async with alangchain_over(replay, TableEmbeddings(), namespace="mine") as other:
        awaited = await langchain_side.afetch(other, ids)
        assert await avectors_by_id(await other.async_index, ["gone"]) == {}
    assert awaited.keys() == found.keys()
    assert all(np.array_equal(awaited[name], found[name]) for name in found)


async def test_parallel_searches_share_the_open_client(store: VectorStore, replay: PineconeReplay) -> None:
    from pinecone import PineconeAsyncio

    needs("aiohttp_retry")
    wanted = [[d.id for d in langchain_side.search(store, vector, 5)[0]] for vector in QUERIES.values()]

    async def all_of(store: VectorStore) -> list[list[str | None]]:
        found = await asyncio.gather(*(langchain_side.asearch(store, vector, 5) for vector in QUERIES.values()))
        return [[document.id for document in documents] for documents, _ in found]

    assert await all_of(store) == wanted
    async with alangchain_over(replay, TableEmbeddings(), namespace="mine") as entered:
        assert await all_of(entered) == wanted
    async with PineconeAsyncio(api_key="none") as service, service.IndexAsyncio(host=replay.host) as index:
        given = type(store)(index=index, embedding=TableEmbeddings(), namespace="mine")
        assert await all_of(given) == wanted
        # Still open, because it belongs to the caller.
        await index.describe_index_stats()


async def test_an_unknown_argument_is_refused_in_async_code_too(store: VectorStore, replay: PineconeReplay) -> None:
    async with alangchain_over(replay, TableEmbeddings()) as entered:
        for each in (store, entered):
            with pytest.raises(InvalidParameterError, match="where"):
                await langchain_side.asearch(each, QUERY, 5, where={})


# The client retries after 500, 502, 503, 504 and after a broken connection, for up to eight seconds.
async def test_the_clients_own_error_comes_through_when_the_server_fails(
    store: VectorStore, replay: PineconeReplay
) -> None:
    from pinecone.exceptions import ServiceException

    replay.fault = 501
    with pytest.raises(ServiceException):
        langchain_side.search(store, QUERY, 5)
    with pytest.raises(ServiceException):
        langchain_side.fetch(store, [ROWS[0].id])
    with pytest.raises(ServiceException):
        await langchain_side.asearch(store, QUERY, 5)
    assert len(replay.requests) == 3
    async with alangchain_over(replay, TableEmbeddings()) as entered:
        with pytest.raises(ServiceException):
            await langchain_side.asearch(entered, QUERY, 5)


async def test_the_clients_own_error_comes_through_when_the_connection_breaks(
    store: VectorStore, replay: PineconeReplay
) -> None:
    from aiohttp import ClientPayloadError
    from pinecone.utils.error_handling import ProtocolError

    replay.fault = "cut"
    async with alangchain_over(replay, TableEmbeddings(), namespace="mine") as entered:
        with pytest.raises(ClientPayloadError):
            await langchain_side.asearch(entered, QUERY, 5)
    with pytest.raises(ProtocolError):
        langchain_side.search(store, QUERY, 5)


async def test_a_query_of_another_length_is_refused_by_the_index(store: VectorStore, replay: PineconeReplay) -> None:
    from pinecone.exceptions import PineconeApiException

    with pytest.raises(PineconeApiException, match=r"dimension 3 .* 32"):
        search_with_vectors(store.index, [1.0, 0.0, 0.0], 5)  # type: ignore[attr-defined]
    async with alangchain_over(replay, TableEmbeddings()) as entered:
        with pytest.raises(PineconeApiException, match=r"dimension 3 .* 32"):
            await langchain_side.asearch(entered, [1.0, 0.0, 0.0], 5)


class TestLlamaIndex:
    @pytest.fixture
    def index(self, replay: PineconeReplay) -> Iterator[Any]:
        needs("llama_index.vector_stores.pinecone")
        with llamaindex_over(replay, namespace="mine") as store:
            yield index_over(store)

    def test_a_retrieval_is_one_request_with_the_filters_that_the_store_translates(
        self, index: Any, replay: PineconeReplay
    ) -> None:
        replay.requests.clear()
        filters = MetadataFilters(
            filters=[
                MetadataFilter(key="colour", value=["red", "blue"], operator=FilterOperator.IN),
                MetadataFilter(key="number", value=200, operator=FilterOperator.LT),
            ]
        )
        SetSelectIndexRetriever(index, top_n=5, fetch_k=FETCH_K, filters=filters).retrieve("query 3")
        [request] = replay.requests
        assert request.path == "/query"
        assert request.body["topK"] == FETCH_K
        assert request.body["includeValues"]
        assert request.body["filter"] == {"$and": [{"colour": {"$in": ["red", "blue"]}}, {"number": {"$lt": 200}}]}

    def test_nodes_of_another_retriever_are_looked_up_at_once(self, index: Any, replay: PineconeReplay) -> None:
        replay.requests.clear()
        found = [NodeWithScore(node=TextNode(id_=row.id, text=row.text)) for row in ROWS[:FETCH_K]]
        picked = SetSelectPostprocessor(index=index, top_n=5).postprocess_nodes(found, query_str="query 3")
        assert len(picked) == 5
        [request] = replay.requests
        assert (request.method, request.path) == ("GET", "/vectors/fetch")
        assert request.arguments == {"ids": [row.id for row in ROWS[:FETCH_K]], "namespace": ["mine"]}

    def test_vectors_by_id_are_bit_equal(self, index: Any) -> None:
        found = fetch_nodes(index.vector_store, [row.id for row in ROWS] + ["gone"], index)
        assert set(found) == set(BY_ID)
        for name, vector in found.items():
            np.testing.assert_array_equal(vector, np.array(BY_ID[name].vector, dtype=np.float32))

    def test_the_clients_own_error_comes_through(self, index: Any, replay: PineconeReplay) -> None:
        from pinecone.exceptions import ServiceException

        replay.fault = 501
        with pytest.raises(ServiceException):
            fetch_nodes(index.vector_store, [ROWS[0].id], index)
        with pytest.raises(ServiceException):
            SetSelectIndexRetriever(index).retrieve("query 3")
