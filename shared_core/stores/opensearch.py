"""Stored vectors out of OpenSearch: from ``_source``, in every version.

Since 3.0 an index does not keep the vector in the stored document and restores it when the document is read. For the
faiss engine with ``cosinesimil`` the restored vector is scaled to length 1, because the index keeps it so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .rows import Row, as_row, rows_by_id

# The most hits of one search, the server's limit.
WIDEST = 10_000


def vectors_by_id(
    client: Any, index: str, field: str, ids: Sequence[str], *, id_field: str | None = None
) -> dict[str, Row]:
    """Look the vectors of at most 10 000 ids up, with an ``opensearchpy.OpenSearch``.

    ``id_field``: the field with the ids, if it is not ``_id``: a serverless collection generates ``_id`` itself.
    """
    found = client.search(index=index, body=_request(field, ids, id_field)) if ids else None
    return _read(found, field, id_field)


async def avectors_by_id(
    client: Any, index: str, field: str, ids: Sequence[str], *, id_field: str | None = None
) -> dict[str, Row]:
    """Await what :func:`vectors_by_id` returns, from an ``opensearchpy.AsyncOpenSearch``."""
    found = await client.search(index=index, body=_request(field, ids, id_field)) if ids else None
    return _read(found, field, id_field)


def _request(field: str, ids: Sequence[str], id_field: str | None) -> dict[str, Any]:
    # By default OpenSearch indexes strings as analysed text, with the exact string in the subfield "keyword".
    query = {"terms": {f"{id_field}.keyword": list(ids)}} if id_field else {"ids": {"values": list(ids)}}
    return {"query": query, "size": len(ids), "_source": [field, id_field] if id_field else [field]}


def _read(found: Any, field: str, id_field: str | None) -> dict[str, Row]:
    hits = found["hits"]["hits"] if found else []
    return rows_by_id(
        (hit["_source"][id_field] if id_field else hit["_id"], as_row(hit["_source"].get(field))) for hit in hits
    )
