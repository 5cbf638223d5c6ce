"""The sqlite-vec store of langchain-community. It tells no ids, so there is nothing to look vectors up by."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables.config import run_in_executor

from shared_core.stores.sqlite_vec import search_with_vectors

from .source import Hits, Source, refuse_unknown


def search(store: Any, query: list[float], fetch_k: int, **unknown: Any) -> Hits:
    """The table's own top ``fetch_k`` with their vectors, in one statement."""
    refuse_unknown("SQLiteVec", unknown, "none")
    rows, vectors = search_with_vectors(store._connection, store._table, query, fetch_k)
    return [Document(page_content=text, metadata=json.loads(facts) or {}) for _, text, facts in rows], vectors


async def asearch(store: Any, query: list[float], fetch_k: int, **more: Any) -> Hits:
    """As :func:`search`, in a thread if the connection lets another one use it."""
    try:
        return await run_in_executor(None, search, store, query, fetch_k, **more)
    except sqlite3.ProgrammingError:
        return search(store, query, fetch_k, **more)


SOURCES = {"langchain_community.vectorstores.sqlitevec.SQLiteVec": Source(search, asearch, widest=4_096)}
