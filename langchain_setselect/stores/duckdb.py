"""The DuckDB store of langchain-community. It tells no ids, so there is nothing to look vectors up by."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.documents import Document

from shared_core.stores.duckdb import search_with_vectors

from .source import Hits, Source, refuse_unknown


def search(store: Any, query: list[float], fetch_k: int, **unknown: Any) -> Hits:
    """The table's own top ``fetch_k`` with their vectors, in one query."""
    refuse_unknown("DuckDB", unknown, "none")
    columns, vectors = search_with_vectors(store._connection, store._table, query, fetch_k, store._vector_key)
    ids, texts = columns[store._id_key], columns[store._text_key]
    documents = [
        Document(
            # The store tells none, but what has no vector is left out and must have a name.
            id=ids[i] if vectors[i] is None else None,
            page_content=texts[i],
            metadata={**json.loads(facts), "_similarity_score": similarity} if facts else {},
        )
        for i, (facts, similarity) in enumerate(zip(columns["metadata"], columns["similarity_score"], strict=True))
    ]
    return documents, vectors


SOURCES = {"langchain_community.vectorstores.duckdb.DuckDB": Source(search)}
