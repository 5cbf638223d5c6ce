"""Stored vectors out of PostgreSQL with pgvector, over a SQLAlchemy connection or session with any driver.

The drivers that the stores use read a vector as text. For 100 vectors of 384 numbers that takes 14 ms, ten times as
long as the search. Here the server sends the bytes of each vector, in 1 ms, and no driver needs to know the type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .rows import Calls, Row, TwoWays, Vectors, rows_by_id, stack_rows


@TwoWays
def search_with_vectors(
    connection: Any, statement: Any, parameters: Mapping[str, Any] | None = None
) -> Calls[tuple[list[tuple[Any, ...]], Vectors]]:
    """Run a ``sqlalchemy.Select`` whose last column is the vector, and return the other columns as tuples.

    No two columns may have the same name. ``parameters`` are the values of the statement's bound parameters.
    """
    answer = yield connection.execute(_as_bytes(statement), parameters)
    rows = answer.all()
    return [tuple(row[:-1]) for row in rows], stack_rows([_vector(row) for row in rows])


@TwoWays
def vectors_by_id(connection: Any, statement: Any, ids: Sequence[Any]) -> Calls[dict[str, Row]]:
    """Look vectors up with a statement of two columns, an id and a vector, restricted to these ids.

    If an id occurs more than once, the last row counts.
    """
    if not len(ids):
        return {}
    answer = yield connection.execute(_as_bytes(statement.where(statement.selected_columns[0].in_(ids))))
    return rows_by_id((str(row[0]), _vector(row)) for row in answer.all())


asearch_with_vectors, avectors_by_id = search_with_vectors.awaited, vectors_by_id.awaited


def from_bytes(sent: bytes | memoryview) -> Row:
    """A vector from the bytes of PostgreSQL's ``vector_send``.

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


def _vector(row: Any) -> Row | None:
    return None if row[-1] is None else from_bytes(row[-1])
