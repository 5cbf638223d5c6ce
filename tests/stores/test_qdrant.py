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
from langchain_setselect.stores.qdrant import fetch as document_vectors
from langchain_setselect.stores.qdrant import search
from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from shared_core import InvalidInputError, SetSelectWarning, VectorSourceError
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
    free_port,
    own_search,
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
    @pytest.mark.parametrize(
        "filter",
        [
            models.Filter(must=[models.FieldCondition(key="metadata.number", range=models.Range(gte=20, lt=90))]),
            models.Filter(must_not=[models.FieldCondition(key="metadata.colour", match=models.MatchAny(any=["red"]))]),
            models.Filter(
                should=[
                    models.HasIdCondition(has_id=[ROWS[3].id, ROWS[200].id]),
                    models.Filter(
                        must=[models.FieldCondition(key="metadata.colour", match=models.MatchValue(value="green"))],
                        must_not=[models.FieldCondition(key="metadata.number", range=models.Range(gt=100))],
                    ),
                ]
            ),
            models.Filter(must=[models.IsEmptyCondition(is_empty=models.PayloadField(key="metadata.colour"))]),
        ],
        ids=["range", "not any of", "ids or a nested filter", "nothing passes"],
    )
    def test_qdrants_own_filters(self, store: Any, filter: models.Filter) -> None:
        own = own_search(store, QUERY, FETCH_K, filter=filter)
        documents, vectors = search(store, QUERY, FETCH_K, filter=filter)
        assert documents == own
        np.testing.assert_array_equal(vectors, stored([row_of(document) for document in own]))

    @pytest.mark.parametrize("arguments", [{"offset": 7}, {"score_threshold": 1.0}, {"consistency": "all"}])
    def test_the_stores_other_arguments(self, store: Any, arguments: dict[str, Any]) -> None:
        own = own_search(store, QUERY, FETCH_K, **arguments)
        assert (own == own_search(store, QUERY, FETCH_K)) == ("consistency" in arguments)
        documents, vectors = search(store, QUERY, FETCH_K, **arguments)
        assert documents == own
        np.testing.assert_array_equal(vectors, stored([row_of(document) for document in own]))
        picked = SetSelectRetriever(vectorstore=store, search_kwargs={"k": K, **arguments}).invoke("query 3")
        assert {row_of(document).id for document in picked} <= {row_of(document).id for document in own}

    def test_an_argument_that_qdrant_does_not_know_is_refused_by_the_client(self, store: Any) -> None:
        for ask in (own_search, search):
            with pytest.raises(AssertionError, match="nonsense"):
                ask(store, QUERY, K, nonsense=1)

    def test_payload_keys_of_the_user(self, tmp_path: Path) -> None:
        keys = {"content_payload_key": "text", "metadata_payload_key": "about"}
        with langchain(DOT, TableEmbeddings(), tmp_path, **keys) as store:
            fill(store)
            documents, _ = search(store, QUERY, FETCH_K)
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
            documents, vectors = search(store, ROWS[0].vector, len(ROWS))
            assert documents == own_search(store, ROWS[0].vector, len(ROWS))
            assert len(documents) == len(vectors) == len(ROWS) - 1
            assert set(document_vectors(store, [ROWS[0].id, ROWS[1].id])) == {ROWS[1].id}

    def test_a_query_of_one_number_is_refused(self, tmp_path: Path) -> None:
        with langchain(Kind(metric="EUCLID"), TableEmbeddings(), tmp_path) as store:
            fill(store)
            assert store.client.query_points("rows", [0.5]).points, "numpy stretches it to any length"
            with pytest.raises(InvalidInputError, match=r"length 1, .* 32"):
                search(store, [0.5], K)

    def test_the_compressor_looks_up_documents_that_carry_their_id(self, store: Any) -> None:
        documents = [Document(row.text, id=row.id) for row in ROWS[:20]]
        store.embeddings.forget()
        compressor = SetSelectCompressor(vectorstore=store, k=K)
        assert len(compressor.compress_documents(documents, "query 3")) == K
        assert store.embeddings.documents == 0


