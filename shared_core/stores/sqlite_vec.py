"""Stored vectors out of SQLite with the sqlite-vec extension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The most hits of one search, the extension's limit.
WIDEST = 4_096


def search_with_vectors(
    connection: Any, table: str, query: Sequence[float], k: int
) -> tuple[list[tuple[int, str, str]], NDArray[np.float32]]:
    """Search a table through a connection that has loaded the extension, and return (rowid, text, metadata).

    ``table`` has the columns ``rowid``, ``text`` and ``metadata``; ``{table}_vec`` is a ``vec0`` table with a column
    ``text_embedding float[d]``. Rows without a vector are never found. ``k`` is at most 4096, the extension's limit.
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


def list_rows(connection: Any, table: str) -> list[tuple[str, str]]:
    """(text, metadata) of each row of the table, in the order of their rowids."""
    return [(row[0], row[1]) for row in connection.execute(f"SELECT text, metadata FROM {table} ORDER BY rowid")]


def count_rows(connection: Any, table: str) -> int:
    """The number of rows of the table."""
    count: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    return count
