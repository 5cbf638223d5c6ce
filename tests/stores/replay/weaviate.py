"""A replayed Weaviate server on loopback with one collection: batches, searches by vector and filters. It serves gRPC
by the protocol in the client's package (weaviate.proto.v1), and the few REST calls of the client.

Named vectors: https://docs.weaviate.io/academy/py/named_vectors/nv_queries/searches; a request for vectors without a
name returns all of them: https://github.com/weaviate/weaviate/pull/4253
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.stores.replay.http import Refused, Replay, Request, scores, serving

# What the client reads of a collection.
SCHEMA = {
    "class": "Passages",
    "vectorizer": "none",
    "properties": [
        {"name": name, "dataType": ["text"], "indexFilterable": True, "indexSearchable": True}
        for name in ("text", "colour")
    ],
    "invertedIndexConfig": {
        "bm25": {"b": 0.75, "k1": 1.2},
        "cleanupIntervalSeconds": 60,
        "stopwords": {"additions": None, "preset": "en", "removals": None},
    },
    "replicationConfig": {"factor": 1},
    "shardingConfig": {
        **dict.fromkeys(("virtualPerPhysical", "desiredVirtualCount", "actualVirtualCount"), 128),
        **dict.fromkeys(("desiredCount", "actualCount"), 1),
        "key": "_id",
        "strategy": "hash",
        "function": "murmur3",
    },
}


class WeaviateReplay(Replay):
    """``asked``: the gRPC searches so far."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[str, dict[str, Any]] = {}
        self.asked: list[Any] = []
        self.grpc_port = 0

    def answer(self, request: Request) -> tuple[int, Any]:
        match request.path.removeprefix("/v1/"):
            case "meta":
                return 200, {"hostname": self.url, "version": "1.30.0", "modules": {}}
            case "nodes":
                batch = {"queueLength": 0, "ratePerSecond": 100}
                return 200, {"nodes": [{"name": "one", "status": "HEALTHY", "version": "1.30.0", "batchStats": batch}]}
            case "schema":
                return 200, {"classes": [SCHEMA]}
            case "schema/Passages":
                return 200, SCHEMA
        raise Refused(404, {"error": [{"message": "not found"}]})

    def insert(self, request: Any) -> Any:
        from weaviate.proto.v1 import batch_pb2

        for each in request.objects:
            fields = each.properties.non_ref_properties.fields
            vectors = {one.name or "default": one.vector_bytes for one in each.vectors}
            if each.vector_bytes:
                vectors["default"] = each.vector_bytes
            properties = {name: getattr(value, value.WhichOneof("kind")) for name, value in fields.items()}
            self.objects[each.uuid] = {"properties": properties, "vectors": vectors}
        return batch_pb2.BatchObjectsReply(took=0.001)

    def search(self, request: Any) -> Any:
        """The reply; a ValueError with the server's message if it refuses."""
        from weaviate.proto.v1 import search_get_pb2

        filters = request.filters if request.HasField("filters") else None
        found = [(name, row, 0.0) for name, row in self.objects.items() if _passes(name, row, filters)]
        if request.HasField("hybrid_search"):
            found = _nearest(found, request.hybrid_search)
        reply = search_get_pb2.SearchReply(took=0.001)
        for name, row, score in found[: request.limit or 10]:
            result = reply.results.add()
            metadata = result.metadata
            metadata.id, metadata.id_as_bytes = name, uuid.UUID(name).bytes
            if request.metadata.score:
                metadata.score, metadata.score_present = score, True
            _fill_vectors(metadata, row["vectors"], request.metadata)
            # All properties, if the request names none.
            every = not request.HasField("properties") or request.properties.return_all_nonref_properties
            for key, value in row["properties"].items():
                if every or key in request.properties.non_ref_properties:
                    kind = "text_value" if isinstance(value, str) else "number_value"
                    setattr(result.properties.non_ref_props.fields[key], kind, value)
        return reply


def _nearest(found: list[Any], asked: Any) -> list[Any]:
    names = list(asked.targets.target_vectors) or list(asked.target_vectors)
    query = np.frombuffer(asked.vector_bytes, dtype="<f4")
    name = names[0] if names else next((name for _, row, _ in found for name in row["vectors"]), "default")
    # A search by vector does not find an object without one.
    having = [(key, row) for key, row, _ in found if row["vectors"].get(name)]
    if not having:
        return []
    matrix = np.array([np.frombuffer(row["vectors"][name], dtype="<f4") for _, row in having])
    if matrix.shape[1] != query.size:
        raise ValueError(f"vector lengths don't match: {matrix.shape[1]} vs {query.size}")
    similar = scores(matrix, query, "cosine")
    return [(*having[i], float(similar[i])) for i in np.argsort(-similar, kind="stable")]


def _fill_vectors(metadata: Any, vectors: dict[str, bytes], asked: Any) -> None:
    from weaviate.proto.v1 import base_pb2

    if asked.vector and set(vectors) == {"default"}:
        metadata.vector_bytes = vectors["default"]
        return
    for name, data in vectors.items():
        if (asked.vector or name in asked.vectors) and data:
            metadata.vectors.add(name=name, vector_bytes=data, type=base_pb2.Vectors.VECTOR_TYPE_SINGLE_FP32)


def _passes(name: str, row: dict[str, Any], filters: Any) -> bool:
    if filters is None:
        return True
    match filters.Operator.Name(filters.operator).removeprefix("OPERATOR_"):
        case "AND":
            return all(_passes(name, row, part) for part in filters.filters)
        case "OR":
            return any(_passes(name, row, part) for part in filters.filters)
    field = filters.target.property
    return bool((name if field == "_id" else row["properties"].get(field)) == filters.value_text)


@contextmanager
def replaying() -> Iterator[WeaviateReplay]:
    import grpc
    from weaviate.proto.v1 import weaviate_pb2_grpc

    replay = WeaviateReplay()

    class Service(weaviate_pb2_grpc.WeaviateServicer):
        def Search(self, request: Any, context: Any) -> Any:
            replay.asked.append(request)
            try:
                return replay.search(request)
            except ValueError as refused:
                return context.abort(grpc.StatusCode.UNKNOWN, str(refused))

        def BatchObjects(self, request: Any, context: Any) -> Any:
            return replay.insert(request)

    server = grpc.server(ThreadPoolExecutor(4))
    weaviate_pb2_grpc.add_WeaviateServicer_to_server(Service(), server)
    replay.grpc_port = server.add_insecure_port("127.0.0.1:0")
    with serving(replay):
        server.start()
        try:
            yield replay
        finally:
            server.stop(None).wait(10)
