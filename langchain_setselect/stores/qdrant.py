"""The store of langchain-qdrant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from shared_core.stores.qdrant import search_with_vectors, vectors_by_id

from .source import Hits, Source, id_in_metadata


def search(store: Any, query: list[float], fetch_k: int, *, filter: Any = None, **more: Any) -> Hits:
    """The collection's own top ``fetch_k`` by the dense vector, in one call; ``more`` is for ``client.query_points``.

    One call less than the store's own search, which asks for the collection's configuration each time.
    """
    points, vectors = search_with_vectors(
        store.client, store.collection_name, query, fetch_k, store.vector_name, query_filter=filter, **more
    )
    keys = store.collection_name, store.content_payload_key, store.metadata_payload_key
    return [store._document_from_point(point, *keys) for point in points], vectors


def fetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by point id, which the store's own documents carry in their metadata as ``_id``."""
    return vectors_by_id(store.client, store.collection_name, ids, [store.vector_name])


# The store has no async client.
SOURCES = {"langchain_qdrant.qdrant.QdrantVectorStore": Source(search, fetch=fetch, id_of=id_in_metadata("_id"))}
