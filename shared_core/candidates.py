"""The query and candidates of one selection, checked and of unit length."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._validation import (
    FloatArray,
    as_column,
    as_float64,
    as_names,
    as_numeric,
    as_ranks,
    as_rows,
    check_integer,
    check_number,
    is_missing,
    quoted,
    read_only,
)
from .errors import InvalidInputError, warn

# The arguments of Candidates that forbid picks. The adapters and select pass them on by name.
CONSTRAINTS = ("max_per_source", "drop_near_duplicates")
# Equal rows can get dot products that differ in the last bits, because BLAS sums the end of a block in another order.
# Scores that differ by at most this many units in the last place count as equal; TIE_TOLERANCE is by dtype.
TIE_EPS = 16
TIE_TOLERANCE = {np.dtype(t): TIE_EPS * float(np.finfo(t).eps) for t in (np.float32, np.float64)}
# Squared lengths outside of these bounds have overflowed, or have lost digits to underflow.
_SAFE_SQUARES = {
    np.dtype(t): (float(np.finfo(t).tiny / np.finfo(t).eps), float(np.finfo(t).max)) for t in (np.float32, np.float64)
}


class Parts(NamedTuple):
    """What a set has to cover: the words of the question, for example, or the values of a metadata key.

    Parameters
    ----------
    covered : ndarray, shape (n, m), in [0, 1]
        How well candidate i covers part j.
    weights : ndarray, shape (m,), at least 0
        What each part counts. Only their ratios matter.
    """

    covered: NDArray[np.float64]
    weights: NDArray[np.float64]


class References(NamedTuple):
    """Which candidates name which others; :func:`find_references` makes them.

    Parameters
    ----------
    named : ndarray, shape (n, n), in [0, 1]
        How clearly the text of candidate i names candidate j. The diagonal counts as 0.
    names : ndarray, shape (n,), integers
        Candidates with the same number have the same name: the passages of one document, for example.
    """

    named: NDArray[np.float32]
    names: NDArray[np.int64]


def as_parts(given: Any, n: int, what: str, name: Callable[[int], str] = "row {}".format) -> Parts:
    """``given`` as read-only float64 :class:`Parts` of n candidates. Messages name a candidate by its row.

    It may be ``Parts``, an array (n, m), whose parts weigh the same, or n values: a candidate covers its value. A value
    may be a list of values. None covers nothing, nor do NaN, NaT and NA, which stand for a missing value in a table.

    >>> as_parts(["news", "blog", ["blog", "news"], None], 4, "cover").covered.tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    """
    if isinstance(given, Parts):
        covered, weights = as_float64(given.covered, what), as_float64(given.weights, f"the weights of {what}")
    else:
        if getattr(given, "ndim", 1) == 2:
            covered = as_numeric(given, what, kinds="fiub").astype(np.float64)
        else:
            covered = _as_indicators(given, n, what, name)
        weights = np.ones(covered.shape[1])
    if covered.ndim != 2 or len(covered) != n:
        raise InvalidInputError(f"{what} must have shape ({n}, m), one row for each candidate, got {covered.shape}")
    if weights.shape != covered.shape[1:]:
        raise InvalidInputError(
            f"the weights of {what} must have shape ({covered.shape[1]},), one for each part, got {weights.shape}"
        )
    # A comparison with NaN is false.
    if covered.size and not (covered.min() >= 0 and covered.max() <= 1):
        row, part = np.argwhere(~((covered >= 0) & (covered <= 1)))[0].tolist()
        raise InvalidInputError(f"{what}: row {row} covers part {part} by {covered[row, part]}; it must be in [0, 1]")
    if weights.size and not (weights.min() >= 0 and weights.max() < math.inf):
        raise InvalidInputError(f"the weights of {what} must be finite and at least 0, got {quoted(weights)}")
    return Parts(read_only(covered), read_only(weights))


def _as_indicators(values: Iterable[Any], n: int, what: str, name: Callable[[int], str]) -> NDArray[np.float64]:
    """(n, m): 1 where a candidate has one of the m different values."""
    if isinstance(values, str):
        raise InvalidInputError(f"{what} must be a collection, one for each candidate, got {quoted(values)}")
    # The elements of a tensor are objects of their own, which no two candidates have in common.
    rows = values.tolist() if hasattr(values, "tolist") else list(values)
    if len(rows) != n:
        raise InvalidInputError(f"{what} must be {n}, one for each candidate, got {len(rows)}")
    # A column of lists that was read from a Parquet file has an array in each row.
    rows = [value.tolist() if isinstance(value, np.ndarray) else value for value in rows]
    lists = [value if isinstance(value, (list, tuple)) else [] for value in rows]
    # A row of a 0/1 matrix repeats a value. The labels of a candidate are different from each other.
    is_matrix = all(type(one) in (bool, int) and one in (0, 1) for some in lists for one in some) and any(
        len({*some}) < len(some) for some in lists
    )
    column: dict[Hashable, int] = {}
    own = []
    for row, value in enumerate(rows):
        if is_matrix or any(isinstance(one, float) for one in lists[row]):
            raise InvalidInputError(
                f"{what}: {name(row)} is {quoted(value)}; pass how well each candidate covers each part as an array "
                f"of shape ({n}, m), for example np.array({what})"
            )
        some = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
        try:
            own.append([column.setdefault(one, len(column)) for one in some if not is_missing(one)])
        except TypeError:
            raise InvalidInputError(f"{what}: {name(row)} is {quoted(value)}, which cannot be hashed") from None
    covered = np.zeros((n, len(column)))
    for row, columns in enumerate(own):
        covered[row, columns] = 1.0
    return covered


def as_references(given: References | ArrayLike, n: int) -> References:
    """``given`` as read-only :class:`References` of n candidates; in an array each has a name of its own."""
    matrix, numbers = given if isinstance(given, References) else (given, np.arange(n))
    named = as_numeric(matrix, "references", kinds="fiub")
    names = as_numeric(numbers, "the names of references", kinds="iu")
    if named.shape != (n, n) or names.shape != (n,):
        raise InvalidInputError(
            f"references must have shape ({n}, {n}), a row and a column for each candidate, got {named.shape}"
            + (f", with {n} names, got {names.shape}" if isinstance(given, References) else "")
        )
    # A comparison with NaN is false.
    if not (named.min() >= 0 and named.max() <= 1):
        i, j = np.argwhere(~((named >= 0) & (named <= 1)))[0].tolist()
        raise InvalidInputError(f"references: row {i} names candidate {j} by {named[i, j]}; it must be in [0, 1]")
    # In this order of memory the compiled loop knows it.
    return References(read_only(named.astype(np.float32, order="C")), read_only(names.astype(np.int64)))


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
    return _unit_rows(given, None, copy)


# numpy's warnings are off, because the squared length shows an overflow in the cast or in the square.
@np.errstate(over="ignore", invalid="ignore")
def _unit_rows(given: NDArray[Any], ids: tuple[Hashable, ...] | None, copy: bool) -> FloatArray:
    rows: FloatArray = given.astype(working_dtype(given.dtype), order="C", copy=copy)
    squares = np.vecdot(rows, rows)
    shortest, longest = squares.item(squares.argmin()), squares.item(squares.argmax())
    low, high = _SAFE_SQUARES[rows.dtype]
    # A comparison with NaN is false, so ``not (... and ...)`` is also true for a row with NaN.
    if not (shortest > low and longest < high):
        rows, squares = _rescaled(rows, squares, ids)
    # Most embedding models give unit rows already, up to rounding.
    elif max(1 - shortest, longest - 1) <= TIE_TOLERANCE[rows.dtype] / 4:
        return rows
    unit: FloatArray = rows / np.sqrt(squares)[..., None]
    return unit


def _rescaled(rows: FloatArray, squares: FloatArray, ids: tuple[Hashable, ...] | None) -> tuple[FloatArray, FloatArray]:
    """A copy in which rows that are too long or too short to be squared are scaled by a power of two.

    The squared length of a zero row is 1, so that the row can be divided by its length.
    """
    low, high = _SAFE_SQUARES[rows.dtype]
    odd = ~((squares > low) & (squares < high))
    bad = np.argwhere(odd & ~np.isfinite(rows).all(axis=-1))
    if bad.size:
        row = int(bad[0][-1])
        name = "" if ids is None else f" (id {quoted(ids[row])})"
        raise InvalidInputError(f"vectors: row {row}{name} holds NaN or inf; leave it out or embed it again")
    rows = rows.copy()
    largest = np.abs(rows[odd]).max(axis=-1)
    # A power of two scales without rounding, so a row's direction does not depend on its length.
    exponent = np.where(largest > 0, -np.frexp(largest)[1], 0)
    rows[odd] = np.ldexp(rows[odd], exponent[:, None])
    squares[odd] = np.where(largest > 0, np.vecdot(rows[odd], rows[odd]), 1)
    return rows, squares


def as_unit_queries(query: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> FloatArray:
    """The rows of ``query``, or its one vector, at unit length, shape (q, d); one row if all of them are equal."""
    given = as_numeric(query, "query")
    if given.ndim != 2:
        return read_only(as_unit_vector(given, shape, dtype)[None])
    if not len(given):
        raise InvalidInputError("query has no row: pass one vector, shape (d,), or a row for each query, shape (q, d)")
    units = np.empty((len(given), shape[-1]), dtype)
    for row, one in enumerate(given):
        try:
            units[row] = as_unit_vector(one, shape, dtype)
        except InvalidInputError as error:
            raise InvalidInputError(f"row {row} of the queries: {error}") from None
    return read_only(units[:1] if (count_repeats(units) == len(units)).all() else units)


def count_repeats(units: FloatArray) -> NDArray[np.int64]:
    """How many of the rows each row is equal to up to rounding, itself included; shape (q,)."""
    repeats: NDArray[np.int64] = np.array(
        [np.count_nonzero(np.abs(units - unit).max(axis=1) <= TIE_TOLERANCE[units.dtype]) for unit in units]
    )
    return repeats


def as_unit_vector(query: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> FloatArray:
    """``query`` at unit length, in ``dtype``. ``shape`` is that of the vectors, whose length the query must have."""
    q = as_numeric(query, "query")
    if q.ndim != 1 or q.shape[0] != shape[-1]:
        hint = (
            "; the lengths differ, so they most likely come from different embedding models"
            if q.ndim == 1
            else "; the query must be one vector, or have a row for each of several queries"
        )
        raise InvalidInputError(f"query has shape {q.shape}, vectors have shape {shape}{hint}")
    q = q.astype(np.float64, copy=False)
    # Unlike q.dot(q), np.vdot does not warn of an overflow.
    square = float(np.vdot(q, q))
    low, high = _SAFE_SQUARES[np.dtype(np.float64)]
    if not low < square < high:
        if not np.isfinite(q).all():
            raise InvalidInputError("query holds NaN or inf; embed it again")
        largest = np.abs(q).max()
        if largest == 0:
            raise InvalidInputError("query is the zero vector, which has no direction: check the embedding model")
        # A query of length 1e-200 or 1e200 has a direction too. A power of two scales without rounding.
        q = np.ldexp(q, -np.frexp(largest)[1])
        square = float(np.vdot(q, q))
    return read_only((q / math.sqrt(square)).astype(dtype, copy=False))


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Candidates:
    """A query and the n candidates to select from: checked, of unit length, read-only.

    Parameters
    ----------
    query : array-like, shape (d,) or (q, d)
        The query's embedding, of any length above zero; or several, one per row: the question first, then its
        sub-questions. A query that is there twice counts once.
    vectors : array-like, shape (n, d)
        The candidates' embeddings, one per row. float16 and float32 become float32; float64 and lists of
        Python floats stay float64. A zero row is kept; its relevance is 0.
    relevance : array-like, shape (n,), optional
        What each candidate is worth for the query, in place of the cosine: the scores of a reranker or of hybrid
        search. It enters as given; :func:`rescale` maps it to [0, 1]. :class:`VRSD` refuses it.
    quality : array-like, shape (n,), optional
        How good each candidate is by itself. :class:`MMR` uses it as given.
    words : Parts, optional
        The words of the question, and how well each candidate's text covers them; :func:`match_words` makes them.
        :class:`Coverage` uses them.
    references : References, or array-like, shape (n, n), in [0, 1], optional
        How clearly the text of candidate i names candidate j; :func:`find_references` makes them. With an array each
        candidate has a name of its own. :class:`Coverage` uses them.
    cover : array of shape (n, m) in [0, 1], or n values, or Parts, optional
        Further parts that the set has to cover: how well each candidate covers each part, or the value of each
        candidate (its label or its collection, for example), or its values as a list. None is no value.
        :class:`Coverage` uses them.
    ids : iterable of n hashables, optional
        Names of the candidates, for messages and for a :class:`LowRankKernel`.
    costs : array-like, shape (n,), optional
        What each candidate takes from a ``budget`` (its tokens, for example); at least 0.
    sources : iterable of n hashables, optional
        Where each candidate comes from (the document of a passage, for example).
    max_per_source : int, optional
        The most candidates of one source that may be picked, shown ones included. Needs ``sources``.
    drop_near_duplicates : float in [-1, 1], optional
        No candidate is picked whose cosine with a picked or shown one is above this.
    prefer : iterable of n numbers or dates, optional
        Which one of near-duplicates may be picked: the one with the highest value (the newest, for example), at any
        gain. Among equal values the gain decides. A date may be an ISO string or a datetime; None is the lowest value.
        One that costs more than the whole budget, or whose source has reached its cap by ``shown``, does not count.
        Needs ``drop_near_duplicates``.
    copy : bool
        False: vectors that have unit length already are not copied. The caller must not change them while the
        candidates are in use.

    Attributes
    ----------
    query : ndarray, shape (d,), float32 or float64
        A copy at unit length; of several queries the first one.
    queries : ndarray, shape (q, d), float32 or float64
        All queries at unit length; q = 1 for one query.
    vectors : ndarray, shape (n, d), float32 or float64
        A copy with rows of unit length.
    relevance : ndarray, shape (n,), float32 or float64
        What was given, as float64; else the cosine of each candidate with the query, in [-1, 1] up to rounding. With
        several queries it is the highest of the cosines.
    relevance_given : bool
        Whether ``relevance`` was given.
    prefer : ndarray, shape (n,), int64, or None
        The ranks of what was given.

    Raises
    ------
    InvalidInputError
        Shapes do not agree (the message gives both), a value is NaN or inf (it names the row), there is no
        candidate, the query is zero, a cost is negative, a number of ``words``, ``references`` or ``cover`` is not in
        [0, 1], or an input is ragged, masked or not numeric.
    InvalidParameterError
        ``max_per_source`` or ``drop_near_duplicates`` is out of range.

    Examples
    --------
    >>> from setselect import Candidates
    >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]])
    >>> c.relevance.tolist()
    [1.0, 0.0]
    """

    query: FloatArray
    queries: FloatArray
    vectors: FloatArray
    relevance: FloatArray
    relevance_given: bool
    quality: NDArray[np.float64] | None
    words: Parts | None
    references: References | None
    cover: Parts | None
    ids: tuple[Hashable, ...] | None
    costs: NDArray[np.float64] | None
    sources: tuple[Hashable, ...] | None
    max_per_source: int | None
    drop_near_duplicates: float | None
    prefer: NDArray[np.int64] | None

    def __init__(
        self,
        query: ArrayLike,
        vectors: ArrayLike,
        *,
        relevance: ArrayLike | None = None,
        quality: ArrayLike | None = None,
        words: Parts | None = None,
        references: References | ArrayLike | None = None,
        cover: ArrayLike | Iterable[Any] | Parts | None = None,
        ids: Iterable[Hashable] | None = None,
        costs: ArrayLike | None = None,
        sources: Iterable[Hashable] | None = None,
        max_per_source: int | None = None,
        drop_near_duplicates: float | None = None,
        prefer: Iterable[Any] | None = None,
        copy: bool = True,
    ) -> None:
        given = as_numeric(vectors, "vectors")
        if given.ndim != 2 or 0 in given.shape:
            raise InvalidInputError(
                f"vectors must have shape (n, d) with n >= 1 and d >= 1, got {given.shape}; "
                f"query has shape {as_numeric(query, 'query').shape}"
            )
        n = len(given)
        names = None if ids is None else as_names(ids, n, "ids")
        units = as_unit_queries(query, given.shape, working_dtype(given.dtype))
        rows = _unit_rows(given, names, copy)
        constraints = check_constraints(max_per_source, drop_near_duplicates, has_sources=sources is not None)
        if prefer is not None and drop_near_duplicates is None:
            warn("prefer has no effect without drop_near_duplicates")
        self.__dict__.update(
            query=units[0],
            queries=units,
            # A view, because the caller's own array must stay writeable.
            vectors=read_only(rows[:]),
            relevance=_highest_cosines(rows, units) if relevance is None else as_column(relevance, n, "relevance"),
            relevance_given=relevance is not None,
            quality=None if quality is None else as_column(quality, n, "quality"),
            words=None if words is None else as_parts(words, n, "words"),
            references=None if references is None else as_references(references, n),
            cover=None if cover is None else as_parts(cover, n, "cover"),
            ids=names,
            costs=None if costs is None else as_column(costs, n, "costs", least=0),
            sources=None if sources is None else as_names(sources, n, "sources"),
            prefer=None if prefer is None else as_ranks(prefer, n, "prefer"),
            **constraints,
        )

    def with_query(
        self,
        query: ArrayLike,
        relevance: ArrayLike | None = None,
        words: Parts | None = None,
        references: References | ArrayLike | None = None,
    ) -> Candidates:
        """The same candidates for another query. The rows are shared and not validated again.

        The other arguments replace what was given before. What is None stays as it was given; if no relevance was
        given, it is the cosine with ``query``.

        >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]])
        >>> c.with_query([0.0, 1.0]).relevance.tolist()
        [0.0, 1.0]
        """
        units = as_unit_queries(query, self.vectors.shape, self.dtype)
        changes: dict[str, Any] = {"query": units[0], "queries": units}
        if words is not None:
            changes["words"] = as_parts(words, len(self), "words")
        if references is not None:
            changes["references"] = as_references(references, len(self))
        if relevance is not None:
            changes["relevance"], changes["relevance_given"] = as_column(relevance, len(self), "relevance"), True
        elif not self.relevance_given:
            changes["relevance"] = _highest_cosines(self.vectors, units)
        return self._with(**changes)

    def with_vectors(self, query: ArrayLike, vectors: ArrayLike) -> Candidates:
        """The same candidates with other vectors and another query; InvalidInputError if their number differs.

        >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]], ids=["a", "b"])
        >>> c.with_vectors([1.0], [[1.0], [2.0]]).ids
        ('a', 'b')
        """
        other = Candidates(query, vectors)
        if len(other) != len(self):
            raise InvalidInputError(f"vectors must have {len(self)} rows, one for each candidate, got {len(other)}")
        relevance = self.relevance if self.relevance_given else other.relevance
        return self._with(query=other.query, queries=other.queries, vectors=other.vectors, relevance=relevance)

    def with_constraints(
        self, max_per_source: int | None = None, drop_near_duplicates: float | None = None
    ) -> Candidates:
        """The same candidates with these constraints in place of their own; see the arguments of the class.

        >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]], sources=["a", "a"])
        >>> c.with_constraints(max_per_source=1).max_per_source
        1
        """
        return self._with(
            **check_constraints(max_per_source, drop_near_duplicates, has_sources=self.sources is not None)
        )

    def take(self, rows: ArrayLike) -> Candidates:
        """The candidates at these rows, in this order, with the same query.

        >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]], ids=["a", "b"])
        >>> c.take([1]).ids
        ('b',)
        """
        index = as_rows(rows, len(self), "rows")
        taken: dict[str, Any] = {}
        for name in ("vectors", "relevance", "quality", "costs", "prefer"):
            column = getattr(self, name)
            taken[name] = None if column is None else read_only(column[index])
        for name in ("words", "cover"):
            parts = getattr(self, name)
            taken[name] = None if parts is None else parts._replace(covered=read_only(parts.covered[index]))
        if self.references is not None:
            named, bearers = self.references
            taken["references"] = References(read_only(named[np.ix_(index, index)]), read_only(bearers[index]))
        for name in ("ids", "sources"):
            names = getattr(self, name)
            taken[name] = None if names is None else tuple(names[i] for i in index)
        return self._with(**taken)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: the dtype of the vectors and of what is computed from them."""
        return self.vectors.dtype

    def _with(self, **changes: Any) -> Candidates:
        other = object.__new__(Candidates)
        other.__dict__.update(self.__dict__, **changes)
        return other

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        n, d = self.vectors.shape
        extras = [f"{len(self.queries)} queries"] if len(self.queries) > 1 else []
        extras += ["relevance"] if self.relevance_given else []
        extras += [
            name
            for name in ("quality", "words", "references", "cover", "ids", "costs", "sources", "prefer")
            if getattr(self, name) is not None
        ]
        return f"Candidates(n={n}, d={d}, {self.dtype}{''.join(', ' + e for e in extras)})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Arrays lose their read-only flag when they are pickled.
        for value in state.values():
            for array in value if isinstance(value, (Parts, References)) else (value,):
                if isinstance(array, np.ndarray):
                    read_only(array)
        self.__dict__.update(state)


