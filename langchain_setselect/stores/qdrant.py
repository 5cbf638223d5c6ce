"""The vector reader for langchain-qdrant, whose store has no async client."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from langchain_core.documents import Document

from shared_core.stores import qdrant

from .reader import Hits, read_with_client


def _request(store: Any, *, filter: Any = None, **more: Any) -> dict[str, Any]:
    return {"collection": store.collection_name, "name": store.vector_name, "query_filter": filter, **more}


def _hits(store: Any, points: Any, vectors: Any, more: dict[str, Any]) -> Hits:
    keys = store.collection_name, store.content_payload_key, store.metadata_payload_key
    return [store._document_from_point(point, *keys) for point in points], vectors


def _lookup(store: Any, ids: Sequence[str]) -> dict[str, Any]:
    return {"collection": store.collection_name, "ids": ids, "names": [store.vector_name]}


def _id_of(store: Any, document: Document) -> str | None:
    found = document.metadata.get("_id") if document.id is None else document.id
    return None if found is None else str(found)


READER = read_with_client(qdrant, attrgetter("client"), _request, _hits, lookup=_lookup, id_of=_id_of)
