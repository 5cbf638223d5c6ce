"""Stored vectors out of Elasticsearch, in one search.

The request names the vector field in ``fields``, which every version supports. Since 9.2 a new index leaves vectors out
of ``_source``, and older servers refuse the option that includes them there (``_source.exclude_vectors``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import VectorSourceError
from .rows import Calls, Row, TwoWays, Vectors, as_row, rows_by_id, stack_rows

CustomQuery = Callable[[dict[str, Any], str | None], dict[str, Any]]

# The most hits of one search, and the most candidates per shard: the server's limits.
WIDEST = 10_000
# Candidates per shard in the store's own search. A server requires at least k.
CANDIDATES = 50


@TwoWays
def search_with_vectors(
    store: Any,
    query: Sequence[float],
    k: int,
    *,
    filter: Any = None,
    custom_query: CustomQuery | None = None,
) -> Calls[tuple[list[dict[str, Any]], Vectors]]:
    """Search a ``helpers.vectorstore.VectorStore`` or ``AsyncVectorStore`` whose strategy searches by vector only.

    A hybrid strategy, and hits none of which has a vector, raise a :class:`VectorSourceError`. As in the store's own
    search, 50 candidates per shard are considered. For more than 50 hits it is 1.5 × k, at most 10 000.
    """
    if getattr(store.retrieval_strategy, "hybrid", False):
        raise VectorSourceError(
            "a hybrid Elasticsearch store searches by text and vector, and setselect searches by vector only: "
            "use a strategy that is not hybrid"
        )

    def add_vector_field(body: dict[str, Any], text: str | None) -> dict[str, Any]:
        body = custom_query(body, text) if custom_query else body
        return {**body, "fields": [*body.get("fields", ()), store.vector_field]}

    hits = yield store.search(
        query_vector=query,
        k=k,
        num_candidates=CANDIDATES if k <= CANDIDATES else min(k * 3 // 2, WIDEST),
        filter=filter,
        custom_query=add_vector_field,
    )
    rows = []
    for hit in hits:
        fields = hit.get("fields", {})
        rows.append(_vector(fields.pop(store.vector_field, None)))
        if not fields:
            # A hit must look like one of a plain search, because a function of the user's may make documents from it.
            hit.pop("fields", None)
    return hits, stack_hits(rows, store.index, store.vector_field)


asearch_with_vectors = search_with_vectors.awaited


async def avectors_by_id(client: Any, index: str, field: str, ids: Sequence[str]) -> dict[str, Row]:
    """Await the vectors of at most 10 000 ids, from an ``AsyncElasticsearch``."""
    if not ids:
        return {}
    # mget has no ``fields``, and needs the routing of documents that have one.
    found = await client.search(
        index=index, query={"ids": {"values": list(ids)}}, size=len(ids), source=False, fields=[field]
    )
    return rows_by_id((hit["_id"], _vector(hit.get("fields", {}).get(field))) for hit in found["hits"]["hits"])


def stack_hits(rows: Sequence[Row | None], index: str, field: str) -> Vectors:
    """The vectors of the hits, stacked; a VectorSourceError if there are hits and none has a vector."""
    if rows and all(row is None for row in rows):
        raise VectorSourceError(
            f"none of {len(rows)} hits has a vector in {index!r}, field {field!r}: "
            "the vectors are in another field, or the index does not keep its _source"
        )
    return stack_rows(rows)


def _vector(stored: Any) -> Row | None:
    row = as_row(stored)
    # ``fields`` answers with lists of values, so a vector may be nested in a list.
    return None if row is None else row.ravel()
