"""Checks of the arrays that measures are computed from: one wording for one mistake."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._validation import as_numeric
from ...candidates import as_unit_rows
from ...errors import InvalidInputError

Floats = NDArray[np.float64]


def as_values(values: ArrayLike, what: str, ndim: int = 1) -> Floats:
    """``values`` as float64, (Q,) or with ``ndim`` 2 (S, Q): not empty, and finite; bools become 0 and 1."""
    if np.asarray(values).dtype == np.bool_:
        # as_numeric refuses bools.
        values = np.asarray(values, dtype=np.uint8)
    array = as_numeric(values, what)
    if array.ndim != ndim or not array.size:
        form = "be a non-empty list of numbers" if ndim == 1 else "have shape (methods, queries)"
        raise InvalidInputError(f"{what} must {form}, got shape {array.shape}")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        place = "position" if ndim == 1 else "row"
        raise InvalidInputError(f"{what}: {place} {bad[0, 0]} holds NaN or inf; leave it out or measure it again")
    return array.astype(np.float64)


def as_unit_matrix(vectors: ArrayLike) -> Floats:
    """``vectors`` (n, d) as float64 rows of length 1; a zero row stays zero."""
    given = as_numeric(vectors, "vectors")
    if given.ndim != 2:
        raise InvalidInputError(f"vectors must have shape (n, d), one row for each vector, got {given.shape}")
    rows: Floats = as_unit_rows(given.astype(np.float64)).astype(np.float64, copy=False)
    return rows
