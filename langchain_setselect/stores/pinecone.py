"""The store of langchain-pinecone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.stores.pinecone import (
    Rows,
    Vectors,
    asearch_with_vectors,
    avectors_by_id,
    search_with_vectors,
    vectors_by_id,
)

from .source import Hits, Source, refuse_unknown


def search(
    store: Any, query: list[float], fetch_k: int, *, filter: Any = None, namespace: str | None = None, **unknown: Any
) -> Hits:
    """The index's own top ``fetch_k`` with their vectors, in one call."""
    refuse_unknown("PineconeVectorStore", unknown, "filter", "namespace")
    place = store._namespace if namespace is None else namespace
    return _hits(store, *search_with_vectors(store.index, query, fetch_k, filter=filter, namespace=place))


async def asearch(
    store: Any, query: list[float], fetch_k: int, *, filter: Any = None, namespace: str | None = None, **unknown: Any
) -> Hits:
    """As :func:`search`, with the store's asyncio client where that is open."""
    index = _open_asyncio_client(store)
    if index is None:
        return await asyncio.to_thread(search, store, query, fetch_k, filter=filter, namespace=namespace, **unknown)
    refuse_unknown("PineconeVectorStore", unknown, "filter", "namespace")
    place = store._namespace if namespace is None else namespace
    return _hits(store, *await asearch_with_vectors(index, query, fetch_k, filter=filter, namespace=place))


def fetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by document id, in the store's own namespace."""
    return vectors_by_id(store.index, ids, store._namespace)


async def afetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """As :func:`fetch`, with the store's asyncio client where that is open."""
    index = _open_asyncio_client(store)
    if index is None:
        return await asyncio.to_thread(fetch, store, ids)
    return await avectors_by_id(index, ids, store._namespace)


def _open_asyncio_client(store: Any) -> Any:
    """The asyncio client that the caller gave the store, or that is open since ``async with store``.

    Otherwise the store would open one for each search, at the price of a new connection, and close it in the middle
    of any other search that runs beside; its sync client keeps its connections and may be shared by threads.
    """
    return store._async_index if store._async_index_provided or store._async_index_context_open else None


def _hits(store: Any, rows: Rows, vectors: Vectors) -> Hits:
    # As the store's own search does: what has no text is no document.
    kept = [i for i, (_, metadata) in enumerate(rows) if store._text_key in metadata]
    documents = [
        Document(id=rows[i][0], page_content=rows[i][1].pop(store._text_key), metadata=rows[i][1]) for i in kept
    ]
    return documents, vectors if len(kept) == len(rows) else [vectors[i] for i in kept]


SOURCES = {"langchain_pinecone.vectorstores.PineconeVectorStore": Source(search, asearch, fetch, afetch, widest=10_000)}
