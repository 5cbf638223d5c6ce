"""A replayed Pinecone index on loopback: upsert, query, fetch, delete and filters.

Queries: https://www.pinecone.io/docs/api/operation/query/ and
https://docs.pinecone.io/legacy/reference/api/data-plane/query; fetching by id:
https://docs.pinecone.io/reference/api/2026-07/data-plane/fetch; the other answers follow the client's own models.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.stores.replay.http import Replay, Request, as_written, scores, serving


class PineconeReplay(Replay):
    def __init__(self, dimension: int, metric: str = "cosine") -> None:
        super().__init__()
        self.dimension, self.metric = dimension, metric
        self.namespaces: dict[str, dict[str, dict[str, Any]]] = {}

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, request: Request) -> tuple[int, Any]:
        body = request.body or {}
        match request.method, request.path:
            case "POST", "/vectors/upsert":
                return self._upsert(body)
            case "POST", "/query":
                return self._query(body)
            case "GET", "/vectors/fetch":
                return self._fetch(request.arguments)
            case "POST", "/vectors/delete":
                return self._delete(body)
            case "POST", "/describe_index_stats":
                counts = {name: {"vectorCount": len(rows)} for name, rows in self.namespaces.items()}
                total = sum(len(rows) for rows in self.namespaces.values())
                return 200, {
                    "namespaces": counts,
                    "dimension": self.dimension,
                    "indexFullness": 0,
                    "totalVectorCount": total,
                }
        return 404, {"code": 5, "message": "not found", "details": []}

    def _upsert(self, body: Any) -> tuple[int, Any]:
        rows = self.namespaces.setdefault(body.get("namespace", ""), {})
        for vector in body["vectors"]:
            if "sparseValues" not in vector and len(vector["values"]) != self.dimension:
                return self._wrong_dimension(len(vector["values"]))
        for vector in body["vectors"]:
            rows[vector["id"]] = {**vector, "metadata": _as_stored(vector.get("metadata") or {})}
        return 200, {"upsertedCount": len(body["vectors"])}

    def _query(self, body: Any) -> tuple[int, Any]:
        query, namespace = body["vector"], body.get("namespace", "")
        if len(query) != self.dimension:
            return self._wrong_dimension(len(query))
        rows = [
            row for row in self.namespaces.get(namespace, {}).values() if _passes(row["metadata"], body.get("filter"))
        ]
        # A record with sparse values only comes last.
        dense = [row["values"] or [0.0] * self.dimension for row in rows]
        found = scores(dense, query, self.metric) if rows else np.zeros(0)
        matches = []
        for i in np.argsort(-found, kind="stable")[: body["topK"]]:
            match: dict[str, Any] = {"id": rows[i]["id"], "score": float(found[i])}
            match["values"] = as_written(rows[i]["values"]) if body.get("includeValues") else []
            if body.get("includeMetadata"):
                match["metadata"] = rows[i]["metadata"]
            matches.append(match)
        return 200, {"results": [], "matches": matches, "namespace": namespace, "usage": {"readUnits": 1}}

    def _fetch(self, arguments: dict[str, list[str]]) -> tuple[int, Any]:
        namespace = arguments.get("namespace", [""])[0]
        rows = self.namespaces.get(namespace, {})
        # In another order than requested: the answer is a map.
        known = sorted(set(arguments["ids"]) & rows.keys(), reverse=True)
        vectors = {name: {**rows[name], "values": as_written(rows[name]["values"])} for name in known}
        return 200, {"vectors": vectors, "namespace": namespace, "usage": {"readUnits": 1}}

    def _delete(self, body: Any) -> tuple[int, Any]:
        rows = self.namespaces.get(body.get("namespace", ""), {})
        if body.get("deleteAll"):
            rows.clear()
        passing = [
            name for name, row in rows.items() if body.get("filter") and _passes(row["metadata"], body["filter"])
        ]
        for name in [*body.get("ids", []), *passing]:
            rows.pop(name, None)
        return 200, {}

    def _wrong_dimension(self, given: int) -> tuple[int, Any]:
        message = f"Vector dimension {given} does not match the dimension of the index {self.dimension}"
        return 400, {"code": 3, "message": message, "details": []}


def _as_stored(metadata: dict[str, Any]) -> dict[str, Any]:
    # Pinecone returns every number as a floating-point number.
    return {
        key: float(value) if isinstance(value, int) and not isinstance(value, bool) else value
        for key, value in metadata.items()
    }


def _passes(metadata: dict[str, Any], wanted: Any) -> bool:
    for key, condition in (wanted or {}).items():
        if key in ("$and", "$or"):
            if not (all if key == "$and" else any)(_passes(metadata, part) for part in condition):
                return False
            continue
        for operator, value in (condition if isinstance(condition, dict) else {"$eq": condition}).items():
            if not _holds(metadata.get(key), operator, value):
                return False
    return True


def _holds(value: Any, operator: str, wanted: Any) -> bool:
    match operator:
        case "$eq":
            return bool(value == wanted)
        case "$ne":
            return bool(value != wanted)
        case "$in":
            return value in wanted
        case "$gte":
            return bool(value >= wanted)
        case "$lt":
            return bool(value < wanted)
    raise NotImplementedError(operator)


@contextmanager
def replaying(dimension: int, metric: str = "cosine") -> Iterator[PineconeReplay]:
    replay = PineconeReplay(dimension, metric)
    with serving(replay):
        yield replay
