"""Stored vectors out of a Qdrant collection: in this process, on disk, or on a server over HTTP or gRPC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInputError

Row = NDArray[np.float32]


def search_with_vectors(
    client: Any, collection: str, query: Sequence[float], k: int, name: str = "", **arguments: Any
) -> tuple[Sequence[Any], list[Row | None] | Row]:
    """The collection's own top ``k`` for a query, and the vectors it stores for them, in one call.

    Parameters
    ----------
    client : qdrant_client.QdrantClient
    collection : str
    query : sequence of d floats
    k : int
    name : str
        Of the dense vector to search and to hand back; empty for a collection whose vector has no name.
    **arguments
        For ``client.query_points`` unchanged: ``query_filter``, ``search_params``, ``score_threshold``, ...

    Returns
    -------
    points : list of qdrant_client.models.ScoredPoint, m <= k
        With their payload.
    vectors : float32, shape (m, d); or a list of rows, None where a point has no vector of that name
        Bit-equal to what was added; of length 1 where the metric is cosine, since Qdrant stores them so. A server
        that keeps half precision or bytes (``datatype``) hands back those; quantisation leaves the originals.

    Raises
    ------
    InvalidInputError
        The query's length is not that of the collection's vectors, and the client did not mind.
    Exception
        What the client raises: a query of another length, an unknown collection, a broken connection, ...

    Examples
    --------
    >>> from qdrant_client import QdrantClient, models
    >>> client = QdrantClient(":memory:")
    >>> _ = client.create_collection("c", models.VectorParams(size=2, distance=models.Distance.DOT))
    >>> rows = [[1.0, 0.0], [0.0, 1.0]]
    >>> _ = client.upsert("c", [models.PointStruct(id=i, vector=row) for i, row in enumerate(rows)])
    >>> points, vectors = search_with_vectors(client, "c", [0.0, 1.0], 1)
    >>> points[0].id, vectors.tolist()
    (1, [[0.0, 1.0]])
    """
    points = client.query_points(
        collection_name=collection,
        query=query,
        using=name,
        limit=k,
        with_payload=True,
        with_vectors=[name],
        **arguments,
    ).points
    rows = [_dense(point.vector, [name]) for point in points]
    lengths = {len(row) for row in rows if row is not None} - {len(query)}
    if lengths:
        # In this process, for Euclid, one number is taken for a query of as many as there are.
        raise InvalidInputError(
            f"the query has length {len(query)}, the Qdrant collection's vectors {lengths.pop()}: "
            "they most likely come from different embedding models"
        )
    if any(row is None for row in rows):
        return points, [None if row is None else np.asarray(row, dtype=np.float32) for row in rows]
    return points, np.asarray(rows, dtype=np.float32).reshape(len(rows), len(query))


def vectors_by_id(client: Any, collection: str, ids: Sequence[str], names: Sequence[str] = ("",)) -> dict[str, Row]:
    """The vectors stored under these ids, in one call.

    Parameters
    ----------
    client : qdrant_client.QdrantClient
    collection : str
    ids : sequence of str
        UUIDs in any spelling, or numbers.
    names : sequence of str
        What the dense vector may be called, the likeliest first. With one name that vector alone travels,
        otherwise all that the points have, the sparse ones too.

    Returns
    -------
    dict of str to ndarray, float32, shape (d,)
        Under the ids as they were given. Left out: ids that the collection does not have, or that no Qdrant
        collection can have, and points without a vector of these names.

    Raises
    ------
    Exception
        What the client raises.

    Examples
    --------
    >>> from qdrant_client import QdrantClient, models
    >>> client = QdrantClient(":memory:")
    >>> _ = client.create_collection("c", models.VectorParams(size=2, distance=models.Distance.DOT))
    >>> _ = client.upsert("c", [models.PointStruct(id=7, vector=[1.0, 0.0])])
    >>> {name: row.tolist() for name, row in vectors_by_id(client, "c", ["7", "8", "gone"]).items()}
    {'7': [1.0, 0.0]}
    """
    spelt = _spelt(ids)
    if not spelt:
        return {}
    return _by_id(client.retrieve(**_request(collection, spelt, names)), spelt, names)


async def avectors_by_id(
    client: Any, collection: str, ids: Sequence[str], names: Sequence[str] = ("",)
) -> dict[str, Row]:
    """As :func:`vectors_by_id`, with a ``qdrant_client.AsyncQdrantClient``."""
    spelt = _spelt(ids)
    if not spelt:
        return {}
    return _by_id(await client.retrieve(**_request(collection, spelt, names)), spelt, names)


def _request(collection: str, spelt: Mapping[int | str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {
        "collection_name": collection,
        "ids": list(spelt),
        "with_payload": False,
        # A server refuses a name that the collection does not have.
        "with_vectors": list(names) if len(names) == 1 else True,
    }


def _spelt(ids: Sequence[str]) -> dict[int | str, list[str]]:
    """What Qdrant makes of these ids, with the spellings that were asked for."""
    spelt: dict[int | str, list[str]] = {}
    for name in ids:
        point_id = _point_id(name)
        if point_id is not None:
            spelt.setdefault(point_id, []).append(name)
    return spelt


def _point_id(name: str) -> int | str | None:
    try:
        return str(UUID(name))
    except ValueError:
        # One id that a server cannot read fails the whole request; the longest number it can has 20 digits.
        number = int(name) if name.isdecimal() and len(name) <= 20 else -1
        return number if str(number) == name and number < 2**64 else None


def _by_id(records: Iterable[Any], spelt: Mapping[int | str, list[str]], names: Sequence[str]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for record in records:
        vector = _dense(record.vector, names)
        if vector is not None:
            row = np.asarray(vector, dtype=np.float32)
            found.update((name, row) for name in spelt[record.id])
    return found


def _dense(vector: Any, names: Sequence[str]) -> Any:
    """Qdrant gives a bare list where there is but one vector without a name, and otherwise a dict."""
    if isinstance(vector, dict):
        return next((vector[name] for name in names if name in vector), None)
    return vector
