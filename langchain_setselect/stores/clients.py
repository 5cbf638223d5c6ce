"""Vector readers that call the store's client, most of them with the functions of :mod:`shared_core.stores` alone."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.errors import InvalidParameterError, VectorSourceError
from shared_core.retrieval.extra import StoreListing
from shared_core.stores import (
    azure_search,
    chroma,
    elasticsearch,
    milvus,
    opensearch,
    pinecone,
    qdrant,
    weaviate,
)
from shared_core.stores.rows import as_row

from .reader import Hits, VectorReader, narrow_by_operators, read_with_client


# Azure AI Search, of langchain-azure-ai and langchain-community.
def _azure_module(store: Any) -> Any:
    """The module of the store's class, which holds the names of the index's fields."""
    modules = (cls.__module__ for cls in type(store).__mro__)
    return sys.modules[next(name for name in modules if name.endswith(".vectorstores.azuresearch"))]


AZURE_SEARCH = read_with_client(
    azure_search,
    attrgetter("client"),
    lambda store, *, filters=None, **more: {
        "field": _azure_module(store).FIELDS_CONTENT_VECTOR,
        "filter": filters,
        **more,
    },
    lambda store, rows, more: [_azure_module(store)._result_to_document(row) for row in rows],
    aclient=attrgetter("async_client"),
    lookup=lambda store, ids: {
        "ids": ids,
        "key": _azure_module(store).FIELDS_ID,
        "field": _azure_module(store).FIELDS_CONTENT_VECTOR,
    },
    id_of=lambda store, document: document.metadata.get(_azure_module(store).FIELDS_ID),
    filters=("filters",),
)


def _chroma_documents(rows: Any) -> list[Document | None]:
    # Rows without text are left out, as in the store's own search.
    return [
        None if text is None else Document(id=name, page_content=text, metadata=dict(more)) for name, text, more in rows
    ]


def _chroma_passing(store: Any, ids: Sequence[str], *, filter: Any = None, **more: Any) -> dict[str, Document]:
    rows = chroma.rows_by_id(store._collection, ids, filter, **more)
    return {row[0]: document for row, document in zip(rows, _chroma_documents(rows), strict=True) if document}


CHROMA = read_with_client(
    chroma,
    attrgetter("_collection"),
    lambda store, *, filter=None, **more: {"where": filter, **more},
    lambda store, rows, more: _chroma_documents(rows),
    lookup=lambda store, ids: {"ids": ids},
    passing=_chroma_passing,
    filters=("filter", "where"),
    narrow=narrow_by_operators,
)


def _chroma_list(store: Any, ids: Sequence[str] | None) -> Iterable[Document]:
    rows = chroma.list_rows(store._collection) if ids is None else chroma.rows_by_id(store._collection, ids, None)
    return filter(None, _chroma_documents(rows))


CHROMA_LISTING = StoreListing(
    _chroma_list,
    lambda store: (store._collection.count(), None),
    ids=lambda store: store._collection.get(include=[])["ids"],
)


# The two stores of langchain-elasticsearch, whose documents have no ids.
def _elastic_request(store: Any, *, filter: Any = None, custom_query: Any = None, **_: Any) -> dict[str, Any]:
    return {"filter": filter, "custom_query": custom_query}


def _elastic_documents(store: Any, hits: Any, more: dict[str, Any]) -> list[Document]:
    if more.get("doc_builder") is not None:
        return [more["doc_builder"](hit) for hit in hits]
    sources = [hit["_source"] for hit in hits]
    return [Document(page_content=s.get(store.query_field, ""), metadata=s.get("metadata", {})) for s in sources]


def _elastic_refuse_sync(store: Any) -> Any:
    raise VectorSourceError(f"{type(store).__name__} is asynchronous: use ainvoke, or an ElasticsearchStore")


_ELASTIC = _elastic_request, _elastic_documents
_TAKEN = "filter", "custom_query", "doc_builder"
ELASTICSEARCH = read_with_client(elasticsearch, attrgetter("_store"), *_ELASTIC, takes=_TAKEN)
ASYNC_ELASTICSEARCH = read_with_client(
    elasticsearch, _elastic_refuse_sync, *_ELASTIC, aclient=attrgetter("_store"), takes=_TAKEN
)


def _milvus_request(
    store: Any,
    *,
    param: Mapping[str, Any] | None = None,
    expr: str | None = None,
    timeout: float | None = None,
    anns_field: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Arguments of the core's search; ``anns_field`` names the field to search, ``client.search`` gets ``more``."""
    field = anns_field or _milvus_find_dense_field(store)
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
    return {**arguments, **more}


