"""Stored vectors out of an Azure AI Search index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import VectorSourceError
from .rows import Calls, Row, TwoWays, Vectors, as_row, rows_by_id, stack_rows

# The most hits of one search, the service's limit.
WIDEST = 10_000


@TwoWays
def search_with_vectors(
    client: Any, query: Sequence[float], k: int, field: str, **arguments: Any
) -> Calls[tuple[list[dict[str, Any]], Vectors]]:
    """Search a ``SearchClient`` or ``aio.SearchClient``, and return the documents as dicts.

    ``field`` holds the vectors. If it is not retrievable, a :class:`VectorSourceError` is raised. The client sends one
    request per thousand hits.
    """
    from azure.search.documents.models import VectorizedQuery  # type: ignore[import-not-found,unused-ignore]

    request = {"search_text": "", "top": k, **arguments}
    select = request.get("select")
    if select is not None:
        names = [name.strip() for name in select.split(",")] if isinstance(select, str) else list(select)
        request["select"] = names if field in names else [*names, field]
    vector = np.asarray(query, dtype=np.float32).tolist()
    request["vector_queries"] = [VectorizedQuery(vector=vector, k_nearest_neighbors=k, fields=field)]
    pages = yield client.search(**request)
    rows = yield _read_all(pages)
    if any(field not in row for row in rows):
        raise VectorSourceError(
            f"the field {field!r} is not retrievable, so Azure AI Search does not return the vectors in it: "
            "create the index with hidden=False and stored=True for this field"
        )
    return rows, stack_rows([as_row(row.pop(field)) for row in rows])


@TwoWays
def vectors_by_id(client: Any, ids: Sequence[str], key: str, field: str) -> Calls[dict[str, Row]]:
    """Look vectors up in one request per thousand ids. ``key``, the index's key field, must be filterable."""
    if not ids:
        return {}
    # Azure's keys have no quotes and no commas, but the ids of another store's documents may have them.
    names = ",".join(name.replace("'", "''") for name in ids)
    pages = yield client.search(
        search_text="*", filter=f"search.in({key}, '{names}', ',')", select=[key, field], top=len(ids)
    )
    rows = yield _read_all(pages)
    known = set(ids)
    return rows_by_id((row[key], as_row(row.get(field))) for row in rows if row[key] in known)


asearch_with_vectors, avectors_by_id = search_with_vectors.awaited, vectors_by_id.awaited


def _read_all(pages: Any) -> Any:
    async def read() -> list[dict[str, Any]]:
        return [row async for row in pages]

    return read() if hasattr(pages, "__aiter__") else list(pages)
