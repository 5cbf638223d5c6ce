"""Vectors of unit length, checked; their cosines; and the differences between cosines that count as ties."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, as_numeric, read_only
from ..errors import InvalidInputError, explain_lengths, quoted

# Equal rows can get dot products that differ in the last bits, because BLAS sums the end of a block in another order.
# Scores that differ by at most this many units in the last place count as equal; TIE_TOLERANCE is by dtype.
TIE_EPS = 16
TIE_TOLERANCE = {np.dtype(t): TIE_EPS * float(np.finfo(t).eps) for t in (np.float32, np.float64)}
# Squared lengths outside of these bounds have overflowed, or have lost digits to underflow.
_SAFE_SQUARES = {
    np.dtype(t): (float(np.finfo(t).tiny / np.finfo(t).eps), float(np.finfo(t).max)) for t in (np.float32, np.float64)
}

# Packed binary embeddings are bytes that hold eight signs each, so all bytes are about equally frequent: their standard
# deviation is near 74. That of numbers that were scaled to bytes, with few at the ends of the range, is near 45 (both
# measured with all-MiniLM-L6-v2, 300 texts). Fewer than 16 bytes are too few to tell.
_LEAST_BYTES, _EVEN_DEVIATION, _MOST_AT_ENDS = 16, 64, 0.04

# If a sum of k unit rows is shorter than k times this, only rounding is left and the sum has no direction.
_CANCELLED = 4 * float(np.finfo(np.float64).eps)


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for a dtype that fits into it without loss, else float64."""
    if dtype in TIE_TOLERANCE:
        return dtype
    return np.dtype(np.float32) if np.result_type(dtype, np.float32) == np.float32 else np.dtype(np.float64)


def as_unit_rows(vectors: ArrayLike, *, copy: bool = True) -> FloatArray:
    """``vectors``, shape (..., n, d), with rows of unit length in their working dtype; a zero row stays zero.

    With ``copy=False`` the result may share memory with ``vectors``. It is never written to.
    """
    given = as_numeric(vectors, "vectors")
    if given.ndim < 2 or 0 in given.shape:
        raise InvalidInputError(f"vectors must have shape (n, d) with n >= 1 and d >= 1, got {given.shape}")
    return unit_rows(given, copy)


# numpy's warnings are off, because the squared length shows an overflow in the cast or in the square.
@np.errstate(over="ignore", invalid="ignore")
def unit_rows(
    given: NDArray[Any], copy: bool, what: str = "vectors", ids: Sequence[Hashable] | None = None
) -> FloatArray:
    """The rows of a numeric array at unit length, in their working dtype. A query must not be zero.

    An error names the row, with its id.
    """
    _refuse_packed(given, what)
    rows: FloatArray = given.astype(working_dtype(given.dtype), order="C", copy=copy)
    squares = np.vecdot(rows, rows)
    shortest, longest = squares.item(squares.argmin()), squares.item(squares.argmax())
    low, high = _SAFE_SQUARES[rows.dtype]
    # A comparison with NaN is false, so ``not (... and ...)`` is also true for a row with NaN.
    if not (shortest > low and longest < high):
        rows, squares = _rescaled(rows, squares, what, ids)
    # Most embedding models give unit rows already, up to rounding.
    elif max(1 - shortest, longest - 1) <= TIE_TOLERANCE[rows.dtype] / 4:
        return rows
    unit: FloatArray = rows / np.sqrt(squares)[..., None]
    return unit


def _refuse_packed(vectors: NDArray[Any], what: str) -> None:
    """Raise if the numbers are the bytes of packed binary embeddings (precision "binary" or "ubinary").

    Numbers that were scaled to bytes (precision "int8" or "uint8") pass. Stores return bytes as floats, so the values
    decide and not the dtype.
    """
    # Nearly all embeddings are told by their first number.
    if vectors.shape[-1] < _LEAST_BYTES or vectors.item(0) % 1:
        return
    rows = vectors.reshape(-1, vectors.shape[-1])[:64]
    if not (np.abs(rows) <= 255).all() or (rows % 1).any():
        return
    lowest = 0 if rows.min() >= 0 else -128
    at_ends = ((rows == lowest) | (rows == lowest + 255)).mean()
    inside = rows.min() >= lowest and rows.max() <= lowest + 255
    if inside and at_ends <= _MOST_AT_ENDS and rows.std(dtype=np.float64) >= _EVEN_DEVIATION:
        raise InvalidInputError(
            f"{what}: these are bytes of packed binary embeddings, whole numbers evenly spread over "
            f"{lowest}..{lowest + 255}. A byte holds the signs of eight numbers, so bytes cannot be compared as "
            "numbers: embed without precision='binary' or 'ubinary', or unpack the bits (numpy.unpackbits)"
        )


