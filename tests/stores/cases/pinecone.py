"""Pinecone: its own client against a replayed server on loopback."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.harness import DIMENSION, LangChainCase, LlamaIndexCase, Row, aover, over
from tests.stores.replay.http import serving
from tests.stores.replay.pinecone import PineconeReplay


def client(replay: PineconeReplay) -> Any:
    import pinecone

    return pinecone.Pinecone(api_key="none").Index(host=replay.url)


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

    store = PineconeVectorStore(host=replay.url, pinecone_api_key="none", embedding=embeddings, **settings)
    async with store:
        yield store


def _serve(_: Path, metric: str = "cosine") -> Any:
    return serving(PineconeReplay(DIMENSION, metric))


def _forget(store: Any, row: Row) -> dict[str, Any]:
    """Replace the record by one with sparse values only."""
    sparse = {"indices": [1], "values": [0.5]}
    metadata = {"text": row.text, **row.metadata}
    store.index.upsert(vectors=[{"id": row.id, "values": [], "sparse_values": sparse, "metadata": metadata}])
    return {}


LANGCHAIN = [
    LangChainCase(
        "Pinecone, replayed",
        over(_serve, langchain_over, "langchain_pinecone"),
        {"filter": {"colour": "red"}},
        aopen=aover(_serve, alangchain_over, "langchain_pinecone", "aiohttp_retry"),
        arguments=({"filter": {"$and": [{"colour": {"$eq": "red"}}, {"number": 3}]}},),
        refused="where",
        forget=_forget,
    )
]
# The vectors on the nodes are the decimal numbers of the answer, which are exact after rounding to float32.
LLAMAINDEX = [
    LlamaIndexCase(
        "Pinecone, replayed",
        over(lambda _: _serve(_, "inner"), llamaindex_over, "llama_index.vector_stores.pinecone"),
        precision=2.0**-24,
    )
]
