"""LlamaIndex's Elasticsearch store, whose client is async only."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.stores.elasticsearch import avectors_by_id

from .source import Source


async def afetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """Vectors by node id, in one call."""
    return await avectors_by_id(store.client, store.index_name, store.vector_field, node_ids)


def fetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """As :func:`afetch`, in the event loop in which the store's own ``query`` runs."""
    return asyncio.get_event_loop().run_until_complete(afetch(store, node_ids, index))


SOURCES = {"llama_index.vector_stores.elasticsearch.base.ElasticsearchStore": Source(fetch, afetch, widest=10_000)}