def _rescaled(
    rows: FloatArray, squares: FloatArray, what: str, ids: Sequence[Hashable] | None
) -> tuple[FloatArray, FloatArray]:
    """A copy in which rows that are too long or too short to be squared are scaled by a power of two.

    The squared length of a zero row is 1, so that the row can be divided by its length.
    """
    low, high = _SAFE_SQUARES[rows.dtype]
    odd = ~((squares > low) & (squares < high))
    largest = np.abs(rows[odd]).max(axis=-1)
    zero, infinite = largest == 0, ~np.isfinite(largest)
    if infinite.any() or (what == "query" and zero.any()):
        row = int(np.argwhere(odd)[(infinite if infinite.any() else zero).argmax(), -1])
        name = f"row {row}" + ("" if ids is None else f" (id {quoted(ids[row])})")
        if infinite.any():
            raise InvalidInputError(f"{what}: {name} holds NaN or inf; leave it out or embed it again")
        raise InvalidInputError(f"{what}: {name} is the zero vector, which has no direction: check the embedding model")
    rows = rows.copy()
    # A power of two scales without rounding, so a row's direction does not depend on its length.
    exponent = np.where(zero, 0, -np.frexp(largest)[1])
    rows[odd] = np.ldexp(rows[odd], exponent[:, None])
    squares[odd] = np.where(zero, 1, np.vecdot(rows[odd], rows[odd]))
    return rows, squares


def as_unit_queries(query: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> FloatArray:
    """The rows of ``query``, or its one vector, at unit length, shape (q, d); one row if all of them are equal.

    ``shape`` is that of the vectors, whose length the query must have.
    """
    given = as_numeric(query, "query")
    if given.ndim not in (1, 2) or given.shape[-1] != shape[-1]:
        hint = "it must be one vector, or have a row for the question and each sub-question"
        if given.ndim in (1, 2):
            hint = f"the lengths differ: {explain_lengths(given.shape[-1], shape[-1])}"
        raise InvalidInputError(f"query has shape {given.shape}, vectors have shape {shape}; {hint}")
    if not len(given):
        raise InvalidInputError("query has no row: pass one vector, shape (d,), or a row for each query, shape (q, d)")
    rows = given.astype(np.float64, copy=False)
    low, high = _SAFE_SQUARES[rows.dtype]
    # Almost every query is one vector, for which this takes half as long as unit_rows. np.vdot warns of no overflow.
    if given.ndim == 1 and low < (square := float(np.vdot(rows, rows))) < high:
        _refuse_packed(given, "query")
        return read_only((rows / math.sqrt(square)).astype(dtype, copy=False)[None])
    units: FloatArray = unit_rows(np.atleast_2d(rows), True, "query").astype(dtype, copy=False)
    return read_only(units[:1] if len(units) > 1 and (count_repeats(units) == len(units)).all() else units)


def count_repeats(units: FloatArray) -> NDArray[np.int64]:
    """How many of the rows each row is equal to up to rounding, itself included; shape (q,)."""
    repeats: NDArray[np.int64] = np.array(
        [np.count_nonzero(np.abs(units - unit).max(axis=1) <= TIE_TOLERANCE[units.dtype]) for unit in units]
    )
    return repeats


class SetCosines(NamedTuple):
    """What the vectors of a set say: the mean cosine with the query, that of all pairs, and that of the sum."""

    relevance: float
    redundancy: float
    sum_cosine: float


def measure_set(query: ArrayLike, vectors: ArrayLike) -> SetCosines:
    """The cosines of a set of vectors (k, d) with the query (d,) and with each other; 0 for none.

    A single vector repeats nothing. The sum is that of the unit vectors (VRSD paper, 4.2).

    >>> measure_set([1, 1], [[2, 0], [-1, 0]])
    SetCosines(relevance=0.0, redundancy=-1.0, sum_cosine=0.0)
    """
    if not len(given := np.asarray(vectors, np.float64)):
        return SetCosines(0.0, 0.0, 0.0)
    rows = as_unit_rows(given)
    unit, total = as_unit_queries(query, rows.shape, rows.dtype)[0], rows.sum(axis=0)
    length, pairs = float(np.linalg.norm(total)), len(rows) * (len(rows) - 1)
    redundancy = (length**2 - float(np.vdot(rows, rows))) / pairs if pairs else 0.0
    sum_cosine = float(np.clip(total @ unit / length, -1, 1)) if length > len(rows) * _CANCELLED else 0.0
    return SetCosines(float((rows @ unit).mean()), redundancy, sum_cosine)


def standardise(values: FloatArray, *, any_size: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(values - mean) / σ and 1 / σ over the last axis, where σ is the standard deviation; 0 if σ is 0 up to rounding.

    The values are of the size of cosines, unless ``any_size`` is set. Their rounding error is that of their dtype.
    """
    size: Any = 1.0
    if any_size:
        # Squares of very large or very small numbers would overflow or underflow. A power of two rounds nothing.
        size, exponent = np.frexp(np.abs(values).max(axis=-1, keepdims=True))
        values = np.ldexp(values, -exponent)
    n = values.shape[-1]
    # The rounding error of a mean counts if the values hardly differ. Their differences have none.
    centred: NDArray[np.float64] = np.subtract(values, values[..., :1], dtype=np.float64)
    centred -= np.add.reduce(centred, axis=-1, keepdims=True) / n
    sigma = np.sqrt(np.vecdot(centred, centred) / n)[..., None]
    sigma[sigma <= size * TIE_TOLERANCE[values.dtype]] = np.inf
    per_sigma = 1.0 / sigma
    return centred * per_sigma, per_sigma
