"""LlamaIndex's OpenSearch store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.stores.opensearch import avectors_by_id, vectors_by_id

from .source import Source


def fetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """Vectors by node id, in one call."""
    client = store.client
    return vectors_by_id(
        client._os_client, client._index, client._embedding_field, node_ids, id_field=_id_field(client)
    )


async def afetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """As :func:`fetch`, by the store's async client."""
    client = store.client
    return await avectors_by_id(
        client._os_async_client, client._index, client._embedding_field, node_ids, id_field=_id_field(client)
    )


def _id_field(client: Any) -> str | None:
    # In a serverless collection, which takes no ids, the store keeps them in a field.
    return "id" if client.is_aoss else None


SOURCES = {"llama_index.vector_stores.opensearch.base.OpensearchVectorStore": Source(fetch, afetch, widest=10_000)}
