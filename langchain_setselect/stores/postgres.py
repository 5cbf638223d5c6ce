"""The stores of langchain-postgres: PGVector, PGVectorStore and what that wraps, AsyncPGVectorStore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables.config import run_in_executor
from numpy.typing import ArrayLike

from shared_core.stores.postgres import asearch_with_vectors, avectors_by_id, search_with_vectors, vectors_by_id

from .source import Hits, Source, refuse_unknown


def search(store: Any, query: list[float], fetch_k: int, *, filter: Any = None, **unknown: Any) -> Hits:
    """The top ``fetch_k`` of a PGVector collection with their vectors, in one statement."""
    refuse_unknown("PGVector", unknown, "filter")
    with store._make_sync_session() as session:
        rows, vectors = search_with_vectors(session, _nearest(store, query, fetch_k, filter))
        # As the store's own search does.
        if not rows and store.get_collection(session) is None:
            raise ValueError("Collection not found")
    return _documents(rows), vectors


async def asearch(store: Any, query: list[float], fetch_k: int, *, filter: Any = None, **unknown: Any) -> Hits:
    """As :func:`search`, awaiting a store that was made with ``async_mode``."""
    if not store.async_mode:
        return await run_in_executor(None, search, store, query, fetch_k, filter=filter, **unknown)
    refuse_unknown("PGVector", unknown, "filter")
    await store.__apost_init__()
    async with store._make_async_session() as session:
        rows, vectors = await asearch_with_vectors(session, _nearest(store, query, fetch_k, filter))
        if not rows and await store.aget_collection(session) is None:
            raise ValueError("Collection not found")
    return _documents(rows), vectors


def fetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by document id."""
    with store._make_sync_session() as session:
        return vectors_by_id(session, _named(store, ids))


async def afetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """As :func:`fetch`, awaiting a store that was made with ``async_mode``."""
    if not store.async_mode:
        return await run_in_executor(None, fetch, store, ids)
    await store.__apost_init__()
    async with store._make_async_session() as session:
        return await avectors_by_id(session, _named(store, ids))


def _in_collection(store: Any, *columns: Any) -> Any:
    from sqlalchemy import select

    row, collection = store.EmbeddingStore, store.CollectionStore
    # By name, which is unique: the store itself asks for the collection's key first, in a call of its own.
    return (
        select(*columns)
        .join(collection, row.collection_id == collection.uuid)
        .where(collection.name == store.collection_name)
    )


def _nearest(store: Any, query: list[float], fetch_k: int, filter: Any) -> Any:
    from sqlalchemy import asc

    row = store.EmbeddingStore
    distance = store.distance_strategy(query).label("distance")
    statement = _in_collection(store, row.id, row.document, row.cmetadata, distance, row.embedding)
    clause = store._create_filter_clause(filter) if filter else None
    if clause is not None:
        statement = statement.where(clause)
    return statement.order_by(asc("distance")).limit(fetch_k)


def _named(store: Any, ids: Sequence[str]) -> Any:
    row = store.EmbeddingStore
    return _in_collection(store, row.id, row.embedding).where(row.id.in_(ids))


def _documents(rows: list[tuple[Any, ...]]) -> list[Document]:
    return [Document(id=str(name), page_content=text, metadata=metadata) for name, text, metadata, _ in rows]


def search_table(store: Any, query: list[float], fetch_k: int, **more: Any) -> Hits:
    """The top ``fetch_k`` of a PGVectorStore with their vectors, in one statement (two more for a hybrid search)."""
    found: Hits = store._engine._run_as_sync(_search_table(store._PGVectorStore__vs, query, fetch_k, **more))
    return found


async def asearch_table(store: Any, query: list[float], fetch_k: int, **more: Any) -> Hits:
    """As :func:`search_table`, on the event loop of the store's engine."""
    found: Hits = await store._engine._run_as_async(_search_table(store._PGVectorStore__vs, query, fetch_k, **more))
    return found


def fetch_table(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by document id."""
    found: Mapping[str, ArrayLike] = store._engine._run_as_sync(_fetch_table(store._PGVectorStore__vs, ids))
    return found


async def afetch_table(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """As :func:`fetch_table`, on the event loop of the store's engine."""
    found: Mapping[str, ArrayLike] = await store._engine._run_as_async(_fetch_table(store._PGVectorStore__vs, ids))
    return found


async def _search_table(
    table: Any,
    query: list[float],
    fetch_k: int,
    *,
    filter: Any = None,
    fts_query: str = "",
    **more: Any,
) -> Hits:
    from sqlalchemy import text

    hybrid = more.pop("hybrid_search_config", table.hybrid_search_config)
    refuse_unknown("PGVectorStore", more, "filter", "hybrid_search_config", "fts_query")
    if hybrid:
        # Two searches, fused by a function of the user's: theirs to do.
        documents = await table.asimilarity_search_by_vector(
            query, k=fetch_k, filter=filter, hybrid_search_config=hybrid, fts_query=fts_query
        )
        stored = await _fetch_table(table, [document.id for document in documents])
        return documents, [stored.get(document.id) for document in documents]
    clause, parameters = table._create_filter_clause(filter) if filter else ("", {})
    columns = [table.id_column, table.content_column, *table.metadata_columns]
    if table.metadata_json_column:
        columns.append(table.metadata_json_column)
    statement = (
        _select(table, *columns)
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

    statement = _select(table, table.id_column)
    key = next(iter(statement.selected_columns))
    # Untyped, for the server to take as what the column holds: by default UUIDs.
    untyped = [bindparam(None, name, type_=NullType()) for name in ids]
    try:
        async with table.engine.connect() as connection:
            return await avectors_by_id(connection, statement.where(key.in_(untyped)))
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
    # One of the ids is nothing that the column could hold, so it is not there; but the others may be. No index helps.
    async with table.engine.connect() as connection:
        return await avectors_by_id(connection, statement.where(cast(key, Text).in_(ids)))


def _only_awaited(store: Any, *_: Any, **__: Any) -> Any:
    # As each of the store's own methods.
    raise NotImplementedError("AsyncPGVectorStore can only be awaited; PGVectorStore can be called too")


def _select(table: Any, *columns: str) -> Any:
    from sqlalchemy import column, quoted_name, select
    from sqlalchemy import table as from_table

    names: list[Any] = [column(quoted_name(name, True)) for name in (*columns, table.embedding_column)]
    return select(*names).select_from(
        from_table(quoted_name(table.table_name, True), schema=quoted_name(table.schema_name, True))
    )


def _document(table: Any, row: Mapping[str, Any]) -> Document:
    metadata = dict(row[table.metadata_json_column] or {}) if table.metadata_json_column else {}
    metadata.update({name: row[name] for name in table.metadata_columns})
    return Document(id=str(row[table.id_column]), page_content=row[table.content_column], metadata=metadata)


SOURCES = {
    "langchain_postgres.vectorstores.PGVector": Source(search, asearch, fetch, afetch),
    "langchain_postgres.v2.vectorstores.PGVectorStore": Source(search_table, asearch_table, fetch_table, afetch_table),
    "langchain_postgres.v2.async_vectorstore.AsyncPGVectorStore": Source(
        _only_awaited, _search_table, _only_awaited, _fetch_table
    ),
}
