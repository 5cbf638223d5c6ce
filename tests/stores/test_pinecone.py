"""Pinecone: the requests that its client sends, and namespaces."""

from collections.abc import Iterator

import numpy as np
import pytest
from langchain_core.vectorstores import VectorStore

from langchain_setselect import SetSelectCompressor
from langchain_setselect.stores.clients import PINECONE as READER
from tests.stores.cases.pinecone import alangchain_over, client, langchain_over
from tests.stores.harness import (
    BY_ID,
    DIMENSION,
    FETCH_K,
    QUERIES,
    ROWS,
    TableEmbeddings,
    fill,
    needs,
    stored,
)
from tests.stores.replay.http import serving
from tests.stores.replay.pinecone import PineconeReplay

QUERY = QUERIES["query 3"]


@pytest.fixture
def replay() -> Iterator[PineconeReplay]:
    needs("pinecone")
    with serving(PineconeReplay(DIMENSION)) as replay:
        yield replay


@pytest.fixture
def store(replay: PineconeReplay) -> Iterator[VectorStore]:
    needs("langchain_pinecone")
    with langchain_over(replay, TableEmbeddings(), namespace="mine") as store:
        fill(store)
        replay.requests.clear()
        yield store


async def test_a_compressor_looks_up_in_the_namespace_of_the_search(store: VectorStore, replay: PineconeReplay) -> None:
    other = np.roll(QUERY, 1).tolist()
    with client(replay) as index:
        index.upsert(vectors=[{"id": ROWS[0].id, "values": other, "metadata": {"text": "a"}}], namespace="theirs")
    documents, *_ = READER.search(store, QUERY, FETCH_K, namespace="theirs")
    compressor = SetSelectCompressor(vectorstore=store, k=1, vectorstore_kwargs={"namespace": "theirs"})
    replay.requests.clear()
    [found] = compressor.compress_documents(documents, "query 3")
    assert found.id == ROWS[0].id
    [request] = replay.requests
    assert request.arguments["namespace"] == ["theirs"]
    np.testing.assert_allclose(READER.fetch(store, [ROWS[0].id], namespace="theirs")[ROWS[0].id], other, rtol=1e-6)
    assert not np.allclose(READER.fetch(store, [ROWS[0].id])[ROWS[0].id], other)


def test_a_record_without_a_text_is_left_out(store: VectorStore, replay: PineconeReplay) -> None:
    with client(replay) as index:
        index.upsert(vectors=[{"id": "bare", "values": QUERY, "metadata": {"colour": "red"}}], namespace="mine")
    documents, vectors, *_ = READER.search(store, QUERY, 5)
    assert [d.id for d in documents if d] == [d.id for d in store.similarity_search_by_vector(QUERY, k=5)]
    # A wider search finds more, although the store returns four documents.
    assert len(documents) == len(vectors) == 5
    assert documents.count(None) == 1


async def test_vectors_by_id_take_one_request_per_hundred_without_unknown_ids(
    store: VectorStore, replay: PineconeReplay
) -> None:
    ids = [row.id for row in ROWS] + ["gone"]
    found = READER.fetch(store, ids)
    assert [len(request.arguments["ids"]) for request in replay.requests] == [100, 100, 41]
    assert {request.arguments["namespace"][0] for request in replay.requests} == {"mine"}
    assert set(found) == set(BY_ID)
    np.testing.assert_array_equal([found[row.id] for row in ROWS], stored(ROWS))
    async with alangchain_over(replay, TableEmbeddings(), namespace="mine") as other:
        awaited = await READER.afetch(other, ids)
    assert awaited.keys() == found.keys()
