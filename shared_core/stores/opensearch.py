"""Stored vectors out of OpenSearch: from ``_source``, in every version.

Since 3.0 an index does not keep the vector in the stored document and restores it when the document is read. For the
faiss engine with ``cosinesimil`` the restored vector is scaled to length 1, because the index keeps it so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .rows import Row, as_row, rows_by_id


def vectors_by_id(
    client: Any, index: str, field: str, ids: Sequence[str], *, id_field: str | None = None
) -> dict[str, Row]:
    """Return the vectors stored under these ids, in one call. Ids that have no document or no vector are left out.

    Parameters
    ----------
    client : opensearchpy.OpenSearch
    index, field : str
        The index, and its field with the vectors.
    ids : sequence of str
        At most 10 000, the limit of an index unless its settings raise it.
    id_field : str, optional
        The field with the ids, if it is not ``_id``: a serverless collection generates ``_id`` itself.

    Returns
    -------
    dict of str to ndarray, float32, shape (d,)
        In the server's order, which is not that of ``ids``. The inserted numbers in float32, also for quantised
        indexes. Since 3.0 the faiss engine with ``cosinesimil`` returns them at length 1. ``half_float`` fields of 3.x
        and ``byte`` and ``binary`` fields return what they keep.

    Examples
    --------
    >>> vectors_by_id(client, "passages", "embedding", ["a", "b"])  # doctest: +SKIP
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
