"""Vector readers for the LanceDB stores of langchain-lancedb and langchain-community, whose documents have no ids."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.documents import Document

from shared_core.retrieval.extra import StoreListing
from shared_core.retrieval.follow import Where
from shared_core.stores.lancedb import list_rows, narrow_filter, search_with_vectors

from .reader import Hits, VectorReader


def _table(store: Any) -> Any:
    return store._get_or_create_table()[0]


def _search(store: Any, query: list[float], fetch_k: int) -> Hits:
    """The table's own top ``fetch_k`` with their vectors, in one call."""
    table = _table(store)
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
    **_: Any,
) -> Hits:
    """The table's own top ``fetch_k`` with their vectors, in one call; ``query_type`` and ``score`` have no effect."""
    table = store.get_table(name)
    if table is None:
        return [], []
    rows, vectors = search_with_vectors(
        table, query, fetch_k, store._vector_key, where=_as_sql(filter), prefilter=prefilter, metric=metrics
    )
    return store.results_to_docs(rows), vectors


def _narrow_community(store: Any, own: Any, where: Where) -> dict[str, Any]:
    return {"filter": narrow_filter(_as_sql(own), where, "metadata."), "prefilter": True}


def _as_sql(filter: str | dict[str, str] | None) -> str | None:
    if not isinstance(filter, dict):
        return filter
    from langchain_community.vectorstores.lancedb import to_lance_filter

    return str(to_lance_filter(filter))


def _documents(store: Any, rows: Any) -> list[Document]:
    found = zip(rows["text"].to_pylist(), rows["metadata"].to_pylist(), strict=True)
    # As in the store's own search, the table's address replaces a caller's value under this key.
    return [Document(page_content=t, metadata=json.loads(m) | {"source": store._uri}) for t, m in found]


def _list_community(store: Any, table: Any) -> list[Document]:
    columns = [name for name in table.schema.names if name in (store._text_key, "metadata")]
    documents: list[Document] = store.results_to_docs(list_rows(table, columns))
    return documents


def _listing(table_of: Any, documents: Any) -> StoreListing[Document]:
    """The listing of a store whose table is None until a text is added."""
    return StoreListing(
        lambda store, ids: [] if (table := table_of(store)) is None else documents(store, table),
        lambda store: (0, 0) if (table := table_of(store)) is None else (table.count_rows(), table.version),
        by_id=False,
    )


READER = VectorReader(_search, added_keys=lambda store: ["source"], takes=())
COMMUNITY_READER = VectorReader(
    _search_community,
    takes=["filter", "name", "prefilter", "metrics", "query_type", "score"],
    narrow=_narrow_community,
)
LISTING = _listing(_table, lambda store, table: _documents(store, list_rows(table, ["text", "metadata"])))
COMMUNITY_LISTING = _listing(lambda store: store.get_table(), _list_community)