def _milvus_lookup(store: Any, ids: Sequence[str], **where: Any) -> dict[str, Any]:
    fields = _milvus_dense_fields(store)
    # Milvus refuses ids that are not numbers if its keys are numbers. Such ids belong to documents of another store.
    possible = [name for name in ids if name.isdecimal()] if store.auto_id else ids
    return {
        "collection": store.collection_name,
        # With several fields of dense vectors, no vector is the document's.
        "ids": possible if len(fields) == 1 else [],
        "field": fields[0] if fields else "",
        "id_field": store._primary_field,
        **where,
    }


def _milvus_id_of(store: Any, document: Document) -> str | None:
    """The primary key, a string or a number, which the store's documents have in their metadata."""
    # A store with one field for all metadata leaves the key out, and a key of that name is then the user's.
    if document.id is not None or store._metadata_field:
        return document.id
    key = document.metadata.get(store._primary_field)
    return None if key is None else str(key)


def _milvus_dense_fields(store: Any) -> list[str]:
    if not store._is_multi_vector:
        return [store._vector_field]
    models = zip(store._vector_fields_from_embedding, store._as_list(store.embedding_func), strict=True)
    return [field for field, model in models if not store._is_sparse_embedding(model)]


def _milvus_find_dense_field(store: Any) -> str:
    # A store with several fields searches all of them by the query's text. A search by vector uses one field.
    fields = _milvus_dense_fields(store)
    if len(fields) == 1:
        return fields[0]
    raise InvalidParameterError(
        f"embeddings fill {len(fields)} of Milvus's vector fields {', '.join(map(repr, store.vector_fields))} with "
        "dense vectors: pass anns_field= to name the field to search, and embeddings= with the model that filled it"
    )


MILVUS = read_with_client(
    milvus,
    # A store without a collection has nothing to search.
    lambda store: None if store.col is None else store.client,
    _milvus_request,
    lambda store, rows, more: [document for document, _ in store._parse_documents_from_search_results([rows])],
    aclient=lambda store: None if store.col is None else store.aclient,
    lookup=_milvus_lookup,
    id_of=_milvus_id_of,
    scope=["partition_names"],
    filters=("expr",),
)


def _pinecone_open_asyncio_client(store: Any) -> Any:
    """The asyncio client that the caller gave the store, or that ``async with store`` opened; else None."""
    # Otherwise the store would open a client and a connection per search, and close the client while other searches use
    # it. The store's sync client keeps its connections, and threads can share it.
    return store._async_index if store._async_index_provided or store._async_index_context_open else None


def _pinecone_part(store: Any, namespace: str | None = None, **more: Any) -> dict[str, Any]:
    return {"namespace": store._namespace if namespace is None else namespace, **more}


def _pinecone_documents(store: Any, rows: Any, more: dict[str, Any]) -> list[Document | None]:
    # Records without text are left out, as in the store's own search.
    return [
        Document(id=name, page_content=metadata.pop(store._text_key), metadata=metadata)
        if store._text_key in metadata
        else None
        for name, metadata in rows
    ]


PINECONE = read_with_client(
    pinecone,
    attrgetter("index"),
    lambda store, *, filter=None, **more: _pinecone_part(store, filter=filter, **more),
    _pinecone_documents,
    aclient=_pinecone_open_asyncio_client,
    lookup=lambda store, ids, **where: _pinecone_part(store, ids=ids, **where),
    scope=["namespace"],
    takes=["filter", "namespace"],
    narrow=narrow_by_operators,
)


# langchain-qdrant, whose store has no async client.
def _qdrant_documents(store: Any, points: Any, more: dict[str, Any]) -> list[Document]:
    keys = store.collection_name, store.content_payload_key, store.metadata_payload_key
    return [store._document_from_point(point, *keys) for point in points]


def _qdrant_id_of(store: Any, document: Document) -> str | None:
    found = document.metadata.get("_id") if document.id is None else document.id
    return None if found is None else str(found)


def _qdrant_request(store: Any, *, filter: Any = None, **more: Any) -> dict[str, Any]:
    if isinstance(filter, Mapping):
        raise InvalidParameterError(f"filter of QdrantVectorStore must be a qdrant_client.models.Filter, got {filter}")
    return {"collection": store.collection_name, "name": store.vector_name, "query_filter": filter, **more}


