"""A replayed Elasticsearch or OpenSearch server: it keeps what the client's bulk call indexes, and answers knn and
script_score queries by brute force. The formats follow these pages of the documentation:

bulk          elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk, docs.opensearch.org/latest/api-reference/document-apis/bulk
search        elastic.co/docs/api/doc/elasticsearch/operation/operation-search, docs.opensearch.org/latest/api-reference/search-apis/search
vectors       elastic.co/docs/reference/elasticsearch/mapping-reference/dense-vector (``fields``; out of ``_source`` since 9.2),
              docs.opensearch.org/latest/mappings/supported-field-types/knn-vector and .../knn-spaces (unit vectors for cosine)
knn           elastic.co/docs/solutions/search/vector/knn, docs.opensearch.org/latest/query-dsl/specialized/k-nn
ids           elastic.co/docs/reference/query-languages/query-dsl/query-dsl-ids-query, docs.opensearch.org/latest/query-dsl/term/ids
"""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import numpy as np

from tests.stores.replay.http import Refused, Replay, Request, as_written, scores, serving

Source = dict[str, Any]
METRICS = {"l2_norm": "l2", "max_inner_product": "inner", "cosinesimil": "cosine", "innerproduct": "inner"}


def refused(status: int, kind: str, reason: str) -> Refused:
    cause = {"type": kind, "reason": reason}
    return Refused(status, {"error": {"root_cause": [cause], **cause}, "status": status})


class ElasticReplay(Replay):
    """``product``: "elasticsearch" or "opensearch"."""

    def __init__(self, product: str, version: str) -> None:
        super().__init__()
        self.product, self.version = product, version
        self.indices: dict[str, Index] = {}
        if product == "elasticsearch":
            # The client refuses a server that does not name its product.
            kind = "application/vnd.elasticsearch+json;compatible-with=8"
            self.headers = {"X-Elastic-Product": "Elasticsearch", "Content-Type": kind}

    @property
    def searches(self) -> list[Any]:
        """The bodies of the searches since the last ``requests.clear()``."""
        return [request.body for request in self.requests if request.path.endswith("/_search")]

    def answer(self, request: Request) -> tuple[int, Any]:
        method, (name, *rest) = request.method, unquote(request.path).strip("/").split("/")
        match method, rest or name:
            case "GET", "":
                return 200, {"name": "replay", "version": {"number": self.version}, "tagline": "You Know, for Search"}
            case _, "_bulk":
                return 200, self._bulk(request.body)
            case "HEAD", _:
                return (200 if name in self.indices else 404), None
            case "PUT", str():
                self.indices[name] = Index(self.product, self.version, request.body or {})
                return 200, {"acknowledged": True, "shards_acknowledged": True, "index": name}
        if name not in self.indices:
            raise refused(404, "index_not_found_exception", f"no such index [{name}]")
        index = self.indices[name]
        match rest:
            case []:
                return 200, {name: {"mappings": {"properties": index.properties}}}
            case ["_refresh"]:
                return 200, {"_shards": {"total": 1, "successful": 1, "failed": 0}}
            case ["_delete_by_query"]:
                gone = index.scores(request.body["query"])
                for document in gone:
                    del index.documents[document]
                return 200, {"deleted": len(gone), "failures": []}
            case _:
                return 200, self._search(name, index, request.body, request.arguments.get("_source_includes", []))

    def _bulk(self, lines: list[Any]) -> Source:
        items, rest = [], iter(lines)
        for line in rest:
            ((action, place),) = line.items()
            index = self.indices[place["_index"]]
            # A serverless collection generates the id of a document.
            document = place.get("_id") or f"auto-{len(index.documents)}"
            if action == "delete":
                status = 200 if index.documents.pop(document, None) else 404
            else:
                index.put(document, next(rest))
                status = 201
            items.append({action: {"_index": place["_index"], "_id": document, "status": status}})
        return {"took": 1, "errors": False, "items": items}

    def _search(self, name: str, index: Index, body: Mapping[str, Any], includes: list[str]) -> Source:
        found = index.scores(body["query"]) if "query" in body else {}
        if "knn" in body:
            knn = body["knn"]
            if not knn["k"] <= knn["num_candidates"] <= 10_000:
                raise refused(400, "x_content_parse_exception", "[num_candidates] cannot be less than [k]")
            found |= index.nearest(knn["field"], knn, knn["query_vector"])
        best = sorted(found.items(), key=lambda item: -item[1])[: body.get("size", 10)]
        hits = [
            {"_index": name, "_id": n, "_score": score, **index.returned(n, body, ",".join(includes))}
            for n, score in best
        ]
        top = best[0][1] if best else None
        return {"hits": {"total": {"value": len(found), "relation": "eq"}, "max_score": top, "hits": hits}}


