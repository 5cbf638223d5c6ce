"""The one gate for input: whatever passes it is sound, and nothing behind it checks again."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._validation import check_integer, check_number
from .arrays import (
    ONE,
    FloatArray,
    as_column,
    as_costs,
    as_names,
    as_numeric,
    describe_row,
    dots,
    read_only,
    scaled_rows,
    squares_and_dots,
    unit_query,
    working_dtype,
)
from .errors import InvalidInputError
from .rows import Rows


class Candidates(Rows):
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
    sources : iterable of n hashables, optional
        Where each candidate comes from (the document of a passage, say).
    max_per_source : int, optional
        No more than so many candidates of one source are picked, the shown ones counted in. Needs ``sources``.
    drop_near_duplicates : float in [-1, 1], optional
        No candidate is picked whose cosine with a picked or shown one is above this.

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
        candidate, the query is zero, a cost is negative, or something is ragged, masked or not numeric.

    Examples
    --------
    >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]])
    >>> c.relevance.tolist()
    [1.0, 0.0]
    """

    __slots__ = (
        "costs",
        "drop_near_duplicates",
        "ids",
        "max_per_source",
        "quality",
        "query",
        "relevance",
        "sources",
    )

    query: FloatArray
    relevance: FloatArray
    quality: NDArray[np.float64] | None
    ids: tuple[Hashable, ...] | None
    costs: NDArray[np.float64] | None
    sources: tuple[Hashable, ...] | None
    max_per_source: int | None
    drop_near_duplicates: float | None

    def __init__(
        self,
        query: ArrayLike,
        vectors: ArrayLike,
        *,
        quality: ArrayLike | None = None,
        ids: Iterable[Hashable] | None = None,
        costs: ArrayLike | None = None,
        sources: Iterable[Hashable] | None = None,
        max_per_source: int | None = None,
        drop_near_duplicates: float | None = None,
    ) -> None:
        self._fill(query, vectors, quality, ids, costs, copy=not isinstance(vectors, (list, tuple)))
        if sources is not None or max_per_source is not None or drop_near_duplicates is not None:
            self._limit(sources, max_per_source, drop_near_duplicates)

    @classmethod
    def borrow(
        cls,
        query: ArrayLike,
        vectors: ArrayLike,
        *,
        quality: ArrayLike | None = None,
        ids: Iterable[Hashable] | None = None,
        costs: ArrayLike | None = None,
        sources: Iterable[Hashable] | None = None,
        max_per_source: int | None = None,
        drop_near_duplicates: float | None = None,
    ) -> Candidates:
        """The same without a copy of ``vectors``, for a choice made at once, before anybody can change them.

        >>> Candidates.borrow([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]]).relevance.tolist()
        [1.0, 0.0]
        """
        candidates = object.__new__(cls)
        candidates._fill(query, vectors, quality, ids, costs, copy=False)
        if sources is not None or max_per_source is not None or drop_near_duplicates is not None:
            candidates._limit(sources, max_per_source, drop_near_duplicates)
        return candidates

    def with_query(self, query: ArrayLike) -> Candidates:
        """The same candidates seen from another query; the rows are shared, not checked or scaled again.

        >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]])
        >>> c.with_query([0.0, 1.0]).relevance.tolist()
        [0.0, 1.0]
        """
        other = object.__new__(Candidates)
        for name in _STATE:
            object.__setattr__(other, name, getattr(self, name))
        with np.errstate(over="ignore", invalid="ignore"):
            other._look_from(query)
        return other

    def with_vectors(self, query: ArrayLike, vectors: ArrayLike) -> Candidates:
        """The same candidates with other vectors and another query.

        >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]], ids=["a", "b"])
        >>> c.with_vectors([1.0], [[1.0], [2.0]]).ids
        ('a', 'b')
        """
        return Candidates(
            query,
            vectors,
            quality=self.quality,
            ids=self.ids,
            costs=self.costs,
            sources=self.sources,
            max_per_source=self.max_per_source,
            drop_near_duplicates=self.drop_near_duplicates,
        )

    def take(self, rows: ArrayLike) -> Candidates:
        """The candidates at these rows, in this order, seen from the same query.

        >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]], ids=["a", "b"])
        >>> c.take([1]).ids
        ('b',)
        """
        index = np.asarray(rows, dtype=np.intp)
        other = object.__new__(Candidates)
        put = object.__setattr__
        for name in ("query", "max_per_source", "drop_near_duplicates"):
            put(other, name, getattr(self, name))
        for name in ("ids", "sources"):
            names = getattr(self, name)
            put(other, name, None if names is None else tuple(names[i] for i in index))
        for name in ("relevance", "quality", "costs", "_rows", "_unit"):
            array = getattr(self, name)
            put(other, name, None if array is None else read_only(array[index]))
        if self._unit is self._rows:
            put(other, "_unit", other._rows)
        put(other, "_inverse", read_only(self._inverse[index] if len(self._inverse) == len(self) else ONE))
        return other

    def name(self, row: int) -> str:
        """How messages call a candidate: its row, and its id where there is one."""
        return describe_row(row, self.ids)

    def __repr__(self) -> str:
        n, d = self._rows.shape
        extras = [name for name in ("quality", "ids", "costs", "sources") if getattr(self, name) is not None]
        return f"Candidates(n={n}, d={d}, {self.dtype}{''.join(', ' + e for e in extras)})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Candidates are read-only; make new ones to change {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Candidates are read-only; {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, tuple(getattr(self, name) for name in _STATE))

    def _fill(
        self,
        query: ArrayLike,
        vectors: ArrayLike,
        quality: ArrayLike | None = None,
        ids: Iterable[Hashable] | None = None,
        costs: ArrayLike | None = None,
        *,
        copy: bool,
    ) -> None:
        rows = as_numeric(vectors, "vectors")
        if rows.ndim != 2 or 0 in rows.shape:
            raise InvalidInputError(
                f"vectors must have shape (n, d) with n >= 1 and d >= 1, got {rows.shape}; "
                f"query has shape {as_numeric(query, 'query').shape}"
            )
        n = rows.shape[0]
        names = None if ids is None else as_names(ids, n, "ids")
        put = object.__setattr__
        # What overflows is found by its sum of squares and dealt with there.
        with np.errstate(over="ignore", invalid="ignore"):
            given = rows.astype(working_dtype(rows.dtype), order="C", copy=copy)
            unit = unit_query(query, given)
            squares, relevance = squares_and_dots(given, unit)
            rows, inverse = scaled_rows(given, names, squares)
            if rows is not given:
                relevance = dots(rows, unit)
            # A view, since the caller's own array must stay writeable.
            rows = rows[:]
            rows.flags.writeable = False
            if inverse is None:
                put(self, "_inverse", ONE)
                put(self, "_unit", rows)
            else:
                relevance *= inverse
                inverse.flags.writeable = False
                put(self, "_inverse", inverse)
                put(self, "_unit", None)
        relevance.flags.writeable = False
        put(self, "_rows", rows)
        put(self, "query", unit)
        put(self, "relevance", relevance)
        put(self, "ids", names)
        put(self, "quality", None if quality is None else as_column(quality, n, "quality"))
        put(self, "costs", None if costs is None else as_costs(costs, n))
        put(self, "sources", None)
        put(self, "max_per_source", None)
        put(self, "drop_near_duplicates", None)

    def _limit(
        self,
        sources: Iterable[Hashable] | None,
        max_per_source: int | None,
        drop_near_duplicates: float | None,
    ) -> None:
        put = object.__setattr__
        if sources is not None:
            put(self, "sources", as_names(sources, len(self), "sources"))
        if max_per_source is not None:
            if sources is None:
                raise InvalidInputError("max_per_source needs sources, one for each candidate")
            put(self, "max_per_source", check_integer(max_per_source, "max_per_source", 1))
        if drop_near_duplicates is not None:
            put(
                self,
                "drop_near_duplicates",
                check_number(drop_near_duplicates, "drop_near_duplicates (a cosine)", -1, 1),
            )

    def _look_from(self, query: ArrayLike) -> None:
        unit = unit_query(query, self._rows)
        relevance = dots(self._rows, unit)
        if self._rows is not self._unit:
            relevance *= self._inverse
        object.__setattr__(self, "query", unit)
        object.__setattr__(self, "relevance", read_only(relevance))


_STATE = (*Rows.__slots__, *Candidates.__slots__)


def _restore(*values: Any) -> Candidates:
    candidates = object.__new__(Candidates)
    for name, value in zip(_STATE, values, strict=True):
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(candidates, name, value)
    return candidates
