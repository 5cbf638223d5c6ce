"""Stored vectors out of a LanceDB table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import VectorSourceError


def search_with_vectors(
    table: Any, query: Sequence[float], k: int, vector_column: str = "vector", where: str | None = None
) -> tuple[Any, NDArray[np.float32]]:
    """Search a ``lancedb.table.Table`` (not an ``AsyncTable``), and return a ``pyarrow.Table``.

    Rows without a vector are never found. Several vectors per row raise a :class:`VectorSourceError`.
    """
    search = table.search(query, vector_column_name=vector_column).limit(k)
    rows = (search if where is None else search.where(where)).to_arrow()
    return rows, _matrix(rows[vector_column])


def vectors_by_id(
    table: Any, ids: Sequence[str], vector_column: str = "vector", id_column: str = "id"
) -> dict[str, NDArray[np.float32]]:
    """Look vectors up in a ``lancedb.table.Table``. Both column names are parts of its SQL."""
    if not ids:
        return {}
    # A string with its quotes doubled is one literal.
    names = ", ".join("'" + name.replace("'", "''") + "'" for name in ids)
    where = f"{id_column} IN ({names}) AND {vector_column} IS NOT NULL"
    # No limit: the table may hold an id more than once.
    rows = table.search().where(where).select([id_column, vector_column]).limit(None).to_arrow()
    return dict(zip(rows[id_column].to_pylist(), _matrix(rows[vector_column]), strict=True))


def list_rows(table: Any, columns: Sequence[str]) -> Any:
    """All rows of a ``lancedb.table.Table``, with these columns, as a ``pyarrow.Table``."""
    return table.search().select(list(columns)).limit(None).to_arrow()


def _matrix(column: Any) -> NDArray[np.float32]:
    length = getattr(column.type, "list_size", None)
    if length is None:
        raise VectorSourceError(f"the LanceDB column holds {column.type}: setselect needs one vector per row")
    numbers = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    matrix: NDArray[np.float32] = numbers.astype(np.float32, copy=False).reshape(len(column), length)
    return matrix
