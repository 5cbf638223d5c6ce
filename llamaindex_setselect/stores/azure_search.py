"""LlamaIndex's Azure AI Search store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.errors import VectorSourceError
from shared_core.stores.azure_search import avectors_by_id, vectors_by_id

from .source import Source


def fetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """Vectors by node id, in one call."""
    if store.client is None:
        raise VectorSourceError(
            "AzureAISearchVectorStore has an async client only: use the async methods, or give it a sync client too"
        )
    fields = store._field_mapping
    return vectors_by_id(store.client, node_ids, fields["id"], fields["embedding"])


async def afetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """As :func:`fetch`, with the store's async client where it has one."""
    if store.aclient is None:
        return await asyncio.to_thread(fetch, store, node_ids, index)
    fields = store._field_mapping
    return await avectors_by_id(store.aclient, node_ids, fields["id"], fields["embedding"])


SOURCES = {
    "llama_index.vector_stores.azureaisearch.base.AzureAISearchVectorStore": Source(fetch, afetch, widest=10_000)
}
