"""Elasticsearch, replayed, before and after 9.2, which keeps the vectors of new indexes out of ``_source``."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.harness import BY_TEXT, DIMENSION, LangChainCase, LlamaIndexCase, Row, aover, needs, over
from tests.stores.replay.elastic import ElasticReplay, replay

OLD, NEW = "8.18.0", "9.2.0"
# For cosine, a new index keeps unit vectors and lengths. Their product may differ from the vector in the last bit.
LAST_BIT = 2.0**-22
RED = {"filter": [{"term": {"metadata.colour.keyword": "red"}}]}


def langchain(server: ElasticReplay, embeddings: Embeddings, metric: str = "COSINE", **arguments: Any) -> VectorStore:
    """A store over the server, empty."""
    needs("langchain_elasticsearch")
    from elasticsearch import Elasticsearch
    from langchain_elasticsearch import DistanceStrategy, ElasticsearchStore

    return ElasticsearchStore(
        "passages",
        embedding=embeddings,
        client=Elasticsearch(server.url),
        distance_strategy=DistanceStrategy[metric],
        num_dimensions=DIMENSION,
        **arguments,
    )


@contextmanager
def _opened(server: ElasticReplay, embeddings: Embeddings, metric: str) -> Iterator[Any]:
    store: Any = langchain(server, embeddings, metric)
    yield store
    store.close()


@asynccontextmanager
async def alangchain(server: ElasticReplay, embeddings: Embeddings) -> AsyncIterator[VectorStore]:
    """AsyncElasticsearchStore over the server, empty."""
    needs("langchain_elasticsearch")
    from elasticsearch import AsyncElasticsearch
    from langchain_elasticsearch import AsyncElasticsearchStore

    store = AsyncElasticsearchStore(
        "passages", embedding=embeddings, client=AsyncElasticsearch(server.url), num_dimensions=DIMENSION
    )
    yield store
    await store.aclose()


def own_search(store: Any, vector: list[float], k: int, **arguments: Any) -> list[Document]:
    """The store's plain search by vector, which exists only with scores."""
    return [d for d, _ in store.similarity_search_by_vector_with_relevance_scores(vector, k, **arguments)]


def llamaindex(server: ElasticReplay) -> BasePydanticVectorStore:
    """A store over the server, empty, for any event loop."""
    with warnings.catch_warnings():
        # The store's class uses the style of Pydantic 1.
        warnings.filterwarnings("ignore", "Support for class-based `config` is deprecated", DeprecationWarning)
        needs("llama_index.vector_stores.elasticsearch")
    from elasticsearch import AsyncElasticsearch
    from llama_index.vector_stores.elasticsearch import ElasticsearchStore

    # By default the client belongs to the event loop of its first call, and the store runs calls in the current one.
    client = AsyncElasticsearch(server.url, node_class="httpxasync")
    policy = type(asyncio.get_event_loop_policy())
    get_event_loop, run = policy.get_event_loop, asyncio.run
    try:
        store: BasePydanticVectorStore = ElasticsearchStore("passages", es_client=client)
    finally:
        # The store applies nest_asyncio to the whole process, which makes event loops and does not close them.
        setattr(policy, "get_event_loop", get_event_loop)  # noqa: B010
        asyncio.run = run
    return store


@contextmanager
def current_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop for this thread, in which the store runs its async client. Between tests there is none."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@contextmanager
def _llamaindex(server: ElasticReplay) -> Iterator[BasePydanticVectorStore]:
    with current_loop() as loop:
        store = llamaindex(server)
        yield store
        loop.run_until_complete(store.client.close())


@asynccontextmanager
async def _allamaindex(server: ElasticReplay) -> AsyncIterator[BasePydanticVectorStore]:
    store = llamaindex(server)
    yield store
    await store.client.close()


def _serve(version: str) -> Any:
    return lambda folder: replay("elasticsearch", version)


def _forget(store: Any, row: Row) -> dict[str, Any]:
    document = {"text": row.text, "metadata": row.metadata}
    store.client.bulk(operations=[{"index": {"_index": "passages", "_id": row.id}}, document])

    def everything(body: dict[str, Any], text: str | None) -> dict[str, Any]:
        return {"query": {"match_all": {}}}

    return {"custom_query": everything}


def _case(version: str, metric: str) -> LangChainCase:
    return LangChainCase(
        f"Elasticsearch, replayed, {version}, {metric.lower()}",
        over(_serve(version), partial(_opened, metric=metric)),
        RED,
        own=own_search,
        by_id=False,
        row_of=lambda document: BY_TEXT[document.page_content],
        precision=LAST_BIT if version == NEW and metric == "COSINE" else 0,
        arguments=({"filter": [{"bool": {"must": [*RED["filter"], {"term": {"metadata.number": 3}}]}}]},),
        refused="colour",
        forget=_forget,
        aopen=aover(_serve(version), alangchain) if metric == "COSINE" else None,
    )


LANGCHAIN = [
    _case(OLD, "COSINE"),
    _case(NEW, "COSINE"),
    _case(OLD, "MAX_INNER_PRODUCT"),
    _case(NEW, "EUCLIDEAN_DISTANCE"),
]
LLAMAINDEX = [
    LlamaIndexCase(
        f"Elasticsearch, replayed, {version}",
        over(_serve(version), _llamaindex),
        precision=LAST_BIT if version == NEW else 0,
        aopen=aover(_serve(version), _allamaindex),
    )
    for version in (OLD, NEW)
]
