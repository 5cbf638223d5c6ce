"""OpenSearch, replayed, before and after 3.0, which restores the vectors in ``_source`` from the index."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.harness import DIMENSION, LangChainCase, LlamaIndexCase, fill, needs
from tests.stores.replay.elastic import ElasticReplay, replay

OLD, NEW = "2.19.0", "3.3.0"
RED = {"filter": {"term": {"metadata.colour.keyword": "red"}}}


def langchain(server: ElasticReplay, embeddings: Embeddings, space: str = "l2", **arguments: Any) -> Any:
    """A store over the server, with an empty index."""
    needs("opensearchpy")
    from langchain_community.vectorstores import OpenSearchVectorSearch

    store = OpenSearchVectorSearch(server.url, "passages", embeddings, **{"engine": "faiss"} | arguments)
    store.create_index(DIMENSION, "passages", space_type=space)
    return store


@contextmanager
def _langchain(version: str, space: str, embeddings: Embeddings, _: Path) -> Iterator[VectorStore]:
    with replay("opensearch", version) as server:
        store = langchain(server, embeddings, space)
        fill(store)
        yield store
        store.client.close()


def llamaindex(server: ElasticReplay, **arguments: Any) -> Any:
    """A store over the server, empty."""
    needs("llama_index.vector_stores.opensearch")
    from llama_index.vector_stores.opensearch import OpensearchVectorClient, OpensearchVectorStore
    from opensearchpy import AsyncOpenSearch, OpenSearch

    # The store would close clients of its own making on deletion, in an event loop that replaces the current one.
    clients = {"os_client": OpenSearch(server.url), "os_async_client": AsyncOpenSearch(server.url)}
    return OpensearchVectorStore(OpensearchVectorClient(server.url, "passages", DIMENSION, **clients, **arguments))


@contextmanager
def _llamaindex(version: str, _: Path) -> Iterator[BasePydanticVectorStore]:
    with replay("opensearch", version) as server:
        store = llamaindex(server)
        yield store
        store.client._os_client.close()


@asynccontextmanager
async def _allamaindex(version: str, _: Path) -> AsyncIterator[BasePydanticVectorStore]:
    with replay("opensearch", version) as server:
        store = llamaindex(server)
        yield store
        store.client._os_client.close()
        await store.client._os_async_client.close()


LANGCHAIN = [
    LangChainCase(
        f"OpenSearch, replayed, {version}, {space}",
        partial(_langchain, version, space),
        RED,
        scaled=version == NEW and space == "cosinesimil",
        precision=2.0**-23 if version == NEW and space == "cosinesimil" else 0,
    )
    for version, space in ((OLD, "cosinesimil"), (NEW, "cosinesimil"), (NEW, "l2"), (OLD, "innerproduct"))
]
LLAMAINDEX = [
    LlamaIndexCase(
        f"OpenSearch, replayed, {version}", partial(_llamaindex, version), aopen=partial(_allamaindex, version)
    )
    for version in (OLD, NEW)
]
