"""LlamaIndex's SimpleVectorStore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.vector_stores.simple import SimpleVectorStore
from numpy.typing import ArrayLike

from .source import Source


def fetch(store: SimpleVectorStore, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """Vectors by node id."""
    stored = store.data.embedding_dict
    return {node_id: stored[node_id] for node_id in node_ids if node_id in stored}


SOURCES = {"llama_index.core.vector_stores.simple.SimpleVectorStore": Source(fetch)}
