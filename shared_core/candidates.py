"""The one gate for input: whatever passes it is sound, and nothing behind it checks again."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidInputError

FloatArray = NDArray[np.floating[Any]]
_Array = TypeVar("_Array", bound=NDArray[Any])


class Candidates:
    """A query and the n candidates to choose from: checked, unit length, read-only.

    Parameters
    ----------
    query : array-like, shape (d,)
        The query's embedding, of any length but zero.
    vectors : array-like, shape (n, d)
        The candidates' embeddings, one a row. float16 and float32 become float32; float64 and lists of
        Python floats stay float64. A zero row is kept; its relevance is 0.
    quality : array-like, shape (n,), optional
        How good each candidate is by itself; enters :class:`MMR` as given.
    ids : iterable of n hashables, optional
        What the candidates are called, in messages and in a :class:`LowRankKernel`.
    costs : array-like, shape (n,), optional
        What each candidate would take of a ``budget`` (tokens, say), none below 0.

    Attributes
    ----------
    query, vectors : ndarray, float32 or float64
        Copies scaled to unit length.
    relevance : ndarray, shape (n,)
        Cosine of each candidate with the query, in [-1, 1] but for rounding.

    Raises
    ------
    InvalidInputError
        Shapes do not agree (the message prints both), a value is NaN or inf (it names the row), there is no
        candidate, the query is zero, a cost is negative, or something is not numeric.

    Examples
    --------
    >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]])
    >>> c.relevance.tolist()
    [1.0, 0.0]
    """

    __slots__ = ("_inverse", "_rows", "_unit", "costs", "ids", "quality", "query", "relevance")

    query: FloatArray
    relevance: FloatArray
    quality: NDArray[np.float64] | None
    ids: tuple[Hashable, ...] | None
    costs: NDArray[np.float64] | None
    # Rows as they came and one over their lengths: scaling every dot product is cheaper than scaling every row.
    _rows: FloatArray
    _inverse: FloatArray
    _unit: FloatArray | None

    def __init__(
        self,
        query: ArrayLike,
        vectors: ArrayLike,
        *,
        quality: ArrayLike | None = None,
        ids: Iterable[Hashable] | None = None,
        costs: ArrayLike | None = None,
    ) -> None:
        self._fill(query, vectors, quality, ids, costs, copy=not isinstance(vectors, (list, tuple)))

    @classmethod
    def borrow(
        cls,
        query: ArrayLike,
        vectors: ArrayLike,
        *,
        quality: ArrayLike | None = None,
        ids: Iterable[Hashable] | None = None,
        costs: ArrayLike | None = None,
    ) -> Candidates:
        """The same without a copy of ``vectors``, for a choice made at once, before anybody can change them.

        >>> Candidates.borrow([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]]).relevance.tolist()
        [1.0, 0.0]
        """
        candidates = object.__new__(cls)
        candidates._fill(query, vectors, quality, ids, costs, copy=False)
        return candidates

    @property
    def vectors(self) -> FloatArray:
        """The rows at unit length, shape (n, d), read-only; made when first asked for."""
        if self._unit is None:
            object.__setattr__(self, "_unit", _read_only(self._rows * self._inverse[:, None]))
        assert self._unit is not None
        return self._unit

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: what the vectors are computed in."""
        return self._rows.dtype

    def cosines_with(self, row: int, factor: float = 1.0) -> FloatArray:
        """Cosine of each candidate with the one at ``row``, times ``factor``: one pass over the vectors.

        >>> Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]]).cosines_with(1).tolist()
        [0.0, 1.0]
        """
        rows = self._rows
        cosines: FloatArray = rows.dot(rows[row])
        if rows is self._unit:
            if factor != 1.0:
                cosines *= factor
        else:
            cosines *= self._inverse * (float(self._inverse[row]) * factor)
        return cosines

    def with_query(self, query: ArrayLike) -> Candidates:
        """The same candidates seen from another query; the rows are shared, not checked or scaled again.

        >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]])
        >>> c.with_query([0.0, 1.0]).relevance.tolist()
        [0.0, 1.0]
        """
        other = object.__new__(Candidates)
        for name in ("ids", "quality", "costs", "_rows", "_inverse", "_unit"):
            object.__setattr__(other, name, getattr(self, name))
        with np.errstate(over="ignore", invalid="ignore"):
            other._look_from(query)
        return other

    def take(self, rows: ArrayLike) -> Candidates:
        """The candidates at these rows, in this order, seen from the same query.

        >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]], ids=["a", "b"])
        >>> c.take([1]).ids
        ('b',)
        """
        index = np.asarray(rows, dtype=np.intp)
        other = object.__new__(Candidates)
        put = object.__setattr__
        put(other, "query", self.query)
        put(other, "ids", None if self.ids is None else tuple(self.ids[i] for i in index))
        for name in ("relevance", "quality", "costs", "_rows", "_unit"):
            array = getattr(self, name)
            put(other, name, None if array is None else _read_only(array[index]))
        if self._unit is self._rows:
            put(other, "_unit", other._rows)
        put(other, "_inverse", _read_only(self._inverse[index] if len(self._inverse) == len(self) else _ONE))
        return other

    def name(self, row: int) -> str:
        """How messages call a candidate: its row, and its id where there is one."""
        return _name(row, self.ids)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        n, d = self._rows.shape
        extras = [name for name in ("quality", "ids", "costs") if getattr(self, name) is not None]
        return f"Candidates(n={n}, d={d}, {self.dtype}{''.join(', ' + e for e in extras)})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Candidates are read-only; make new ones to change {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Candidates are read-only; {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, tuple(getattr(self, name) for name in self.__slots__))

    def _fill(
        self,
        query: ArrayLike,
        vectors: ArrayLike,
        quality: ArrayLike | None,
        ids: Iterable[Hashable] | None,
        costs: ArrayLike | None,
        *,
        copy: bool,
    ) -> None:
        rows = _numeric(vectors, "vectors")
        if rows.ndim != 2 or 0 in rows.shape:
            raise InvalidInputError(
                f"vectors must have shape (n, d) with n >= 1 and d >= 1, got {rows.shape}; "
                f"query has shape {np.shape(query)}"
            )
        n = rows.shape[0]
        names = None if ids is None else _ids(ids, n)
        # What overflows is found by its sum of squares and dealt with there.
        with np.errstate(over="ignore", invalid="ignore"):
            rows, inverse = _scaled(rows.astype(_working_dtype(rows.dtype), order="C", copy=copy), names)
            put = object.__setattr__
            put(self, "ids", names)
            rows = _read_only(rows[:])
            put(self, "_rows", rows)
            put(self, "_inverse", _read_only(_ONE if inverse is None else inverse))
            put(self, "_unit", rows if inverse is None else None)
            put(self, "quality", None if quality is None else _column(quality, n, "quality"))
            put(self, "costs", None if costs is None else _costs(costs, n))
            self._look_from(query)

    def _look_from(self, query: ArrayLike) -> None:
        unit = _unit_query(query, self._rows)
        relevance = self._rows.dot(unit)
        if self._rows is not self._unit:
            relevance *= self._inverse
        object.__setattr__(self, "query", unit)
        object.__setattr__(self, "relevance", _read_only(relevance))