def _qdrant_passing(
    store: Any, ids: Sequence[str], *, filter: Any = None, shard_key_selector: Any = None, **more: Any
) -> dict[str, Document]:
    arguments = store.client, store.collection_name, ids, filter
    records = qdrant.records_by_id(*arguments, shard_key_selector=shard_key_selector)
    return dict(zip(records, _qdrant_documents(store, records.values(), more), strict=True))


QDRANT = read_with_client(
    qdrant,
    attrgetter("client"),
    _qdrant_request,
    _qdrant_documents,
    lookup=lambda store, ids, **where: {
        "collection": store.collection_name,
        "ids": ids,
        "names": [store.vector_name],
        **where,
    },
    id_of=_qdrant_id_of,
    scope=["shard_key_selector"],
    passing=_qdrant_passing,
    narrow=lambda store, own, where: {"filter": qdrant.narrow_filter(own, where, f"{store.metadata_payload_key}.")},
)


# OpenSearch of langchain-community.
_OPENSEARCH_FIELD = "vector_field"
# The arguments of the store's search, which ignores all others.
_OPENSEARCH_ARGUMENTS = (
    *("metadata_field", "search_type", "score_threshold", "index_name", "vector_field", "text_field", "space_type"),
    *("filter", "boolean_filter", "subquery_clause", "efficient_filter", "lucene_filter", "pre_filter", "post_filter"),
    *("search_pipeline", "query_text"),
)


def _opensearch_search(
    store: Any, query: list[float], fetch_k: int, *, metadata_field: str = "metadata", **more: Any
) -> Hits:
    """The store's own top ``fetch_k`` with their vectors; a hybrid search omits them, so a second call reads them."""
    # "*" returns all indexed fields in place of the metadata.
    found = store.similarity_search_by_vector(query, fetch_k, metadata_field="*", **more)
    sources: list[dict[str, Any]] = [document.metadata for document in found]
    documents = [
        Document(
            id=document.id,
            page_content=document.page_content,
            metadata=source if metadata_field == "*" else source.get(metadata_field, source),
        )
        for document, source in zip(found, sources, strict=True)
    ]
    index, field = more.get("index_name", store.index_name), more.get("vector_field", _OPENSEARCH_FIELD)
    rows = [as_row(source.get(field)) for source in sources]
    if all(row is None for row in rows):
        stored = opensearch.vectors_by_id(store.client, index, field, [document.id for document in found])
        rows = [stored.get(document.id) for document in found]
    return documents, elasticsearch.stack_hits(rows, index, field)


def _opensearch_fetch(
    store: Any, ids: Sequence[str], *, index_name: str | None = None, vector_field: str = _OPENSEARCH_FIELD
) -> Mapping[str, ArrayLike]:
    """Vectors by document id, in one call."""
    return opensearch.vectors_by_id(store.client, index_name or store.index_name, vector_field, ids)


OPENSEARCH = VectorReader(
    _opensearch_search,
    fetch=_opensearch_fetch,
    widest=opensearch.WIDEST,
    scope=["index_name", "vector_field"],
    filters=("filter", "pre_filter"),
    takes=_OPENSEARCH_ARGUMENTS,
)


def _weaviate_request(store: Any, *, return_uuids: bool = False, **more: Any) -> dict[str, Any]:
    if "return_properties" in more:
        more["return_properties"] = [*more["return_properties"], store._text_key]
    return more


def _weaviate_documents(store: Any, objects: Any, more: dict[str, Any]) -> list[Document]:
    documents = []
    for each in objects:
        text = each.properties.pop(store._text_key)
        facts = {name: value for name, value in vars(each.metadata).items() if value is not None and name != "score"}
        uuid = {"uuid": str(each.uuid)} if more.get("return_uuids") else {}
        documents.append(Document(page_content=text, metadata={**each.properties, **facts, **uuid}))
    return documents


# The documents have no id (return_uuids writes one into the metadata), so vectors cannot be looked up.
WEAVIATE = read_with_client(
    weaviate,
    attrgetter("_collection"),
    _weaviate_request,
    _weaviate_documents,
    aclient=lambda store: store._client_async and store._client_async.collections.get(store._index_name),
    filters=("filters",),
)
