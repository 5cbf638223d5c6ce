"""Stored vectors out of a Weaviate collection, named vectors included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from ..errors import VectorSourceError
from .rows import Calls, Row, TwoWays, Vectors, as_row, rows_by_id, stack_rows

# The most hits of one search, the server's limit.
WIDEST = 10_000


@TwoWays
def search_with_vectors(
    collection: Any, query: Sequence[float], k: int, tenant: str | None = None, **arguments: Any
) -> Calls[tuple[list[Any], Vectors]]:
    """Search a ``weaviate.collections.Collection`` of a sync or async client, and return the client's objects.

    If the objects have several named vectors, ``target_vector`` names one; without it, and for multi-vectors, a
    :class:`VectorSourceError` is raised.
    """
    if tenant is not None:
        collection = collection.with_tenant(tenant)
    target = arguments.get("target_vector")
    name = target if isinstance(target, str) else None
    vector, include = [float(number) for number in query], True if name is None else [name]
    answer = yield collection.query.hybrid(
        **{"query": None, **arguments, "vector": vector, "limit": k, "include_vector": include}
    )
    objects = list(answer.objects)
    return objects, stack_rows([_vector(each.vector, name) for each in objects])


@TwoWays
def vectors_by_id(collection: Any, ids: Sequence[str]) -> Calls[dict[str, Row]]:
    """Look vectors up by UUID; other strings are ignored. Several named vectors are refused."""
    # The ids as they were given, by the form in which Weaviate writes them.
    names: dict[str, str] = {}
    for name in ids:
        with suppress(ValueError):
            names[str(UUID(name))] = name
    if not names:
        return {}
    answer = yield collection.query.fetch_objects_by_ids(
        ids=list(names), limit=len(names), include_vector=True, return_properties=False
    )
    return rows_by_id((names[str(each.uuid)], _vector(each.vector, None)) for each in answer.objects)


asearch_with_vectors, avectors_by_id = search_with_vectors.awaited, vectors_by_id.awaited


def _vector(vectors: Mapping[str, Any], name: str | None) -> Row | None:
    if name is None and len(vectors) > 1:
        raise VectorSourceError(
            f"the objects have several named vectors ({', '.join(sorted(vectors))}): name one with target_vector="
        )
    row = as_row(vectors.get(name) if name is not None else next(iter(vectors.values()), None))
    if row is not None and row.ndim > 1:
        raise VectorSourceError("an object has a multi-vector: selecting needs one vector per object")
    return row
