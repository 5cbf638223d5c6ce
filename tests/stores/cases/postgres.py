"""PostgreSQL with pgvector: both stores of langchain-postgres, sync and async, and LlamaIndex's in its settings."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.cases.postgres_server import database, execute
from tests.stores.harness import DIMENSION, ROWS, LangChainCase, LlamaIndexCase, Row, aover, needs, over

Address = Callable[[str], str]
HALF = 2.0**-11 * 2
# All rows, so that the index finds the same rows as a full scan.
HNSW = {"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": len(ROWS)}


@contextmanager
def collection(address: Address, embeddings: Embeddings, strategy: str = "cosine") -> Iterator[Any]:
    """langchain-postgres's PGVector, empty."""
    needs("langchain_postgres")
    from langchain_postgres import PGVector

    store = PGVector(embeddings, connection=address("psycopg"), distance_strategy=strategy)  # type: ignore[arg-type,unused-ignore]
    yield store
    store._engine.dispose()


@asynccontextmanager
async def async_collection(
    address: Address, embeddings: Embeddings, driver: str = "psycopg", strategy: str = "cosine"
) -> AsyncIterator[Any]:
    """langchain-postgres's PGVector with ``async_mode``, empty."""
    needs("langchain_postgres")
    from langchain_postgres import PGVector

    # PGVector creates the extension with two statements in one, which asyncpg refuses.
    settings: Any = {"distance_strategy": strategy, "create_extension": driver != "asyncpg", "async_mode": True}
    store = PGVector(embeddings, connection=address(driver), **settings)
    yield store
    await store._async_engine.dispose()


@contextmanager
def table(
    address: Address,
    embeddings: Embeddings,
    strategy: str = "COSINE_DISTANCE",
    columns: tuple[str, ...] = ("colour",),
    *,
    driver: str = "asyncpg",
    id_type: str = "UUID",
) -> Iterator[Any]:
    """langchain-postgres's PGVectorStore, empty, with some metadata in separate columns."""
    needs("langchain_postgres")
    from langchain_postgres import Column, PGEngine, PGVectorStore
    from langchain_postgres.v2.indexes import DistanceStrategy

    engine = PGEngine.from_connection_string(address(driver))
    engine.init_vectorstore_table(
        "Passages",
        DIMENSION,
        metadata_columns=[Column(name, "TEXT") for name in columns],
        id_column=Column("langchain_id", id_type, nullable=False),
    )
    settings: Any = {"metadata_columns": list(columns), "distance_strategy": DistanceStrategy[strategy]}
    yield PGVectorStore.create_sync(engine, embeddings, "Passages", **settings)
    engine._run_as_sync(engine._pool.dispose())


@asynccontextmanager
async def async_table(
    address: Address, embeddings: Embeddings, driver: str, strategy: str, columns: tuple[str, ...] = ("colour",)
) -> AsyncIterator[Any]:
    """langchain-postgres's PGVectorStore, empty, on the running event loop."""
    needs("langchain_postgres")
    from langchain_postgres import Column, PGEngine, PGVectorStore
    from langchain_postgres.v2.indexes import DistanceStrategy
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = PGEngine.from_engine(create_async_engine(address(driver)))
    await engine.ainit_vectorstore_table(
        "Passages", DIMENSION, metadata_columns=[Column(name, "TEXT") for name in columns]
    )
    settings: Any = {"metadata_columns": list(columns), "distance_strategy": DistanceStrategy[strategy]}
    yield await PGVectorStore.create(engine, embeddings, "Passages", **settings)
    await engine.close()


def _nodes(address: Address, **settings: Any) -> Any:
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
def node_store(address: Address, **settings: Any) -> Iterator[BasePydanticVectorStore]:
    """LlamaIndex's store, empty."""
    store = _nodes(address, **settings)
    yield store
    store._engine.dispose()


@asynccontextmanager
async def async_node_store(address: Address, **settings: Any) -> AsyncIterator[BasePydanticVectorStore]:
    store = _nodes(address, **settings)
    yield store
    await store.close()


@contextmanager
def _serve(_: Path) -> Iterator[Address]:
    with database() as (_name, address):
        yield address


def _open(make: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    return over(_serve, lambda address, *embeddings: make(address, *embeddings, *arguments, **settings))


def _aopen(make: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    return aover(_serve, lambda address, *embeddings: make(address, *embeddings, *arguments, **settings))


def _case(name: str, open: Any, forgotten: str, aopen: Any = None, red: Any = None) -> LangChainCase:
    """``forgotten``: the table and the column of its keys."""

    def forget(store: Any, row: Row) -> dict[str, Any]:
        where, key = forgotten.split()
        engine = getattr(store, "_engine", None)
        database = (engine.url if hasattr(engine, "url") else engine._pool.url).database
        execute(f"ALTER TABLE {where} ALTER embedding DROP NOT NULL", database)
        execute(f"UPDATE {where} SET embedding = NULL WHERE {key} = '{row.id}'", database)
        return {}

    return LangChainCase(
        name,
        open,
        {"filter": red or {"colour": {"$eq": "red"}}},
        aopen=aopen,
        arguments=(
            {"filter": {"$and": [{"colour": {"$ne": "red"}}, {"$or": [{"number": {"$lt": 30}}, {"number": 200}]}]}},
            {"filter": {"colour": {"$like": "%e%"}, "number": {"$gt": 17}}},
        ),
        refused="where",
        forget=forget,
    )


_COLLECTION, _TABLE = "langchain_pg_embedding id", '"Passages" langchain_id'
LANGCHAIN = [
    _case("PGVector, cosine", _open(collection, "cosine"), _COLLECTION),
    _case("PGVector, awaited, L2", _open(collection, "l2"), _COLLECTION, _aopen(async_collection, "psycopg", "l2")),
    _case(
        "PGVector, awaited, inner product",
        _open(collection, "inner"),
        _COLLECTION,
        _aopen(async_collection, "asyncpg", "inner"),
    ),
    _case("PGVectorStore, cosine", _open(table, "COSINE_DISTANCE"), _TABLE),
    _case(
        "PGVectorStore, awaited, L2",
        _open(table, "EUCLIDEAN"),
        _TABLE,
        _aopen(async_table, "asyncpg", "EUCLIDEAN"),
    ),
    _case(
        "PGVectorStore, awaited, inner product, metadata as JSON",
        _open(table, "INNER_PRODUCT", ()),
        _TABLE,
        _aopen(async_table, "psycopg", "INNER_PRODUCT", ()),
        {"colour": {"$in": ["red"]}},
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
        _open(node_store, **settings),
        precision=HALF if settings.get("use_halfvec") else 0,
        aopen=_aopen(async_node_store, **settings),
    )
    for kind, settings in _KINDS.items()
]
