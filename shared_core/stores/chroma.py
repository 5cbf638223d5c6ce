"""Stored vectors out of a Chroma collection, embedded or on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PAGE = 10_000


def search_with_vectors(
    collection: Any, query: Sequence[float], k: int, **arguments: Any
) -> tuple[list[tuple[str, str | None, Mapping[str, Any]]], NDArray[np.float32]]:
    """Search a ``chromadb.Collection``, and return a tuple (id, text, metadata) for each hit."""
    found = collection.query(
        query_embeddings=[query], n_results=k, include=["documents", "metadatas", "embeddings"], **arguments
    )
    rows = list(zip(found["ids"][0], found["documents"][0], (m or {} for m in found["metadatas"][0]), strict=True))
    return rows, np.asarray(found["embeddings"][0], dtype=np.float32)


def list_rows(collection: Any) -> list[tuple[str, str | None, Mapping[str, Any]]]:
    """A tuple (id, text, metadata) for each row of a ``chromadb.Collection``, in requests of 10 000 rows."""
    rows: list[tuple[str, str | None, Mapping[str, Any]]] = []
    for start in range(0, collection.count(), _PAGE):
        found = collection.get(limit=_PAGE, offset=start, include=["documents", "metadatas"])
        metadatas = (metadata or {} for metadata in found["metadatas"])
        rows += zip(found["ids"], found["documents"], metadatas, strict=True)
    return rows


def vectors_by_id(collection: Any, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Look vectors up in a ``chromadb.Collection``."""
    if not ids:
        return {}
    found = collection.get(ids=list(ids), include=["embeddings"])
    return dict(zip(found["ids"], np.asarray(found["embeddings"], dtype=np.float32), strict=True))


def rows_by_id(
    collection: Any, ids: Sequence[str], where: Any = None, where_document: Any = None
) -> list[tuple[str, str | None, Mapping[str, Any]]]:
    """A tuple (id, text, metadata) for each of the ids in a ``chromadb.Collection`` that passes the filters."""
    # Chroma refuses an empty list.
    if not ids:
        return []
    found = collection.get(
        ids=list(ids), where=where, where_document=where_document, include=["documents", "metadatas"]
    )
    return list(zip(found["ids"], found["documents"], (more or {} for more in found["metadatas"]), strict=True))


def narrow_filter(where: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """A filter with MongoDB's operators that lets in what ``where`` does, as far as it has one of these values.

    The values under a key are a list, or a range of integers. Pinecone and LangChain's PGVector take such filters too.
    """
    conditions: list[Any] = [where] if where else []
    for key, known in values.items():
        if isinstance(known, range):
            conditions += [{key: {"$gte": known.start}}, {key: {"$lt": known.stop}}]
        else:
            conditions.append({key: {"$in": [*known]}})
    return conditions[0] if len(conditions) == 1 else {"$and": conditions}
