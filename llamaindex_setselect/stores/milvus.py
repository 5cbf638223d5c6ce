"""LlamaIndex's Milvus store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.errors import VectorSourceError
from shared_core.stores.milvus import avectors_by_id, vectors_by_id

from .source import Source


def fetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """Vectors by node id, in one request."""
    return vectors_by_id(store.client, store.collection_name, node_ids, field=_field(store))


async def afetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """As :func:`fetch`, awaiting the store's async client where it has one."""
    if store.aclient is None:
        return await asyncio.to_thread(fetch, store, node_ids, index)
    return await avectors_by_id(store.aclient, store.collection_name, node_ids, field=_field(store))


def _field(store: Any) -> str:
    if not store.enable_dense:
        raise VectorSourceError(
            f"the collection {store.collection_name!r} holds no dense vectors: its store has enable_dense=False"
        )
    return str(store.embedding_field)


SOURCES = {"llama_index.vector_stores.milvus.base.MilvusVectorStore": Source(fetch, afetch, widest=16_384)}
