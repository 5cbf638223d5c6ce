"""Stored vectors out of OpenSearch: from ``_source``, in every version.

Since 3.0 an index does not keep the vector in the stored document and restores it when the document is read. For the
faiss engine with ``cosinesimil`` the restored vector is scaled to length 1, because the index keeps it so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .rows import Calls, Row, TwoWays, as_row, rows_by_id

# The most hits of one search, the server's limit.
WIDEST = 10_000


@TwoWays
def vectors_by_id(
    client: Any, index: str, field: str, ids: Sequence[str], *, id_field: str | None = None
) -> Calls[dict[str, Row]]:
    """Look the vectors of at most 10 000 ids up, with an ``opensearchpy.OpenSearch`` or ``AsyncOpenSearch``.

    ``id_field``: the field with the ids, if it is not ``_id``: a serverless collection generates ``_id`` itself.
    """
    if not ids:
        return {}
    # By default OpenSearch indexes strings as analysed text, with the exact string in the subfield "keyword".
    query = {"terms": {f"{id_field}.keyword": list(ids)}} if id_field else {"ids": {"values": list(ids)}}
    source = [field, id_field] if id_field else [field]
    found = yield client.search(index=index, body={"query": query, "size": len(ids), "_source": source})
    return rows_by_id(
        (hit["_source"][id_field] if id_field else hit["_id"], as_row(hit["_source"].get(field)))
        for hit in found["hits"]["hits"]
    )


avectors_by_id = vectors_by_id.awaited
