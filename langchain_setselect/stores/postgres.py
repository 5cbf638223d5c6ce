"""Vector readers for langchain-postgres: PGVector, AsyncPGVectorStore, and PGVectorStore, which wraps the second."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables.config import run_in_executor
from numpy.typing import ArrayLike

from shared_core.errors import VectorSourceError
from shared_core.retrieval.extra import StoreListing
from shared_core.stores.postgres import asearch_with_vectors, avectors_by_id, search_with_vectors, vectors_by_id
from shared_core.stores.rows import TwoWays

from .reader import Hits, VectorReader, narrow_by_operators


def _run_in_session(
    core: TwoWays[..., Any], prepare: Callable[..., Sequence[Any]], finish: Callable[[Any], Any]
) -> tuple[Callable[..., Any], Callable[..., Awaitable[Any]]]:
    """Functions of a PGVector, sync and async, that call ``core`` with a session and what ``prepare`` gives."""

    def run(store: Any, *arguments: Any, **more: Any) -> Any:
        with store._make_sync_session() as session:
            return finish(core(session, *prepare(store, *arguments, **more)))

    async def run_async(store: Any, *arguments: Any, **more: Any) -> Any:
        # Only a store made with ``async_mode`` can be awaited.
        if not store.async_mode:
            return await run_in_executor(None, run, store, *arguments, **more)
        await store.__apost_init__()
        async with store._make_async_session() as session:
            return finish(await core.awaited(session, *prepare(store, *arguments, **more)))

    return run, run_async


def _in_collection(store: Any, *columns: Any) -> Any:
    from sqlalchemy import select

    row, collection = store.EmbeddingStore, store.CollectionStore
    # Names of collections are unique. The store's own search looks up the collection's key in a separate call.
    return (
        select(*columns)
        .join(collection, row.collection_id == collection.uuid)
        .where(collection.name == store.collection_name)
    )


def _nearest(store: Any, query: list[float], fetch_k: int, *, filter: Any = None) -> list[Any]:
    from sqlalchemy import asc

    row = store.EmbeddingStore
    distance = store.distance_strategy(query).label("distance")
    statement = _in_collection(store, row.id, row.document, row.cmetadata, distance, row.embedding)
    clause = store._create_filter_clause(filter) if filter else None
    if clause is not None:
        statement = statement.where(clause)
    return [statement.order_by(asc("distance")).limit(fetch_k)]


def _identified(store: Any, ids: Sequence[str]) -> list[Any]:
    return [_in_collection(store, store.EmbeddingStore.id, store.EmbeddingStore.embedding), ids]


def _documents(rows: list[tuple[Any, ...]]) -> list[Document]:
    return [Document(id=str(name), page_content=text, metadata=metadata) for name, text, metadata, *_ in rows]


async def _search_table(
    table: Any, query: list[float], fetch_k: int, *, filter: Any = None, fts_query: str = "", **more: Any
) -> Hits:
    """The top ``fetch_k`` of an AsyncPGVectorStore, in one statement; in three statements for a hybrid search."""
    from sqlalchemy import text

    hybrid = more.pop("hybrid_search_config", table.hybrid_search_config)
    if hybrid:
        # The store itself searches twice and fuses the hits with a function of the user's.
        documents = await table.asimilarity_search_by_vector(
            query, k=fetch_k, filter=filter, hybrid_search_config=hybrid, fts_query=fts_query
        )
        stored = await _fetch_table(table, [document.id for document in documents])
        return documents, [stored.get(document.id) for document in documents]
    clause, parameters = table._create_filter_clause(filter) if filter else ("", {})
    columns = _columns(table)
    statement = (
        _select(table, *columns, table.embedding_column)
        .order_by(text(f'"{table.embedding_column}" {table.distance_strategy.operator} :query_embedding'))
        .limit(fetch_k)
    )
    if clause:
        statement = statement.where(text(clause))
    async with table.engine.connect() as connection:
        for option in table.index_query_options.to_parameter() if table.index_query_options else ():
            await connection.execute(text(f"SET LOCAL {option}"))
        rows, vectors = await asearch_with_vectors(
            connection, statement, {"query_embedding": str([float(x) for x in query]), **parameters}
        )
    return [_document(table, dict(zip(columns, row, strict=True))) for row in rows], vectors


async def _fetch_table(table: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    from sqlalchemy import Text, bindparam, cast
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.types import NullType

    statement = _select(table, table.id_column, table.embedding_column)
    # Without a type, the server reads the ids as the type of the column, by default UUIDs.
    untyped = [bindparam(None, name, type_=NullType()) for name in ids]
    try:
        async with table.engine.connect() as connection:
            return await avectors_by_id(connection, statement, untyped)
    except DBAPIError:
        # The column cannot hold one of the ids, but it may hold the others. This statement uses no index.
        key, vector = statement.selected_columns
        async with table.engine.connect() as connection:
            return await avectors_by_id(connection, statement.with_only_columns(cast(key, Text), vector), ids)


def _columns(table: Any) -> list[str]:
    """The columns of which a document is made."""
    columns = [table.id_column, table.content_column, *table.metadata_columns]
    return [*columns, table.metadata_json_column] if table.metadata_json_column else columns


def _select(table: Any, *columns: str) -> Any:
    from sqlalchemy import column, quoted_name, select
    from sqlalchemy import table as from_table

    names: list[Any] = [column(quoted_name(name, True)) for name in columns]
    return select(*names).select_from(
        from_table(quoted_name(table.table_name, True), schema=quoted_name(table.schema_name, True))
    )


def _document(table: Any, row: Mapping[str, Any]) -> Document:
    metadata = dict(row[table.metadata_json_column] or {}) if table.metadata_json_column else {}
    metadata.update({name: row[name] for name in table.metadata_columns})
    return Document(id=str(row[table.id_column]), page_content=row[table.content_column], metadata=metadata)


def _refuse_sync(store: Any, *_: Any, **__: Any) -> Any:
    # The store's own sync methods raise this error too.
    raise NotImplementedError("AsyncPGVectorStore has async methods only: await ainvoke, or use PGVectorStore")


def _run_in_engine(read: Callable[..., Awaitable[Any]]) -> tuple[Callable[..., Any], Callable[..., Awaitable[Any]]]:
    """A function of an AsyncPGVectorStore as one of a PGVectorStore, sync and async, on its engine's event loop."""

    def run(store: Any, *arguments: Any, **more: Any) -> Any:
        return store._engine._run_as_sync(read(store._PGVectorStore__vs, *arguments, **more))

    async def run_async(store: Any, *arguments: Any, **more: Any) -> Any:
        return await store._engine._run_as_async(read(store._PGVectorStore__vs, *arguments, **more))

    return run, run_async


