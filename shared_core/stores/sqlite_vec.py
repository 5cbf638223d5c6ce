"""Stored vectors out of SQLite with the sqlite-vec extension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def search_with_vectors(
    connection: Any, table: str, query: Sequence[float], k: int
) -> tuple[list[tuple[int, str, str]], NDArray[np.float32]]:
    """Return the ``k`` rows nearest to a query with their stored vectors, in one statement.

    Parameters
    ----------
    connection : sqlite3.Connection
        The extension must be loaded.
    table : str
        A table with columns ``rowid``, ``text`` and ``metadata``. Its vectors are in ``{table}_vec``, a ``vec0`` table
        with a column ``text_embedding float[d]``.
    query : sequence of d floats
    k : int
        At most 4096, the extension's own limit.

    Returns
    -------
    rows : list of (rowid, text, metadata), m <= k
        The metadata are JSON, as stored. Rows of ``table`` without a vector are never found.
    vectors : float32, shape (m, d)
        Bit-equal to what was added.

    Raises
    ------
    sqlite3.Error
        From the client: ``OperationalError`` for a query of another length or too large a ``k``,
        ``ProgrammingError`` for a connection that was closed or belongs to another thread, ...

    Examples
    --------
    >>> import sqlite3, sqlite_vec  # doctest: +SKIP
    >>> connection = sqlite3.connect(":memory:")  # doctest: +SKIP
    >>> connection.enable_load_extension(True)  # doctest: +SKIP
    >>> sqlite_vec.load(connection)  # doctest: +SKIP
    >>> _ = connection.execute("CREATE TABLE t (text, metadata)")  # doctest: +SKIP
    >>> _ = connection.execute("CREATE VIRTUAL TABLE t_vec USING vec0(text_embedding float[2])")  # doctest: +SKIP
    >>> _ = connection.execute("INSERT INTO t VALUES ('one', '{}')")  # doctest: +SKIP
    >>> _ = connection.execute("INSERT INTO t_vec (rowid, text_embedding) VALUES (1, '[0, 1]')")  # doctest: +SKIP
    >>> rows, vectors = search_with_vectors(connection, "t", [0.0, 2.0], 1)  # doctest: +SKIP
    >>> rows, vectors.tolist()  # doctest: +SKIP
    ([(1, 'one', '{}')], [[0.0, 1.0]])
    """
    vector = np.asarray(query, dtype=np.float32)
    found = connection.execute(
        f"SELECT e.rowid, e.text, e.metadata, v.text_embedding FROM {table} AS e "
        f"INNER JOIN {table}_vec AS v ON v.rowid = e.rowid "
        "WHERE v.text_embedding MATCH ? AND k = ? ORDER BY distance",
        [vector.tobytes(), k],
    ).fetchall()
    rows = [(row[0], row[1], row[2]) for row in found]
    stored = np.frombuffer(b"".join(row[3] for row in found), dtype=np.float32)
    return rows, stored.reshape(len(rows), len(vector))
