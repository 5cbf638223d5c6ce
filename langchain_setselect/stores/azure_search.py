"""The vector reader for the Azure AI Search stores of langchain-azure-ai and langchain-community."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.errors import InvalidParameterError
from shared_core.stores.azure_search import (
    asearch_with_vectors,
    avectors_by_id,
    search_with_vectors,
    vectors_by_id,
)

from .reader import Hits, refuse_unknown


def search(store: Any, query: list[float], fetch_k: int, **more: Any) -> Hits:
    """The index's own top ``fetch_k`` by vector with their vectors, in one call; ``client.search`` gets ``more``."""
    rows, vectors = search_with_vectors(store.client, query, fetch_k, **_arguments(store, **more))
    return [_module(store)._result_to_document(row) for row in rows], vectors


async def asearch(store: Any, query: list[float], fetch_k: int, **more: Any) -> Hits:
    """Await what ``search`` returns, from the store's async client."""
    rows, vectors = await asearch_with_vectors(store.async_client, query, fetch_k, **_arguments(store, **more))
    return [_module(store)._result_to_document(row) for row in rows], vectors


def fetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by key, which the store's documents have in their metadata; the key field must be filterable."""
    return vectors_by_id(store.client, ids, _module(store).FIELDS_ID, _module(store).FIELDS_CONTENT_VECTOR)


async def afetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Await what ``fetch`` returns, from the store's async client."""
    return await avectors_by_id(store.async_client, ids, _module(store).FIELDS_ID, _module(store).FIELDS_CONTENT_VECTOR)


def id_of(store: Any, document: Document) -> str | None:
    """The key in the document's metadata."""
    return document.metadata.get(_module(store).FIELDS_ID)


def _module(store: Any) -> Any:
    """The module of the store's class, which holds the names of the index's fields."""
    modules = (cls.__module__ for cls in type(store).__mro__)
    return sys.modules[next(name for name in modules if name.endswith(".vectorstores.azuresearch"))]


def _arguments(
    store: Any, *, filters: str | None = None, search_type: str = "similarity", **more: Any
) -> dict[str, Any]:
    if search_type != "similarity":
        raise InvalidParameterError(
            f"setselect searches by vector, which AzureSearch calls 'similarity'; got search_type={search_type!r}"
        )
    if "filter" in more:
        refuse_unknown("AzureSearch", {"filter": more["filter"]}, "filters")
    return {"field": _module(store).FIELDS_CONTENT_VECTOR, "filter": filters, **more}
