"""The store of langchain-milvus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.errors import InvalidParameterError, VectorSourceError
from shared_core.stores.milvus import asearch_with_vectors, avectors_by_id, search_with_vectors, vectors_by_id

from .source import Hits, Source


def search(
    store: Any,
    query: list[float],
    fetch_k: int,
    *,
    param: Mapping[str, Any] | None = None,
    expr: str | None = None,
    timeout: float | None = None,
    anns_field: str | None = None,
    **more: Any,
) -> Hits:
    """The collection's own top ``fetch_k`` with their vectors, in one request; ``more`` is for ``client.search``.

    ``anns_field`` says which field of several is searched.
    """
    if store.col is None:
        return [], []
    asked = _asked(store, anns_field, param)
    timeout = store.timeout or timeout
    hits, vectors = search_with_vectors(
        store.client, store.collection_name, query, fetch_k, filter=expr, timeout=timeout, **asked, **more
    )
    return _documents(store, hits), vectors


async def asearch(
    store: Any,
    query: list[float],
    fetch_k: int,
    *,
    param: Mapping[str, Any] | None = None,
    expr: str | None = None,
    timeout: float | None = None,
    anns_field: str | None = None,
    **more: Any,
) -> Hits:
    """As :func:`search`, awaiting the store's async client."""
    if store.col is None:
        return [], []
    asked = _asked(store, anns_field, param)
    timeout = store.timeout or timeout
    hits, vectors = await asearch_with_vectors(
        store.aclient, store.collection_name, query, fetch_k, filter=expr, timeout=timeout, **asked, **more
    )
    return _documents(store, hits), vectors


def fetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by primary key, in one request; none of a store that has several fields of dense vectors."""
    fields = _dense_fields(store)
    if store.col is None or len(fields) != 1:
        return {}
    found = vectors_by_id(
        store.client, store.collection_name, _possible(store, ids), field=fields[0], id_field=store._primary_field
    )
    return {str(key): vector for key, vector in found.items()}


async def afetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """As :func:`fetch`, awaiting the store's async client."""
    fields = _dense_fields(store)
    if store.col is None or len(fields) != 1:
        return {}
    found = await avectors_by_id(
        store.aclient, store.collection_name, _possible(store, ids), field=fields[0], id_field=store._primary_field
    )
    return {str(key): vector for key, vector in found.items()}


def _possible(store: Any, ids: Sequence[str]) -> Sequence[str]:
    # Milvus refuses to look for words among numbers: they are those of another store's documents.
    return [one for one in ids if one.isdecimal()] if store.auto_id else ids


def id_of(store: Any, document: Document) -> str | None:
    """The primary key, which the store's own documents carry in their metadata, a string or a number."""
    # With a field for all metadata the store leaves the key out, and what has its name is the user's.
    if document.id is not None or store._metadata_field:
        return document.id
    key = document.metadata.get(store._primary_field)
    return None if key is None else str(key)


def _asked(store: Any, anns_field: str | None, param: Mapping[str, Any] | None) -> dict[str, Any]:
    field = anns_field or _the_dense_field(store)
    if param is None:
        # The store keeps one entry a vector field, in their order.
        params = dict(zip(store.vector_fields, store._as_list(store.search_params), strict=False))
        if field not in params:
            raise InvalidParameterError(
                f"Milvus has no vector field {field!r} to search; it has {', '.join(map(repr, params))}"
            )
        param = params[field]
    return {"field": field, "output_fields": store._get_output_fields(), "search_params": param}


def _dense_fields(store: Any) -> list[str]:
    if not store._is_multi_vector:
        return [store._vector_field]
    models = zip(store._vector_fields_from_embedding, store._as_list(store.embedding_func), strict=True)
    return [field for field, model in models if not store._is_sparse_embedding(model)]


def _the_dense_field(store: Any) -> str:
    # A store of several fields ranks by all of them, from the query's text; a vector can be looked for in one.
    fields = _dense_fields(store)
    if len(fields) == 1:
        return fields[0]
    if not fields:
        raise VectorSourceError(
            f"no embeddings fill any of Milvus's vector fields {', '.join(map(repr, store.vector_fields))} with dense "
            "vectors: pass anns_field= if one of them holds such"
        )
    raise InvalidParameterError(
        f"Milvus has several fields of dense vectors: pass anns_field=, one of {', '.join(map(repr, fields))}, and "
        "embeddings= with the model that filled it"
    )


def _documents(store: Any, hits: Any) -> list[Document]:
    return [document for document, _ in store._parse_documents_from_search_results([hits])]


SOURCES = {"langchain_milvus.vectorstores.milvus.Milvus": Source(search, asearch, fetch, afetch, id_of, widest=16_384)}