def _list(store: Any) -> list[Document]:
    row = store.EmbeddingStore
    return _documents(_read_all(store, _in_collection(store, row.id, row.document, row.cmetadata).order_by(row.id)))


def _count(store: Any) -> int:
    from sqlalchemy import func

    count: int = _read_all(store, _in_collection(store, func.count(store.EmbeddingStore.id)))[0][0]
    return count


def _read_all(store: Any, statement: Any) -> list[Any]:
    if store.async_mode:
        raise VectorSourceError(
            "a PGVector with async_mode=True cannot list its documents in sync code: pass one without it over the same "
            "collection, or use WordRetriever.from_documents"
        )
    with store._make_sync_session() as session:
        return list(session.execute(statement).all())


async def _list_table(table: Any) -> list[Document]:
    columns = _columns(table)
    statement = _select(table, *columns)
    async with table.engine.connect() as connection:
        rows = (await connection.execute(statement.order_by(statement.selected_columns[0]))).all()
    return [_document(table, dict(zip(columns, row, strict=True))) for row in rows]


async def _count_table(table: Any) -> int:
    from sqlalchemy import func

    async with table.engine.connect() as connection:
        count: int = (
            await connection.execute(_select(table, table.id_column).with_only_columns(func.count()))
        ).scalar()
    return count


def _listing(list_all: Callable[[Any], list[Document]], count: Callable[[Any], int]) -> StoreListing[Document]:
    return StoreListing(
        lambda store, ids: list_all(store) if ids is None else store.get_by_ids(ids), lambda store: (count(store), None)
    )


_OF_TABLES = "filter", "hybrid_search_config", "fts_query"
COLLECTION_READER = VectorReader(
    *_run_in_session(search_with_vectors, _nearest, lambda found: (_documents(found[0]), found[1])),
    *_run_in_session(vectors_by_id, _identified, lambda vectors: vectors),
    takes=["filter"],
    narrow=narrow_by_operators,
)
TABLE_READER = VectorReader(*_run_in_engine(_search_table), *_run_in_engine(_fetch_table), takes=_OF_TABLES)
ASYNC_TABLE_READER = VectorReader(_refuse_sync, _search_table, _refuse_sync, _fetch_table, takes=_OF_TABLES)
COLLECTION_LISTING = _listing(_list, _count)
TABLE_LISTING = _listing(_run_in_engine(_list_table)[0], _run_in_engine(_count_table)[0])
