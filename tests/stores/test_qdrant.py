"""What only Qdrant has: its filters and arguments, named and sparse vectors, spellings of ids, broken connections."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import numpy as np
import pytest
from langchain_core.documents import Document
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import QueryBundle, TextNode

from langchain_setselect import SetSelectCompressor, SetSelectRetriever
from langchain_setselect.stores.qdrant import READER
from llamaindex_setselect import SetSelectIndexRetriever
from shared_core import SetSelectWarning, VectorSourceError
from shared_core.stores.qdrant import search_with_vectors, vectors_by_id
from tests.stores.cases.qdrant import Kind, langchain, llamaindex, row_of
from tests.stores.harness import (
    DIMENSION,
    FETCH_K,
    QUERIES,
    ROWS,
    K,
    Row,
    TableEmbedding,
    TableEmbeddings,
    afetch_nodes,
    fetch_nodes,
    fill,
    own_search,
    stored,
)

pytest.importorskip("langchain_qdrant")
pytest.importorskip("llama_index.vector_stores.qdrant")

from langchain_qdrant import QdrantVectorStore
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException

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
    def test_filters_and_arguments_of_the_stores_own_search(self, store: Any) -> None:
        nested = models.Filter(
            should=[
                models.HasIdCondition(has_id=[ROWS[3].id, ROWS[200].id]),
                models.Filter(
                    must=[models.FieldCondition(key="metadata.colour", match=models.MatchValue(value="green"))],
                    must_not=[models.FieldCondition(key="metadata.number", range=models.Range(gt=100))],
                ),
            ]
        )
        nobody = models.Filter(must=[models.IsEmptyCondition(is_empty=models.PayloadField(key="metadata.colour"))])
        for arguments in ({"filter": nested}, {"filter": nobody}, {"offset": 7}, {"score_threshold": 1.0}):
            own = own_search(store, QUERY, FETCH_K, **arguments)
            documents, vectors = READER.search(store, QUERY, FETCH_K, **arguments)
            assert documents == own
            np.testing.assert_array_equal(vectors, stored([row_of(document) for document in own]))

    def test_payload_keys_of_the_user(self, tmp_path: Path) -> None:
        keys = {"content_payload_key": "text", "metadata_payload_key": "about"}
        with langchain(DOT, TableEmbeddings(), tmp_path, **keys) as store:
            fill(store)
            documents, _ = READER.search(store, QUERY, FETCH_K)
            assert documents == own_search(store, QUERY, FETCH_K)
            assert all(document.page_content == row_of(document).text for document in documents)
            assert documents[0].metadata == {
                **row_of(documents[0]).metadata,
                "_id": row_of(documents[0]).id,
                "_collection_name": "rows",
            }

    def test_points_without_the_vector_are_not_found_and_not_looked_up(self, tmp_path: Path) -> None:
        with langchain(Kind(vector="dense", sparse=True), TableEmbeddings(), tmp_path) as store:
            fill(store)
            store.client.delete_vectors("rows", ["dense"], [ROWS[0].id])
            documents, vectors = READER.search(store, ROWS[0].vector, len(ROWS))
            assert documents == own_search(store, ROWS[0].vector, len(ROWS))
            assert len(documents) == len(vectors) == len(ROWS) - 1
            assert set(READER.fetch(store, [ROWS[0].id, ROWS[1].id])) == {ROWS[1].id}

    def test_the_compressor_looks_up_documents_that_carry_their_id(self, store: Any) -> None:
        documents = [Document(row.text, id=row.id) for row in ROWS[:20]]
        store.embeddings.forget()
        compressor = SetSelectCompressor(vectorstore=store, k=K)
        assert len(compressor.compress_documents(documents, "query 3")) == K
        assert store.embeddings.documents == 0


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
        assert vectors_by_id(local, "rows", []) == vectors_by_id(local, "nowhere", ["gone"]) == {}

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
    async def test_a_store_with_only_a_sync_client_runs_in_a_thread(self, local: QdrantClient) -> None:
        store = llamaindex(DOT, client=local)
        index = filled(store)
        ids = [row.id for row in ROWS[:K]]
        found = await afetch_nodes(store, ids, index)
        np.testing.assert_array_equal([found[i] for i in ids], stored(ROWS[:K]))

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


@dataclass
class Wire:
    """Qdrant's HTTP client on one side and its local mode on the other; ``cut``: the connection breaks."""

    local: QdrantClient
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    cut: bool = False
    between: Callable[[], Any] = lambda: None
    url: str = ""

    def answer(self, path: str, body: Any) -> Any:
        parts = path.strip("/").split("/")
        match parts[2:]:
            case []:
                return self.local.get_collection(parts[1]).model_dump(mode="json")
            case ["exists"]:
                return {"exists": self.local.collection_exists(parts[1])}
            case ["points"]:
                records = self.local.retrieve(parts[1], body["ids"], body["with_payload"], body["with_vector"])
                # A server answers in an order of its own.
                return [record.model_dump(mode="json") for record in reversed(records)]
            case ["points", "query"]:
                return {"points": [point.model_dump(mode="json") for point in self._query(parts[1], body)]}
        raise AssertionError(path)

    def _query(self, collection: str, body: dict[str, Any]) -> list[Any]:
        asked = models.QueryRequest(**body)
        points = self.local.query_points(
            collection, asked.query, asked.using, query_filter=asked.filter, limit=asked.limit or 10
        ).points
        # As on a server, the search comes first, and reading the points second.
        self.between()
        vectors = {
            r.id: r.vector for r in self.local.retrieve(collection, [p.id for p in points], False, asked.with_vector)
        }
        return [p.model_copy(update={"vector": vectors[p.id]}) for p in points]


