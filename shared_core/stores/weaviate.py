"""Stored vectors out of a Weaviate collection, named ones too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ..errors import VectorSourceError

Vectors = NDArray[np.float32] | list[NDArray[np.float32] | None]


def search_with_vectors(collection: Any, query: Sequence[float], k: int, **arguments: Any) -> tuple[list[Any], Vectors]:
    """The collection's own top ``k`` for a query, and the vectors it stores for them, in one call.

    Parameters
    ----------
    collection : weaviate.collections.Collection
    query : sequence of d floats
    k : int
    **arguments
        For ``collection.query.hybrid`` unchanged: ``filters``, ``target_vector``, ``return_properties``, ...
        With a ``target_vector`` it is the vectors of that name that come back.

    Returns
    -------
    objects : list of weaviate objects, m <= k
    vectors : float32, shape (m, d)
        Bit-equal to what was added. Where an object has no vector: a list, with None in its place.

    Raises
    ------
    VectorSourceError
        The objects have vectors of several names and no ``target_vector`` says which, or several vectors in one.
    weaviate.exceptions.WeaviateBaseError
        What the client raises: a query of another length than the collection's vectors, a broken connection, ...

    Examples
    --------
    >>> collection = weaviate.connect_to_local().collections.get("Mine")  # doctest: +SKIP
    >>> objects, vectors = search_with_vectors(collection, [0.0, 1.0], 1)  # doctest: +SKIP
    """
    asked = _question(query, k, arguments)
    return _unpack(collection.query.hybrid(**asked), asked.get("target_vector"))


async def asearch_with_vectors(
    collection: Any, query: Sequence[float], k: int, **arguments: Any
) -> tuple[list[Any], Vectors]:
    """As :func:`search_with_vectors`, with a collection of an async client."""
    asked = _question(query, k, arguments)
    return _unpack(await collection.query.hybrid(**asked), asked.get("target_vector"))


def vectors_by_id(collection: Any, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """The vectors stored under these ids; ids that the collection does not have are left out.

    Parameters
    ----------
    collection : weaviate.collections.Collection
    ids : sequence of str
        UUIDs; what is none is not asked for.

    Returns
    -------
    dict of str to ndarray, float32, shape (d,)
        In Weaviate's order. Objects without a vector are left out.

    Raises
    ------
    VectorSourceError
        The objects have vectors of several names, or several vectors in one.
    weaviate.exceptions.WeaviateBaseError
        What the client raises.

    Examples
    --------
    >>> collection = weaviate.connect_to_local().collections.get("Mine")  # doctest: +SKIP
    >>> vectors_by_id(collection, ["00000000-0000-0000-0000-000000000001"])  # doctest: +SKIP
    {'00000000-0000-0000-0000-000000000001': array([0., 1.], dtype=float32)}
    """
    asked = _uuids(ids)
    return _by_id(collection.query.fetch_objects_by_ids(**_lookup(asked)).objects, asked) if asked else {}


async def avectors_by_id(collection: Any, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """As :func:`vectors_by_id`, with a collection of an async client."""
    asked = _uuids(ids)
    return _by_id((await collection.query.fetch_objects_by_ids(**_lookup(asked))).objects, asked) if asked else {}


def _question(query: Sequence[float], k: int, arguments: Mapping[str, Any]) -> dict[str, Any]:
    name = arguments.get("target_vector")
    return {
        "query": None,
        **arguments,
        "vector": [float(number) for number in query],
        "limit": k,
        "include_vector": [name] if isinstance(name, str) else True,
    }


def _unpack(answer: Any, name: Any) -> tuple[list[Any], Vectors]:
    objects = list(answer.objects)
    rows = [_chosen(each.vector, name if isinstance(name, str) else None) for each in objects]
    if any(row is None for row in rows):
        return objects, rows
    return objects, np.array(rows, dtype=np.float32)


def _chosen(vectors: Mapping[str, Any], name: str | None) -> NDArray[np.float32] | None:
    if name is None and len(vectors) > 1:
        raise VectorSourceError(
            f"the objects have vectors of several names ({', '.join(sorted(vectors))}): say which by target_vector="
        )
    values = vectors.get(name) if name is not None else next(iter(vectors.values()), None)
    if not values:
        return None
    row = np.array(values, dtype=np.float32)
    if row.ndim > 1:
        raise VectorSourceError("an object has several vectors in one (a multi-vector): choosing needs one for each")
    return row


def _uuids(ids: Iterable[str]) -> dict[str, str]:
    """As Weaviate writes them, to as they were given."""
    known = {}
    for name in ids:
        try:
            known[str(UUID(name))] = name
        except ValueError:
            continue
    return known


def _lookup(asked: Mapping[str, str]) -> dict[str, Any]:
    return {"ids": list(asked), "limit": len(asked), "include_vector": True, "return_properties": False}


def _by_id(objects: Iterable[Any], asked: Mapping[str, str]) -> dict[str, NDArray[np.float32]]:
    found = {asked[str(each.uuid)]: _chosen(each.vector, None) for each in objects}
    return {name: row for name, row in found.items() if row is not None}
