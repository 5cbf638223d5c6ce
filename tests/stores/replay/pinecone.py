"""A replayed Pinecone index on loopback: upsert, query with filters, and fetch.

Queries: https://www.pinecone.io/docs/api/operation/query/ and
https://docs.pinecone.io/legacy/reference/api/data-plane/query; fetching by id:
https://docs.pinecone.io/reference/api/2026-07/data-plane/fetch; the other answers follow the client's own models.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from tests.stores.replay.http import Refused, Replay, Request, as_written, scores


class PineconeReplay(Replay):
    def __init__(self, dimension: int, metric: str = "cosine") -> None:
        super().__init__()
        self.dimension, self.metric = dimension, metric
        self.namespaces: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)

    def answer(self, request: Request) -> tuple[int, Any]:
        body = request.body or {}
        match request.path:
            case "/vectors/upsert":
                for vector in body["vectors"]:
                    # Pinecone returns every number as a floating-point number.
                    metadata = {k: float(v) if type(v) is int else v for k, v in vector.get("metadata", {}).items()}
                    row = {**vector, "values": as_written(vector["values"]), "metadata": metadata}
                    self.namespaces[body.get("namespace", "")][vector["id"]] = row
                return 200, {"upsertedCount": len(body["vectors"])}
            case "/query":
                return 200, self._query(body, body.get("namespace", ""))
            case "/vectors/fetch":
                namespace = request.arguments.get("namespace", [""])[0]
                rows = self.namespaces[namespace]
                # In another order than requested: the answer is a map.
                known = sorted(set(request.arguments["ids"]) & rows.keys(), reverse=True)
                vectors = {name: rows[name] for name in known}
                return 200, {"vectors": vectors, "namespace": namespace, "usage": {"readUnits": 1}}
        raise Refused(404, {"code": 5, "message": "not found", "details": []})

    def _query(self, body: Any, namespace: str) -> Any:
        if len(body["vector"]) != self.dimension:
            message = (
                f"Vector dimension {len(body['vector'])} does not match the dimension of the index {self.dimension}"
            )
            raise Refused(400, {"code": 3, "message": message, "details": []})
        rows = [row for row in self.namespaces[namespace].values() if _passes(row["metadata"], body.get("filter"))]
        # A record with sparse values only comes last.
        dense = [row["values"] or [0.0] * self.dimension for row in rows]
        found = scores(dense, body["vector"], self.metric) if rows else np.zeros(0)
        matches = []
        for i in np.argsort(-found, kind="stable")[: body["topK"]]:
            values = rows[i]["values"] if body.get("includeValues") else []
            metadata = {"metadata": rows[i]["metadata"]} if body.get("includeMetadata") else {}
            matches.append({"id": rows[i]["id"], "score": float(found[i]), "values": values, **metadata})
        return {"results": [], "matches": matches, "namespace": namespace, "usage": {"readUnits": 1}}


def _passes(metadata: dict[str, Any], condition: Any) -> bool:
    """Whether all parts of a filter hold: equality, and "$and"."""
    for key, part in (condition or {}).items():
        if key == "$and":
            if not all(_passes(metadata, inner) for inner in part):
                return False
        elif metadata.get(key) != (part["$eq"] if isinstance(part, dict) else part):
            return False
    return True
