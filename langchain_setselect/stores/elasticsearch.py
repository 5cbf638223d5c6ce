"""The two stores of langchain-elasticsearch, whose documents have no ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.documents import Document

from shared_core.errors import VectorSourceError
from shared_core.stores.elasticsearch import asearch_with_vectors, search_with_vectors

from .source import Hits, Source, refuse_unknown

Builder = Callable[[dict[str, Any]], Document]
_KNOWN = ("filter", "custom_query", "doc_builder")


def search(store: Any, query: list[float], fetch_k: int, *, doc_builder: Builder | None = None, **more: Any) -> Hits:
    """The store's own top ``fetch_k`` with their vectors, in one call."""
    refuse_unknown("ElasticsearchStore", {name: more[name] for name in more if name not in _KNOWN}, *_KNOWN)
    hits, vectors = search_with_vectors(store._store, query, fetch_k, **more)
    return _documents(store, hits, doc_builder), vectors


async def asearch(
    store: Any, query: list[float], fetch_k: int, *, doc_builder: Builder | None = None, **more: Any
) -> Hits:
    """As :func:`search`, of AsyncElasticsearchStore."""
    refuse_unknown("AsyncElasticsearchStore", {name: more[name] for name in more if name not in _KNOWN}, *_KNOWN)
    hits, vectors = await asearch_with_vectors(store._store, query, fetch_k, **more)
    return _documents(store, hits, doc_builder), vectors


def search_async_only(store: Any, query: list[float], fetch_k: int, **more: Any) -> Hits:
    """What the store itself does."""
    raise VectorSourceError(f"{type(store).__name__} is asynchronous: use ainvoke, or an ElasticsearchStore")


def _documents(store: Any, hits: list[dict[str, Any]], doc_builder: Builder | None) -> list[Document]:
    if doc_builder is not None:
        return [doc_builder(hit) for hit in hits]
    sources = [hit["_source"] for hit in hits]
    return [Document(page_content=s.get(store.query_field, ""), metadata=s.get("metadata", {})) for s in sources]


SOURCES = {
    "langchain_elasticsearch.vectorstores.ElasticsearchStore": Source(search, widest=10_000),
    "langchain_elasticsearch.vectorstores.AsyncElasticsearchStore": Source(search_async_only, asearch, widest=10_000),
}
