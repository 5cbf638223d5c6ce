"""A replayed Weaviate server on loopback: collections, batches, searches by vector and filters. It serves gRPC by the
protocol in the client's package (weaviate.proto.v1), and the few REST calls of the client.

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

from tests.stores.replay.http import Replay, Request, scores, serving

DEFAULTS: dict[str, Any] = {
    "invertedIndexConfig": {
        "bm25": {"b": 0.75, "k1": 1.2},
        "cleanupIntervalSeconds": 60,
        "stopwords": {"additions": None, "preset": "en", "removals": None},
    },
    "multiTenancyConfig": {"enabled": False, "autoTenantCreation": False, "autoTenantActivation": False},
    "replicationConfig": {"factor": 1, "asyncEnabled": False, "deletionStrategy": "NoAutomatedResolution"},
    "shardingConfig": {
        "virtualPerPhysical": 128,
        "desiredCount": 1,
        "actualCount": 1,
        "desiredVirtualCount": 128,
        "actualVirtualCount": 128,
        "key": "_id",
        "strategy": "hash",
        "function": "murmur3",
    },
}
INDEX: dict[str, Any] = {
    "vectorIndexType": "hnsw",
    "vectorIndexConfig": {
        "skip": False,
        "cleanupIntervalSeconds": 300,
        "maxConnections": 32,
        "efConstruction": 128,
        "ef": -1,
        "dynamicEfMin": 100,
        "dynamicEfMax": 500,
        "dynamicEfFactor": 8,
        "vectorCacheMaxObjects": 1000000000000,
        "flatSearchCutoff": 40000,
        "distance": "cosine",
        "filterStrategy": "sweeping",
        "multivector": {"enabled": False},
    },
}


class WeaviateReplay(Replay):
    """``asked``: the gRPC searches so far; ``lost``: objects that a search finds by their vectors, but returns
    without them."""

    def __init__(self) -> None:
        super().__init__()
        self.classes: dict[str, dict[str, Any]] = {}
        self.objects: dict[str, dict[str, dict[str, Any]]] = {}
        self.asked: list[Any] = []
        self.lost: set[str] = set()
        self.grpc_port = 0
        self.grpc_server: Any = None

    def answer(self, request: Request) -> tuple[int, Any]:
        parts = request.path.removeprefix("/v1/").split("/")
        match request.method, parts:
            case "GET", ["meta"]:
                return 200, {"hostname": f"http://127.0.0.1:{self.port}", "version": "1.30.0", "modules": {}}
            case "GET", ["nodes"]:
                batch = {"queueLength": 0, "ratePerSecond": 100}
                return 200, {"nodes": [{"name": "one", "status": "HEALTHY", "version": "1.30.0", "batchStats": batch}]}
            case "GET", [".well-known", "ready" | "live"]:
                return 200, None
            case "POST", ["schema"]:
                given = {name[0].lower() + name[1:]: value for name, value in request.body.items()}
                index = {} if "vectorConfig" in given else {"vectorizer": "none", "moduleConfig": {}, **INDEX}
                name = given["class"]
                self.classes[name] = {**DEFAULTS, **index, "properties": [], **given}
                self.classes[name]["properties"] = [_property(each) for each in self.classes[name]["properties"]]
                for config in self.classes[name].get("vectorConfig", {}).values():
                    # Defaults for what the caller leaves out.
                    told = config.get("vectorIndexConfig") or {}
                    config |= {**INDEX, "vectorIndexConfig": {**INDEX["vectorIndexConfig"], **told}}
                self.objects[name] = {}
                return 200, self.classes[name]
            case "GET", ["schema"]:
                return 200, {"classes": list(self.classes.values())}
            case "GET", ["schema", name] if name in self.classes:
                return 200, self.classes[name]
            case "DELETE", ["schema", name] if name in self.classes:
                del self.classes[name], self.objects[name]
                return 200, None
        return 404, {"error": [{"message": "not found"}]}

    def insert(self, request: Any) -> Any:
        from weaviate.proto.v1 import batch_pb2

        for each in request.objects:
            properties = {name: _plain(value) for name, value in each.properties.non_ref_properties.fields.items()}
            known = {one["name"] for one in self.classes[each.collection]["properties"]}
            self.classes[each.collection]["properties"] += [
                _property({"name": name, "dataType": ["text" if isinstance(value, str) else "number"]})
                for name, value in properties.items()
                if name not in known
            ]
            vectors = {one.name or "default": one.vector_bytes for one in each.vectors}
            if each.vector_bytes:
                vectors["default"] = each.vector_bytes
            self.objects[each.collection][each.uuid] = {"properties": properties, "vectors": vectors}
        return batch_pb2.BatchObjectsReply(took=0.001)

    def delete(self, request: Any) -> Any:
        from weaviate.proto.v1 import batch_delete_pb2

        rows = self.objects[request.collection]
        gone = [name for name, row in rows.items() if _passes(name, row, request.filters)]
        for name in gone:
            del rows[name]
        return batch_delete_pb2.BatchDeleteReply(matches=len(gone), successful=len(gone))

    def search(self, request: Any) -> Any:
        """The reply; a ValueError with the server's message if it refuses."""
        from weaviate.proto.v1 import search_get_pb2

        filters = request.filters if request.HasField("filters") else None
        rows = [item for item in self.objects[request.collection].items() if _passes(*item, filters)]
        found = [(name, row, 0.0) for name, row in rows]
        if request.HasField("hybrid_search"):
            found = self._nearest(rows, request.hybrid_search)
        reply = search_get_pb2.SearchReply(took=0.001)
        for name, row, score in found[: request.limit or 10]:
            result = reply.results.add()
            result.properties.target_collection = request.collection
            metadata = result.metadata
            metadata.id, metadata.id_as_bytes = name, uuid.UUID(name).bytes
            if request.metadata.score:
                metadata.score, metadata.score_present = score, True
            if name not in self.lost:
                _fill_vectors(metadata, row["vectors"], request.metadata)
            # All properties, if the request names none.
            every = not request.HasField("properties") or request.properties.return_all_nonref_properties
            for key, value in row["properties"].items():
                if every or key in request.properties.non_ref_properties:
                    field = result.properties.non_ref_props.fields[key]
                    if isinstance(value, str):
                        field.text_value = value
                    else:
                        field.number_value = value
        return reply

    def _nearest(self, rows: list[Any], asked: Any) -> list[Any]:
        names = list(asked.targets.target_vectors) or list(asked.target_vectors)
        query = np.frombuffer(asked.vector_bytes, dtype="<f4")
        if not query.size:
            raise ValueError("this replay searches by one vector only")
        of_all = {name for _, row in rows for name in row["vectors"]}
        if not names and len(of_all) > 1:
            raise ValueError("multiple target vectors found, please specify target vector name")
        name = names[0] if names else next(iter(of_all), "default")
        # A search by vector does not find an object without one.
        having = [(key, row) for key, row in rows if row["vectors"].get(name)]
        if not having:
            return []
        matrix = np.array([np.frombuffer(row["vectors"][name], dtype="<f4") for _, row in having])
        if matrix.shape[1] != query.size:
            raise ValueError(f"vector lengths don't match: {matrix.shape[1]} vs {query.size}")
        similar = scores(matrix, query, "cosine")
        order = np.argsort(-similar, kind="stable")
        low, high = similar.min(), similar.max()
        return [(*having[i], float((similar[i] - low) / ((high - low) or 1))) for i in order]


