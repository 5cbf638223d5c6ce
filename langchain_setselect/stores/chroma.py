"""The vector reader for langchain-chroma."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.stores.chroma import search_with_vectors, vectors_by_id

from .reader import Hits


def search(store: Any, query: list[float], fetch_k: int, *, filter: Any = None, **more: Any) -> Hits:
    """The collection's own top ``fetch_k`` with their vectors, in one call; ``collection.query`` gets ``more``."""
    rows, vectors = search_with_vectors(store._collection, query, fetch_k, where=filter, **more)
    # Rows without text are left out, as in the store's own search.
    kept = [place for place, (_, text, _) in enumerate(rows) if text is not None]
    documents = [Document(id=rows[i][0], page_content=rows[i][1] or "", metadata=dict(rows[i][2])) for i in kept]
    return documents, vectors[kept] if len(kept) < len(rows) else vectors


def fetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by document id."""
    return vectors_by_id(store._collection, ids)
