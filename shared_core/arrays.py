"""Arrays as they come, turned into arrays that can be relied on; each failure names the place."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidInputError

# Equal rows get dot products that differ in the last bits, since BLAS sums the end of a block in another order:
# so many units in the last place may part equal scores.
TIE_EPS = 16

FloatArray = NDArray[np.floating[Any]]
_Array = TypeVar("_Array", bound=NDArray[Any])


def as_numeric(values: ArrayLike, what: str) -> NDArray[Any]:
    """``values`` as an array of numbers, a view where it is one.

    Raises
    ------
    InvalidInputError
        They are ragged, no numbers, masked, or a tensor that cannot become an array.
    """
    # np.asarray would take whatever stands under the mask for a value.
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInputError(f"{what} is a masked array: fill its masked values, or drop them, first")
    try:
        array = np.asarray(values)
    # PyTorch says TypeError of a bfloat16 tensor, RuntimeError of one that requires grad.
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInputError(f"{what} cannot be made into an array: {error}") from error
    if array.dtype.kind not in "fiu":
        raise InvalidInputError(f"{what} must be numbers, got dtype {array.dtype}")
    return array


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for what fits into it without loss, else float64."""
    if dtype in RANGES:
        return dtype
    return np.dtype(np.float32) if np.result_type(dtype, np.float32) == np.float32 else np.dtype(np.float64)


def _range(dtype: type[np.floating[Any]]) -> tuple[float, float]:
    limits = np.finfo(dtype)
    return float(limits.tiny / limits.eps), float(limits.max)


# A sum of squares leaves the range of its type long before the row does.
UNIT_SLACK = {np.dtype(t): 4 * float(np.finfo(t).eps) for t in (np.float32, np.float64)}
ONE = np.ones(1, np.float32)
ONE.flags.writeable = False
# While the rows fit the last cache a second pass costs less than going by blocks.
_CACHED = 16 << 20
RANGES = {np.dtype(t): _range(t) for t in (np.float32, np.float64)}


