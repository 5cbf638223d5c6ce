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
    """Run a ``sqlalchemy.Select`` whose last column is the vector, and return the other columns as tuples.

    No two columns may have the same name. ``parameters`` are the values of the statement's bound parameters.
    """
    return _split(connection.execute(_as_bytes(statement), parameters).all())


async def asearch_with_vectors(
    connection: Any, statement: Any, parameters: Mapping[str, Any] | None = None
) -> tuple[list[tuple[Any, ...]], Vectors]:
    """Await what :func:`search_with_vectors` returns, from an ``AsyncConnection`` or ``AsyncSession``."""
    return _split((await connection.execute(_as_bytes(statement), parameters)).all())


def vectors_by_id(connection: Any, statement: Any, ids: Sequence[Any]) -> dict[str, Row]:
    """Look vectors up with a statement of two columns, an id and a vector, restricted to these ids.

    If an id occurs more than once, the last row counts.
    """
    return _by_id(connection.execute(_as_bytes(_among(statement, ids))).all()) if len(ids) else {}


async def avectors_by_id(connection: Any, statement: Any, ids: Sequence[Any]) -> dict[str, Row]:
    """Await what :func:`vectors_by_id` returns, from an ``AsyncConnection`` or ``AsyncSession``."""
    return _by_id((await connection.execute(_as_bytes(_among(statement, ids)))).all()) if len(ids) else {}


def from_bytes(sent: bytes | memoryview) -> Row:
    """A vector from the bytes of PostgreSQL's ``vector_send``.

    >>> from_bytes(bytes.fromhex("0002 0000 3f800000 bf000000")).tolist()
    [1.0, -0.5]
    """
    # Two bytes with the length, two unused bytes, then the numbers, big-endian.
    return np.frombuffer(sent, dtype=">f4", offset=4).astype(np.float32)


def _among(statement: Any, ids: Sequence[Any]) -> Any:
    return statement.where(statement.selected_columns[0].in_(ids))


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
