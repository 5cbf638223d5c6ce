"""The vector reader for langchain-chroma."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from langchain_core.documents import Document

from shared_core.stores import chroma

from .reader import Hits, read_with_client


def _request(store: Any, *, filter: Any = None, **more: Any) -> dict[str, Any]:
    return {"where": filter, **more}


def _hits(store: Any, rows: Any, vectors: Any, more: dict[str, Any]) -> Hits:
    # Rows without text are left out, as in the store's own search.
    kept = [place for place, (_, text, _) in enumerate(rows) if text is not None]
    documents = [Document(id=rows[i][0], page_content=rows[i][1], metadata=dict(rows[i][2])) for i in kept]
    return documents, vectors[kept] if len(kept) < len(rows) else vectors


READER = read_with_client(chroma, attrgetter("_collection"), _request, _hits, lookup=lambda store, ids: {"ids": ids})
