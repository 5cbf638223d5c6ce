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
    """Return the table's own top ``k`` for a query with their stored vectors, in one call.

    Parameters
    ----------
    table : lancedb.table.Table
        An ``AsyncTable`` is not supported.
    query : sequence of d floats
    k : int
    vector_column : str
    where : str, optional
        A filter in the table's SQL.
    prefilter : bool
        Apply the filter before the search; with False, to the ``k`` hits.
    metric : str, optional
        ``"l2"``, ``"cosine"`` or ``"dot"``; by default that of the table's index, or ``"l2"``.

    Returns
    -------
    rows : pyarrow.Table, m <= k rows
        All columns, and ``_distance``. Rows that have no vector are never found.
    vectors : float32, shape (m, d)
        Bit-equal to what was added, also if the search used an index that compresses vectors. A column of half
        precision returns rounded numbers.

    Raises
    ------
    VectorSourceError
        The column holds several vectors per row.
    Exception
        From the client: ``ValueError`` for a query of another length, ...

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
    """Return the vectors stored under these ids. Ids without a row or a vector in the table are left out.

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
        The column holds several vectors per row.

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
    # No limit: the table may hold an id more than once.
    rows = table.search().where(where).select([id_column, vector_column]).limit(None).to_arrow()
    return dict(zip(rows[id_column].to_pylist(), _matrix(rows[vector_column]), strict=True))


def _matrix(column: Any) -> NDArray[np.float32]:
    length = getattr(column.type, "list_size", None)
    if length is None:
        raise VectorSourceError(f"the LanceDB column holds {column.type}: setselect needs one vector per row")
    numbers = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    matrix: NDArray[np.float32] = numbers.astype(np.float32, copy=False).reshape(len(column), length)
    return matrix
