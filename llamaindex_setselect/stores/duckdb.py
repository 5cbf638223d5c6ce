"""LlamaIndex's DuckDB store, whose search leaves the vectors on the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.stores.duckdb import vectors_by_id

from .source import Source


def fetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """Vectors by node id, in one query, on the connection that the store keeps for this thread."""
    return vectors_by_id(store.client, store.table_name, node_ids, id_column="node_id")


SOURCES = {"llama_index.vector_stores.duckdb.base.DuckDBVectorStore": Source(fetch, on_node=True)}
