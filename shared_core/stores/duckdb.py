"""Stored vectors out of a DuckDB table."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float32]

# Two threads that query one connection at a time get errors. A cursor of its own for each would not see what the
# connection has not committed, nor the schema it uses.
_LOCKS: WeakKeyDictionary[Any, Lock] = WeakKeyDictionary()


def search_with_vectors(
    connection: Any, relation: Any, query: Sequence[float], k: int, vector_column: str = "embedding"
) -> tuple[dict[str, list[Any]], list[Row | None] | Row]:
    """The ``k`` rows nearest to a query by cosine, and the vectors stored for them, in one query.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        That of the relation. Threads take turns with it.
    relation : duckdb.DuckDBPyRelation
        The table, or part of it.
    query : sequence of d floats
    k : int
    vector_column : str
        Of type ``FLOAT[]``.

    Returns
    -------
    columns : dict of str to list of m <= k values
        The relation's columns but for that of vectors, and ``similarity_score``, by which they are in order.
    vectors : float32, shape (m, d); or a list of rows, None where there is no vector
        Bit-equal to what was added. Rows without a vector come last, if at all.

    Raises
    ------
    duckdb.Error
        What the client raises: ``InvalidInputException`` for a query of another length,
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
    # Masked where there are NULLs, which tolist makes None.
    columns = {name: column.tolist() for name, column in found.items()}
    vectors: list[Row | None] = columns.pop(vector_column)
    stored = [row for row in vectors if row is not None]
    return columns, np.stack(stored) if stored and len(stored) == len(vectors) else vectors


def vectors_by_id(
    connection: Any, table: str, ids: Sequence[str], vector_column: str = "embedding", id_column: str = "id"
) -> dict[str, Row]:
    """The vectors stored under these ids; ids that the table does not have, or has no vector for, are left out.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        No other thread may use it meanwhile.
    table : str
    ids : sequence of str
    vector_column, id_column : str
        The former of type ``FLOAT[]`` or ``FLOAT[d]``.

    Returns
    -------
    dict of str to ndarray, float32, shape (d,)
        In the table's own order, which is not that of ``ids``.

    Raises
    ------
    duckdb.Error
        What the client raises.

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
