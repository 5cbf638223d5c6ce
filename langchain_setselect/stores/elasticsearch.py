"""Vector readers for the two stores of langchain-elasticsearch, whose documents have no ids."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from langchain_core.documents import Document

from shared_core.errors import VectorSourceError
from shared_core.retrieval.lookup import refuse_unknown
from shared_core.stores import elasticsearch

from .reader import Hits, read_with_client


def _request(
    store: Any, *, filter: Any = None, custom_query: Any = None, doc_builder: Any = None, **unknown: Any
) -> dict[str, Any]:
    refuse_unknown(type(store).__name__, unknown, ["filter", "custom_query", "doc_builder"])
    return {"filter": filter, "custom_query": custom_query}


def _hits(store: Any, hits: Any, vectors: Any, more: dict[str, Any]) -> Hits:
    if more.get("doc_builder") is not None:
        return [more["doc_builder"](hit) for hit in hits], vectors
    sources = [hit["_source"] for hit in hits]
    documents = [Document(page_content=s.get(store.query_field, ""), metadata=s.get("metadata", {})) for s in sources]
    return documents, vectors


def _refuse_sync(store: Any) -> Any:
    raise VectorSourceError(f"{type(store).__name__} is asynchronous: use ainvoke, or an ElasticsearchStore")


READER = read_with_client(elasticsearch, attrgetter("_store"), _request, _hits)
ASYNC_READER = read_with_client(elasticsearch, _refuse_sync, _request, _hits, aclient=attrgetter("_store"))
