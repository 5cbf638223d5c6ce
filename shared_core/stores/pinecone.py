"""Stored vectors out of a Pinecone index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .rows import Row, Vectors, as_row, rows_by_id, stack_rows

# The most hits of one search, the service's limit.
WIDEST = 10_000
# Ids are part of the request's URL, and servers on the way refuse URLs longer than 8 kB.
IDS_PER_CALL = 100


def search_with_vectors(
    index: Any, query: Sequence[float], k: int, **arguments: Any
) -> tuple[list[tuple[str, dict[str, Any]]], Vectors]:
    """Search a ``pinecone.Index``, and return a tuple (id, metadata) for each hit."""
    return _split(index.query(**_search_request(query, k, arguments)))


async def asearch_with_vectors(
    index: Any, query: Sequence[float], k: int, **arguments: Any
) -> tuple[list[tuple[str, dict[str, Any]]], Vectors]:
    """Await what :func:`search_with_vectors` returns, from a ``pinecone.IndexAsyncio``."""
    return _split(await index.query(**_search_request(query, k, arguments)))


def vectors_by_id(index: Any, ids: Sequence[str], namespace: str | None = None) -> dict[str, Row]:
    """Look vectors up in one request per hundred ids."""
    answers = [index.fetch(ids=some, namespace=namespace) for some in _parts(ids)]
    return _by_id(answers)


async def avectors_by_id(index: Any, ids: Sequence[str], namespace: str | None = None) -> dict[str, Row]:
    """Await what :func:`vectors_by_id` returns, from a ``pinecone.IndexAsyncio``."""
    answers = [await index.fetch(ids=some, namespace=namespace) for some in _parts(ids)]
    return _by_id(answers)


def _search_request(query: Sequence[float], k: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {**arguments, "vector": list(query), "top_k": k, "include_values": True, "include_metadata": True}


def _split(answer: Any) -> tuple[list[tuple[str, dict[str, Any]]], Vectors]:
    matches = answer["matches"]
    rows = [(match["id"], match.get("metadata") or {}) for match in matches]
    return rows, stack_rows([as_row(match.get("values")) for match in matches])


def _parts(ids: Sequence[str]) -> Iterator[list[str]]:
    return (list(ids[start : start + IDS_PER_CALL]) for start in range(0, len(ids), IDS_PER_CALL))


def _by_id(answers: list[Any]) -> dict[str, Row]:
    records = (record for answer in answers for record in answer.vectors.items())
    return rows_by_id((name, as_row(record.values)) for name, record in records)
