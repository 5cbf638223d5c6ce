"""LlamaIndex's Chroma store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.stores.chroma import vectors_by_id

from .source import Source


def fetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """Vectors by node id, in one call."""
    return vectors_by_id(store.client, node_ids)


SOURCES = {"llama_index.vector_stores.chroma.base.ChromaVectorStore": Source(fetch)}
