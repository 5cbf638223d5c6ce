"""Stored vectors out of a Pinecone index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .rows import Calls, Row, TwoWays, Vectors, as_row, rows_by_id, stack_rows

# The most hits of one search, the service's limit.
WIDEST = 10_000
# Ids are part of the request's URL, and servers on the way refuse URLs longer than 8 kB.
IDS_PER_CALL = 100


@TwoWays
def search_with_vectors(
    index: Any, query: Sequence[float], k: int, **arguments: Any
) -> Calls[tuple[list[tuple[str, dict[str, Any]]], Vectors]]:
    """Search a ``pinecone.Index`` or ``IndexAsyncio``, and return a tuple (id, metadata) for each hit."""
    request = {**arguments, "vector": list(query), "top_k": k, "include_values": True, "include_metadata": True}
    answer = yield index.query(**request)
    matches = answer["matches"]
    rows = [(match["id"], match.get("metadata") or {}) for match in matches]
    return rows, stack_rows([as_row(match.get("values")) for match in matches])


@TwoWays
def vectors_by_id(index: Any, ids: Sequence[str], namespace: str | None = None) -> Calls[dict[str, Row]]:
    """Look vectors up in one request per hundred ids."""
    vectors: dict[str, Row] = {}
    for start in range(0, len(ids), IDS_PER_CALL):
        answer = yield index.fetch(ids=list(ids[start : start + IDS_PER_CALL]), namespace=namespace)
        vectors |= rows_by_id((name, as_row(record.values)) for name, record in answer.vectors.items())
    return vectors


asearch_with_vectors, avectors_by_id = search_with_vectors.awaited, vectors_by_id.awaited
