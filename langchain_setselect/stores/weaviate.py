"""The vector reader for langchain-weaviate."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.documents import Document

from shared_core.stores.weaviate import WIDEST, asearch_with_vectors, search_with_vectors

from .reader import Hits, VectorReader


def _search(store: Any, query: list[float], fetch_k: int, *, tenant: str | None = None, **more: Any) -> Hits:
    """The collection's own top ``fetch_k`` with their vectors, in one call; ``query.hybrid`` gets ``more``."""
    with store._tenant_context(tenant) as collection:
        objects, vectors = search_with_vectors(collection, query, fetch_k, **_arguments(store, more))
    return _documents(store, objects, more), vectors


async def _asearch(store: Any, query: list[float], fetch_k: int, *, tenant: str | None = None, **more: Any) -> Hits:
    """Await what ``_search`` returns, from the store's async client if it has one."""
    if store._client_async is None:
        return await asyncio.to_thread(_search, store, query, fetch_k, tenant=tenant, **more)
    async with store._atenant_context(tenant) as collection:
        objects, vectors = await asearch_with_vectors(collection, query, fetch_k, **_arguments(store, more))
    return _documents(store, objects, more), vectors


def _arguments(store: Any, more: dict[str, Any]) -> dict[str, Any]:
    arguments = {name: value for name, value in more.items() if name not in ("return_uuids", "include_vector")}
    arguments["return_metadata"] = [*arguments.get("return_metadata", ()), "score"]
    if "return_properties" in arguments:
        arguments["return_properties"] = [*arguments["return_properties"], store._text_key]
    return arguments


def _documents(store: Any, objects: list[Any], more: dict[str, Any]) -> list[Document]:
    documents = []
    for each in objects:
        text = each.properties.pop(store._text_key)
        facts = {name: value for name, value in vars(each.metadata).items() if value is not None and name != "score"}
        uuid = {"uuid": str(each.uuid)} if more.get("return_uuids") else {}
        documents.append(Document(page_content=text, metadata={**each.properties, **facts, **uuid}))
    return documents


# The documents have no id (return_uuids writes one into the metadata), so vectors cannot be looked up.
READER = VectorReader(_search, _asearch, widest=WIDEST, filters=("filters",))
