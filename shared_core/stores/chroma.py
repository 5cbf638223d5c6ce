"""Stored vectors out of a Chroma collection, embedded or on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def search_with_vectors(
    collection: Any, query: Sequence[float], k: int, **arguments: Any
) -> tuple[list[tuple[str, str | None, Mapping[str, Any]]], NDArray[np.float32]]:
    """Return the collection's own top ``k`` for a query with their stored vectors, in one call.

    Parameters
    ----------
    collection : chromadb.Collection
    query : sequence of d floats
    k : int
    **arguments
        Passed to ``collection.query`` unchanged: ``where``, ``where_document``, ``ids``.

    Returns
    -------
    rows : list of (id, text, metadata), m <= k
    vectors : float32, shape (m, d)
        Bit-equal to what was added: Chroma stores float32.

    Raises
    ------
    chromadb.errors.ChromaError
        From the client: the query and the collection's vectors differ in length, the connection is broken, ...

    Examples
    --------
    >>> import chromadb
    >>> collection = chromadb.EphemeralClient().create_collection("search_with_vectors")
    >>> collection.add(ids=["a", "b"], embeddings=[[1.0, 0.0], [0.0, 1.0]], documents=["one", "two"])
    >>> rows, vectors = search_with_vectors(collection, [0.0, 1.0], 1)
    >>> rows[0][0], vectors.tolist()
    ('b', [[0.0, 1.0]])
    """
    found = collection.query(
        query_embeddings=[query], n_results=k, include=["documents", "metadatas", "embeddings"], **arguments
    )
    rows = list(zip(found["ids"][0], found["documents"][0], (m or {} for m in found["metadatas"][0]), strict=True))
    return rows, np.asarray(found["embeddings"][0], dtype=np.float32)


def vectors_by_id(collection: Any, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Return the vectors stored under these ids. Ids that the collection does not have are left out.

    Parameters
    ----------
    collection : chromadb.Collection
    ids : sequence of str

    Returns
    -------
    dict of str to ndarray, float32, shape (d,)
        In the collection's own order, which is not that of ``ids``.

    Examples
    --------
    >>> import chromadb
    >>> collection = chromadb.EphemeralClient().create_collection("vectors_by_id")
    >>> collection.add(ids=["a"], embeddings=[[1.0, 0.0]])
    >>> {name: row.tolist() for name, row in vectors_by_id(collection, ["a", "gone"]).items()}
    {'a': [1.0, 0.0]}
    """
    if not ids:
        return {}
    found = collection.get(ids=list(ids), include=["embeddings"])
    return dict(zip(found["ids"], np.asarray(found["embeddings"], dtype=np.float32), strict=True))
