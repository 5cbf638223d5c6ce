"""Exact search by cosine, a block of queries at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import as_numeric
from ..errors import InvalidInputError

Embed: TypeAlias = Callable[[list[str]], ArrayLike]
# Cosines held at a time: 64 MB.
_BLOCK = 16_000_000


def vectors_of(embed: Embed | ArrayLike, texts: list[str], what: str) -> NDArray[np.floating]:
    """Vectors of shape (n, d), made by ``embed`` or checked where they are given.

    Raises
    ------
    InvalidInputError
        They are not one finite vector for each text.

    Examples
    --------
    >>> vectors_of([[1.0, 2.0]], ["a text"], "documents").shape
    (1, 2)
    """
    array = as_numeric(embed(texts) if callable(embed) else embed, f"vectors of {what}")
    if array.ndim != 2 or len(array) != len(texts) or not array.shape[1]:
        raise InvalidInputError(f"vectors of {what} must have shape ({len(texts)}, d), got {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise InvalidInputError(f"vectors of {what}: row {bad[0]} holds NaN or inf")
    rows: NDArray[np.floating] = array if array.dtype.kind == "f" else array.astype(np.float64)
    return rows


def nearest_rows(queries: NDArray[np.floating], rows: NDArray[np.floating], fetch_k: int) -> NDArray[np.intp]:
    """(Q, fetch_k): the rows of the highest cosine, best first; among equals the lower row.

    >>> nearest_rows(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 0.0]]), 2).tolist()
    [[1, 2]]
    """
    unit = _scaled(rows)
    asked = _scaled(queries)
    found = []
    step = max(1, _BLOCK // len(unit))
    for start in range(0, len(asked), step):
        cosines = asked[start : start + step] @ unit.T
        near = np.argpartition(-cosines, fetch_k - 1, axis=1)[:, :fetch_k]
        near.sort(axis=1)
        order = np.argsort(-np.take_along_axis(cosines, near, axis=1), axis=1, kind="stable")
        found.append(np.take_along_axis(near, order, axis=1))
    return np.concatenate(found)


def _scaled(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    # Lengths in float64, so that no square leaves the range.
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    unit: NDArray[np.float32] = np.divide(rows, lengths, out=np.zeros(rows.shape), where=lengths > 0).astype(np.float32)
    return unit
