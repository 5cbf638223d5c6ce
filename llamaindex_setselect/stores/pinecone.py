"""LlamaIndex's Pinecone store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.stores.pinecone import vectors_by_id

from .source import Source


def fetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """Vectors by node id, for nodes that the store's own search has not just found.

    The store writes a node that came from a document under the document's id and its own, which cannot be told from
    the latter: such nodes are not found this way.
    """
    return vectors_by_id(store.client, node_ids, store.namespace)


SOURCES = {"llama_index.vector_stores.pinecone.base.PineconeVectorStore": Source(fetch, on_node=True, widest=10_000)}
