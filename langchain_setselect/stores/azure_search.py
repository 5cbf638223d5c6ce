"""The Azure AI Search stores of langchain-azure-ai and langchain-community."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.errors import InvalidParameterError
from shared_core.stores.azure_search import (
    Rows,
    Vectors,
    asearch_with_vectors,
    avectors_by_id,
    search_with_vectors,
    vectors_by_id,
)

from .source import Hits, Source


def search(
    package: str, store: Any, query: list[float], fetch_k: int, *, filters: str | None = None, **more: Any
) -> Hits:
    """The index's own top ``fetch_k`` by vector with their vectors, in one call; ``more`` is for ``client.search``."""
    asked = _for_client(more)
    field = sys.modules[package].FIELDS_CONTENT_VECTOR
    return _hits(package, *search_with_vectors(store.client, query, fetch_k, field, filter=filters, **asked))


async def asearch(
    package: str, store: Any, query: list[float], fetch_k: int, *, filters: str | None = None, **more: Any
) -> Hits:
    """As :func:`search`, with the store's async client."""
    asked = _for_client(more)
    field = sys.modules[package].FIELDS_CONTENT_VECTOR
    found = await asearch_with_vectors(store.async_client, query, fetch_k, field, filter=filters, **asked)
    return _hits(package, *found)


def _for_client(more: dict[str, Any]) -> dict[str, Any]:
    kind = more.get("search_type", "similarity")
    if kind != "similarity":
        raise InvalidParameterError(
            f"candidates are searched for by vector, which AzureSearch calls 'similarity'; got search_type={kind!r}"
        )
    return {name: value for name, value in more.items() if name != "search_type"}


def _hits(package: str, rows: Rows, vectors: Vectors) -> Hits:
    return [sys.modules[package]._result_to_document(row) for row in rows], vectors


def fetch(package: str, store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by key, which the store's documents carry in their metadata; the key field must be filterable."""
    module = sys.modules[package]
    return vectors_by_id(store.client, ids, module.FIELDS_ID, module.FIELDS_CONTENT_VECTOR)


async def afetch(package: str, store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """As :func:`fetch`, with the store's async client."""
    module = sys.modules[package]
    return await avectors_by_id(store.async_client, ids, module.FIELDS_ID, module.FIELDS_CONTENT_VECTOR)


def _key(package: str, store: Any, document: Document) -> str | None:
    return document.metadata.get(sys.modules[package].FIELDS_ID)


SOURCES = {
    f"{package}.AzureSearch": Source(
        partial(search, package),
        partial(asearch, package),
        partial(fetch, package),
        partial(afetch, package),
        id_of=partial(_key, package),
        widest=10_000,
    )
    for package in ("langchain_azure_ai.vectorstores.azuresearch", "langchain_community.vectorstores.azuresearch")
}