class TestStorage:
    def test_the_local_mode_keeps_float32_for_every_datatype(self, local: QdrantClient) -> None:
        compress = models.ScalarQuantization(scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8))
        half = UNNAMED.model_copy(update={"datatype": models.Datatype.FLOAT16})
        local.create_collection("rows", half, quantization_config=compress)
        local.upsert("rows", [point(row) for row in ROWS])
        points, vectors = search_with_vectors(local, "rows", QUERY, FETCH_K)
        by_id = {row.id: row for row in ROWS}
        np.testing.assert_array_equal(vectors, stored([by_id[p.id] for p in points]))

    def test_vectors_are_there_again_after_a_restart(self, tmp_path: Path) -> None:
        client = QdrantClient(path=str(tmp_path))
        client.create_collection("rows", UNNAMED)
        client.upsert("rows", [point(row) for row in ROWS[:9]])
        client.close()
        client = QdrantClient(path=str(tmp_path))
        found = vectors_by_id(client, "rows", [row.id for row in ROWS])
        client.close()
        assert list(found) == [row.id for row in ROWS[:9]]
        np.testing.assert_array_equal(list(found.values()), stored(ROWS[:9]))

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
    def test_a_node_with_only_a_sparse_vector_is_left_out_with_its_name(self, local: QdrantClient) -> None:
        store = llamaindex(Kind(metric="DOT", sparse=True), client=local)
        index = filled(store)
        local.delete_vectors("rows", ["text-dense"], [ROWS[0].id])
        nodes = index.as_retriever(vector_store_query_mode="sparse", sparse_top_k=len(ROWS)).retrieve("query 3")
        assert ROWS[0].id in {node.node_id for node in nodes}
        # With an order, a postprocessor may select all nodes without a warning.
        postprocessor = SetSelectPostprocessor(vector_store=store, top_n=len(nodes), order="relevance")
        with pytest.warns(SetSelectWarning, match=f"1 of {len(nodes)} nodes.*{ROWS[0].id}"):
            picked = postprocessor.postprocess_nodes(nodes, QueryBundle("query 3", embedding=QUERY))
        assert {node.node_id for node in picked} == {node.node_id for node in nodes} - {ROWS[0].id}

    def test_qdrants_own_filter_beside_the_stores(self, local: QdrantClient) -> None:
        index = filled(llamaindex(DOT, client=local))
        some = models.Filter(must=[models.FieldCondition(key="number", range=models.Range(gte=20, lt=90))])
        nodes = index.as_retriever(similarity_top_k=70, vector_store_kwargs={"qdrant_filters": some}).retrieve(
            "query 3"
        )
        picked = SetSelectPostprocessor(index=index, top_n=K).postprocess_nodes(nodes, query_str="query 3")
        assert {node.metadata["number"] for node in nodes} == set(range(20, 90))
        assert len(picked) == K

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
    """Qdrant's HTTP client on one side and its local mode on the other; ``cut`` says after how many answers, and
    ``halfway`` whether within the next one or before it."""

    local: QdrantClient
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    cut: float = float("inf")
    halfway: bool = False
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
            lost = len(wire.requests) > wire.cut
            if lost and not wire.halfway:
                return
            answer = json.dumps({"result": wire.answer(url.path, body), "status": "ok", "time": 0.0}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer[: len(answer) // 2] if lost else answer)

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
    def test_one_request_per_search_equal_to_the_stores_own(self, wire: Wire, remote: Any) -> None:
        some = models.Filter(must_not=[models.HasIdCondition(has_id=[ROWS[3].id])])
        arguments: dict[str, Any] = {
            "filter": some,
            "search_params": models.SearchParams(hnsw_ef=64, exact=True),
            "score_threshold": -9.0,
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
        documents, vectors = search(remote, QUERY, FETCH_K, **arguments)
        assert wire.requests == [(path, query, body | {"with_vector": [""]})]
        assert documents == own
        np.testing.assert_array_equal(vectors, stored([row_of(document) for document in documents]))

        wire.requests.clear()
        SetSelectRetriever(vectorstore=remote, k=K, fetch_k=FETCH_K).invoke("query 3")
        assert len(wire.requests) == 1

    async def test_an_async_search_sends_one_request_too(self, wire: Wire, remote: Any) -> None:
        retriever = SetSelectRetriever(vectorstore=remote, k=K, fetch_k=FETCH_K)
        wanted = retriever.invoke("query 3")
        wire.requests.clear()
        assert await retriever.ainvoke("query 3") == wanted
        assert len(wire.requests) == 1

    def test_a_vector_deleted_while_the_server_reads_is_left_out(
        self, wire: Wire, remote: Any, local: QdrantClient
    ) -> None:
        first, *_ = own_search(remote, QUERY, 1)
        wire.between = lambda: local.delete_vectors("rows", [""], [row_of(first).id])
        documents, vectors = search(remote, QUERY, FETCH_K)
        assert documents[0] == first
        assert [row is None for row in vectors] == [True] + [False] * (FETCH_K - 1)
        local.upsert("rows", [point(row_of(first))])
        with pytest.warns(SetSelectWarning, match="no vector"):
            picked = SetSelectRetriever(vectorstore=remote, k=K).invoke("query 3")
        assert len(picked) == K
        assert first.metadata["_id"] not in {document.metadata["_id"] for document in picked}

    def test_only_ids_that_a_server_can_read_are_sent(self, wire: Wire, remote: Any) -> None:
        ids = ["gone", "007", str(2**64), "7", UUID(ROWS[0].id).hex]
        assert list(document_vectors(remote, ids)) == ids[-1:]
        assert [body["ids"] for *_, body in wire.requests] == [[7, ROWS[0].id]]
        assert document_vectors(remote, ["gone"]) == {}
        assert len(wire.requests) == 1

    @pytest.mark.parametrize("halfway", [False, True])
    def test_a_lost_connection_raises_the_clients_own_error(self, wire: Wire, remote: Any, halfway: bool) -> None:
        wire.cut, wire.halfway = 0, halfway
        with pytest.raises(ResponseHandlingException):
            SetSelectRetriever(vectorstore=remote).invoke("query 3")
        with pytest.raises(ResponseHandlingException):
            document_vectors(remote, [ROWS[0].id])

    @pytest.mark.parametrize("halfway", [False, True])
    async def test_llamaindex_sends_one_request_more_and_the_connection_breaks_before_it(
        self, wire: Wire, local: QdrantClient, halfway: bool
    ) -> None:
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
            wire.cut, wire.halfway = len(wire.requests) + 1, halfway
            with pytest.raises(ResponseHandlingException):
                retriever.retrieve(bundle)

        wire.cut = float("inf")
        client = AsyncQdrantClient(wire.url, check_compatibility=False)
        retriever = SetSelectIndexRetriever(over_existing(llamaindex(DOT, aclient=client)), top_n=K, fetch_k=FETCH_K)
        assert [node.node_id for node in await retriever.aretrieve(bundle)] == wanted
        wire.requests.clear()
        await retriever.aretrieve(bundle)
        assert [path for path, *_ in wire.requests] == ["/collections/rows/points/query", "/collections/rows/points"]
        wire.cut = len(wire.requests) + 1
        with pytest.raises(ResponseHandlingException):
            await retriever.aretrieve(bundle)
        await client.close()

    def test_a_server_that_does_not_listen_raises_the_clients_own_error(self) -> None:
        client = QdrantClient(f"http://127.0.0.1:{free_port()}", check_compatibility=False)
        gone = QdrantVectorStore(client, "rows", TableEmbeddings(), validate_collection_config=False)
        for ask in (lambda: search(gone, QUERY, K), lambda: document_vectors(gone, [ROWS[0].id])):
            with pytest.raises(ResponseHandlingException, match="refused"):
                ask()
        client.close()


def stored(rows: list[Row]) -> Any:
    return np.array([row.vector for row in rows], dtype=np.float32).reshape(len(rows), DIMENSION)


def filled(store: Any) -> VectorStoreIndex:
    index = over_existing(store)
    nodes = [TextNode(id_=r.id, text=r.text, metadata=dict(r.metadata), embedding=list(r.vector)) for r in ROWS]
    index.insert_nodes(nodes)
    return index


def over_existing(store: Any) -> VectorStoreIndex:
    return VectorStoreIndex.from_vector_store(store, embed_model=TableEmbedding())


@pytest.mark.parametrize("spelling", ["as the store says it", "as it was given"])
def test_shown_documents_are_known_by_the_id_in_the_metadata(store: Any, spelling: str) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=K)
    first = retriever.invoke("query 3")
    assert all(document.id is None for document in first)
    shown = [document.metadata["_id"] if spelling.startswith("as the") else row_of(document).id for document in first]
    then = retriever.invoke("query 3", shown=shown)
    assert not {document.metadata["_id"] for document in first} & {document.metadata["_id"] for document in then}
    assert len(then) == K