class Index:
    """Mappings and documents; ``excluded``: fields that are not kept in ``_source``."""

    def __init__(self, product: str, version: str, body: Mapping[str, Any]) -> None:
        self.product = product
        self.properties: Source = body.get("mappings", {}).get("properties", {})
        kinds = ("dense_vector", "knn_vector")
        self.vectors = {name: field for name, field in self.properties.items() if field.get("type") in kinds}
        major, minor, _ = map(int, version.split("."))
        # Restored from the index, not from the document that was sent.
        self.derived = (major, minor) >= ((9, 2) if product == "elasticsearch" else (3, 0))
        self.excluded: list[str] = body.get("mappings", {}).get("_source", {}).get("excludes", [])
        self.documents: dict[str, Source] = {}

    def put(self, name: str, source: Source) -> None:
        for field in self.vectors.keys() & source.keys() if self.derived else ():
            source = {**source, field: self._derived(self.vectors[field], source[field])}
        self.documents[name] = source

    def _derived(self, mapping: Mapping[str, Any], vector: list[float]) -> list[float]:
        row = np.array(vector, dtype=np.float32)
        length = np.sqrt(row @ row)
        if self.product == "elasticsearch" and mapping.get("similarity", "cosine") == "cosine" and mapping["index"]:
            return as_written(row / length * length)
        method = mapping.get("method", {})
        is_unit = (method.get("engine"), method.get("space_type")) == ("faiss", "cosinesimil")
        return as_written(row / length if is_unit else row)

    def returned(self, name: str, body: Mapping[str, Any], includes: Any) -> Source:
        """What a hit has of a document: ``_source``, and ``fields``."""
        document, kept = self.documents[name], body.get("_source", True)
        if not isinstance(kept, dict):
            kept = {} if kept is True else {"includes": listed(kept)}
        includes = includes.split(",") if includes else kept.get("includes", ["*"])
        excludes = [*kept.get("excludes", kept.get("exclude", [])), *self.excluded]
        if self.derived and self.product == "elasticsearch":
            excludes += self.vectors
        names = [key for key in document if ("*" in includes or key in includes) and key not in excludes]
        found = {} if body.get("_source") is False else {"_source": {key: document[key] for key in names}}
        fields = {key for key in body.get("fields", []) if key in document and key not in self.excluded}
        return found | ({"fields": {key: listed(document[key]) for key in fields}} if fields else {})

    def nearest(self, field: str, knn: Mapping[str, Any], query: list[float]) -> dict[str, float]:
        names = [name for name, source in self.documents.items() if field in source]
        for condition in listed(knn.get("filter")):
            passed = self.scores(condition)
            names = [name for name in names if name in passed]
        mapping = self.vectors[field]
        space = mapping.get("similarity") or mapping.get("method", {}).get("space_type", "l2")
        scored = self._scored(field, names, query, METRICS.get(space, space))
        return dict(sorted(scored.items(), key=lambda item: -item[1])[: knn["k"]])

    def _scored(self, field: str, names: list[str], query: list[float], metric: str) -> dict[str, float]:
        length = self.vectors[field].get("dims", self.vectors[field].get("dimension"))
        if len(query) != length:
            raise refused(400, "query_shard_exception", f"the query has dimension [{len(query)}], not [{length}]")
        rows = np.array([self.documents[name][field] for name in names]).reshape(len(names), length)
        found = scores(rows, query, metric)
        # Scores are positive, so l2 counts as 1 / (1 + distance²) and a product below 0 as 1 / (1 - product).
        positive = np.where(found < 0, 1 / (1 - np.minimum(found, 0)), 1 + found)
        return dict(zip(names, map(float, (1 + found) / 2 if metric == "cosine" else positive), strict=True))

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
                return {n: 1.0 for n, source in self.documents.items() if _value(n, source, field) in listed(wanted)}
            case "match":
                ((field, wanted),) = body.items()
                return {n: 1.0 for n, source in self.documents.items() if wanted["query"] in source[field]}
            case "bool":
                needed = [self.scores(part) for name in ("must", "filter") for part in listed(body.get(name))]
                optional = [self.scores(part) for part in listed(body.get("should"))]
                names = [name for name in self.documents if all(name in part for part in needed)]
                scored = [self.scores(part) for part in listed(body.get("must"))] + optional
                return {n: sum(part.get(n, 0.0) for part in scored) for n in names if needed or n in optional[0]}
            case "knn":
                ((field, knn),) = body.items()
                return self.nearest(field, knn, knn["vector"])
            case "hybrid":
                each = [self.scores(part) for part in body["queries"]]
                return {name: sum(part.get(name, 0.0) for part in each) for part in each for name in part}
            case "script_score":
                script, names = body["script"], list(self.scores(body["query"]))
                function = re.search(r"(cosineSimilarity|l2norm)\(params\.\w+, '(\w+)'", script["source"])
                assert function is not None, script
                metric = "cosine" if function[1] == "cosineSimilarity" else "l2"
                return self._scored(function[2], names, script["params"]["query_vector"], metric)
        raise refused(400, "parsing_exception", f"unknown query [{kind}]")


def listed(part: Any) -> list[Any]:
    return part if isinstance(part, list) else [part] if part else []


def _value(name: str, source: Any, field: str) -> Any:
    if field == "_id":
        return name
    # Dynamic mapping makes a string a text with a subfield "keyword".
    for part in field.removesuffix(".keyword").split("."):
        source = source.get(part) if isinstance(source, dict) else None
    return None if isinstance(source, str) and not field.endswith(".keyword") else source


@contextmanager
def replay(product: str, version: str) -> Iterator[ElasticReplay]:
    """The server, until the block ends."""
    with serving(ElasticReplay(product, version)) as server:
        yield server
