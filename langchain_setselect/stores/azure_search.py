"""The vector reader for the Azure AI Search stores of langchain-azure-ai and langchain-community."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from langchain_core.documents import Document

from shared_core.errors import InvalidParameterError
from shared_core.retrieval.lookup import refuse_unknown
from shared_core.stores import azure_search

from .reader import Hits, read_with_client


def _module(store: Any) -> Any:
    """The module of the store's class, which holds the names of the index's fields."""
    modules = (cls.__module__ for cls in type(store).__mro__)
    return sys.modules[next(name for name in modules if name.endswith(".vectorstores.azuresearch"))]


def _request(store: Any, *, filters: str | None = None, search_type: str = "similarity", **more: Any) -> dict[str, Any]:
    if search_type != "similarity":
        raise InvalidParameterError(
            f"setselect searches by vector, which AzureSearch calls 'similarity'; got search_type={search_type!r}"
        )
    refuse_unknown("AzureSearch", [name for name in more if name == "filter"], ["filters"])
    return {"field": _module(store).FIELDS_CONTENT_VECTOR, "filter": filters, **more}


def _hits(store: Any, rows: Any, vectors: Any, more: dict[str, Any]) -> Hits:
    return [_module(store)._result_to_document(row) for row in rows], vectors


def _lookup(store: Any, ids: Sequence[str]) -> dict[str, Any]:
    return {"ids": ids, "key": _module(store).FIELDS_ID, "field": _module(store).FIELDS_CONTENT_VECTOR}


def _id_of(store: Any, document: Document) -> str | None:
    return document.metadata.get(_module(store).FIELDS_ID)


READER = read_with_client(
    azure_search,
    attrgetter("client"),
    _request,
    _hits,
    aclient=attrgetter("async_client"),
    lookup=_lookup,
    id_of=_id_of,
)
