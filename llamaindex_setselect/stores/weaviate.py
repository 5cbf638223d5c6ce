"""LlamaIndex's Weaviate store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.stores.weaviate import avectors_by_id, vectors_by_id

from .source import Source


def fetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """Vectors by node id, for nodes that the store's own search has not left them on: in one call."""
    return vectors_by_id(store.client.collections.get(store.index_name), node_ids)


async def afetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """As :func:`fetch`, with the store's async client where it has one."""
    if store._aclient is None:
        return await asyncio.to_thread(fetch, store, node_ids, index)
    return await avectors_by_id(store._aclient.collections.get(store.index_name), node_ids)


SOURCES = {
    "llama_index.vector_stores.weaviate.base.WeaviateVectorStore": Source(fetch, afetch, on_node=True, widest=10_000)
}