def check_constraints(
    max_per_source: int | None, drop_near_duplicates: float | None, *, has_sources: bool
) -> dict[str, Any]:
    """The ``CONSTRAINTS`` as arguments; an error if one is out of range, or if it needs sources and there are none."""
    if max_per_source is not None and not has_sources:
        raise InvalidInputError("max_per_source needs sources, one for each candidate")
    if drop_near_duplicates is not None:
        drop_near_duplicates = check_number(drop_near_duplicates, "drop_near_duplicates (a cosine)", -1, 1)
    return {
        "max_per_source": None if max_per_source is None else check_integer(max_per_source, "max_per_source", 1),
        "drop_near_duplicates": drop_near_duplicates,
    }


def _highest_cosines(rows: FloatArray, units: FloatArray) -> FloatArray:
    """The highest cosine of each unit row with one of the unit queries."""
    return read_only(functools.reduce(np.maximum, map(rows.dot, units)))


@dataclass(frozen=True, eq=False)
class CandidateBlock:
    """The candidates of b queries, checked together, for the compiled loops."""

    queries: FloatArray  # (b, d), unit length
    vectors: FloatArray  # (b, n, d), or (1, n, d) if all queries share the candidates; rows of unit length
    relevance: FloatArray  # (b, n)
    relevance_given: bool
    quality: NDArray[np.float64] | None  # (b, n), or (1, n)

    @classmethod
    def validate(
        cls,
        queries: ArrayLike,
        vectors: FloatArray,
        quality: ArrayLike | None = None,
        relevance: ArrayLike | None = None,
    ) -> CandidateBlock:
        """The same checks as :class:`Candidates`, on whole arrays; ``vectors`` come from :func:`as_unit_rows`.

        No user reads the message of an error: :class:`Candidates` of each query say which one is wrong, and why.
        """
        # A float64 value too large for float32 becomes inf, which as_unit_rows refuses.
        with np.errstate(over="ignore"):
            given = as_numeric(queries, "queries").astype(vectors.dtype, copy=False)
        units = as_unit_rows(given)
        fits = units.shape[1:] == vectors.shape[2:] and len(vectors) in (1, len(units))
        if not fits or not units.any(axis=1).all():
            raise InvalidInputError("a query is zero, or does not fit the vectors")
        columns = None if quality is None else np.atleast_2d(as_float64(quality, "quality"))
        if relevance is None:
            known: FloatArray = np.ascontiguousarray(np.matmul(vectors, units[:, :, None])[:, :, 0])
        else:
            known = as_float64(relevance, "relevance")
        for column, shape in ((columns, vectors.shape[:2]), (known, (len(units), vectors.shape[1]))):
            if column is not None and (column.shape != shape or not np.isfinite(column).all()):
                raise InvalidInputError(f"quality and relevance must have finite values, of shape {shape}")
        # Read-only as in Candidates: for writeable rows numba would compile its loops again.
        return cls(units, read_only(vectors[:]), known, relevance is not None, columns)


