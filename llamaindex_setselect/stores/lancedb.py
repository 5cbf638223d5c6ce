"""LlamaIndex's LanceDB store, whose search leaves the vectors on the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.stores.lancedb import vectors_by_id

from .source import Source


def fetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """Vectors by node id, in one call."""
    # There is no table until something is added.
    return {} if store._table is None else vectors_by_id(store.table, node_ids, store.vector_column_name)


SOURCES = {"llama_index.vector_stores.lancedb.base.LanceDBVectorStore": Source(fetch, on_node=True)}
