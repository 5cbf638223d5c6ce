"""LlamaIndex's PostgreSQL store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.stores.postgres import avectors_by_id, vectors_by_id

from .source import Source


def fetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """Vectors by node id, in one statement."""
    store._initialize()
    with store._session() as session:
        return vectors_by_id(session, _named(store, node_ids))


async def afetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """As :func:`fetch`, awaited."""
    store._initialize()
    async with store._async_session() as session:
        return await avectors_by_id(session, _named(store, node_ids))


def _named(store: Any, node_ids: Sequence[str]) -> Any:
    from sqlalchemy import select

    row = store._table_class
    # The store adds a node again under the same id; the vector that counts is the latest.
    return select(row.node_id, row.embedding).where(row.node_id.in_(node_ids)).order_by(row.id)


SOURCES = {"llama_index.vector_stores.postgres.base.PGVectorStore": Source(fetch, afetch)}
