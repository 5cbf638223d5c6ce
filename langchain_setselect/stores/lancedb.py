"""Vector readers for the LanceDB stores of langchain-lancedb and langchain-community, whose documents have no ids."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.documents import Document

from shared_core.retrieval.extra import StoreListing
from shared_core.retrieval.inputs import refuse_unknown
from shared_core.stores.lancedb import list_rows, search_with_vectors

from .reader import Hits, VectorReader


def _search(store: Any, query: list[float], fetch_k: int, **unknown: Any) -> Hits:
    """The table's own top ``fetch_k`` with their vectors, in one call."""
    refuse_unknown("LanceDB of langchain-lancedb", unknown, ())
    table, _ = store._get_or_create_table()
    if table is None:
        return [], []
    rows, vectors = search_with_vectors(table, query, fetch_k)
    return _documents(store, rows), vectors


def _search_community(
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
    """The table's own top ``fetch_k`` with their vectors, in one call; ``query_type`` and ``score`` have no effect."""
    refuse_unknown("LanceDB", unknown, ["filter", "name", "prefilter", "metrics"])
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


def _documents(store: Any, rows: Any) -> list[Document]:
    found = zip(rows["text"].to_pylist(), rows["metadata"].to_pylist(), strict=True)
    # As in the store's own search, the table's address replaces a caller's value under this key.
    return [Document(page_content=t, metadata=json.loads(m) | {"source": store._uri}) for t, m in found]


def _list(store: Any) -> list[Document]:
    table, _ = store._get_or_create_table()
    return [] if table is None else _documents(store, list_rows(table, ["text", "metadata"]))


def _count(store: Any) -> int:
    table, _ = store._get_or_create_table()
    return 0 if table is None else table.count_rows()


def _list_community(store: Any) -> list[Document]:
    table = store.get_table()
    if table is None:
        return []
    columns = [name for name in table.schema.names if name in (store._text_key, "metadata")]
    documents: list[Document] = store.results_to_docs(list_rows(table, columns))
    return documents


def _count_community(store: Any) -> int:
    table = store.get_table()
    return 0 if table is None else table.count_rows()


READER = VectorReader(_search, added_keys=lambda store: ["source"])
COMMUNITY_READER = VectorReader(_search_community)
LISTING = StoreListing(_list, _count)
COMMUNITY_LISTING = StoreListing(_list_community, _count_community)
