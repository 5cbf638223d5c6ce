"""Azure AI Search: Azure's own clients, over TLS, against a replayed server on loopback."""

import importlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.harness import BY_ID, DIMENSION, LangChainCase, LlamaIndexCase, Row, aover, fill, over
from tests.stores.replay.azure_search import AzureReplay, replaying

PACKAGES = ("langchain_community", "langchain_azure_ai")


def needed(package: str) -> tuple[str, ...]:
    # LlamaIndex's store needs azure-search-documents 11, langchain-azure-ai's needs 12: no environment has both.
    return "cryptography", f"{package}.vectorstores", "azure.search.documents"


def options(replay: AzureReplay) -> dict[str, Any]:
    """Options of the clients: the certificate to trust, and no retries."""
    return {"connection_verify": str(replay.certificate), "retry_total": 0}


def _fields(vector: dict[str, Any]) -> list[Any]:
    from azure.search.documents.indexes.models import SearchableField, SearchField, SearchFieldDataType, SimpleField

    string = SearchFieldDataType.String
    return [
        SimpleField(name="id", type=string, key=True, filterable=True),
        SearchableField(name="content", type=string),
        SearchField(
            name="content_vector",
            searchable=True,
            vector_search_dimensions=DIMENSION,
            vector_search_profile_name="myHnswProfile",
            **{"type": "Collection(Edm.Single)", **vector},
        ),
        SearchableField(name="metadata", type=string),
        SimpleField(name="colour", type=string, filterable=True),
        SimpleField(name="number", type=SearchFieldDataType.Int32, filterable=True),
    ]


@contextmanager
def langchain_over(replay: AzureReplay, embeddings: Embeddings, package: str, **vector: Any) -> Iterator[VectorStore]:
    """``vector``: attributes of the field with the vectors."""
    module = importlib.import_module(f"{package}.vectorstores.azuresearch")
    with pytest.MonkeyPatch.context() as patch:
        # langchain-azure-ai passes its client options only to the sync client that the caller uses, not to a second one
        # that it needs for its async client.
        patch.setenv("REQUESTS_CA_BUNDLE", str(replay.certificate))
        store = module.AzureSearch(
            replay.url,
            "none",
            "passages",
            embeddings,
            fields=_fields(vector),
            vector_search_dimensions=DIMENSION,
            additional_search_client_options=options(replay),
        )
    try:
        yield store
    finally:
        # The store's __del__ would close them in a new event loop and leave that loop open.
        store.client.close()
        store.client = store.async_client = None


@asynccontextmanager
async def alangchain_over(
    replay: AzureReplay, embeddings: Embeddings, package: str, **vector: Any
) -> AsyncIterator[VectorStore]:
    from azure.search.documents.aio import SearchClient

    with langchain_over(replay, embeddings, package, **vector) as store:
        async with SearchClient(replay.url, "passages", _credential(), **options(replay)) as client:
            store.async_client = client  # type: ignore[attr-defined]
            yield store


def _credential() -> Any:
    from azure.core.credentials import AzureKeyCredential

    return AzureKeyCredential("none")


@contextmanager
def llamaindex_over(replay: AzureReplay) -> Iterator[BasePydanticVectorStore]:
    from azure.search.documents import SearchClient

    _create_index(replay)
    with SearchClient(replay.url, "passages", _credential(), **options(replay)) as client:
        yield _llamaindex_store(search_or_index_client=client)


@asynccontextmanager
async def allamaindex_over(replay: AzureReplay) -> AsyncIterator[BasePydanticVectorStore]:
    from azure.search.documents.aio import SearchClient

    _create_index(replay)
    async with SearchClient(replay.url, "passages", _credential(), **options(replay)) as client:
        yield _llamaindex_store(async_search_or_index_client=client)


def _create_index(replay: AzureReplay) -> None:
    # In a separate store: an index client does not pass the certificate to the search client that it makes.
    from azure.search.documents.indexes import SearchIndexClient
    from llama_index.vector_stores.azureaisearch import IndexManagement

    with SearchIndexClient(replay.url, _credential(), **options(replay)) as client:
        management = IndexManagement.CREATE_IF_NOT_EXISTS
        _llamaindex_store(search_or_index_client=client, index_name="passages", index_management=management).close()


def _llamaindex_store(**settings: Any) -> Any:
    from llama_index.vector_stores.azureaisearch import (
        AzureAISearchVectorStore,
        IndexManagement,
        MetadataIndexFieldType,
    )

    defaults = {
        "search_or_index_client": None,
        "index_management": IndexManagement.NO_VALIDATION,
        "id_field_key": "id",
        "chunk_field_key": "chunk",
        "embedding_field_key": "embedding",
        "metadata_string_field_key": "metadata",
        "doc_id_field_key": "doc_id",
        "embedding_dimensionality": DIMENSION,
        "filterable_metadata_field_keys": {
            "colour": ("colour", MetadataIndexFieldType.STRING),
            "number": ("number", MetadataIndexFieldType.INT32),
        },
    }
    return AzureAISearchVectorStore(**{**defaults, **settings})


def _own(store: Any, vector: list[float], k: int, filters: str | None = None) -> list[Document]:
    # The store's public search by vector takes a text and embeds it.
    module = importlib.import_module(type(store).__module__)
    found = module._results_to_documents(store._simple_search(vector, "", k, filters=filters))
    return [document for document, _ in found]


async def _afill(store: Any) -> None:
    # The async method of langchain-azure-ai adds the texts under other ids.
    fill(store)


def _forget(store: Any, row: Row) -> dict[str, Any]:
    store.client.merge_documents([{"id": row.id, "content_vector": None}])
    # A search by vector does not find it, but a search by text may.
    return {"search_text": row.text}


LANGCHAIN = [
    LangChainCase(
        f"Azure AI Search, replayed, {package}",
        over(replaying, partial(langchain_over, package=package), *needed(package)),
        {"filters": "colour eq 'red'"},
        own=_own,
        row_of=lambda document: BY_ID[document.metadata["id"]],
        aopen=aover(replaying, partial(alangchain_over, package=package), *needed(package), filled=_afill),
        arguments=({"filters": "colour eq 'red' and search.in(id, '" + ",".join(list(BY_ID)[:9]) + "', ',')"},),
        refused="filter",
        forget=_forget,
    )
    for package in PACKAGES
]
_NEEDED = "cryptography", "llama_index.vector_stores.azureaisearch"
LLAMAINDEX = [
    LlamaIndexCase(
        "Azure AI Search, replayed",
        over(replaying, llamaindex_over, *_NEEDED),
        aopen=aover(replaying, allamaindex_over, *_NEEDED),
    )
]
