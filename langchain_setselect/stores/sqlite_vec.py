"""The vector reader for the sqlite-vec store of langchain-community, whose documents have no ids."""

from __future__ import annotations

import json
import sqlite3
from operator import attrgetter
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables.config import run_in_executor

from shared_core.retrieval.lookup import refuse_unknown
from shared_core.stores import sqlite_vec

from .reader import Hits, read_with_client


def _request(store: Any, **unknown: Any) -> dict[str, Any]:
    refuse_unknown("SQLiteVec", unknown, ())
    return {"table": store._table}


def _hits(store: Any, rows: Any, vectors: Any, more: dict[str, Any]) -> Hits:
    return [Document(page_content=text, metadata=json.loads(metadata) or {}) for _, text, metadata in rows], vectors


async def _asearch(store: Any, query: list[float], fetch_k: int, **more: Any) -> Hits:
    """Search in another thread if the connection allows it, otherwise in the caller's."""
    try:
        return await run_in_executor(None, READER.search, store, query, fetch_k, **more)
    except sqlite3.ProgrammingError:
        return READER.search(store, query, fetch_k, **more)


READER = read_with_client(sqlite_vec, attrgetter("_connection"), _request, _hits)._replace(asearch=_asearch)
