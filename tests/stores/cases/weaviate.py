"""Weaviate: its own client, over gRPC and REST, against a replayed server on loopback."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.harness import BY_TEXT, LangChainCase, LlamaIndexCase, fill, needs
from tests.stores.replay.weaviate import WeaviateReplay, replaying


def address(replay: WeaviateReplay) -> dict[str, Any]:
    # The client's checks at the start would request its newest version from PyPI.
    return {
        "http_host": "127.0.0.1",
        "http_port": replay.port,
        "http_secure": False,
        "grpc_host": "127.0.0.1",
        "grpc_port": replay.grpc_port,
        "grpc_secure": False,
        "skip_init_checks": True,
    }


@contextmanager
def langchain_over(replay: WeaviateReplay, embeddings: Embeddings, **settings: Any) -> Iterator[VectorStore]:
    import weaviate
    from langchain_weaviate import WeaviateVectorStore

    with weaviate.connect_to_custom(**address(replay)) as client:
        yield WeaviateVectorStore(client, "Passages", "text", embeddings, **settings)


@asynccontextmanager
async def alangchain_over(
    replay: WeaviateReplay, embeddings: Embeddings, **settings: Any
) -> AsyncIterator[VectorStore]:
    import weaviate

    async with weaviate.use_async_with_custom(**address(replay)) as client:
        with langchain_over(replay, embeddings, client_async=client, **settings) as store:
            yield store


@contextmanager
def llamaindex_over(replay: WeaviateReplay) -> Iterator[BasePydanticVectorStore]:
    import weaviate
    from llama_index.vector_stores.weaviate import WeaviateVectorStore

    with weaviate.connect_to_custom(**address(replay)) as client:
        yield WeaviateVectorStore(weaviate_client=client, index_name="Passages")


@asynccontextmanager
async def allamaindex_over(replay: WeaviateReplay) -> AsyncIterator[BasePydanticVectorStore]:
    import weaviate
    from llama_index.vector_stores.weaviate import WeaviateVectorStore

    async with weaviate.use_async_with_custom(**address(replay)) as client:
        yield WeaviateVectorStore(weaviate_client=client, index_name="Passages")


@contextmanager
def _langchain(embeddings: Embeddings, folder: Path) -> Iterator[VectorStore]:
    needs("langchain_weaviate")
    with replaying() as replay, langchain_over(replay, embeddings) as store:
        fill(store)
        yield store


@asynccontextmanager
async def _alangchain(embeddings: Embeddings, folder: Path) -> AsyncIterator[VectorStore]:
    needs("langchain_weaviate")
    with replaying() as replay:
        async with alangchain_over(replay, embeddings) as store:
            fill(store)
            yield store


@contextmanager
def _llamaindex(folder: Path) -> Iterator[BasePydanticVectorStore]:
    needs("llama_index.vector_stores.weaviate")
    with replaying() as replay, llamaindex_over(replay) as store:
        yield store


@asynccontextmanager
async def _allamaindex(folder: Path) -> AsyncIterator[BasePydanticVectorStore]:
    needs("llama_index.vector_stores.weaviate")
    with replaying() as replay:
        async with allamaindex_over(replay) as store:
            yield store


def _red() -> dict[str, Any]:
    try:
        from weaviate.classes.query import Filter
    except ImportError:
        return {}
    return {"filters": Filter.by_property("colour").equal("red")}


LANGCHAIN = [
    LangChainCase(
        "Weaviate, replayed",
        _langchain,
        _red(),
        by_id=False,
        row_of=lambda document: BY_TEXT[document.page_content],
        aopen=_alangchain,
    )
]
LLAMAINDEX = [LlamaIndexCase("Weaviate, replayed", _llamaindex, aopen=_allamaindex)]
