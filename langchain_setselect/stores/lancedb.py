"""The vector reader for the store of langchain-lancedb, whose documents have no ids."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.documents import Document

from shared_core.retrieval.extra import StoreListing
from shared_core.stores.lancedb import list_rows, search_with_vectors

from .reader import Hits, VectorReader


def _table(store: Any) -> Any:
    """The store's table; None until a text is added."""
    return store._get_or_create_table()[0]


def _search(store: Any, query: list[float], fetch_k: int) -> Hits:
    """The table's own top ``fetch_k`` with their vectors, in one call."""
    if (table := _table(store)) is None:
        return [], []
    rows, vectors = search_with_vectors(table, query, fetch_k)
    return _documents(store, rows), vectors


def _documents(store: Any, rows: Any) -> list[Document]:
    found = zip(rows["text"].to_pylist(), rows["metadata"].to_pylist(), strict=True)
    # As in the store's own search, the table's address replaces a caller's value under this key.
    return [Document(page_content=t, metadata=json.loads(m) | {"source": store._uri}) for t, m in found]


def _list(store: Any, ids: Any) -> list[Document]:
    table = _table(store)
    return [] if table is None else _documents(store, list_rows(table, ["text", "metadata"]))


READER = VectorReader(_search, takes=())
LISTING = StoreListing(
    _list,
    lambda store: (0, 0) if (table := _table(store)) is None else (table.count_rows(), table.version),
    by_id=False,
)
