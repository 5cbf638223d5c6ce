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
    """Return the ``k`` rows nearest to a query by cosine with their stored vectors, in one query.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The relation's connection. A lock lets one thread use it at a time.
    relation : duckdb.DuckDBPyRelation
        The table, or part of it.
    query : sequence of d floats
    k : int
    vector_column : str
        Of type ``FLOAT[]``.

    Returns
    -------
    columns : dict of str to list of m <= k values
        The relation's columns except the vectors, and ``similarity_score``, in descending order of this score.
    vectors : float32, shape (m, d); or a list of rows, None where there is no vector
        Bit-equal to what was added. Rows without a vector come last.

    Raises
    ------
    duckdb.Error
        From the client: ``InvalidInputException`` for a query of another length,
        ``ConnectionException`` for a connection that was closed, ...

    Examples
    --------
    >>> import duckdb  # doctest: +SKIP
    >>> connection = duckdb.connect()  # doctest: +SKIP
    >>> _ = connection.execute("CREATE TABLE t (id VARCHAR, embedding FLOAT[])")  # doctest: +SKIP
    >>> _ = connection.execute("INSERT INTO t VALUES ('a', [1, 0]), ('b', [0, 1])")  # doctest: +SKIP
    >>> columns, vectors = search_with_vectors(connection, connection.table("t"), [0.0, 2.0], 1)  # doctest: +SKIP
    >>> columns, vectors[0].tolist()  # doctest: +SKIP
    ({'id': ['b'], 'similarity_score': [1.0]}, [0.0, 1.0])
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


def vectors_by_id(
    connection: Any, table: str, ids: Sequence[str], vector_column: str = "embedding", id_column: str = "id"
) -> dict[str, Row]:
    """Return the vectors stored under these ids. Ids without a row or a vector in the table are left out.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        No other thread may use it at the same time.
    table : str
    ids : sequence of str
    vector_column, id_column : str
        The vector column is of type ``FLOAT[]`` or ``FLOAT[d]``.

    Returns
    -------
    dict of str to ndarray, float32, shape (d,)
        In the table's own order, which is not that of ``ids``.

    Examples
    --------
    >>> import duckdb  # doctest: +SKIP
    >>> connection = duckdb.connect()  # doctest: +SKIP
    >>> _ = connection.execute("CREATE TABLE t (id VARCHAR, embedding FLOAT[])")  # doctest: +SKIP
    >>> _ = connection.execute("INSERT INTO t VALUES ('a', [1, 0])")  # doctest: +SKIP
    >>> {name: row.tolist() for name, row in vectors_by_id(connection, "t", ["a", "gone"]).items()}  # doctest: +SKIP
    {'a': [1.0, 0.0]}
    """
    if not ids:
        return {}
    found = connection.execute(
        f"SELECT {id_column} AS id, {vector_column} AS vector FROM {table} "
        f"WHERE {id_column} IN (SELECT unnest(?)) AND {vector_column} IS NOT NULL",
        [list(ids)],
    ).fetchnumpy()
    return dict(zip(found["id"], found["vector"], strict=True))
