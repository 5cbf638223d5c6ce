"""The papers' measures of vectors: their sum (VRSD) and their spread (RAGSys)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._validation import as_numeric
from ...candidates import as_unit_rows, as_unit_vector
from ...errors import InvalidInputError

# If a sum of k unit rows is shorter than k times this, only rounding is left and the sum has no direction.
_CANCELLED = 4 * float(np.finfo(np.float64).eps)


def sum_cosine(query: ArrayLike, vectors: ArrayLike) -> float:
    """Cosine of the query with the sum of the unit vectors that were picked for it, in [-1, 1] (VRSD 4.2).

    Parameters
    ----------
    query : array-like of shape (d,)
        Not zero.
    vectors : array-like of shape (k, d)
        Normalised here; a zero row adds nothing.

    Returns
    -------
    float
        0.0 if the vectors cancel each other.

    Raises
    ------
    InvalidInputError
        An array is empty, has the wrong shape or holds NaN or inf, or the query is zero.

    Examples
    --------
    >>> round(sum_cosine([1, 1], [[2, 0], [0, 3]]), 9)
    1.0
    >>> sum_cosine([1, 1], [[1, 0], [-1, 0]])
    0.0
    """
    rows = _as_unit_matrix(vectors)
    unit = as_unit_vector(query, rows.shape, rows.dtype)
    total = rows.sum(axis=0)
    length = float(np.linalg.norm(total))
    if length <= len(rows) * _CANCELLED:
        return 0.0
    return float(np.clip(total @ unit / length, -1, 1))


def mean_pairwise_cosine(vectors: ArrayLike) -> float:
    """Mean cosine over all pairs of the vectors, in [-1, 1]: low if they differ (RAGSys 4.4, Figure 1).

    Parameters
    ----------
    vectors : array-like of shape (k, d)
        Two or more; a zero row has cosine 0 with every other.

    Raises
    ------
    InvalidInputError
        There are fewer than two vectors, or the array has the wrong shape or holds NaN or inf.

    Examples
    --------
    >>> mean_pairwise_cosine([[1, 0], [0, 1], [2, 0]]) == 1 / 3
    True
    """
    rows = _as_unit_matrix(vectors)
    k = len(rows)
    if k < 2:
        raise InvalidInputError("vectors holds one vector: a cosine between pairs needs at least two")
    above = (rows @ rows.T)[np.triu_indices(k, 1)]
    return float(np.clip(above.mean(), -1, 1))


def _as_unit_matrix(vectors: ArrayLike) -> NDArray[np.float64]:
    """``vectors`` (n, d) as float64 rows of length 1; a zero row stays zero."""
    matrix = as_numeric(vectors, "vectors")
    if matrix.ndim != 2:
        raise InvalidInputError(f"vectors must have shape (n, d), one row for each vector, got {matrix.shape}")
    rows: NDArray[np.float64] = as_unit_rows(matrix.astype(np.float64)).astype(np.float64, copy=False)
    return rows
