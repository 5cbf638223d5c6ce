"""PostgreSQL with pgvector: both stores of langchain-postgres, sync and async, and LlamaIndex's in its settings."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.cases.postgres_server import database
from tests.stores.harness import DIMENSION, ROWS, LangChainCase, LlamaIndexCase, fill, needs

HALF = 2.0**-11 * 2
# All rows, so that the index finds the same rows as a full scan.
HNSW = {"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": len(ROWS)}


@contextmanager
def collection(url: str, embeddings: Embeddings, **settings: Any) -> Iterator[Any]:
    """langchain-postgres's PGVector, empty."""
    needs("langchain_postgres")
    from langchain_postgres import PGVector

    store = PGVector(embeddings, connection=url, **settings)
    try:
        yield store
    finally:
        store._engine.dispose()


@asynccontextmanager
async def async_collection(url: str, embeddings: Embeddings, **settings: Any) -> AsyncIterator[Any]:
    """langchain-postgres's PGVector with ``async_mode``, empty."""
    needs("langchain_postgres")
    from langchain_postgres import PGVector

    store = PGVector(embeddings, connection=url, async_mode=True, **settings)
    try:
        yield store
    finally:
        await store._async_engine.dispose()


@contextmanager
def table(
    url: str, embeddings: Embeddings, columns: tuple[str, ...] = (), id_type: str = "UUID", **settings: Any
) -> Iterator[Any]:
    """langchain-postgres's PGVectorStore, empty, with some metadata in separate columns."""
    needs("langchain_postgres")
    from langchain_postgres import Column, PGEngine, PGVectorStore

    engine = PGEngine.from_connection_string(url)
    try:
        engine.init_vectorstore_table(
            "Passages",
            DIMENSION,
            metadata_columns=[Column(name, "TEXT") for name in columns],
            id_column=Column("langchain_id", id_type, nullable=False),
        )
        yield PGVectorStore.create_sync(engine, embeddings, "Passages", metadata_columns=list(columns), **settings)
    finally:
        engine._run_as_sync(engine._pool.dispose())


@asynccontextmanager
async def async_table(
    url: str, embeddings: Embeddings, columns: tuple[str, ...] = (), **settings: Any
) -> AsyncIterator[Any]:
    """langchain-postgres's PGVectorStore, empty, on the running event loop."""
    needs("langchain_postgres")
    from langchain_postgres import Column, PGEngine, PGVectorStore
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = PGEngine.from_engine(create_async_engine(url))
    try:
        await engine.ainit_vectorstore_table(
            "Passages", DIMENSION, metadata_columns=[Column(name, "TEXT") for name in columns]
        )
        yield await PGVectorStore.create(engine, embeddings, "Passages", metadata_columns=list(columns), **settings)
    finally:
        await engine.close()


def node_store(address: Callable[[str], str], **settings: Any) -> Any:
    """LlamaIndex's store, empty."""
    needs("llama_index.vector_stores.postgres")
    from llama_index.vector_stores.postgres import PGVectorStore

    return PGVectorStore(
        connection_string=address("psycopg2"),
        async_connection_string=address("asyncpg"),
        table_name="passages",
        embed_dim=DIMENSION,
        initialization_fail_on_error=True,
        **settings,
    )


@contextmanager
def _collection(strategy: str, embeddings: Embeddings, folder: Path) -> Iterator[VectorStore]:
    with (
        database() as (_, address),
        collection(address("psycopg"), embeddings, distance_strategy=strategy) as store,
    ):
        fill(store)
        yield store


@asynccontextmanager
async def _async_collection(
    driver: str, strategy: str, embeddings: Embeddings, folder: Path
) -> AsyncIterator[VectorStore]:
    with database() as (_, address):
        # PGVector creates the extension with two statements in one, which asyncpg refuses.
        settings = {"distance_strategy": strategy, "create_extension": driver != "asyncpg"}
        async with async_collection(address(driver), embeddings, **settings) as store:
            await afill(store)
            yield store


async def afill(store: VectorStore) -> None:
    await store.aadd_texts([r.text for r in ROWS], [dict(r.metadata) for r in ROWS], ids=[r.id for r in ROWS])


@contextmanager
def _table(strategy: str, columns: tuple[str, ...], embeddings: Embeddings, folder: Path) -> Iterator[VectorStore]:
    needs("langchain_postgres")
    from langchain_postgres.v2.indexes import DistanceStrategy

    with (
        database() as (_, address),
        table(address("asyncpg"), embeddings, columns, distance_strategy=DistanceStrategy[strategy]) as store,
    ):
        fill(store)
        yield store


@asynccontextmanager
async def _async_table(
    driver: str, strategy: str, columns: tuple[str, ...], embeddings: Embeddings, folder: Path
) -> AsyncIterator[VectorStore]:
    needs("langchain_postgres")
    from langchain_postgres.v2.indexes import DistanceStrategy

    with database() as (_, address):
        settings = {"distance_strategy": DistanceStrategy[strategy]}
        async with async_table(address(driver), embeddings, columns, **settings) as store:
            await afill(store)
            yield store


@contextmanager
def _node_store(settings: dict[str, Any], folder: Path) -> Iterator[BasePydanticVectorStore]:
    with database() as (_, address):
        store = node_store(address, **settings)
        try:
            yield store
        finally:
            store._engine.dispose()


@asynccontextmanager
async def _async_node_store(settings: dict[str, Any], folder: Path) -> AsyncIterator[BasePydanticVectorStore]:
    with database() as (_, address):
        store = node_store(address, **settings)
        try:
            yield store
        finally:
            await store.close()


RED = {"filter": {"colour": {"$eq": "red"}}}
LANGCHAIN = [
    LangChainCase("PGVector, cosine", partial(_collection, "cosine"), RED),
    LangChainCase(
        "PGVector, awaited, L2", partial(_collection, "l2"), RED, aopen=partial(_async_collection, "psycopg", "l2")
    ),
    LangChainCase(
        "PGVector, awaited, inner product",
        partial(_collection, "inner"),
        RED,
        aopen=partial(_async_collection, "asyncpg", "inner"),
    ),
    LangChainCase("PGVectorStore, cosine", partial(_table, "COSINE_DISTANCE", ("colour",)), RED),
    LangChainCase(
        "PGVectorStore, awaited, L2",
        partial(_table, "EUCLIDEAN", ("colour",)),
        RED,
        aopen=partial(_async_table, "asyncpg", "EUCLIDEAN", ("colour",)),
    ),
    LangChainCase(
        "PGVectorStore, awaited, inner product, metadata as JSON",
        partial(_table, "INNER_PRODUCT", ()),
        {"filter": {"colour": {"$in": ["red"]}}},
        aopen=partial(_async_table, "psycopg", "INNER_PRODUCT", ()),
    ),
]
_KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "JSONB and HNSW": {"use_jsonb": True, "hnsw_kwargs": HNSW},
    "half precision": {"use_halfvec": True},
    "hybrid": {"hybrid_search": True},
}
LLAMAINDEX = [
    LlamaIndexCase(
        f"PostgreSQL, {kind}",
        partial(_node_store, settings),
        precision=HALF if settings.get("use_halfvec") else 0,
        aopen=partial(_async_node_store, settings),
    )
    for kind, settings in _KINDS.items()
]
