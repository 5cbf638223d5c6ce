"""Stored vectors out of a Qdrant collection: in this process, on disk, or on a server over HTTP or gRPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from .rows import Calls, Row, TwoWays, Vectors, as_row, rows_by_id, stack_rows


def search_with_vectors(
    client: Any, collection: str, query: Sequence[float], k: int, name: str = "", **arguments: Any
) -> tuple[Sequence[Any], Vectors]:
    """Search the dense vector of this name ("" has no name), and return the client's scored points."""
    points = client.query_points(
        collection_name=collection,
        query=query,
        using=name,
        limit=k,
        with_payload=True,
        with_vectors=[name],
        **arguments,
    ).points
    rows = [_dense_vector(point.vector, [name]) for point in points]
    return points, stack_rows(rows, len(query))


@TwoWays
def vectors_by_id(
    client: Any, collection: str, ids: Sequence[str], names: Sequence[str] = ("",), **arguments: Any
) -> Calls[dict[str, Row]]:
    """Look vectors up by UUID, in any spelling, or by number, with a ``QdrantClient`` or ``AsyncQdrantClient``.

    ``names``: the possible names of the dense vector, the most likely first. With one name only that vector is
    transferred, otherwise all vectors of the points. ``arguments``: passed to the client, ``shard_key_selector`` for
    example.
    """
    spellings = _find_points(ids)
    if not spellings:
        return {}
    records = yield client.retrieve(
        collection_name=collection,
        ids=list(spellings),
        with_payload=False,
        # A server refuses a name that the collection does not have.
        with_vectors=list(names) if len(names) == 1 else True,
        **arguments,
    )
    rows = ((record.id, _dense_vector(record.vector, names)) for record in records)
    return rows_by_id((name, row) for point, row in rows for name in spellings[point])


avectors_by_id = vectors_by_id.awaited


def records_by_id(
    client: Any, collection: str, ids: Sequence[str], query_filter: Any = None, **arguments: Any
) -> dict[str, Any]:
    """The records of those of the ids that pass the filter, with a ``QdrantClient``; ``arguments`` are passed to it."""
    from qdrant_client import models

    spellings = _find_points(ids)
    if not spellings:
        return {}
    conditions = [models.HasIdCondition(has_id=list(spellings)), *([] if query_filter is None else [query_filter])]
    records, _ = client.scroll(
        collection_name=collection,
        scroll_filter=models.Filter(must=conditions),
        limit=len(spellings),
        **arguments,
    )
    return {name: record for record in records for name in spellings[record.id]}


def narrow_filter(query_filter: Any, values: Mapping[str, Any], prefix: str = "") -> Any:
    """A filter that lets in what ``query_filter`` does, as far as it has one of these values; see :mod:`.chroma`."""
    from qdrant_client import models

    conditions: list[Any] = [] if query_filter is None else [query_filter]
    for key, known in values.items():
        if isinstance(known, range):
            limits = models.Range(gte=known.start, lt=known.stop)
            conditions.append(models.FieldCondition(key=f"{prefix}{key}", range=limits))
        else:
            conditions.append(models.FieldCondition(key=f"{prefix}{key}", match=models.MatchAny(any=[*known])))
    return models.Filter(must=conditions)


def _find_points(ids: Sequence[str]) -> dict[int | str, list[str]]:
    """Qdrant's form of each id, with the spellings in which it was given."""
    spellings: dict[int | str, list[str]] = {}
    for name in ids:
        point = _as_point_id(name)
        if point is not None:
            spellings.setdefault(point, []).append(name)
    return spellings


def _as_point_id(name: str) -> int | str | None:
    try:
        return str(UUID(name))
    except ValueError:
        # If one id cannot be an id of Qdrant, a server refuses the whole request. Its numbers have at most 20 digits.
        number = int(name) if name.isdecimal() and len(name) <= 20 else -1
        return number if str(number) == name and number < 2**64 else None


def _dense_vector(vector: Any, names: Sequence[str]) -> Row | None:
    # Qdrant returns a bare list if the point has a single vector without a name, and otherwise a dict.
    if isinstance(vector, dict):
        vector = next((vector[name] for name in names if name in vector), None)
    return as_row(vector)
