"""What only Qdrant has: keys of its payload, named and sparse vectors, spellings of ids, and shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from langchain_setselect import SetSelectCompressor, SetSelectRetriever
from shared_core import InvalidParameterError, VectorSourceError
from shared_core.stores.qdrant import search_with_vectors, vectors_by_id
from tests.stores.cases.qdrant import Kind, langchain, llamaindex
from tests.stores.harness import (
    DIMENSION,
    QUERIES,
    ROWS,
    K,
    Row,
    TableEmbeddings,
    afetch_nodes,
    fetch_nodes,
    fill,
    llamaindex_reader,
    own_search,
    stored,
)

pytest.importorskip("langchain_qdrant")
pytest.importorskip("llama_index.vector_stores.qdrant")

from qdrant_client import AsyncQdrantClient, QdrantClient, models

QUERY = QUERIES["query 3"]
DOT = Kind(metric="DOT")
UNNAMED = models.VectorParams(size=DIMENSION, distance=models.Distance.DOT)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    with langchain(DOT, TableEmbeddings(), tmp_path) as store:
        fill(store)
        yield store


@pytest.fixture
def local() -> Iterator[QdrantClient]:
    client = QdrantClient(":memory:")
    yield client
    client.close()


def point(row: Row, **more: Any) -> models.PointStruct:
    return models.PointStruct(**{"id": row.id, "vector": row.vector, "payload": {"page_content": row.text}} | more)


class TestLangChain:
    def test_a_dict_is_no_filter(self, store: Any) -> None:
        retriever = SetSelectRetriever(vectorstore=store, search_kwargs={"filter": {"colour": "red"}})
        with pytest.raises(InvalidParameterError, match=r"qdrant_client\.models\.Filter.*'colour'"):
            retriever.invoke("query 1")


class TestStorage:
    def test_ids_in_any_spelling_and_those_that_no_collection_can_have(self, local: QdrantClient) -> None:
        local.create_collection("rows", UNNAMED)
        local.upsert("rows", [point(ROWS[0]), point(ROWS[1], id=7), point(ROWS[2], id=2**64 - 1)])
        uuid = UUID(ROWS[0].id)
        spellings = [uuid.hex, uuid.urn, str(uuid).upper()]
        strange = ["gone", "", "007", "-7", "7.0", "²", str(2**64), "9" * 5000, ROWS[5].id, "8"]
        found = vectors_by_id(local, "rows", [*strange, *spellings, "7", str(2**64 - 1)])
        assert set(found) == {*spellings, "7", str(2**64 - 1)}
        np.testing.assert_array_equal([found[name] for name in spellings], stored([ROWS[0]] * 3))
        np.testing.assert_array_equal([found["7"], found[str(2**64 - 1)]], stored(ROWS[1:3]))
        assert vectors_by_id(local, "nowhere", ["gone"]) == {}

    def test_only_the_named_vector_is_returned(self, local: QdrantClient) -> None:
        named = {"text": UNNAMED, "image": UNNAMED, "": UNNAMED}
        local.create_collection("rows", named, sparse_vectors_config={"words": models.SparseVectorParams()})
        words = models.SparseVector(indices=[1], values=[1.0])
        vectors = {"text": ROWS[0].vector, "image": ROWS[1].vector, "": ROWS[2].vector, "words": words}
        local.upsert("rows", [point(ROWS[0], vector=vectors)])
        for name, row in zip(named, ROWS, strict=False):
            np.testing.assert_array_equal(search_with_vectors(local, "rows", QUERY, 1, name)[1], stored([row]))
            np.testing.assert_array_equal(vectors_by_id(local, "rows", [ROWS[0].id], [name])[ROWS[0].id], row.vector)
        either = vectors_by_id(local, "rows", [ROWS[0].id], ["sound", "image", ""])
        np.testing.assert_array_equal(either[ROWS[0].id], ROWS[1].vector)


class TestLlamaIndex:
    @pytest.mark.parametrize("config", [UNNAMED, {"text-dense": UNNAMED}], ids=["unnamed", "named"])
    async def test_an_async_client_alone_before_the_store_knows_the_vectors_name(self, config: Any) -> None:
        client = AsyncQdrantClient(":memory:")
        await client.create_collection("rows", config)
        named = isinstance(config, dict)
        rows = ROWS[:K]
        vectors: list[Any] = [{"text-dense": row.vector} if named else row.vector for row in rows]
        await client.upsert("rows", [point(row, vector=v) for row, v in zip(rows, vectors, strict=True)])
        store = llamaindex(DOT, aclient=client)
        found = await afetch_nodes(store, [row.id for row in rows])
        np.testing.assert_array_equal(list(found.values()), stored(rows))
        with pytest.raises(VectorSourceError, match="no sync client"):
            fetch_nodes(store, [ROWS[0].id])
        await client.close()


class TestRequests:
    def test_a_look_up_names_the_shard_that_was_searched(self, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        documents, asked, retrieve = own_search(store, QUERY, K), list[Any](), store.client.retrieve

        def noted(**arguments: Any) -> Any:
            asked.append(arguments)
            return retrieve(**arguments)

        monkeypatch.setattr(store.client, "retrieve", noted)
        compressor = SetSelectCompressor(vectorstore=store, vectorstore_kwargs={"shard_key_selector": "eu"}, k=3)
        compressor.compress_documents(documents, "query 3")
        nodes = llamaindex(
            DOT,
            client=store.client,
            sharding_method=models.ShardingMethod.CUSTOM,
            shard_key_selector_fn=lambda identifier: f"{identifier}-1",
            shard_keys=["eu-1"],
        )
        llamaindex_reader(nodes).fetch(nodes, [ROWS[0].id], None, shard_identifier="eu")
        assert [arguments["shard_key_selector"] for arguments in asked] == ["eu", "eu-1"]
