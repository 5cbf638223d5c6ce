"""OpenSearch, replayed, before and after 3.0, which restores the vectors in ``_source`` from the index."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.harness import DIMENSION, LangChainCase, LlamaIndexCase, Row, aover, needs, over
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
def _langchain(server: ElasticReplay, embeddings: Embeddings, space: str) -> Iterator[VectorStore]:
    store = langchain(server, embeddings, space)
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
def _llamaindex(server: ElasticReplay) -> Iterator[BasePydanticVectorStore]:
    store = llamaindex(server)
    yield store
    store.client._os_client.close()


@asynccontextmanager
async def _allamaindex(server: ElasticReplay) -> AsyncIterator[BasePydanticVectorStore]:
    with _llamaindex(server) as store:
        yield store
        await store.client._os_async_client.close()


def _serve(version: str) -> Any:
    return lambda folder: replay("opensearch", version)


def _forget(store: Any, row: Row) -> dict[str, Any]:
    document = {"text": row.text, "metadata": row.metadata}
    store.client.bulk(body=[{"index": {"_index": "passages", "_id": row.id}}, document])
    # Every document that passes the filter is found, also without a vector.
    return {"boolean_filter": {"match_all": {}}, "subquery_clause": "should"}


LANGCHAIN = [
    LangChainCase(
        f"OpenSearch, replayed, {version}, {space}",
        over(_serve(version), partial(_langchain, space=space)),
        RED,
        scaled=version == NEW and space == "cosinesimil",
        precision=2.0**-23 if version == NEW and space == "cosinesimil" else 0,
        arguments=(
            {"boolean_filter": RED["filter"], "subquery_clause": "must"},
            {"metadata_field": "elsewhere"},
            {"metadata_field": "*"},
            {"search_type": "hybrid_search", "search_pipeline": "p", "query_text": "passage 7"},
        ),
        refused="where",
        forget=_forget,
    )
    for version, space in ((OLD, "cosinesimil"), (NEW, "cosinesimil"), (NEW, "l2"), (OLD, "innerproduct"))
]
LLAMAINDEX = [
    LlamaIndexCase(
        f"OpenSearch, replayed, {version}",
        over(_serve(version), _llamaindex),
        aopen=aover(_serve(version), _allamaindex),
    )
    for version in (OLD, NEW)
]
