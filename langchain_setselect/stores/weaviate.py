"""The store of langchain-weaviate."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.documents import Document

from shared_core.stores.weaviate import Vectors, asearch_with_vectors, search_with_vectors

from .source import Hits, Source


def search(store: Any, query: list[float], fetch_k: int, *, tenant: str | None = None, **more: Any) -> Hits:
    """The collection's own top ``fetch_k`` with their vectors, in one call; ``more`` is for ``query.hybrid``."""
    asked, uuids = _as_the_store_asks(store, more)
    with store._tenant_context(tenant) as collection:
        found = search_with_vectors(collection, query, fetch_k, **asked)
    return _hits(store, *found, uuids=uuids)


async def asearch(store: Any, query: list[float], fetch_k: int, *, tenant: str | None = None, **more: Any) -> Hits:
    """As :func:`search`, with the store's async client where it has one."""
    if store._client_async is None:
        return await asyncio.to_thread(search, store, query, fetch_k, tenant=tenant, **more)
    asked, uuids = _as_the_store_asks(store, more)
    async with store._atenant_context(tenant) as collection:
        found = await asearch_with_vectors(collection, query, fetch_k, **asked)
    return _hits(store, *found, uuids=uuids)


def _as_the_store_asks(store: Any, more: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    asked = {name: value for name, value in more.items() if name not in ("return_uuids", "include_vector")}
    asked["return_metadata"] = [*asked.get("return_metadata", ()), "score"]
    if "return_properties" in asked:
        asked["return_properties"] = [*asked["return_properties"], store._text_key]
    return asked, bool(more.get("return_uuids", False))


def _hits(store: Any, objects: list[Any], vectors: Vectors, uuids: bool) -> Hits:
    documents = []
    for each in objects:
        text = each.properties.pop(store._text_key)
        told = {name: value for name, value in vars(each.metadata).items() if value is not None and name != "score"}
        metadata = {**each.properties, **told, **({"uuid": str(each.uuid)} if uuids else {})}
        documents.append(Document(page_content=text, metadata=metadata))
    return documents, vectors


# The documents have no id of their own (return_uuids puts one into the metadata), so none can be looked up by it.
SOURCES = {"langchain_weaviate.vectorstores.WeaviateVectorStore": Source(search, asearch, widest=10_000)}
