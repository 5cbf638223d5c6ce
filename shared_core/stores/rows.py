"""Arrays out of the vectors that a store's client returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float32]
# An array of shape (m, d). If a row has no vector: a list of m rows, with None for that row.
Vectors = Row | list[Row | None]
Id = TypeVar("Id")


def as_row(stored: Any) -> Row | None:
    """One vector as float32; None if ``stored`` is None or empty."""
    return None if stored is None or len(stored) == 0 else np.asarray(stored, dtype=np.float32)


def stack_rows(rows: Sequence[Row | None], dimension: int = 0) -> Vectors:
    """The rows as an array of shape (m, d); as a list if one of them is None. Without rows, of shape (0, dimension)."""
    found = [row for row in rows if row is not None]
    if len(found) < len(rows):
        return list(rows)
    return np.stack(found) if found else np.empty((0, dimension), dtype=np.float32)


def rows_by_id(pairs: Iterable[tuple[Id, Row | None]]) -> dict[Id, Row]:
    """The vectors by id, without the ids that have none."""
    return {name: row for name, row in pairs if row is not None}
