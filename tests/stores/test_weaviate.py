"""Weaviate: the requests that its client sends, named vectors, and errors."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from langchain_core.vectorstores import VectorStore

from langchain_setselect.stores.clients import WEAVIATE as READER
from shared_core import VectorSourceError
from shared_core.stores.weaviate import search_with_vectors, vectors_by_id
from tests.stores.cases.weaviate import address, alangchain_over, langchain_over
from tests.stores.harness import (
    BY_TEXT,
    FETCH_K,
    QUERIES,
    ROWS,
    TableEmbeddings,
    fill,
    needs,
    stored,
)
from tests.stores.replay.weaviate import WeaviateReplay, replaying

QUERY = QUERIES["query 3"]
IDS = [row.id for row in ROWS]


@pytest.fixture
def replay() -> Iterator[WeaviateReplay]:
    needs("weaviate")
    with replaying() as replay:
        yield replay


@pytest.fixture
def store(replay: WeaviateReplay) -> Iterator[VectorStore]:
    needs("langchain_weaviate")
    with langchain_over(replay, TableEmbeddings()) as store:
        fill(store)
        yield store


@pytest.fixture
def named(replay: WeaviateReplay) -> Iterator[Any]:
    """A collection whose objects have two vectors: "body" is the row's, "title" the same numbers in reverse order."""
    import weaviate
    from weaviate.classes.data import DataObject

    with weaviate.connect_to_custom(**address(replay)) as client:
        collection = client.collections.get("Passages")
        collection.data.insert_many(
            [
                DataObject(
                    properties={"text": row.text, **row.metadata},
                    uuid=row.id,
                    vector={"body": row.vector, "title": row.vector[::-1]},
                )
                for row in ROWS
            ]
        )
        yield collection


async def test_vectors_of_the_searched_name_are_returned(named: Any, replay: WeaviateReplay) -> None:
    needs("langchain_weaviate")
    async with alangchain_over(replay, TableEmbeddings()) as store:
        for name, way in (("body", 1), ("title", -1)):
            documents, vectors = READER.search(store, QUERY, FETCH_K, target_vector=name)
            assert list(replay.asked[-1].metadata.vectors) == [name]
            assert list(documents) == store.similarity_search_by_vector(QUERY, k=FETCH_K, target_vector=name)
            np.testing.assert_array_equal(vectors, stored(BY_TEXT[d.page_content] for d in documents)[:, ::way])
            awaited, others = await READER.asearch(store, QUERY, FETCH_K, target_vector=name)
            assert list(awaited) == list(documents)
            np.testing.assert_array_equal(vectors, others)
    with pytest.raises(VectorSourceError, match=r"body, title.*target_vector"):
        search_with_vectors(named, QUERY, 5, target_vector=["body", "title"])
    with pytest.raises(VectorSourceError, match="body, title"):
        vectors_by_id(named, IDS)


def test_vectors_by_id_are_bit_equal_without_those_unknown(store: VectorStore, replay: WeaviateReplay) -> None:
    collection = store._collection  # type: ignore[attr-defined]
    shouted = str(UUID(IDS[0])).upper().replace("-", "")
    gone = "00000000-0000-4000-8000-000000000000"
    asked = [shouted, *IDS[1:], gone, "no UUID"]
    replay.asked.clear()
    found = vectors_by_id(collection, asked)
    [request] = replay.asked
    assert request.limit == len(ROWS) + 1
    assert list(found) != asked
    assert set(found) == {shouted, *IDS[1:]}
    np.testing.assert_array_equal([found[name] for name in asked[: len(ROWS)]], stored(ROWS))
    assert vectors_by_id(collection, ["no UUID"]) == {}
