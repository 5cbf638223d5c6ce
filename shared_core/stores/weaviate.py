"""Stored vectors out of a Weaviate collection, named vectors included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from ..errors import VectorSourceError
from .rows import Row, Vectors, as_row, rows_by_id, stack_rows

# The most hits of one search, the server's limit.
WIDEST = 10_000


def search_with_vectors(collection: Any, query: Sequence[float], k: int, **arguments: Any) -> tuple[list[Any], Vectors]:
    """Search a ``weaviate.collections.Collection``, and return the client's objects.

    If the objects have several named vectors, ``target_vector`` names one; without it, and for multi-vectors, a
    :class:`VectorSourceError` is raised.
    """
    return _split(collection.query.hybrid(**_search_request(query, k, arguments)), arguments)


async def asearch_with_vectors(
    collection: Any, query: Sequence[float], k: int, **arguments: Any
) -> tuple[list[Any], Vectors]:
    """Await what :func:`search_with_vectors` returns, from a collection of an async client."""
    return _split(await collection.query.hybrid(**_search_request(query, k, arguments)), arguments)


def vectors_by_id(collection: Any, ids: Sequence[str]) -> dict[str, Row]:
    """Look vectors up by UUID; other strings are ignored. Several named vectors are refused."""
    names = _names_by_uuid(ids)
    return _by_id(collection.query.fetch_objects_by_ids(**_lookup(names)).objects if names else [], names)


async def avectors_by_id(collection: Any, ids: Sequence[str]) -> dict[str, Row]:
    """Await what :func:`vectors_by_id` returns, from a collection of an async client."""
    names = _names_by_uuid(ids)
    return _by_id((await collection.query.fetch_objects_by_ids(**_lookup(names))).objects if names else [], names)


def _search_request(query: Sequence[float], k: int, arguments: Mapping[str, Any]) -> dict[str, Any]:
    name = arguments.get("target_vector")
    return {
        "query": None,
        **arguments,
        "vector": [float(number) for number in query],
        "limit": k,
        "include_vector": [name] if isinstance(name, str) else True,
    }


def _split(answer: Any, arguments: Mapping[str, Any]) -> tuple[list[Any], Vectors]:
    target = arguments.get("target_vector")
    name = target if isinstance(target, str) else None
    objects = list(answer.objects)
    return objects, stack_rows([_vector(each.vector, name) for each in objects])


def _vector(vectors: Mapping[str, Any], name: str | None) -> Row | None:
    if name is None and len(vectors) > 1:
        raise VectorSourceError(
            f"the objects have several named vectors ({', '.join(sorted(vectors))}): name one with target_vector="
        )
    row = as_row(vectors.get(name) if name is not None else next(iter(vectors.values()), None))
    if row is not None and row.ndim > 1:
        raise VectorSourceError("an object has a multi-vector: selecting needs one vector per object")
    return row


def _names_by_uuid(ids: Iterable[str]) -> dict[str, str]:
    """The ids as they were given, by the form in which Weaviate writes them."""
    names = {}
    for name in ids:
        try:
            names[str(UUID(name))] = name
        except ValueError:
            continue
    return names


def _lookup(names: Mapping[str, str]) -> dict[str, Any]:
    return {"ids": list(names), "limit": len(names), "include_vector": True, "return_properties": False}


def _by_id(objects: Iterable[Any], names: Mapping[str, str]) -> dict[str, Row]:
    return rows_by_id((names[str(each.uuid)], _vector(each.vector, None)) for each in objects)
