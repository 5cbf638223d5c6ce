"""The vector reader for langchain-qdrant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from shared_core.stores.qdrant import search_with_vectors, vectors_by_id

from .reader import Hits


def search(store: Any, query: list[float], fetch_k: int, *, filter: Any = None, **more: Any) -> Hits:
    """The collection's own top ``fetch_k`` by the dense vector, in one call; ``client.query_points`` gets ``more``.

    The store's own search makes a second call, for the collection's configuration.
    """
    points, vectors = search_with_vectors(
        store.client, store.collection_name, query, fetch_k, store.vector_name, query_filter=filter, **more
    )
    keys = store.collection_name, store.content_payload_key, store.metadata_payload_key
    return [store._document_from_point(point, *keys) for point in points], vectors


def fetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by point id, which the store's documents have in their metadata under ``_id``."""
    return vectors_by_id(store.client, store.collection_name, ids, [store.vector_name])
