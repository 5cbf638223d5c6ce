"""Stored vectors out of a LanceDB table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import VectorSourceError


def search_with_vectors(
    table: Any,
    query: Sequence[float],
    k: int,
    vector_column: str = "vector",
    *,
    where: str | None = None,
    prefilter: bool = True,
    metric: str | None = None,
) -> tuple[Any, NDArray[np.float32]]:
    """The table's own top ``k`` for a query, and the vectors it stores for them, in one call.

    Parameters
    ----------
    table : lancedb.table.Table
        Not an ``AsyncTable``.
    query : sequence of d floats
    k : int
    vector_column : str
    where : str, optional
        A filter in the table's SQL.
    prefilter : bool
        Whether the filter goes before the search, or thins out its ``k`` hits.
    metric : str, optional
        ``"l2"``, ``"cosine"`` or ``"dot"``; by default that of the table's index, or ``"l2"``.

    Returns
    -------
    rows : pyarrow.Table, m <= k rows
        All columns, and ``_distance``. Rows that have no vector are never found.
    vectors : float32, shape (m, d)
        Bit-equal to what was added, also where an index found them by compressed ones; a half-precision column
        gives what is left of them.

    Raises
    ------
    VectorSourceError
        The column keeps several vectors a row.
    Exception
        What the client raises: ``ValueError`` for a query of another length, ...

    Examples
    --------
    >>> import lancedb
    >>> rows = [{"id": "a", "vector": [1.0, 0.0]}, {"id": "b", "vector": [0.0, 1.0]}]
    >>> table = lancedb.connect("memory://").create_table("search_with_vectors", rows)
    >>> rows, vectors = search_with_vectors(table, [0.0, 1.0], 1)
    >>> rows["id"].to_pylist(), vectors.tolist()
    (['b'], [[0.0, 1.0]])
    """
    search = table.search(query, vector_column_name=vector_column).limit(k)
    if where is not None:
        search = search.where(where, prefilter=prefilter)
    if metric is not None:
        search = search.metric(metric)
    rows = search.to_arrow()
    return rows, _matrix(rows[vector_column])


def vectors_by_id(
    table: Any, ids: Sequence[str], vector_column: str = "vector", id_column: str = "id"
) -> dict[str, NDArray[np.float32]]:
    """The vectors stored under these ids; ids that the table does not have, or has no vector for, are left out.

    Parameters
    ----------
    table : lancedb.table.Table
    ids : sequence of str
    vector_column, id_column : str

    Returns
    -------
    dict of str to ndarray, float32, shape (d,)
        In the table's own order, which is not that of ``ids``.

    Raises
    ------
    VectorSourceError
        The column keeps several vectors a row.
    Exception
        What the client raises.

    Examples
    --------
    >>> import lancedb
    >>> table = lancedb.connect("memory://").create_table("vectors_by_id", [{"id": "a", "vector": [1.0, 0.0]}])
    >>> {name: row.tolist() for name, row in vectors_by_id(table, ["a", "gone"]).items()}
    {'a': [1.0, 0.0]}
    """
    if not ids:
        return {}
    names = ", ".join("'" + name.replace("'", "''") + "'" for name in ids)
    where = f"{id_column} IN ({names}) AND {vector_column} IS NOT NULL"
    # No limit: nothing keeps an id from being there twice.
    rows = table.search().where(where).select([id_column, vector_column]).limit(None).to_arrow()
    return dict(zip(rows[id_column].to_pylist(), _matrix(rows[vector_column]), strict=True))


def _matrix(column: Any) -> NDArray[np.float32]:
    length = getattr(column.type, "list_size", None)
    if length is None:
        raise VectorSourceError(f"the LanceDB column holds {column.type}, not one vector a row")
    numbers = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    matrix: NDArray[np.float32] = numbers.astype(np.float32, copy=False).reshape(len(column), length)
    return matrix
