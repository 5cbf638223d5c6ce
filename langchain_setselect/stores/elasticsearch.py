"""Vector readers for the two stores of langchain-elasticsearch, whose documents have no ids."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document

from shared_core.errors import VectorSourceError
from shared_core.stores.elasticsearch import asearch_with_vectors, search_with_vectors

from .reader import Hits, refuse_unknown


def search(store: Any, query: list[float], fetch_k: int, *, doc_builder: Any = None, **more: Any) -> Hits:
    """The store's own top ``fetch_k`` with their vectors, in one call."""
    _check_arguments(store, more)
    hits, vectors = search_with_vectors(store._store, query, fetch_k, **more)
    return _documents(store, hits, doc_builder), vectors


async def asearch(store: Any, query: list[float], fetch_k: int, *, doc_builder: Any = None, **more: Any) -> Hits:
    """Await what ``search`` returns, from an AsyncElasticsearchStore."""
    _check_arguments(store, more)
    hits, vectors = await asearch_with_vectors(store._store, query, fetch_k, **more)
    return _documents(store, hits, doc_builder), vectors


def refuse_sync(store: Any, query: list[float], fetch_k: int, **more: Any) -> Hits:
    """Raise the error for a sync search of an asynchronous store."""
    raise VectorSourceError(f"{type(store).__name__} is asynchronous: use ainvoke, or an ElasticsearchStore")


def _check_arguments(store: Any, more: dict[str, Any]) -> None:
    unknown = {name: value for name, value in more.items() if name not in ("filter", "custom_query")}
    if unknown:
        refuse_unknown(type(store).__name__, unknown, "filter", "custom_query", "doc_builder")


def _documents(store: Any, hits: list[dict[str, Any]], doc_builder: Any) -> list[Document]:
    if doc_builder is not None:
        return [doc_builder(hit) for hit in hits]
    sources = [hit["_source"] for hit in hits]
    return [Document(page_content=s.get(store.query_field, ""), metadata=s.get("metadata", {})) for s in sources]