def squares_and_dots(rows: FloatArray, query: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sum of squares of each row and its dot product with ``query``.

    >>> [x.tolist() for x in squares_and_dots(np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([1.0, 0.0]))]
    [[25.0, 4.0], [3.0, 0.0]]
    """
    if rows.nbytes <= _CACHED:
        return np.vecdot(rows, rows), rows.dot(query)
    # Out of the memory once and not twice: 2.3 ms for 2.8 at 20,000 × 384.
    squares, products = np.empty(len(rows), rows.dtype), np.empty(len(rows), rows.dtype)
    for part in _parts(rows):
        block = rows[part]
        np.vecdot(block, block, out=squares[part])
        np.dot(block, query, out=products[part])
    return squares, products


def dots(rows: FloatArray, query: FloatArray) -> FloatArray:
    """The dot products of :func:`squares_and_dots`, the same to the last bit.

    >>> dots(np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([1.0, 0.0])).tolist()
    [3.0, 0.0]
    """
    if rows.nbytes <= _CACHED:
        products: FloatArray = rows.dot(query)
        return products
    products = np.empty(len(rows), rows.dtype)
    for part in _parts(rows):
        np.dot(rows[part], query, out=products[part])
    return products


def _parts(rows: FloatArray) -> Iterator[slice]:
    step = max(1, _CACHED // 16 // (rows.nbytes // len(rows)))
    return (slice(start, start + step) for start in range(0, len(rows), step))


def scaled_rows(
    rows: FloatArray, names: tuple[Hashable, ...] | None, squares: FloatArray | None = None
) -> tuple[FloatArray, FloatArray | None]:
    """Rows whose lengths are within the range of their type, and one over each length (0 for a zero row).

    None in place of the lengths: all are 1 to the last bits, as most embedding models have it. ``squares``, where
    they are known, are used up.
    """
    if squares is None:
        squares = np.vecdot(rows, rows)
    least, most = RANGES[rows.dtype]
    shortest, longest = squares[squares.argmin()], squares[squares.argmax()]
    # NaN compares as false and argmin and argmax find it, so it goes the slow way with the rows out of range.
    if shortest > least and longest < most:
        slack = UNIT_SLACK[rows.dtype]
        if longest - 1 <= slack and 1 - shortest <= slack:
            return rows, None
        np.sqrt(squares, out=squares)
        return rows, np.divide(1, squares, out=squares)
    odd = np.flatnonzero(~((squares > least) & (squares < most)))
    for row in odd:
        if not np.isfinite(rows[row]).all():
            raise InvalidInputError(
                f"vectors: {describe_row(int(row), names)} holds NaN or inf; leave it out or embed it again"
            )
    rows = rows.copy()
    largest = np.abs(rows[odd]).max(axis=1)
    # A power of two scales without rounding, so a row's direction does not depend on its length.
    exponent = np.where(largest > 0, -np.frexp(largest)[1], 0)
    rows[odd] = np.ldexp(rows[odd], exponent[:, None])
    squares[odd] = np.vecdot(rows[odd], rows[odd])
    return rows, np.divide(1, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)


def unit_query(query: ArrayLike, vectors: FloatArray) -> FloatArray:
    """``query`` at length 1, in the type of ``vectors``.

    Raises
    ------
    InvalidInputError
        Its length is not theirs, or it is zero, NaN or inf.
    """
    q = as_numeric(query, "query")
    if q.ndim != 1 or q.shape[0] != vectors.shape[1]:
        hint = (
            "; the lengths differ, so they most likely come from different embedding models"
            if q.ndim == 1
            else "; the query must be one vector"
        )
        raise InvalidInputError(f"query has shape {q.shape}, vectors have shape {vectors.shape}{hint}")
    unit = q.astype(vectors.dtype, copy=False)
    least, most = RANGES[unit.dtype]
    square = float(unit.dot(unit))
    if least < square < most:
        return read_only(unit * unit.dtype.type(1 / math.sqrt(square)))
    return _unit_odd_query(q.astype(np.float64)).astype(vectors.dtype)


def _unit_odd_query(query: NDArray[np.float64]) -> NDArray[np.float64]:
    """A query of 1e-30 or 1e30 is as good as any other; one that is 0 or not finite is none."""
    if not np.isfinite(query).all():
        raise InvalidInputError("query holds NaN or inf")
    largest = np.abs(query).max()
    if largest == 0:
        raise InvalidInputError("query is the zero vector: it has no direction to be near to")
    scaled = np.ldexp(query, -np.frexp(largest)[1])
    unit: NDArray[np.float64] = scaled / math.sqrt(scaled.dot(scaled))
    return unit


def as_column(values: ArrayLike, n: int, what: str) -> NDArray[np.float64]:
    """``values`` as a read-only float64 column of length n.

    Raises
    ------
    InvalidInputError
        The shape is another, or a value is NaN or inf (the message names the row).
    """
    column = as_numeric(values, what).astype(np.float64)
    if column.shape != (n,):
        raise InvalidInputError(f"{what} must have shape ({n},), one for each candidate, got {column.shape}")
    bad = np.flatnonzero(~np.isfinite(column))
    if bad.size:
        raise InvalidInputError(f"{what}: row {bad[0]} is {column[bad[0]]}; every value must be finite")
    return read_only(column)


def as_costs(values: ArrayLike, n: int) -> NDArray[np.float64]:
    """As :func:`as_column`, and none below 0."""
    costs = as_column(values, n, "costs")
    bad = np.flatnonzero(costs < 0)
    if bad.size:
        raise InvalidInputError(f"costs: row {bad[0]} is {costs[bad[0]]}; a cost cannot be negative")
    return costs


def as_names(values: Iterable[Hashable], n: int, what: str) -> tuple[Hashable, ...]:
    """``values`` as a tuple of n hashables.

    Raises
    ------
    InvalidInputError
        They are no collection, are not n, or one cannot be hashed (the message names the row).
    """
    try:
        names = tuple(values)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidInputError(f"{what} must be a collection, one for each candidate, got {values!r}") from None
    if len(names) != n:
        raise InvalidInputError(f"{what} must be {n}, one for each candidate, got {len(names)}")
    try:
        hash(names)
    except TypeError:
        for row, name in enumerate(names):
            try:
                hash(name)
            except TypeError:
                raise InvalidInputError(f"{what}: row {row} is {name!r}, which cannot be hashed") from None
    return names


def describe_row(row: int, ids: tuple[Hashable, ...] | None) -> str:
    """How messages call a row."""
    return f"row {row}" if ids is None else f"row {row} (id {ids[row]!r})"


def read_only(array: _Array) -> _Array:
    """The same array, not to be written to."""
    array.setflags(write=False)
    return array