@pytest.fixture
def wire(local: QdrantClient) -> Iterator[Wire]:
    wire = Wire(local)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "null")
            wire.requests.append((url.path, url.query, body))
            if wire.cut:
                return
            answer = json.dumps({"result": wire.answer(url.path, body), "status": "ok", "time": 0.0}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        wire.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield wire
        server.shutdown()
        thread.join()


@contextmanager
def over(wire: Wire) -> Iterator[QdrantClient]:
    client = QdrantClient(wire.url, check_compatibility=False)
    try:
        yield client
    finally:
        client.close()


@pytest.fixture
def remote(wire: Wire, local: QdrantClient) -> Iterator[Any]:
    """LangChain's store over HTTP."""
    local.create_collection("rows", UNNAMED)
    local.upsert("rows", [point(row) for row in ROWS])
    with over(wire) as client:
        settings: dict[str, Any] = {"distance": models.Distance.DOT, "validate_collection_config": False}
        yield QdrantVectorStore(client, "rows", TableEmbeddings(), **settings)


class TestOverHttp:
    async def test_one_request_per_search_equal_to_the_stores_own(self, wire: Wire, remote: Any) -> None:
        some = models.Filter(must_not=[models.HasIdCondition(has_id=[ROWS[3].id])])
        arguments: dict[str, Any] = {
            "filter": some,
            "search_params": models.SearchParams(hnsw_ef=64, exact=True),
            "offset": 0,
            "consistency": "majority",
            "shard_key_selector": "eu",
            "timeout": 9,
        }
        own = own_search(remote, QUERY, FETCH_K, **arguments)
        (configuration, *_), (path, query, body) = wire.requests
        assert configuration == "/collections/rows"
        assert (body["shard_key"], body["params"]["hnsw_ef"], query) == ("eu", 64, "consistency=majority&timeout=9")
        wire.requests.clear()
        documents, vectors = READER.search(remote, QUERY, FETCH_K, **arguments)
        assert wire.requests == [(path, query, body | {"with_vector": [""]})]
        assert documents == own
        np.testing.assert_array_equal(vectors, stored([row_of(document) for document in documents]))

        retriever = SetSelectRetriever(vectorstore=remote, k=K, fetch_k=FETCH_K)
        wire.requests.clear()
        assert retriever.invoke("query 3") == await retriever.ainvoke("query 3")
        assert len(wire.requests) == 2

    def test_a_vector_deleted_while_the_server_reads_is_left_out(
        self, wire: Wire, remote: Any, local: QdrantClient
    ) -> None:
        first, *_ = own_search(remote, QUERY, 1)
        wire.between = lambda: local.delete_vectors("rows", [""], [row_of(first).id])
        documents, vectors = READER.search(remote, QUERY, FETCH_K)
        assert documents[0] == first
        assert [row is None for row in vectors] == [True] + [False] * (FETCH_K - 1)
        local.upsert("rows", [point(row_of(first))])
        with pytest.warns(SetSelectWarning, match="no vector"):
            picked = SetSelectRetriever(vectorstore=remote, k=K).invoke("query 3")
        assert len(picked) == K
        assert first.metadata["_id"] not in {document.metadata["_id"] for document in picked}

    def test_only_ids_that_a_server_can_read_are_sent(self, wire: Wire, remote: Any) -> None:
        ids = ["gone", "007", str(2**64), "7", UUID(ROWS[0].id).hex]
        assert list(READER.fetch(remote, ids)) == ids[-1:]
        assert [body["ids"] for *_, body in wire.requests] == [[7, ROWS[0].id]]
        assert READER.fetch(remote, ["gone"]) == {}
        assert len(wire.requests) == 1

    def test_a_lost_connection_raises_the_clients_own_error(self, wire: Wire, remote: Any) -> None:
        wire.cut = True
        with pytest.raises(ResponseHandlingException):
            SetSelectRetriever(vectorstore=remote).invoke("query 3")
        with pytest.raises(ResponseHandlingException):
            READER.fetch(remote, [ROWS[0].id])

    def test_llamaindex_sends_one_request_more(self, wire: Wire, local: QdrantClient) -> None:
        bundle = QueryBundle("query 3", embedding=QUERY)
        here = SetSelectIndexRetriever(filled(llamaindex(DOT, client=local)), top_n=K, fetch_k=FETCH_K)
        wanted = [node.node_id for node in here.retrieve(bundle)]
        with over(wire) as client:
            retriever = SetSelectIndexRetriever(over_existing(llamaindex(DOT, client=client)), top_n=K, fetch_k=FETCH_K)
            wire.requests.clear()
            assert [node.node_id for node in retriever.retrieve(bundle)] == wanted
            assert [path for path, *_ in wire.requests] == [
                "/collections/rows/points/query",
                "/collections/rows/points",
            ]
            assert wire.requests[1][2]["with_payload"] is False


def filled(store: Any) -> VectorStoreIndex:
    index = over_existing(store)
    nodes = [TextNode(id_=r.id, text=r.text, metadata=dict(r.metadata), embedding=list(r.vector)) for r in ROWS]
    index.insert_nodes(nodes)
    return index


def over_existing(store: Any) -> VectorStoreIndex:
    return VectorStoreIndex.from_vector_store(store, embed_model=TableEmbedding())


def test_shown_documents_are_known_by_the_id_in_the_metadata(store: Any) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=K)
    first = retriever.invoke("query 3")
    assert all(document.id is None for document in first)
    then = retriever.invoke("query 3", shown=[document.metadata["_id"] for document in first])
    assert not {document.metadata["_id"] for document in first} & {document.metadata["_id"] for document in then}
    assert len(then) == K