def _restore(*values: Any) -> Candidates:
    candidates = object.__new__(Candidates)
    for name, value in zip(Candidates.__slots__, values, strict=True):
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(candidates, name, value)
    return candidates


def _numeric(values: ArrayLike, what: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidInputError(f"{what} cannot be made into an array: {error}") from error
    if array.dtype.kind not in "fiu":
        raise InvalidInputError(f"{what} must be numbers, got dtype {array.dtype}")
    return array


def _working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype in _RANGES:
        return dtype
    return np.dtype(np.float32) if np.result_type(dtype, np.float32) == np.float32 else np.dtype(np.float64)


def _range(dtype: type[np.floating[Any]]) -> tuple[float, float]:
    limits = np.finfo(dtype)
    return float(limits.tiny / limits.eps), float(limits.max)


# A sum of squares leaves the range of its type long before the row does.
_UNIT_SLACK = {np.dtype(t): 4 * float(np.finfo(t).eps) for t in (np.float32, np.float64)}
_ONE = np.ones(1, np.float32)
_RANGES = {np.dtype(t): _range(t) for t in (np.float32, np.float64)}


def _scaled(rows: FloatArray, names: tuple[Hashable, ...] | None) -> tuple[FloatArray, FloatArray | None]:
    """Rows whose lengths are within the range of their type, and one over each length (0 for a zero row).

    None in place of the lengths: all are 1 to the last bits, as most embedding models have it.
    """
    squares = np.vecdot(rows, rows)
    least, most = _RANGES[rows.dtype]
    shortest, longest = squares[squares.argmin()], squares[squares.argmax()]
    # NaN compares as false and argmin and argmax find it, so it goes the slow way with the rows out of range.
    if shortest > least and longest < most:
        slack = _UNIT_SLACK[rows.dtype]
        if longest - 1 <= slack and 1 - shortest <= slack:
            return rows, None
        np.sqrt(squares, out=squares)
        return rows, np.divide(1, squares, out=squares)
    odd = np.flatnonzero(~((squares > least) & (squares < most)))
    for row in odd:
        if not np.isfinite(rows[row]).all():
            raise InvalidInputError(
                f"vectors: {_name(int(row), names)} holds NaN or inf; leave it out or embed it again"
            )
    rows = rows.copy()
    largest = np.abs(rows[odd]).max(axis=1)
    # A power of two scales without rounding, so a row's direction does not depend on its length.
    exponent = np.where(largest > 0, -np.frexp(largest)[1], 0)
    rows[odd] = np.ldexp(rows[odd], exponent[:, None])
    squares[odd] = np.vecdot(rows[odd], rows[odd])
    return rows, np.divide(1, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)


def _unit_query(query: ArrayLike, vectors: FloatArray) -> FloatArray:
    q = _numeric(query, "query")
    if q.ndim != 1 or q.shape[0] != vectors.shape[1]:
        hint = (
            "; the lengths differ, so they most likely come from different embedding models"
            if q.ndim == 1
            else "; the query must be one vector"
        )
        raise InvalidInputError(f"query has shape {q.shape}, vectors have shape {vectors.shape}{hint}")
    unit = q.astype(vectors.dtype, copy=False)
    least, most = _RANGES[unit.dtype]
    square = float(unit.dot(unit))
    if least < square < most:
        return _read_only(unit * unit.dtype.type(1 / math.sqrt(square)))
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


def _column(values: ArrayLike, n: int, what: str) -> NDArray[np.float64]:
    column = _numeric(values, what).astype(np.float64)
    if column.shape != (n,):
        raise InvalidInputError(f"{what} must have shape ({n},), one for each candidate, got {column.shape}")
    bad = np.flatnonzero(~np.isfinite(column))
    if bad.size:
        raise InvalidInputError(f"{what}: row {bad[0]} is {column[bad[0]]}; every value must be finite")
    return _read_only(column)


def _costs(values: ArrayLike, n: int) -> NDArray[np.float64]:
    costs = _column(values, n, "costs")
    bad = np.flatnonzero(costs < 0)
    if bad.size:
        raise InvalidInputError(f"costs: row {bad[0]} is {costs[bad[0]]}; a cost cannot be negative")
    return costs


def _ids(ids: Iterable[Hashable], n: int) -> tuple[Hashable, ...]:
    names = tuple(ids)
    if len(names) != n:
        raise InvalidInputError(f"ids must be {n}, one for each candidate, got {len(names)}")
    for row, name in enumerate(names):
        try:
            hash(name)
        except TypeError:
            raise InvalidInputError(f"ids: row {row} is {name!r}, which cannot be hashed") from None
    return names


def _name(row: int, ids: tuple[Hashable, ...] | None) -> str:
    return f"row {row}" if ids is None else f"row {row} (id {ids[row]!r})"


def _read_only(array: _Array) -> _Array:
    array.setflags(write=False)
    return array