def cosines_with_queries(candidates: Candidates | CandidateBlock) -> NDArray[np.float64]:
    """Cosine of each candidate with each query, shape (q, n), float64; (1, b, n) for a block of b queries."""
    # vecdot computes each row alone, unlike the matrix product of Candidates.relevance, so copies of a row get exactly
    # the same cosine. The logarithm of a small cosine, or a low temperature, would enlarge a difference.
    cosines: NDArray[np.float64] = np.vecdot(candidates.vectors, candidates.queries[:, None]).astype(np.float64)
    return cosines if isinstance(candidates, Candidates) else cosines[None]


def standardise(
    values: NDArray[np.float64], dtype: np.dtype[Any] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(values - mean) / σ and 1 / σ over the last axis, where σ is the standard deviation; 0 if σ is 0 up to rounding.

    If the values are cosines, ``dtype`` is that of the vectors. None means numbers of any size.
    """
    size: Any = 1.0
    if dtype is None:
        # Squares of very large or very small numbers would overflow or underflow. A power of two rounds nothing.
        size, exponent = np.frexp(np.abs(values).max(axis=-1, keepdims=True))
        values = np.ldexp(values, -exponent)
    n = values.shape[-1]
    centred = values
    # The first mean has a rounding error, which counts if the values hardly differ.
    for _ in range(2):
        centred = centred - np.add.reduce(centred, axis=-1, keepdims=True) / n
    sigma = np.sqrt(np.vecdot(centred, centred) / n)[..., None]
    flat = sigma <= size * TIE_TOLERANCE[dtype or centred.dtype]
    per_sigma = (1.0 - flat) / (sigma + flat)
    return centred * per_sigma, per_sigma
