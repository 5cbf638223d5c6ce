"""How LangChain's stores filter by metadata: the arguments of a search that lets in only documents with some values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shared_core.retrieval.follow import Where
from shared_core.retrieval.inputs import find_registered
from shared_core.stores import chroma, lancedb, qdrant

# Arguments of a search that lets in what the filter does, as far as it has these values.
Narrow = Callable[[Any, Any, Where], dict[str, Any]]


def _operators(store: Any, own: Any, where: Where) -> dict[str, Any]:
    return {"filter": chroma.narrow_filter(own, where)}


def _qdrant(store: Any, own: Any, where: Where) -> dict[str, Any]:
    return {"filter": qdrant.narrow_filter(own, where, f"{store.metadata_payload_key}.")}


def _lancedb(store: Any, own: Any, where: Where) -> dict[str, Any]:
    if isinstance(own, dict):
        from langchain_community.vectorstores.lancedb import to_lance_filter

        own = to_lance_filter(own)
    return {"filter": lancedb.narrow_filter(own, where, "metadata."), "prefilter": True}


# The keys are full names of classes, so that no store's package has to be imported.
FILTERS: dict[type | str, Narrow] = {
    "langchain_chroma.vectorstores.Chroma": _operators,
    "langchain_community.vectorstores.lancedb.LanceDB": _lancedb,
    "langchain_pinecone.vectorstores.PineconeVectorStore": _operators,
    "langchain_postgres.vectorstores.PGVector": _operators,
    "langchain_qdrant.qdrant.QdrantVectorStore": _qdrant,
}


def find_narrow(store: Any) -> Narrow | None:
    """How a search of this store is narrowed; None if that is not known."""
    return find_registered(FILTERS, type(store))
