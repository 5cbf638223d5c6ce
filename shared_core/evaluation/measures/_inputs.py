"""Checks of the arrays that measures are computed from: one wording for one mistake."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._validation import as_numeric
from ...candidates import as_unit_rows
from ...errors import InvalidInputError

Floats = NDArray[np.float64]


def as_values(values: ArrayLike, what: str) -> Floats:
    """``values`` as a float64 array (n,) of n >= 1 finite numbers; bools become 0 and 1."""
    return _as_finite(values, what, 1, "be a non-empty list of numbers", "position")


def as_rows(values: ArrayLike, what: str) -> Floats:
    """``values`` as a float64 array (S, n) of finite numbers, S and n at least 1."""
    return _as_finite(values, what, 2, "have shape (methods, queries)", "row")


def as_paired_values(ours: ArrayLike, theirs: ArrayLike) -> tuple[Floats, Floats]:
    """Values of two methods for the same queries: two float64 arrays (n,)."""
    return _paired(as_values(ours, "ours"), as_values(theirs, "theirs"))


def as_paired_rows(ours: ArrayLike, theirs: ArrayLike) -> tuple[Floats, Floats]:
    """Values of several methods and of one for the same queries: float64 arrays (S, n) and (n,)."""
    return _paired(as_rows(ours, "ours"), as_values(theirs, "theirs"))


def _paired(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    if left.shape[-1] != len(right):
        raise InvalidInputError(
            f"ours has {left.shape[-1]} values, theirs {len(right)}: both must hold the same queries in the same order"
        )
    return left, right


def as_unit_matrix(vectors: ArrayLike) -> Floats:
    """``vectors`` (n, d) as float64 rows of length 1; a zero row stays zero."""
    given = as_numeric(vectors, "vectors")
    if given.ndim != 2:
        raise InvalidInputError(f"vectors must have shape (n, d), one row for each vector, got {given.shape}")
    rows: Floats = as_unit_rows(given.astype(np.float64)).astype(np.float64, copy=False)
    return rows


def _as_finite(values: ArrayLike, what: str, ndim: int, form: str, place: str) -> Floats:
    if np.asarray(values).dtype == np.bool_:
        # as_numeric refuses bools.
        values = np.asarray(values, dtype=np.uint8)
    array = as_numeric(values, what)
    if array.ndim != ndim or not array.size:
        raise InvalidInputError(f"{what} must {form}, got shape {array.shape}")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        raise InvalidInputError(f"{what}: {place} {bad[0, 0]} holds NaN or inf; leave it out or measure it again")
    return array.astype(np.float64)
