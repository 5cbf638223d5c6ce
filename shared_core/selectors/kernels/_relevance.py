"""Relevance of candidates for the NDPP: cosines that may be learned (NDPP paper, 4.4.1), and their exponential."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...candidates import TIE_EPS, CandidateBlock, Candidates, tie_tolerance
from ...errors import KernelError

Matrix = NDArray[np.float64]

# Far below any relevance that matters, and finite even with the lowest temperature.
_LEAST_LOG = -1e100


def cosines_with_query(candidates: Candidates | CandidateBlock) -> Matrix:
    """Cosine of each candidate with its query, shape (n,), or (b, n) for a block, float64."""
    query = candidates.query if isinstance(candidates, Candidates) else candidates.queries[:, None]
    # vecdot computes each row alone, unlike the matrix product of Candidates.relevance, so copies of a row get exactly
    # the same cosine. The logarithm of a small cosine, or a low temperature, would enlarge a difference.
    cosines: Matrix = np.vecdot(candidates.vectors, query).astype(np.float64)
    return cosines


def mapped_cosines(candidates: Candidates, W_R: Matrix) -> Matrix:
    """cos(q W_R, e_i W_R), shape (n,), float64.

    >>> mapped_cosines(Candidates([1.0, 1.0], [[1.0, -3.0], [0.0, 1.0]]), np.array([[1.0], [0.0]])).tolist()
    [1.0, 0.0]
    """
    length = candidates.query.shape[0]
    if length != len(W_R):
        raise KernelError(
            f"the kernel's W_R takes vectors of length {len(W_R)}, the candidates have {length}; it was most likely "
            "learned on another embedding model"
        )
    # Cosines do not depend on the scale of W_R, and squares of very large or small entries would overflow or underflow.
    scale = np.abs(W_R).max() or 1.0
    columns = np.ascontiguousarray(W_R.T / scale)
    # A product below this length is the rounding error of unit vectors that map to zero.
    negligible = TIE_EPS * float(np.finfo(candidates.dtype).eps) * float(np.linalg.norm(columns))
    query = _unit(np.vecdot(columns, candidates.query.astype(np.float64)), negligible)
    # Computing each row alone, as above, would take five times as long as the rest of a selection. So each distinct row
    # goes through the matrix product once, and its copies get the same result.
    rows = candidates.vectors
    places: dict[bytes, int] = {}
    index = [places.setdefault(row.tobytes(), len(places)) for row in rows]
    if len(places) < len(rows):
        rows = rows[np.unique(index, return_index=True)[1]]
    mapped = rows.astype(np.float64, copy=False).dot(columns.T)
    cosines: Matrix = np.vecdot(_unit(mapped, negligible), query)
    return cosines[index]


def _unit(rows: Matrix, negligible: float) -> Matrix:
    lengths = np.sqrt(np.vecdot(rows, rows))[..., None]
    unit: Matrix = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > negligible)
    return unit


def log_exponential(cosines: Matrix, temperature: float) -> Matrix:
    """log of exp(cos / (2·temperature)) divided by its maximum, shape (..., n).

    >>> log_exponential(np.array([0.5, 1.0]), 0.25).tolist()
    [-1.0, 0.0]
    """
    with np.errstate(over="ignore"):
        highest = cosines.max(axis=-1, keepdims=True)
        logs: Matrix = np.maximum((cosines - highest) / 2 / temperature, _LEAST_LOG)
    return logs


def log_standardised(relevance: Matrix, c: float, dtype: np.dtype[Any] | None) -> tuple[Matrix, Matrix]:
    """log_exponential at the temperature T = c·σ, σ the standard deviation of the relevance; and 2T, shape (..., 1).

    ``dtype`` is that of the vectors of which the relevance is the cosine with the query; None for a given relevance,
    which is first divided by its largest absolute value. If σ is 0 up to rounding, T is infinite.

    >>> log_standardised(np.array([3.0, 5.0]), 1.0, None)[0].tolist()
    [-1.0, 0.0]
    """
    if dtype is None:
        # Squares of very large or very small numbers would overflow or underflow.
        largest = np.abs(relevance).max(axis=-1, keepdims=True)
        relevance = relevance / np.where(largest > 0, largest, 1.0)
    n = relevance.shape[-1]
    centred = relevance - np.add.reduce(relevance, axis=-1, keepdims=True) / n
    two_T = np.sqrt(np.vecdot(centred, centred)[..., None] * (4 * c * c / n))
    two_T[two_T <= 2 * c * tie_tolerance(dtype or centred.dtype)] = np.inf
    logs: Matrix = (centred - np.maximum.reduce(centred, axis=-1, keepdims=True)) / two_T
    return logs, two_T
