"""LanceDB's two stores: that of langchain-lancedb and that of langchain-community.

Neither tells the ids of its documents, so there is nothing to look vectors up by.
"""

from __future__ import annotations

import json
from typing import Any

from langchain_core.documents import Document

from shared_core.stores.lancedb import search_with_vectors

from .source import Hits, Source, refuse_unknown


def search(store: Any, query: list[float], fetch_k: int, **unknown: Any) -> Hits:
    """The table's own top ``fetch_k`` with their vectors, in one call."""
    refuse_unknown("LanceDB of langchain-lancedb", unknown, "none")
    table, _ = store._get_or_create_table()
    if table is None:
        return [], []
    rows, vectors = search_with_vectors(table, query, fetch_k)
    texts, metadata = rows["text"].to_pylist(), rows["metadata"].to_pylist()
    # As the store's own search does: where the table is, in place of what the caller had under this name.
    return [
        Document(page_content=text, metadata=json.loads(facts) | {"source": store._uri})
        for text, facts in zip(texts, metadata, strict=True)
    ], vectors


def search_community(
    store: Any,
    query: list[float],
    fetch_k: int,
    *,
    filter: str | dict[str, str] | None = None,
    name: str | None = None,
    prefilter: bool = False,
    metrics: str | None = None,
    query_type: str = "vector",
    score: bool = False,
    **unknown: Any,
) -> Hits:
    """The table's own top ``fetch_k`` with their vectors, in one call.

    ``query_type`` means nothing to a search by vector, and ``score`` nothing to documents.
    """
    refuse_unknown("LanceDB", unknown, "filter", "name", "prefilter", "metrics")
    table = store.get_table(name)
    if table is None:
        return [], []
    if isinstance(filter, dict):
        from langchain_community.vectorstores.lancedb import to_lance_filter

        filter = to_lance_filter(filter)
    rows, vectors = search_with_vectors(
        table, query, fetch_k, store._vector_key, where=filter, prefilter=prefilter, metric=metrics
    )
    return store.results_to_docs(rows), vectors


SOURCES = {
    "langchain_lancedb.vectorstores.LanceDB": Source(search),
    "langchain_community.vectorstores.lancedb.LanceDB": Source(search_community),
}
