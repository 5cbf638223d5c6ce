"""The vector reader for langchain-qdrant, whose store has no async client."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from shared_core.stores import qdrant

from .reader import Hits, id_in_metadata, read_with_client


def _request(store: Any, *, filter: Any = None, **more: Any) -> dict[str, Any]:
    return {"collection": store.collection_name, "name": store.vector_name, "query_filter": filter, **more}


def _hits(store: Any, points: Any, vectors: Any, more: dict[str, Any]) -> Hits:
    keys = store.collection_name, store.content_payload_key, store.metadata_payload_key
    return [store._document_from_point(point, *keys) for point in points], vectors


def _lookup(store: Any, ids: Sequence[str]) -> dict[str, Any]:
    return {"collection": store.collection_name, "ids": ids, "names": [store.vector_name]}


READER = read_with_client(qdrant, attrgetter("client"), _request, _hits, lookup=_lookup, id_of=id_in_metadata("_id"))
