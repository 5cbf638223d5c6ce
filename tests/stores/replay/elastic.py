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

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np

from tests.stores.replay import http as http_replay
from tests.stores.replay.elastic_index import Index, Refused, Source, listed
from tests.stores.replay.http import Replay, Request, serving

_BODY = {
    "elasticsearch": {"knn", "query", "size", "_source", "fields", "min_score", "post_filter", "explain"},
    "opensearch": {"query", "size", "_source", "fields", "min_score", "post_filter", "explain"},
}


class ElasticReplay(Replay):
    """``product``: "elasticsearch" or "opensearch"."""

    def __init__(self, product: str, version: str) -> None:
        super().__init__()
        self.RequestHandlerClass = _Handler
        self.product, self.version = product, version
        self.indices: dict[str, Index] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def searches(self) -> list[Any]:
        """The bodies of the searches since the last ``requests.clear()``."""
        return [request.body for request in self.requests if request.path.endswith("/_search")]

    def reply(self, request: Request) -> tuple[int, Any]:
        with self._lock:
            self.requests.append(request)
            try:
                return self.answer(request)
            except Refused as refused:
                return refused.status, refused.body

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
                version = tuple(int(part) for part in self.version.split(".")[:2])
                self.indices[name] = Index(self.product, (version[0], version[1]), request.body or {})
                return 200, {"acknowledged": True, "shards_acknowledged": True, "index": name}
        if name not in self.indices:
            raise Refused(404, "index_not_found_exception", f"no such index [{name}]")
        match method, rest:
            case "GET", []:
                return 200, {name: {"mappings": {"properties": self.indices[name].properties}}}
            case "POST", ["_refresh"]:
                return 200, {"_shards": {"total": 1, "successful": 1, "failed": 0}}
            case "POST", ["_delete_by_query"]:
                gone = self.indices[name].scores(request.body["query"])
                for document in gone:
                    del self.indices[name].documents[document]
                return 200, {"deleted": len(gone), "failures": []}
            case "POST" | "GET", ["_search"]:
                return 200, self._search(name, request.body, request.arguments)
        raise Refused(405, "illegal_argument_exception", f"{method} {request.path}")

    def _bulk(self, lines: list[Any]) -> Source:
        items, rest = [], iter(lines)
        for line in rest:
            ((action, place),) = line.items()
            index, status, result = self.indices[place["_index"]], 200, "deleted"
            # A serverless collection generates the id of a document.
            document = place.get("_id") or f"auto-{len(index.documents)}"
            if action == "delete":
                if index.documents.pop(document, None) is None:
                    status, result = 404, "not_found"
            else:
                index.put(document, next(rest))
                status, result = 201, "created"
            items.append({action: {"_index": place["_index"], "_id": document, "result": result, "status": status}})
        return {"took": 1, "errors": False, "items": items}

    def _search(self, name: str, body: Mapping[str, Any], arguments: Mapping[str, list[str]]) -> Source:
        unknown = set(body) - _BODY[self.product]
        if unknown:
            raise Refused(400, "parsing_exception", f"Unknown key in [{unknown.pop()}].")
        index, size = self.indices[name], body.get("size", 10)
        if size > 10_000:
            raise Refused(400, "illegal_argument_exception", "Result window is too large")
        found = index.scores(body["query"]) if "query" in body else {}
        if "knn" in body:
            knn = body["knn"]
            if not knn["k"] <= knn["num_candidates"] <= 10_000:
                raise Refused(400, "x_content_parse_exception", "[num_candidates] cannot be less than [k]")
            found |= index.nearest(knn["field"], knn, knn["query_vector"])
        if "post_filter" in body:
            passed = index.scores(body["post_filter"])
            found = {n: score for n, score in found.items() if n in passed}
        best = sorted(found.items(), key=lambda item: -item[1])
        best = [(n, score) for n, score in best if score >= body.get("min_score", -np.inf)]
        return {
            "took": 1,
            "timed_out": False,
            "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
            "hits": {
                "total": {"value": len(best), "relation": "eq"},
                "max_score": best[0][1] if best else None,
                "hits": [
                    {"_index": name, "_id": n, "_score": score, **_returned(index, n, body, arguments)}
                    for n, score in best[:size]
                ],
            },
        }


def _returned(index: Index, name: str, body: Mapping[str, Any], arguments: Mapping[str, list[str]]) -> Source:
    document = index.documents[name]
    kept = body.get("_source", True)
    if not isinstance(kept, dict):
        kept = {"includes": [] if kept is True else listed(kept)} if kept is not False else None
    if kept is not None and "_source_includes" in arguments:
        kept = {"includes": arguments["_source_includes"][0].split(",")}
    found: Source = {}
    if kept is not None:
        includes = kept.get("includes", kept.get("include", []))
        excludes = [*kept.get("excludes", kept.get("exclude", [])), *index.excluded]
        if index.hidden and kept.get("exclude_vectors", True):
            excludes += index.vectors
        found["_source"] = {
            key: value
            for key, value in document.items()
            if (not includes or _among(key, includes)) and not _among(key, excludes)
        }
    asked = body.get("fields", [])
    fields = {
        key: value if isinstance(value, list) else [value]
        for key, value in document.items()
        if _among(key, asked) and not _among(key, index.excluded)
    }
    return found | ({"fields": fields} if fields else {})


def _among(key: str, patterns: list[str]) -> bool:
    return any(fnmatch(key, pattern) for pattern in patterns)


class _Handler(http_replay._Handler):
    server: ElasticReplay

    def _serve(self) -> None:
        url = urlsplit(self.path)
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        lines = "ndjson" in (self.headers.get("Content-Type") or "") or url.path.endswith("_bulk")
        body: Any = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text) if text else None
        status, found = self.server.reply(Request(self.command, url.path, parse_qs(url.query), body))
        data = b"" if found is None else json.dumps(found).encode()
        self.send_response(status)
        if self.server.product == "elasticsearch":
            # The client refuses a server that does not name its product.
            self.send_header("X-Elastic-Product", "Elasticsearch")
            self.send_header("Content-Type", "application/vnd.elasticsearch+json;compatible-with=8")
        else:
            self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(data)))
        # An async client must not reuse a connection that belongs to the event loop of another test.
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _serve


@contextmanager
def replay(product: str, version: str) -> Iterator[ElasticReplay]:
    """The server, until the block ends."""
    server = ElasticReplay(product, version)
    with serving(server):
        yield server
