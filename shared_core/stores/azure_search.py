"""Stored vectors out of an Azure AI Search index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import VectorSourceError

Rows = list[dict[str, Any]]
Vectors = NDArray[np.float32] | list[NDArray[np.float32] | None]


def search_with_vectors(
    client: Any, query: Sequence[float], k: int, field: str, **arguments: Any
) -> tuple[Rows, Vectors]:
    """The index's own top ``k`` for a query, and the vectors it stores for them, in one call.

    Parameters
    ----------
    client : azure.search.documents.SearchClient
    query : sequence of d floats
    k : int
        The service gives up to 1000 in one answer; beyond, the client asks again for each thousand.
    field : str
        The field with the vectors, which must be retrievable.
    **arguments
        For ``client.search`` unchanged: ``filter``, ``scoring_profile``, ...; a ``select`` gets the field added.

    Returns
    -------
    rows : list of dict, m <= k
        The documents without their vectors.
    vectors : float32, shape (m, d)
        Bit-equal to what was added where the field holds singles. Where a document has no vector: a list, with None
        in its place.

    Raises
    ------
    VectorSourceError
        The field is not retrievable.
    azure.core.exceptions.AzureError
        What the client raises: a query of another length than the index's vectors, a broken connection, ...

    Examples
    --------
    >>> client = SearchClient(endpoint, "mine", credential)  # doctest: +SKIP
    >>> rows, vectors = search_with_vectors(client, [0.0, 1.0], 1, "content_vector")  # doctest: +SKIP
    """
    return _unpack(list(client.search(**_question(query, k, field, arguments))), field)


async def asearch_with_vectors(
    client: Any, query: Sequence[float], k: int, field: str, **arguments: Any
) -> tuple[Rows, Vectors]:
    """As :func:`search_with_vectors`, with an ``azure.search.documents.aio.SearchClient``."""
    pages = await client.search(**_question(query, k, field, arguments))
    return _unpack([row async for row in pages], field)


def vectors_by_id(client: Any, ids: Sequence[str], key: str, field: str) -> dict[str, NDArray[np.float32]]:
    """The vectors stored under these keys, in one call for each thousand; keys that the index lacks are left out.

    Parameters
    ----------
    client : azure.search.documents.SearchClient
    ids : sequence of str
    key : str
        The key field, which must be filterable.
    field : str
        The field with the vectors, which must be retrievable.

    Returns
    -------
    dict of str to ndarray, float32, shape (d,)
        In the service's order. Documents without a vector are left out.

    Raises
    ------
    azure.core.exceptions.AzureError
        What the client raises, for one where a field is not what it must be.

    Examples
    --------
    >>> client = SearchClient(endpoint, "mine", credential)  # doctest: +SKIP
    >>> vectors_by_id(client, ["a", "gone"], "id", "embedding")  # doctest: +SKIP
    {'a': array([0., 1.], dtype=float32)}
    """
    return _by_id(client.search(**_lookup(ids, key, field)), ids, key, field) if ids else {}


async def avectors_by_id(client: Any, ids: Sequence[str], key: str, field: str) -> dict[str, NDArray[np.float32]]:
    """As :func:`vectors_by_id`, with an ``azure.search.documents.aio.SearchClient``."""
    if not ids:
        return {}
    pages = await client.search(**_lookup(ids, key, field))
    return _by_id([row async for row in pages], ids, key, field)


def _question(query: Sequence[float], k: int, field: str, arguments: dict[str, Any]) -> dict[str, Any]:
    from azure.search.documents.models import VectorizedQuery  # type: ignore[import-not-found,unused-ignore]

    asked = dict(arguments)
    if asked.get("select") is not None:
        chosen = asked["select"]
        names = [name.strip() for name in chosen.split(",")] if isinstance(chosen, str) else list(chosen)
        asked["select"] = names if field in names else [*names, field]
    nearest = VectorizedQuery(vector=np.asarray(query, dtype=np.float32).tolist(), k_nearest_neighbors=k, fields=field)
    return {"search_text": "", "top": k, **asked, "vector_queries": [nearest]}


def _unpack(rows: Rows, field: str) -> tuple[Rows, Vectors]:
    if any(field not in row for row in rows):
        raise VectorSourceError(
            f"the field {field!r} is not retrievable, so Azure AI Search does not hand back the vectors in it: "
            "create the index with hidden=False and stored=True for it"
        )
    values = [row.pop(field) for row in rows]
    if all(values):
        return rows, np.array(values, dtype=np.float32)
    return rows, [np.array(row, dtype=np.float32) if row else None for row in values]


def _lookup(ids: Sequence[str], key: str, field: str) -> dict[str, Any]:
    # Keys have neither quotes nor commas, but an id from elsewhere may.
    names = ",".join(name.replace("'", "''") for name in ids)
    return {
        "search_text": "*",
        "filter": f"search.in({key}, '{names}', ',')",
        "select": [key, field],
        "top": len(ids),
    }


def _by_id(rows: Iterable[dict[str, Any]], ids: Sequence[str], key: str, field: str) -> dict[str, NDArray[np.float32]]:
    asked = set(ids)
    return {row[key]: np.array(row[field], dtype=np.float32) for row in rows if row[key] in asked and row.get(field)}
