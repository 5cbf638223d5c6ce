"""Stored vectors out of Elasticsearch, in one search.

They are asked for by ``fields``, which every version answers: since 9.2 a new index keeps vectors out of ``_source``,
and what would bring them back there (``_source.exclude_vectors``) is an error to older servers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared_core.errors import VectorSourceError

Vectors = NDArray[np.float32] | list[NDArray[np.float32] | None]
CustomQuery = Callable[[dict[str, Any], str | None], dict[str, Any]]

# What the store's own search asks each shard for. A server wants no fewer than k, and no more than its limit.
CANDIDATES, MOST_CANDIDATES = 50, 10_000


def search_with_vectors(
    store: Any, query: Sequence[float], k: int, **arguments: Any
) -> tuple[list[dict[str, Any]], Vectors]:
    """The store's own top ``k`` for a query, and the vectors it keeps for them, in one call.

    Parameters
    ----------
    store : elasticsearch.helpers.vectorstore.VectorStore
        With a strategy that searches by vector, approximate or exact.
    query : sequence of d floats
    k : int
        Up to 50 it looks at 50 candidates a shard, as the store's own search does; beyond, at 1.5 × k.
    **arguments
        For ``store.search`` unchanged: ``filter``, ``custom_query``.

    Returns
    -------
    hits : list of dict, m <= k
        As the store's own search gives them.
    vectors : float32, shape (m, d); or a list of m, with None for a hit without a vector
        The numbers that were inserted, in float32, however the index quantises them for its search. Where the server
        does not keep the document as sent (9.2 and later, synthetic ``_source``) and the metric is cosine, they come
        from a unit vector and a length: all but the last bit. ``bfloat16`` fields give what they keep.

    Raises
    ------
    VectorSourceError
        The strategy is hybrid, which needs the text; or no hit has a vector in the store's vector field.
    elasticsearch.ApiError, elasticsearch.TransportError
        What the client raises: a query of another length than the index's vectors, a broken connection, ...

    Examples
    --------
    >>> hits, vectors = search_with_vectors(store, [0.0, 1.0], 20)  # doctest: +SKIP
    """
    hits = store.search(**_request(store, query, k, **arguments))
    return hits, _taken(hits, store)


async def asearch_with_vectors(
    store: Any, query: Sequence[float], k: int, **arguments: Any
) -> tuple[list[dict[str, Any]], Vectors]:
    """As :func:`search_with_vectors`, for an ``AsyncVectorStore``."""
    hits = await store.search(**_request(store, query, k, **arguments))
    return hits, _taken(hits, store)


async def avectors_by_id(client: Any, index: str, field: str, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """The vectors stored under these ids, in one call; unknown ids and documents without a vector are left out.

    Parameters
    ----------
    client : elasticsearch.AsyncElasticsearch
    index, field : str
        Where the vectors are.
    ids : sequence of str
        At most 10 000, which is what an index gives at a time unless its settings say more.

    Returns
    -------
    dict of str to ndarray, float32, shape (d,)
        In the server's order, which is not that of ``ids``. As exact as those of :func:`search_with_vectors`.

    Raises
    ------
    elasticsearch.ApiError, elasticsearch.TransportError
        What the client raises.

    Examples
    --------
    >>> await avectors_by_id(client, "passages", "embedding", ["a", "b"])  # doctest: +SKIP
    """
    if not ids:
        return {}
    # A search and not mget: that one knows no ``fields``, and needs the routing of documents that have one.
    found = await client.search(
        index=index, query={"ids": {"values": list(ids)}}, size=len(ids), source=False, fields=[field]
    )
    read = ((hit["_id"], as_row(hit.get("fields", {}).get(field))) for hit in found["hits"]["hits"])
    return {name: row for name, row in read if row is not None}


def _request(
    store: Any, query: Sequence[float], k: int, *, filter: Any = None, custom_query: CustomQuery | None = None
) -> dict[str, Any]:
    if getattr(store.retrieval_strategy, "hybrid", False):
        raise VectorSourceError("a hybrid Elasticsearch store searches by text and vector, and here is a vector only")

    def with_vectors(body: dict[str, Any], text: str | None) -> dict[str, Any]:
        body = custom_query(body, text) if custom_query else body
        return {**body, "fields": [*body.get("fields", ()), store.vector_field]}

    candidates = CANDIDATES if k <= CANDIDATES else min(k * 3 // 2, MOST_CANDIDATES)
    return {
        "query_vector": query,
        "k": k,
        "num_candidates": candidates,
        "filter": filter,
        "custom_query": with_vectors,
    }


def _taken(hits: list[dict[str, Any]], store: Any) -> Vectors:
    rows = []
    for hit in hits:
        fields = hit.get("fields", {})
        rows.append(as_row(fields.pop(store.vector_field, None)))
        if not fields:
            # Whoever builds documents out of hits finds them as a plain search gives them.
            hit.pop("fields", None)
    return joined(rows, f"{store.index!r}, field {store.vector_field!r}")


def as_row(stored: Any) -> NDArray[np.float32] | None:
    """A vector out of JSON, float32 of shape (d,); or None where there is none.

    Examples
    --------
    >>> as_row([[0.5, 1.0]]).tolist(), as_row(None)
    ([0.5, 1.0], None)
    """
    return None if not stored else np.asarray(stored, dtype=np.float32).ravel()


def joined(rows: list[NDArray[np.float32] | None], where: str) -> Vectors:
    """The rows of ``n`` hits as one array, shape (n, d), where every hit has its vector; else as they are.

    Raises
    ------
    VectorSourceError
        There are hits, and none has a vector: ``where`` they were looked for they cannot be read at all.

    Examples
    --------
    >>> joined([as_row([0.5, 1.0]), as_row([1.0, 0.0])], "passages").shape
    (2, 2)
    """
    kept = [row for row in rows if row is not None]
    if rows and not kept:
        raise VectorSourceError(
            f"none of {len(rows)} hits has a vector in {where}: is it another field, or is its _source not kept?"
        )
    return np.stack(kept) if kept and len(kept) == len(rows) else rows
