"""The vector reader for langchain-pinecone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.stores.pinecone import asearch_with_vectors, avectors_by_id, search_with_vectors, vectors_by_id

from .reader import Hits, refuse_unknown


def search(store: Any, query: list[float], fetch_k: int, **more: Any) -> Hits:
    """The index's own top ``fetch_k`` with their vectors, in one call."""
    return _hits(store, *search_with_vectors(store.index, query, fetch_k, **_arguments(store, **more)))


async def asearch(store: Any, query: list[float], fetch_k: int, **more: Any) -> Hits:
    """Await what ``search`` returns, from the store's asyncio client if it is open."""
    index = _open_asyncio_client(store)
    if index is None:
        return await asyncio.to_thread(search, store, query, fetch_k, **more)
    return _hits(store, *await asearch_with_vectors(index, query, fetch_k, **_arguments(store, **more)))


def fetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by document id, in the store's own namespace."""
    return vectors_by_id(store.index, ids, store._namespace)


async def afetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Await what ``fetch`` returns, from the store's asyncio client if it is open."""
    index = _open_asyncio_client(store)
    if index is None:
        return await asyncio.to_thread(fetch, store, ids)
    return await avectors_by_id(index, ids, store._namespace)


def _open_asyncio_client(store: Any) -> Any:
    """The asyncio client that the caller gave the store, or that ``async with store`` opened; else None."""
    # Otherwise the store would open a client and a connection per search, and close the client while other searches use
    # it. The store's sync client keeps its connections, and threads can share it.
    return store._async_index if store._async_index_provided or store._async_index_context_open else None


def _arguments(store: Any, *, filter: Any = None, namespace: str | None = None, **unknown: Any) -> dict[str, Any]:
    if unknown:
        refuse_unknown("PineconeVectorStore", unknown, "filter", "namespace")
    return {"filter": filter, "namespace": store._namespace if namespace is None else namespace}


def _hits(store: Any, rows: list[tuple[str, dict[str, Any]]], vectors: Any) -> Hits:
    # Records without text are left out, as in the store's own search.
    kept = [i for i, (_, metadata) in enumerate(rows) if store._text_key in metadata]
    documents = [
        Document(id=rows[i][0], page_content=rows[i][1].pop(store._text_key), metadata=rows[i][1]) for i in kept
    ]
    return documents, [vectors[i] for i in kept] if len(kept) < len(rows) else vectors
