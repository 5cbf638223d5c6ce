"""The vector reader for langchain-pinecone."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from langchain_core.documents import Document

from shared_core.retrieval.lookup import refuse_unknown
from shared_core.stores import pinecone

from .reader import Hits, read_with_client


def _open_asyncio_client(store: Any) -> Any:
    """The asyncio client that the caller gave the store, or that ``async with store`` opened; else None."""
    # Otherwise the store would open a client and a connection per search, and close the client while other searches use
    # it. The store's sync client keeps its connections, and threads can share it.
    return store._async_index if store._async_index_provided or store._async_index_context_open else None


def _request(store: Any, *, filter: Any = None, namespace: str | None = None, **unknown: Any) -> dict[str, Any]:
    refuse_unknown("PineconeVectorStore", unknown, ["filter", "namespace"])
    return {"filter": filter, "namespace": store._namespace if namespace is None else namespace}


def _hits(store: Any, rows: Any, vectors: Any, more: dict[str, Any]) -> Hits:
    # Records without text are left out, as in the store's own search.
    kept = [i for i, (_, metadata) in enumerate(rows) if store._text_key in metadata]
    documents = [
        Document(id=rows[i][0], page_content=rows[i][1].pop(store._text_key), metadata=rows[i][1]) for i in kept
    ]
    return documents, [vectors[i] for i in kept] if len(kept) < len(rows) else vectors


def _lookup(store: Any, ids: Sequence[str]) -> dict[str, Any]:
    return {"ids": ids, "namespace": store._namespace}


READER = read_with_client(pinecone, attrgetter("index"), _request, _hits, aclient=_open_asyncio_client, lookup=_lookup)
