"""The vector reader for the OpenSearch store of langchain-community."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.stores.elasticsearch import stack_hits
from shared_core.stores.opensearch import WIDEST, vectors_by_id
from shared_core.stores.rows import as_row

from .reader import Hits, VectorReader

_FIELD = "vector_field"
# The arguments of the store's search, which ignores all others.
_ARGUMENTS = (
    *("metadata_field", "search_type", "score_threshold", "index_name", "vector_field", "text_field", "space_type"),
    *("filter", "boolean_filter", "subquery_clause", "efficient_filter", "lucene_filter", "pre_filter", "post_filter"),
    *("search_pipeline", "query_text"),
)


def _search(store: Any, query: list[float], fetch_k: int, *, metadata_field: str = "metadata", **more: Any) -> Hits:
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
    index, field = more.get("index_name", store.index_name), more.get("vector_field", _FIELD)
    rows = [as_row(source.get(field)) for source in sources]
    if all(row is None for row in rows):
        stored = vectors_by_id(store.client, index, field, [document.id for document in found])
        rows = [stored.get(document.id) for document in found]
    return documents, stack_hits(rows, index, field)


def _fetch(
    store: Any, ids: Sequence[str], *, index_name: str | None = None, vector_field: str = _FIELD
) -> Mapping[str, ArrayLike]:
    """Vectors by document id, in one call."""
    return vectors_by_id(store.client, index_name or store.index_name, vector_field, ids)


READER = VectorReader(
    _search,
    fetch=_fetch,
    widest=WIDEST,
    scope=["index_name", "vector_field"],
    filters=("filter", "pre_filter"),
    takes=_ARGUMENTS,
)
