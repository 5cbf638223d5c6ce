"""Stored vectors out of a Pinecone index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = list[tuple[str, dict[str, Any]]]
Vectors = NDArray[np.float32] | list[NDArray[np.float32] | None]

# Ids travel in the address of the request, and addresses longer than 8 kB are refused on the way.
IDS_PER_CALL = 100


def search_with_vectors(index: Any, query: Sequence[float], k: int, **arguments: Any) -> tuple[Rows, Vectors]:
    """The index's own top ``k`` for a query, and the vectors it stores for them, in one call.

    Parameters
    ----------
    index : pinecone.Index
    query : sequence of d floats
    k : int
    **arguments
        For ``index.query`` unchanged: ``filter``, ``namespace``, ...

    Returns
    -------
    rows : list of (id, metadata), m <= k
    vectors : float32, shape (m, d)
        Pinecone stores float32. Where a record has no dense vector: a list, with None in its place.

    Raises
    ------
    pinecone.exceptions.PineconeException
        What the client raises: a query of another length than the index's vectors, a server that refuses, ...

    Examples
    --------
    >>> index = pinecone.Pinecone(api_key="...").Index(host="...")  # doctest: +SKIP
    >>> rows, vectors = search_with_vectors(index, [0.0, 1.0], 1, namespace="mine")  # doctest: +SKIP
    """
    return _unpack(index.query(**_question(query, k, arguments)))


async def asearch_with_vectors(index: Any, query: Sequence[float], k: int, **arguments: Any) -> tuple[Rows, Vectors]:
    """As :func:`search_with_vectors`, with a ``pinecone.IndexAsyncio``."""
    return _unpack(await index.query(**_question(query, k, arguments)))


def vectors_by_id(index: Any, ids: Sequence[str], namespace: str | None = None) -> dict[str, NDArray[np.float32]]:
    """The vectors stored under these ids; ids that the namespace does not have are left out.

    Parameters
    ----------
    index : pinecone.Index
    ids : sequence of str
        One call for each hundred.
    namespace : str, optional
        Pinecone's default one if not given.

    Returns
    -------
    dict of str to ndarray, float32, shape (d,)
        In Pinecone's order. Records without a dense vector are left out.

    Raises
    ------
    pinecone.exceptions.PineconeException
        What the client raises.

    Examples
    --------
    >>> index = pinecone.Pinecone(api_key="...").Index(host="...")  # doctest: +SKIP
    >>> vectors_by_id(index, ["a", "gone"])  # doctest: +SKIP
    {'a': array([0., 1.], dtype=float32)}
    """
    found: dict[str, NDArray[np.float32]] = {}
    for some in _parts(ids):
        found.update(_dense(index.fetch(ids=some, namespace=namespace)))
    return found


async def avectors_by_id(
    index: Any, ids: Sequence[str], namespace: str | None = None
) -> dict[str, NDArray[np.float32]]:
    """As :func:`vectors_by_id`, with a ``pinecone.IndexAsyncio``."""
    found: dict[str, NDArray[np.float32]] = {}
    for some in _parts(ids):
        found.update(_dense(await index.fetch(ids=some, namespace=namespace)))
    return found


def _question(query: Sequence[float], k: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {**arguments, "vector": list(query), "top_k": k, "include_values": True, "include_metadata": True}


def _unpack(answer: Any) -> tuple[Rows, Vectors]:
    matches = answer["matches"]
    rows = [(match["id"], match.get("metadata") or {}) for match in matches]
    values = [match.get("values") for match in matches]
    if all(values):
        return rows, np.array(values, dtype=np.float32)
    return rows, [np.array(row, dtype=np.float32) if row else None for row in values]


def _parts(ids: Sequence[str]) -> Iterator[list[str]]:
    return (list(ids[start : start + IDS_PER_CALL]) for start in range(0, len(ids), IDS_PER_CALL))


def _dense(answer: Any) -> dict[str, NDArray[np.float32]]:
    return {name: np.array(record.values, dtype=np.float32) for name, record in answer.vectors.items() if record.values}
