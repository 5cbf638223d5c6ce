"""An index of the replayed Elasticsearch or OpenSearch server: its documents, and their matches and scores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.stores.replay.http import as_written

Source = dict[str, Any]
_SIMILARITY = {
    "cosine": "cosine",
    "l2_norm": "l2",
    "max_inner_product": "inner",
    "cosinesimil": "cosine",
    "l2": "l2",
    "innerproduct": "inner",
}


class Refused(Exception):
    """A request that the real server answers with an error."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.body = status, error_body(status, kind, reason)


def error_body(status: int, kind: str, reason: str) -> Source:
    cause = {"type": kind, "reason": reason}
    return {"error": {"root_cause": [cause], **cause}, "status": status}


class Index:
    """Mappings, settings and documents."""

    def __init__(self, product: str, version: tuple[int, int], body: Mapping[str, Any]) -> None:
        self.product = product
        self.properties: Source = body.get("mappings", {}).get("properties", {})
        kinds = ("dense_vector", "knn_vector")
        self.vectors = {name: field for name, field in self.properties.items() if field.get("type") in kinds}
        settings = body.get("settings", {})
        newer = version >= ((9, 2) if product == "elasticsearch" else (3, 0))
        # Restored from the index, not from the document that was sent.
        self.derived = newer and settings.get("index.mapping.exclude_source_vectors", True)
        self.hidden = self.derived and product == "elasticsearch"
        self.excluded: list[str] = body.get("mappings", {}).get("_source", {}).get("excludes", [])
        self.documents: dict[str, Source] = {}

    def put(self, name: str, source: Source) -> None:
        for field, mapping in self.vectors.items():
            if field in source:
                expected = mapping.get("dims", mapping.get("dimension"))
                if len(source[field]) != expected:
                    raise Refused(400, "document_parsing_exception", f"[{field}] needs {expected} dimensions")
                if self.derived:
                    source = {**source, field: self._derived(mapping, source[field])}
        self.documents[name] = source

    def _derived(self, mapping: Mapping[str, Any], vector: list[float]) -> list[float]:
        row = np.array(vector, dtype=np.float32)
        length = np.sqrt(row @ row)
        if self.product == "elasticsearch" and mapping.get("similarity", "cosine") == "cosine" and mapping["index"]:
            return as_written(row / length * length)
        method = mapping.get("method", {})
        if method.get("engine") == "faiss" and method.get("space_type") == "cosinesimil":
            return as_written(row / length)
        return as_written(row)

    def metric(self, field: str) -> str:
        mapping = self.vectors[field]
        return _SIMILARITY[
            mapping.get("similarity") or mapping.get("method", {}).get("space_type", "l2")
        ]  # fmt: skip

    def matrix(self, field: str, names: list[str], query: list[float]) -> tuple[Any, Any]:
        if field not in self.vectors:
            raise Refused(400, "query_shard_exception", f"failed to create query: field [{field}] does not exist")
        expected = self.vectors[field].get("dims", self.vectors[field].get("dimension"))
        if len(query) != expected:
            reason = (
                f"the query vector has a different dimension [{len(query)}] than the index vectors [{expected}]"
                if self.product == "elasticsearch"
                else f"Query vector has invalid dimension: {len(query)}. Dimension should be: {expected}"
            )
            raise Refused(400, "query_shard_exception", f"failed to create query: {reason}")
        rows = np.array([self.documents[name][field] for name in names], dtype=np.float64)
        return rows.reshape(len(names), expected), np.array(query, dtype=np.float64)

    def nearest(self, field: str, knn: Mapping[str, Any], query: list[float]) -> dict[str, float]:
        names = list(self.documents)
        for condition in listed(knn.get("filter")):
            passed = self.scores(condition)
            names = [name for name in names if name in passed]
        names = [name for name in names if field in self.documents[name]]
        rows, wanted = self.matrix(field, names, query)
        scored = _scores(rows, wanted, self.metric(field))
        best = np.argsort(-scored, kind="stable")[: knn["k"]]
        return {names[i]: float(scored[i]) for i in best}

    def scores(self, query: Mapping[str, Any]) -> dict[str, float]:
        """The ids of the documents that match, with their scores."""
        ((kind, body),) = query.items()
        match kind:
            case "match_all":
                return dict.fromkeys(self.documents, 1.0)
            case "ids":
                return {name: 1.0 for name in self.documents if name in body["values"]}
            case "term" | "terms":
                ((field, wanted),) = body.items()
                wanted = wanted["value"] if isinstance(wanted, dict) else wanted
                values = wanted if kind == "terms" else [wanted]
                return {n: 1.0 for n, source in self.documents.items() if self._value(n, source, field) in values}
            case "range":
                ((field, bounds),) = body.items()
                found = {n: self._value(n, source, field) for n, source in self.documents.items()}
                low, high = bounds.get("gte", -np.inf), bounds.get("lt", np.inf)
                return {n: 1.0 for n, value in found.items() if value is not None and low <= value < high}
            case "match":
                ((field, wanted),) = body.items()
                text = wanted["query"] if isinstance(wanted, dict) else wanted
                return {n: 1.0 for n, source in self.documents.items() if text in str(source.get(field))}
            case "bool":
                return self._bool(body)
            case "knn":
                ((field, knn),) = body.items()
                return self.nearest(field, knn, knn["vector"])
            case "hybrid":
                each = [self.scores(part) for part in body["queries"]]
                return {name: sum(part.get(name, 0.0) for part in each) for name in {n: 0 for p in each for n in p}}
            case "script_score":
                return self._script(self.scores(body["query"]), body["script"])
        raise Refused(400, "parsing_exception", f"unknown query [{kind}]")

    def _bool(self, body: Mapping[str, Any]) -> dict[str, float]:
        found = dict.fromkeys(self.documents, 0.0)
        for clause in ("must", "filter"):
            for part in listed(body.get(clause)):
                scored = self.scores(part)
                more = scored if clause == "must" else dict.fromkeys(scored, 0.0)
                found = {name: score + more[name] for name, score in found.items() if name in more}
        optional = [self.scores(part) for part in listed(body.get("should"))]
        if optional and not body.keys() & {"must", "filter"}:
            found = {name: score for name, score in found.items() if any(name in scored for scored in optional)}
        found = {name: score + sum(scored.get(name, 0.0) for scored in optional) for name, score in found.items()}
        for part in listed(body.get("must_not")):
            barred = self.scores(part)
            found = {name: score for name, score in found.items() if name not in barred}
        return found

    def _script(self, matching: Mapping[str, float], script: Mapping[str, Any]) -> dict[str, float]:
        text, parameters = script["source"], script["params"]
        if script.get("lang") == "knn":
            field, metric = parameters["field"], _SIMILARITY[parameters["space_type"]]
        else:
            found = re.search(r"(cosineSimilarity|l2norm|l2Squared)\(params\.\w+, (?:doc\[)?'(\w+)'", text)
            if found is None:
                raise Refused(400, "script_exception", "compile error")
            field, metric = found[2], "cosine" if found[1] == "cosineSimilarity" else "l2"
        query = parameters.get("query_vector") or parameters["query_value"]
        names = list(matching)
        if any(field not in self.documents[name] for name in names):
            raise Refused(400, "script_exception", "A document doesn't have a value for a vector field!")
        rows, wanted = self.matrix(field, names, query)
        return dict(zip(names, map(float, _scores(rows, wanted, metric)), strict=True))

    def _value(self, name: str, source: Any, field: str) -> Any:
        if field == "_id":
            return name
        # Dynamic mapping makes a string a text with a subfield "keyword".
        for part in field.removesuffix(".keyword").split("."):
            source = source.get(part) if isinstance(source, dict) else None
        return None if isinstance(source, str) and not field.endswith(".keyword") else source


def listed(part: Any) -> list[Any]:
    return part if isinstance(part, list) else [part] if part else []


def _scores(rows: Any, query: Any, metric: str) -> Any:
    match metric:
        case "cosine":
            return (1 + rows @ query / (np.linalg.norm(rows, axis=1) * np.linalg.norm(query))) / 2
        case "inner":
            product = rows @ query
            return np.where(product < 0, 1 / (1 - np.minimum(product, 0)), product + 1)
        case _:
            return 1 / (1 + np.sum((rows - query) ** 2, axis=1))
