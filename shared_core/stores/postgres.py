"""Stored vectors out of PostgreSQL with pgvector, over a SQLAlchemy connection or session with any driver.

The drivers that the stores use read a vector as text. For 100 vectors of 384 numbers that takes 14 ms, ten times as
long as the search. Here the server sends the bytes of each vector, in 1 ms, and no driver needs to know the type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .rows import Row, Vectors, rows_by_id, stack_rows


def search_with_vectors(
    connection: Any, statement: Any, parameters: Mapping[str, Any] | None = None
) -> tuple[list[tuple[Any, ...]], Vectors]:
    """Return the rows that a search finds, in their order, with their stored vectors, in one call.

    Parameters
    ----------
    connection : sqlalchemy.Connection or sqlalchemy.orm.Session
    statement : sqlalchemy.Select
        Its last column is the vector (``vector`` or ``halfvec``). No two columns have the same name.
    parameters : mapping of str to value, optional
        Values of the statement's bound parameters.

    Returns
    -------
    rows : list of tuple, length m
        The other columns.
    vectors : float32, shape (m, d); or a list of rows, None where a row has no vector
        Bit-equal to what the server stores.

    Raises
    ------
    sqlalchemy.exc.DBAPIError
        From the driver: the query and the vectors differ in length, the connection is broken, ...
    """
    return _split(connection.execute(_as_bytes(statement), parameters).all())


async def asearch_with_vectors(
    connection: Any, statement: Any, parameters: Mapping[str, Any] | None = None
) -> tuple[list[tuple[Any, ...]], Vectors]:
    """Await what :func:`search_with_vectors` returns, from an ``AsyncConnection`` or ``AsyncSession``."""
    return _split((await connection.execute(_as_bytes(statement), parameters)).all())


def vectors_by_id(connection: Any, statement: Any) -> dict[str, Row]:
    """Return the vectors that a statement finds, by id.

    Parameters
    ----------
    connection : sqlalchemy.Connection or sqlalchemy.orm.Session
    statement : sqlalchemy.Select
        Its two columns are an id and a vector.

    Returns
    -------
    dict of str to ndarray, float32, shape (d,)
        In the order of the statement. Rows without a vector are left out. If an id occurs more than once, the last
        row counts.
    """
    return _by_id(connection.execute(_as_bytes(statement)).all())


async def avectors_by_id(connection: Any, statement: Any) -> dict[str, Row]:
    """Await what :func:`vectors_by_id` returns, from an ``AsyncConnection`` or ``AsyncSession``."""
    return _by_id((await connection.execute(_as_bytes(statement))).all())


def from_bytes(sent: bytes | memoryview) -> Row:
    """A vector from the bytes of PostgreSQL's ``vector_send``.

    Examples
    --------
    >>> from_bytes(bytes.fromhex("0002 0000 3f800000 bf000000")).tolist()
    [1.0, -0.5]
    """
    # Two bytes with the length, two unused bytes, then the numbers, big-endian.
    return np.frombuffer(sent, dtype=">f4", offset=4).astype(np.float32)


def _as_bytes(statement: Any) -> Any:
    from sqlalchemy import func, literal_column, select

    # Without the subquery, the server would convert the vectors of all rows to bytes before it sorts them. The outer
    # query has no ORDER BY, because that would undo the store's own order if an index scans in relaxed order.
    *others, vector = statement.subquery().c
    return select(*others, func.vector_send(vector.op("::")(literal_column("vector"))))


def _split(found: Sequence[Any]) -> tuple[list[tuple[Any, ...]], Vectors]:
    return [tuple(row[:-1]) for row in found], stack_rows([_vector(row) for row in found])


def _by_id(found: Sequence[Any]) -> dict[str, Row]:
    return rows_by_id((str(row[0]), _vector(row)) for row in found)


def _vector(row: Any) -> Row | None:
    return None if row[-1] is None else from_bytes(row[-1])
