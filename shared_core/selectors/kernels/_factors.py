"""The factors of a kernel, checked: V (or W_V), B (or W_B) and a skew-symmetric C."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import KernelError

Matrix = NDArray[np.float64]


def checked(
    names: tuple[str, str, str], v: ArrayLike, b: ArrayLike | None, c: ArrayLike | None
) -> tuple[Matrix, Matrix, Matrix]:
    """Copies of the three, float64 and read-only; without ``b`` and ``c`` these have no columns.

    Raises
    ------
    KernelError
        One is no finite matrix, their shapes do not agree, or ``c`` is not skew-symmetric.

    Examples
    --------
    >>> [factor.shape for factor in checked(("V", "B", "C"), [[1.0, 2.0]], None, None)]
    [(1, 2), (1, 0), (0, 0)]
    """
    if (b is None) != (c is None):
        raise KernelError(f"{names[1]} and C belong together: give both or neither")
    first = matrix(v, names[0])
    refuse_empty(first, names[0])
    second = np.zeros((len(first), 0)) if b is None else matrix(b, names[1])
    skew = np.zeros((0, 0)) if c is None else matrix(c, "C")
    if len(second) != len(first):
        raise KernelError(f"{names[0]} {first.shape} and {names[1]} {second.shape} must have as many rows")
    if skew.shape != (second.shape[1],) * 2:
        raise KernelError(f"C has shape {skew.shape}, but {names[1]} {second.shape} asks for {(second.shape[1],) * 2}")
    if skew.size:
        off = np.abs(skew + skew.T).max()
        if off > 1e-6 * max(np.abs(skew).max(), 1e-300):
            raise KernelError(f"C must be skew-symmetric (C = -C.T), but C + C.T reaches {off:.3g}")
    for array in (first, second, skew):
        array.setflags(write=False)
    return first, second, skew


def matrix(values: ArrayLike, name: str) -> Matrix:
    """A copy of ``values``, float64.

    Raises
    ------
    KernelError
        They are masked, ragged or no numbers, have not two dimensions, or hold NaN or inf.

    Examples
    --------
    >>> matrix([[1, 2]], "V").tolist()
    [[1.0, 2.0]]
    """
    if isinstance(values, np.ma.MaskedArray):
        raise KernelError(f"{name} is a masked array: fill or drop its masked values first")
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise KernelError(f"{name} cannot be made into a matrix: {error}") from None
    if array.ndim != 2:
        raise KernelError(f"{name} must have two dimensions, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise KernelError(f"{name} holds NaN or inf, first in row {np.flatnonzero(~np.isfinite(array).all(axis=1))[0]}")
    return array


def refuse_empty(array: Matrix, name: str) -> None:
    """Raise for a matrix without rows or columns.

    Raises
    ------
    KernelError
        It has none.

    Examples
    --------
    >>> refuse_empty(np.ones((1, 1)), "V")
    """
    if 0 in array.shape:
        raise KernelError(f"{name} must have at least one row and one column, got shape {array.shape}")


def product(v: Matrix, b: Matrix, c: Matrix) -> Matrix:
    """V Vᵀ + B C Bᵀ, shape (n, n).

    >>> product(np.ones((1, 2)), np.zeros((1, 0)), np.zeros((0, 0))).tolist()
    [[2.0]]
    """
    dense: Matrix = v @ v.T + b @ c @ b.T
    return dense
