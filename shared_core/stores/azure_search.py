"""Stored vectors out of an Azure AI Search index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import VectorSourceError
from .rows import Row, Vectors, as_row, rows_by_id, stack_rows

# The most hits of one search, the service's limit.
WIDEST = 10_000


def search_with_vectors(
    client: Any, query: Sequence[float], k: int, field: str, **arguments: Any
) -> tuple[list[dict[str, Any]], Vectors]:
    """Search a ``SearchClient``, and return the documents as dicts.

    ``field`` holds the vectors. If it is not retrievable, a :class:`VectorSourceError` is raised. The client sends one
    request per thousand hits.
    """
    return _split(list(client.search(**_search_request(query, k, field, arguments))), field)


async def asearch_with_vectors(
    client: Any, query: Sequence[float], k: int, field: str, **arguments: Any
) -> tuple[list[dict[str, Any]], Vectors]:
    """Await what :func:`search_with_vectors` returns, from an ``aio.SearchClient``."""
    pages = await client.search(**_search_request(query, k, field, arguments))
    return _split([row async for row in pages], field)


def vectors_by_id(client: Any, ids: Sequence[str], key: str, field: str) -> dict[str, Row]:
    """Look vectors up in one request per thousand ids. ``key``, the index's key field, must be filterable."""
    found = client.search(**_lookup(ids, key, field)) if ids else []
    return _by_id(found, ids, key, field)


async def avectors_by_id(client: Any, ids: Sequence[str], key: str, field: str) -> dict[str, Row]:
    """Await what :func:`vectors_by_id` returns, from an ``aio.SearchClient``."""
    found = [row async for row in await client.search(**_lookup(ids, key, field))] if ids else []
    return _by_id(found, ids, key, field)


def _search_request(query: Sequence[float], k: int, field: str, arguments: dict[str, Any]) -> dict[str, Any]:
    from azure.search.documents.models import VectorizedQuery  # type: ignore[import-not-found,unused-ignore]

    request = {"search_text": "", "top": k, **arguments}
    if request.get("select") is not None:
        select = request["select"]
        names = [name.strip() for name in select.split(",")] if isinstance(select, str) else list(select)
        request["select"] = names if field in names else [*names, field]
    vector = np.asarray(query, dtype=np.float32).tolist()
    request["vector_queries"] = [VectorizedQuery(vector=vector, k_nearest_neighbors=k, fields=field)]
    return request


def _split(rows: list[dict[str, Any]], field: str) -> tuple[list[dict[str, Any]], Vectors]:
    if any(field not in row for row in rows):
        raise VectorSourceError(
            f"the field {field!r} is not retrievable, so Azure AI Search does not return the vectors in it: "
            "create the index with hidden=False and stored=True for this field"
        )
    return rows, stack_rows([as_row(row.pop(field)) for row in rows])


def _lookup(ids: Sequence[str], key: str, field: str) -> dict[str, Any]:
    # Azure's keys have no quotes and no commas, but the ids of another store's documents may have them.
    names = ",".join(name.replace("'", "''") for name in ids)
    return {
        "search_text": "*",
        "filter": f"search.in({key}, '{names}', ',')",
        "select": [key, field],
        "top": len(ids),
    }


def _by_id(rows: Iterable[dict[str, Any]], ids: Sequence[str], key: str, field: str) -> dict[str, Row]:
    known = set(ids)
    return rows_by_id((row[key], as_row(row.get(field))) for row in rows if row[key] in known)
