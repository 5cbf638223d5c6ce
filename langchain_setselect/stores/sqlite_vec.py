"""The vector reader for the sqlite-vec store of langchain-community, whose documents have no ids."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables.config import run_in_executor

from shared_core.stores.sqlite_vec import search_with_vectors

from .reader import Hits, refuse_unknown


def search(store: Any, query: list[float], fetch_k: int, **unknown: Any) -> Hits:
    """The table's own top ``fetch_k`` with their vectors, in one statement."""
    if unknown:
        refuse_unknown("SQLiteVec", unknown)
    rows, vectors = search_with_vectors(store._connection, store._table, query, fetch_k)
    return [Document(page_content=text, metadata=json.loads(metadata) or {}) for _, text, metadata in rows], vectors


async def asearch(store: Any, query: list[float], fetch_k: int, **more: Any) -> Hits:
    """Run ``search`` in another thread if the connection allows it, otherwise in the caller's."""
    try:
        return await run_in_executor(None, search, store, query, fetch_k, **more)
    except sqlite3.ProgrammingError:
        return search(store, query, fetch_k, **more)
