"""Relevance of candidates for the NDPP: cosines that may be learned (NDPP paper, 4.4.1), and their exponential."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...candidates import TIE_EPS, Candidates
from ...errors import KernelError

Matrix = NDArray[np.float64]

# Far below any relevance that matters, and finite even with the lowest temperature.
_LEAST_LOG = -1e100


def mapped_cosines(candidates: Candidates, W_R: Matrix) -> Matrix:
    """cos(q W_R, e_i W_R), shape (n,), float64."""
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
    """log of exp(cos / (2·temperature)) divided by its maximum, shape (..., n)."""
    with np.errstate(over="ignore"):
        highest = cosines.max(axis=-1, keepdims=True)
        logs: Matrix = np.maximum((cosines - highest) / 2 / temperature, _LEAST_LOG)
    return logs
