"""Pinecone: its own client against a replayed server on loopback."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.harness import DIMENSION, ROWS, LangChainCase, LlamaIndexCase, fill, needs
from tests.stores.replay.pinecone import PineconeReplay, replaying


def client(replay: PineconeReplay) -> Any:
    import pinecone

    return pinecone.Pinecone(api_key="none").Index(host=replay.host)


@contextmanager
def langchain_over(replay: PineconeReplay, embeddings: Embeddings, **settings: Any) -> Iterator[VectorStore]:
    from langchain_pinecone import PineconeVectorStore

    with client(replay) as index:
        yield PineconeVectorStore(index=index, embedding=embeddings, **settings)


@contextmanager
def llamaindex_over(replay: PineconeReplay, **settings: Any) -> Iterator[BasePydanticVectorStore]:
    from llama_index.vector_stores.pinecone import PineconeVectorStore

    with client(replay) as index:
        # The progress bar of the client.
        yield PineconeVectorStore(pinecone_index=index, insert_kwargs={"show_progress": False}, **settings)


@asynccontextmanager
async def alangchain_over(
    replay: PineconeReplay, embeddings: Embeddings, **settings: Any
) -> AsyncIterator[VectorStore]:
    """The store with its asyncio client open, as within ``async with store``."""
    from langchain_pinecone import PineconeVectorStore

    store = PineconeVectorStore(host=replay.host, pinecone_api_key="none", embedding=embeddings, **settings)
    async with store:
        yield store


@contextmanager
def _langchain(embeddings: Embeddings, folder: Path) -> Iterator[VectorStore]:
    needs("langchain_pinecone")
    with replaying(DIMENSION) as replay, langchain_over(replay, embeddings) as store:
        fill(store)
        yield store


@asynccontextmanager
async def _alangchain(embeddings: Embeddings, folder: Path) -> AsyncIterator[VectorStore]:
    needs("langchain_pinecone", "aiohttp_retry")
    with replaying(DIMENSION) as replay:
        async with alangchain_over(replay, embeddings) as store:
            await store.aadd_texts(
                [row.text for row in ROWS], [dict(row.metadata) for row in ROWS], ids=[row.id for row in ROWS]
            )
            yield store


@contextmanager
def _llamaindex(folder: Path) -> Iterator[BasePydanticVectorStore]:
    needs("llama_index.vector_stores.pinecone")
    with replaying(DIMENSION, "dotproduct") as replay, llamaindex_over(replay) as store:
        yield store


LANGCHAIN = [LangChainCase("Pinecone, replayed", _langchain, {"filter": {"colour": "red"}}, aopen=_alangchain)]
# The vectors on the nodes are the decimal numbers of the answer, which are exact after rounding to float32.
LLAMAINDEX = [LlamaIndexCase("Pinecone, replayed", _llamaindex, precision=2.0**-24)]
