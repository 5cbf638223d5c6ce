"""LlamaIndex's Qdrant store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.errors import VectorSourceError
from shared_core.stores.qdrant import avectors_by_id, vectors_by_id

from .source import Source


def fetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """Vectors by node id, in one call."""
    if store.client is None:
        raise VectorSourceError("QdrantVectorStore has no sync client: give it client=, or use the async methods")
    return vectors_by_id(store.client, store.collection_name, node_ids, _names(store))


async def afetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """The same through the store's async client; in a thread where it has none."""
    if store._aclient is None:
        return await asyncio.to_thread(fetch, store, node_ids, index)
    return await avectors_by_id(store._aclient, store.collection_name, node_ids, _names(store))


def _names(store: Any) -> list[str]:
    # With an async client alone the store learns only with its first query that the vector has no name.
    sure = store.dense_vector_name == "" or store.client is not None
    return [store.dense_vector_name] if sure else [store.dense_vector_name, ""]


SOURCES = {"llama_index.vector_stores.qdrant.base.QdrantVectorStore": Source(fetch, afetch)}
