"""Stored vectors out of Elasticsearch, in one search.

The request names the vector field in ``fields``, which every version supports. Since 9.2 a new index leaves vectors out
of ``_source``, and older servers refuse the option that includes them there (``_source.exclude_vectors``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import VectorSourceError
from .rows import Row, Vectors, as_row, rows_by_id, stack_rows

CustomQuery = Callable[[dict[str, Any], str | None], dict[str, Any]]

# Candidates per shard in the store's own search. A server requires at least k and at most MOST_CANDIDATES.
CANDIDATES, MOST_CANDIDATES = 50, 10_000


def search_with_vectors(
    store: Any, query: Sequence[float], k: int, **arguments: Any
) -> tuple[list[dict[str, Any]], Vectors]:
    """Return the store's own top ``k`` for a query with their stored vectors, in one call.

    Parameters
    ----------
    store : elasticsearch.helpers.vectorstore.VectorStore
        With a strategy that searches by vector, approximate or exact.
    query : sequence of d floats
    k : int
        For k up to 50 the search considers 50 candidates per shard, as the store's own search does. For a larger k it
        considers 1.5 × k, at most 10 000.
    **arguments
        Passed to ``store.search`` unchanged: ``filter``, ``custom_query``.

    Returns
    -------
    hits : list of dict, m <= k
        As the store's own search returns them.
    vectors : float32, shape (m, d); or a list of m, with None for a hit without a vector
        The inserted numbers in float32, also if the index quantises them for its search. A server that does not keep
        the document as sent (9.2 and later, synthetic ``_source``) keeps a unit vector and a length if the metric is
        cosine. It multiplies the two, so the last bit may differ. ``bfloat16`` fields return what they keep.

    Raises
    ------
    VectorSourceError
        The strategy is hybrid, which needs the text; or no hit has a vector in the store's vector field.
    elasticsearch.ApiError, elasticsearch.TransportError
        From the client: the query and the index's vectors differ in length, the connection is broken, ...

    Examples
    --------
    >>> hits, vectors = search_with_vectors(store, [0.0, 1.0], 20)  # doctest: +SKIP
    """
    return _split(store.search(**_search_request(store, query, k, **arguments)), store)


async def asearch_with_vectors(
    store: Any, query: Sequence[float], k: int, **arguments: Any
) -> tuple[list[dict[str, Any]], Vectors]:
    """Await what :func:`search_with_vectors` returns, from an ``AsyncVectorStore``."""
    return _split(await store.search(**_search_request(store, query, k, **arguments)), store)


async def avectors_by_id(client: Any, index: str, field: str, ids: Sequence[str]) -> dict[str, Row]:
    """Return the vectors stored under these ids, in one call. Ids that have no document or no vector are left out.

    Parameters
    ----------
    client : elasticsearch.AsyncElasticsearch
    index, field : str
        The index, and its field with the vectors.
    ids : sequence of str
        At most 10 000, the limit of an index unless its settings raise it.

    Returns
    -------
    dict of str to ndarray, float32, shape (d,)
        In the server's order, which is not that of ``ids``. As exact as those of :func:`search_with_vectors`.

    Examples
    --------
    >>> await avectors_by_id(client, "passages", "embedding", ["a", "b"])  # doctest: +SKIP
    """
    if not ids:
        return {}
    # mget has no ``fields``, and needs the routing of documents that have one.
    found = await client.search(
        index=index, query={"ids": {"values": list(ids)}}, size=len(ids), source=False, fields=[field]
    )
    return rows_by_id((hit["_id"], _vector(hit.get("fields", {}).get(field))) for hit in found["hits"]["hits"])


def stack_hits(rows: Sequence[Row | None], index: str, field: str) -> Vectors:
    """The vectors of the hits, stacked; a VectorSourceError if there are hits and none has a vector."""
    if rows and all(row is None for row in rows):
        raise VectorSourceError(
            f"none of {len(rows)} hits has a vector in {index!r}, field {field!r}: "
            "the vectors are in another field, or the index does not keep its _source"
        )
    return stack_rows(rows)


def _search_request(
    store: Any, query: Sequence[float], k: int, *, filter: Any = None, custom_query: CustomQuery | None = None
) -> dict[str, Any]:
    if getattr(store.retrieval_strategy, "hybrid", False):
        raise VectorSourceError(
            "a hybrid Elasticsearch store searches by text and vector, and setselect searches by vector only: "
            "use a strategy that is not hybrid"
        )

    def add_vector_field(body: dict[str, Any], text: str | None) -> dict[str, Any]:
        body = custom_query(body, text) if custom_query else body
        return {**body, "fields": [*body.get("fields", ()), store.vector_field]}

    return {
        "query_vector": query,
        "k": k,
        "num_candidates": CANDIDATES if k <= CANDIDATES else min(k * 3 // 2, MOST_CANDIDATES),
        "filter": filter,
        "custom_query": add_vector_field,
    }


def _split(hits: list[dict[str, Any]], store: Any) -> tuple[list[dict[str, Any]], Vectors]:
    rows = []
    for hit in hits:
        fields = hit.get("fields", {})
        rows.append(_vector(fields.pop(store.vector_field, None)))
        if not fields:
            # A hit must look like one of a plain search, because a function of the user's may make documents from it.
            hit.pop("fields", None)
    return hits, stack_hits(rows, store.index, store.vector_field)


def _vector(stored: Any) -> Row | None:
    row = as_row(stored)
    # ``fields`` answers with lists of values, so a vector may be nested in a list.
    return None if row is None else row.ravel()
