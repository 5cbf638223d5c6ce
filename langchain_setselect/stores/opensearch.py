"""The OpenSearch store of langchain-community."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.stores.elasticsearch import as_row, joined
from shared_core.stores.opensearch import vectors_by_id

from .source import Hits, Source

_FIELD = "vector_field"


def search(store: Any, query: list[float], fetch_k: int, *, metadata_field: str = "metadata", **more: Any) -> Hits:
    """The store's own top ``fetch_k``; ``more`` is for its ``similarity_search_by_vector``.

    One call, as the vectors are in what the store is sent anyway; two for its hybrid search, which leaves them out.
    """
    # "*": the whole of what was indexed, in place of the metadata.
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
    index, field = more.get("index_name", store.index_name), more.get("vector_field", _FIELD)
    rows = [as_row(source.get(field)) for source in sources]
    if not any(row is not None for row in rows):
        known = vectors_by_id(store.client, index, field, [document.id for document in found])
        rows = [known.get(document.id) for document in found]
    return documents, joined(rows, f"{index!r}, field {field!r}")


def fetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by document id, in one call, from the field that the store uses unless each of its calls is told else."""
    return vectors_by_id(store.client, store.index_name, _FIELD, ids)


SOURCES = {
    "langchain_community.vectorstores.opensearch_vector_search.OpenSearchVectorSearch": Source(
        search, fetch=fetch, widest=10_000
    )
}
