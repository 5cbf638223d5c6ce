"""The vector reader for langchain-milvus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from shared_core.errors import InvalidParameterError
from shared_core.retrieval.lookup import refuse_unknown
from shared_core.stores import milvus

from .reader import Hits, read_with_client


def _client(store: Any) -> Any:
    # A store without a collection has nothing to search.
    return None if store.col is None else store.client


def _aclient(store: Any) -> Any:
    return None if store.col is None else store.aclient


def _request(
    store: Any,
    *,
    param: Mapping[str, Any] | None = None,
    expr: str | None = None,
    timeout: float | None = None,
    anns_field: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Arguments of the core's search; ``anns_field`` names the field to search, ``client.search`` gets ``more``."""
    field = anns_field or _find_dense_field(store)
    if param is None:
        # The store keeps one entry per vector field, in the order of the fields.
        param = dict(zip(store.vector_fields, store._as_list(store.search_params), strict=False)).get(field)
    arguments = {
        "collection": store.collection_name,
        "field": field,
        "output_fields": store._get_output_fields(),
        "search_params": param,
        "filter": expr,
        "timeout": store.timeout or timeout,
    }
    refuse_unknown("Milvus", [name for name in more if name in arguments], ["param", "expr", "timeout", "anns_field"])
    return {**arguments, **more}


def _hits(store: Any, rows: Any, vectors: Any, more: dict[str, Any]) -> Hits:
    return [document for document, _ in store._parse_documents_from_search_results([rows])], vectors


def _lookup(store: Any, ids: Sequence[str]) -> dict[str, Any]:
    fields = _dense_fields(store)
    # Milvus refuses ids that are not numbers if its keys are numbers. Such ids belong to documents of another store.
    possible = [name for name in ids if name.isdecimal()] if store.auto_id else ids
    return {
        "collection": store.collection_name,
        # With several fields of dense vectors, no vector is the document's.
        "ids": possible if len(fields) == 1 else [],
        "field": fields[0] if fields else "",
        "id_field": store._primary_field,
    }


def _id_of(store: Any, document: Document) -> str | None:
    """The primary key, a string or a number, which the store's documents have in their metadata."""
    # A store with one field for all metadata leaves the key out, and a key of that name is then the user's.
    if document.id is not None or store._metadata_field:
        return document.id
    key = document.metadata.get(store._primary_field)
    return None if key is None else str(key)


def _dense_fields(store: Any) -> list[str]:
    if not store._is_multi_vector:
        return [store._vector_field]
    models = zip(store._vector_fields_from_embedding, store._as_list(store.embedding_func), strict=True)
    return [field for field, model in models if not store._is_sparse_embedding(model)]


def _find_dense_field(store: Any) -> str:
    # A store with several fields searches all of them by the query's text. A search by vector uses one field.
    fields = _dense_fields(store)
    if len(fields) == 1:
        return fields[0]
    raise InvalidParameterError(
        f"embeddings fill {len(fields)} of Milvus's vector fields {', '.join(map(repr, store.vector_fields))} with "
        "dense vectors: pass anns_field= to name the field to search, and embeddings= with the model that filled it"
    )


READER = read_with_client(milvus, _client, _request, _hits, aclient=_aclient, lookup=_lookup, id_of=_id_of)
