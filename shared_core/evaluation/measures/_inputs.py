"""Checks of what measures are computed from, with one wording for all."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import as_numeric
from ...errors import InvalidInputError

Floats = NDArray[np.float64]


def column(values: ArrayLike, what: str) -> Floats:
    """``values`` as a float64 array (n,) of n >= 1 finite numbers; bools count as 0 and 1.

    Raises
    ------
    InvalidInputError
        They are no numbers, not one-dimensional, empty, or hold NaN or inf (the message names the position).

    Examples
    --------
    >>> column([True, False], "success")
    array([1., 0.])
    """
    array = as_numeric(_bools_as_bytes(values), what)
    if array.ndim != 1 or not array.size:
        raise InvalidInputError(f"{what} must be a non-empty list of numbers, got shape {array.shape}")
    _finite(array, what)
    return array.astype(np.float64)


def paired(ours: ArrayLike, theirs: ArrayLike) -> tuple[Floats, Floats]:
    """Two columns of one length: the same queries measured under two methods.

    Raises
    ------
    InvalidInputError
        As `column`, or the lengths differ.

    Examples
    --------
    >>> paired([1, 2], [3, 4])
    (array([1., 2.]), array([3., 4.]))
    """
    left, right = column(ours, "ours"), column(theirs, "theirs")
    if len(left) != len(right):
        raise InvalidInputError(
            f"ours has {len(left)} values, theirs {len(right)}: both must hold the same queries in the same order"
        )
    return left, right


def unit_rows(vectors: ArrayLike, what: str) -> Floats:
    """``vectors`` (n, d) as float64 rows of length 1; a zero row stays zero.

    Raises
    ------
    InvalidInputError
        They are no numbers, not two-dimensional, empty, or hold NaN or inf (the message names the row).

    Examples
    --------
    >>> unit_rows([[3, 4], [0, 0]], "vectors")
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    array = as_numeric(vectors, what)
    if array.ndim != 2 or not array.size:
        raise InvalidInputError(f"{what} must be a non-empty matrix, one row for each vector, got shape {array.shape}")
    _finite(array, what)
    rows = array.astype(np.float64)
    # Squares of the components would leave the range of float64 long before the components do.
    largest = np.abs(rows).max(axis=1, keepdims=True)
    rows = np.divide(rows, largest, out=np.zeros_like(rows), where=largest > 0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return unit


def _bools_as_bytes(values: ArrayLike) -> ArrayLike:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):
        return values
    return array.view(np.uint8) if array.dtype == np.bool_ and not isinstance(values, np.ma.MaskedArray) else values


def _finite(array: NDArray[np.generic], what: str) -> None:
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        place = "row" if array.ndim == 2 else "position"
        raise InvalidInputError(f"{what}: {place} {bad[0][0]} holds NaN or inf; leave it out or measure it again")
