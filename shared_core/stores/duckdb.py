"""Stored vectors out of a DuckDB table."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from .rows import Row, Vectors, stack_rows

# DuckDB raises errors when two threads query one connection at the same time. A cursor per thread would not see the
# connection's uncommitted changes and its schema.
_LOCKS: WeakKeyDictionary[Any, Lock] = WeakKeyDictionary()


def search_with_vectors(
    connection: Any, relation: Any, query: Sequence[float], k: int, vector_column: str = "embedding"
) -> tuple[dict[str, list[Any]], Vectors]:
    """Search a ``DuckDBPyRelation``, a table or part of it, by cosine.

    The rows are a dict of columns, without the vectors and with ``similarity_score``. Rows without a vector come last.
    The vector column is of type ``FLOAT[]``. One thread at a time uses the connection.
    """
    from duckdb import (  # type: ignore[import-not-found,unused-ignore]
        ColumnExpression,
        ConstantExpression,
        FunctionExpression,
        StarExpression,
    )

    similarity = FunctionExpression(
        "list_cosine_similarity", ColumnExpression(vector_column), ConstantExpression(query)
    ).alias("similarity_score")
    with _LOCKS.setdefault(connection, Lock()):
        found = relation.select(StarExpression(), similarity).order("similarity_score desc").limit(k).fetchnumpy()
    # DuckDB masks NULLs in its arrays, and tolist() turns masked values into None.
    columns = {name: column.tolist() for name, column in found.items()}
    return columns, stack_rows(columns.pop(vector_column))


def list_rows(connection: Any, relation: Any, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """All rows of a ``DuckDBPyRelation``, with these columns. One thread at a time uses the connection."""
    with _LOCKS.setdefault(connection, Lock()):
        rows: list[tuple[Any, ...]] = relation.select(*columns).fetchall()
    return rows


def count_rows(connection: Any, relation: Any) -> int:
    """The number of rows. One thread at a time uses the connection."""
    with _LOCKS.setdefault(connection, Lock()):
        count: int = relation.count("*").fetchall()[0][0]
    return count


def hash_rows(connection: Any, relation: Any, columns: str) -> int:
    """A number that a change of these columns changes. One thread at a time uses the connection."""
    with _LOCKS.setdefault(connection, Lock()):
        number: int = relation.aggregate(f"coalesce(sum(hash({columns})), 0)").fetchall()[0][0]
    return number


def vectors_by_id(
    connection: Any, table: str, ids: Sequence[str], vector_column: str = "embedding", id_column: str = "id"
) -> dict[str, Row]:
    """Look vectors of type ``FLOAT[]`` or ``FLOAT[d]`` up. No other thread may use the connection meanwhile."""
    if not ids:
        return {}
    found = connection.execute(
        f"SELECT {id_column} AS id, {vector_column} AS vector FROM {table} "
        f"WHERE {id_column} IN (SELECT unnest(?)) AND {vector_column} IS NOT NULL",
        [list(ids)],
    ).fetchnumpy()
    return dict(zip(found["id"], found["vector"], strict=True))
