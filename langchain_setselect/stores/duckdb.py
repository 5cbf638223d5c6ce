"""The vector reader for the DuckDB store of langchain-community, whose documents have no ids to look vectors up by."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.documents import Document

from shared_core.stores.duckdb import search_with_vectors

from .reader import Hits, refuse_unknown


def search(store: Any, query: list[float], fetch_k: int, **unknown: Any) -> Hits:
    """The table's own top ``fetch_k`` with their vectors, in one query."""
    if unknown:
        refuse_unknown("DuckDB", unknown)
    columns, vectors = search_with_vectors(store._connection, store._table, query, fetch_k, store._vector_key)
    ids, texts = columns[store._id_key], columns[store._text_key]
    documents = [
        Document(
            # Only documents without a vector get an id, for the warning that they are left out.
            id=ids[i] if vectors[i] is None else None,
            page_content=texts[i],
            metadata={**json.loads(metadata), "_similarity_score": similarity} if metadata else {},
        )
        for i, (metadata, similarity) in enumerate(zip(columns["metadata"], columns["similarity_score"], strict=True))
    ]
    return documents, vectors
