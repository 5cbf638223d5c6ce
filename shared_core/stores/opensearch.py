"""Stored vectors out of OpenSearch: in ``_source``, in every version.

Since 3.0 an index does not keep the vector in the document that it stores and puts it back when it is read. For the
faiss engine with ``cosinesimil`` that is the vector scaled to length 1, which is what the index keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .elasticsearch import as_row


def vectors_by_id(
    client: Any, index: str, field: str, ids: Sequence[str], *, id_field: str | None = None
) -> dict[str, NDArray[np.float32]]:
    """The vectors stored under these ids, in one call; unknown ids and documents without a vector are left out.

    Parameters
    ----------
    client : opensearchpy.OpenSearch
    index, field : str
        Where the vectors are.
    ids : sequence of str
        At most 10 000, which is what an index gives at a time unless its settings say more.
    id_field : str, optional
        The field that holds the ids where ``_id`` does not: a serverless collection makes up its own.

    Returns
    -------
    dict of str to ndarray, float32, shape (d,)
        In the server's order, which is not that of ``ids``. The numbers that were inserted, in float32, also for
        quantised indexes; scaled to length 1 where the module's docstring says so; ``half_float`` fields of 3.x and
        ``byte`` and ``binary`` ones give what they keep.

    Raises
    ------
    opensearchpy.OpenSearchException
        What the client raises.

    Examples
    --------
    >>> vectors_by_id(client, "passages", "embedding", ["a", "b"])  # doctest: +SKIP
    """
    if not ids:
        return {}
    found = client.search(index=index, body=_request(field, ids, id_field))
    return _read(found, field, id_field)


async def avectors_by_id(
    client: Any, index: str, field: str, ids: Sequence[str], *, id_field: str | None = None
) -> dict[str, NDArray[np.float32]]:
    """As :func:`vectors_by_id`, for ``opensearchpy.AsyncOpenSearch``."""
    if not ids:
        return {}
    found = await client.search(index=index, body=_request(field, ids, id_field))
    return _read(found, field, id_field)


def _request(field: str, ids: Sequence[str], id_field: str | None) -> dict[str, Any]:
    # Strings are indexed as text, with their keyword beside it, unless the mapping says otherwise.
    query = {"terms": {f"{id_field}.keyword": list(ids)}} if id_field else {"ids": {"values": list(ids)}}
    return {"query": query, "size": len(ids), "_source": [field, id_field] if id_field else [field]}


def _read(found: Any, field: str, id_field: str | None) -> dict[str, NDArray[np.float32]]:
    read = (
        (hit["_source"][id_field] if id_field else hit["_id"], as_row(hit["_source"].get(field)))
        for hit in found["hits"]["hits"]
    )
    return {name: row for name, row in read if row is not None}
