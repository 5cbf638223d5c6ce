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
    array = as_numeric(_bools_as_bytes(values), what)
    if array.ndim != 1 or not array.size:
        raise InvalidInputError(f"{what} must be a non-empty list of numbers, got shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise InvalidInputError(f"{what}: position {bad[0]} holds NaN or inf; leave it out or measure it again")
    return array.astype(np.float64)


def as_paired_values(ours: ArrayLike, theirs: ArrayLike) -> tuple[Floats, Floats]:
    """Values of two methods for the same queries: two float64 arrays (n,)."""
    left, right = as_values(ours, "ours"), as_values(theirs, "theirs")
    if len(left) != len(right):
        raise InvalidInputError(
            f"ours has {len(left)} values, theirs {len(right)}: both must hold the same queries in the same order"
        )
    return left, right


def as_rows(values: ArrayLike, what: str) -> Floats:
    """``values`` as a float64 array (S, n) of finite numbers, S and n at least 1."""
    array = as_numeric(_bools_as_bytes(values), what)
    if array.ndim != 2 or not array.size:
        raise InvalidInputError(f"{what} must have shape (methods, queries), got {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if bad.size:
        raise InvalidInputError(f"{what}: row {bad[0]} holds NaN or inf; leave it out or measure it again")
    return array.astype(np.float64)


def as_paired_rows(ours: ArrayLike, theirs: ArrayLike) -> tuple[Floats, Floats]:
    """Values of several methods and of one for the same queries: float64 arrays (S, n) and (n,)."""
    left, right = as_rows(ours, "ours"), as_values(theirs, "theirs")
    if left.shape[1] != len(right):
        raise InvalidInputError(
            f"ours has {left.shape[1]} values in a row, theirs {len(right)}: both must hold the same queries in the "
            "same order"
        )
    return left, right


def as_unit_matrix(vectors: ArrayLike) -> Floats:
    """``vectors`` (n, d) as float64 rows of length 1; a zero row stays zero."""
    given = as_numeric(vectors, "vectors")
    if given.ndim != 2:
        raise InvalidInputError(f"vectors must have shape (n, d), one row for each vector, got {given.shape}")
    rows: Floats = as_unit_rows(given.astype(np.float64)).astype(np.float64, copy=False)
    return rows


def _bools_as_bytes(values: ArrayLike) -> ArrayLike:
    """Bools as numbers, since ``as_numeric`` refuses bools; everything else unchanged."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):
        return values
    return array.view(np.uint8) if array.dtype == np.bool_ and not isinstance(values, np.ma.MaskedArray) else values