def _fill_vectors(metadata: Any, vectors: dict[str, bytes], asked: Any) -> None:
    from weaviate.proto.v1 import base_pb2

    if asked.vector and set(vectors) == {"default"}:
        metadata.vector_bytes = vectors["default"]
        return
    for name, data in vectors.items():
        if (asked.vector or name in asked.vectors) and data:
            metadata.vectors.add(name=name, vector_bytes=data, type=base_pb2.Vectors.VECTOR_TYPE_SINGLE_FP32)


def _property(given: dict[str, Any]) -> dict[str, Any]:
    text = given["dataType"] == ["text"]
    return {
        "indexFilterable": True,
        "indexRangeFilters": False,
        "indexSearchable": text,
        **({"tokenization": "word"} if text else {}),
        **given,
    }


def _plain(value: Any) -> Any:
    return getattr(value, value.WhichOneof("kind"))


def _passes(name: str, row: dict[str, Any], filters: Any) -> bool:
    if filters is None:
        return True
    operator = filters.Operator.Name(filters.operator).removeprefix("OPERATOR_")
    if operator in ("AND", "OR"):
        return (all if operator == "AND" else any)(_passes(name, row, part) for part in filters.filters)
    wanted = getattr(filters, filters.WhichOneof("test_value"))
    value = name if filters.target.property == "_id" else row["properties"].get(filters.target.property)
    match operator:
        case "EQUAL":
            return bool(value == wanted)
        case "NOT_EQUAL":
            return bool(value != wanted)
        case "CONTAINS_ANY":
            return value in wanted.values
        case "LESS_THAN":
            return bool(value < wanted)
        case "GREATER_THAN_EQUAL":
            return bool(value >= wanted)
    raise NotImplementedError(operator)


def _grpc_server(replay: WeaviateReplay) -> Any:
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc
    from weaviate.proto.v1 import weaviate_pb2_grpc

    class Service(weaviate_pb2_grpc.WeaviateServicer):
        def Search(self, request: Any, context: Any) -> Any:
            replay.asked.append(request)
            try:
                return replay.search(request)
            except ValueError as refused:
                return context.abort(grpc.StatusCode.UNKNOWN, str(refused))

        def BatchObjects(self, request: Any, context: Any) -> Any:
            return replay.insert(request)

        def BatchDelete(self, request: Any, context: Any) -> Any:
            return replay.delete(request)

    class Health(health_pb2_grpc.HealthServicer):
        def Check(self, request: Any, context: Any) -> Any:
            return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)

    server = grpc.server(ThreadPoolExecutor(4))
    weaviate_pb2_grpc.add_WeaviateServicer_to_server(Service(), server)
    health_pb2_grpc.add_HealthServicer_to_server(Health(), server)
    replay.grpc_port = server.add_insecure_port("127.0.0.1:0")
    return server


@contextmanager
def replaying() -> Iterator[WeaviateReplay]:
    replay = WeaviateReplay()
    replay.grpc_server = _grpc_server(replay)
    with serving(replay):
        replay.grpc_server.start()
        try:
            yield replay
        finally:
            replay.grpc_server.stop(None).wait(10)
