"""Weaviate: its own client, over gRPC and REST, against a replayed server on loopback."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.harness import BY_TEXT, LangChainCase, LlamaIndexCase, aover, over
from tests.stores.replay.weaviate import WeaviateReplay, replaying


def address(replay: WeaviateReplay) -> dict[str, Any]:
    # The client's checks at the start would request its newest version from PyPI.
    return {
        "http_host": "127.0.0.1",
        "http_port": replay.server_address[1],
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


def _serve(_: Path) -> Any:
    return replaying()


def _red() -> dict[str, Any]:
    try:
        from weaviate.classes.query import Filter
    except ImportError:
        return {}
    return {"filters": Filter.by_property("colour").equal("red")}


LANGCHAIN = [
    LangChainCase(
        "Weaviate, replayed",
        over(_serve, langchain_over, "langchain_weaviate"),
        _red(),
        by_id=False,
        row_of=lambda document: BY_TEXT[document.page_content],
        aopen=aover(_serve, alangchain_over, "langchain_weaviate"),
        arguments=(
            {**_red(), "alpha": 1.0, "return_uuids": True},
            {"return_properties": ["colour"]},
            {"return_metadata": ["distance"]},
        ),
    )
]
LLAMAINDEX = [
    LlamaIndexCase(
        "Weaviate, replayed",
        over(_serve, llamaindex_over, "llama_index.vector_stores.weaviate"),
        aopen=aover(_serve, allamaindex_over, "llama_index.vector_stores.weaviate"),
    )
]
