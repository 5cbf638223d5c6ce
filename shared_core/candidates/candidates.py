"""The query and candidates of one selection, checked and of unit length."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, ReadOnlyArrays, as_column, as_numeric, check_ranges, read_only
from .._values import as_names, as_optional, as_ranks
from ..errors import InvalidInputError
from .parts import Parts, References, as_parts, as_references
from .unit_vectors import as_unit_queries, unit_rows

# The arguments of Candidates that forbid picks. The adapters and select pass them on by name.
CONSTRAINTS = ("max_per_source", "drop_near_duplicates")


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Candidates(ReadOnlyArrays):
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
        How good each candidate is by itself, for :class:`MMR`.
    words : Parts, optional
        The words of the question, and how well each candidate's text covers them, for :class:`Coverage`;
        :func:`match_words` makes them.
    references : References, or array-like, shape (n, n), in [0, 1], optional
        How clearly the text of candidate i refers to candidate j, for :class:`Coverage`; :func:`find_references` makes
        them. With an array each candidate has a name of its own.
    cover : array of shape (n, m) in [0, 1], or n values, or Parts, optional
        Further parts that the set has to cover, for :class:`Coverage`: how well each candidate covers each part, or the
        value of each candidate (its label, for example), or its values as a list. A missing value covers nothing.
    ids : iterable of n hashables, optional
        Names of the candidates, for messages and for a :class:`LowRankKernel`.
    costs : array-like, shape (n,), optional
        What each candidate takes from a ``budget`` (its tokens, for example); at least 0.
    sources : iterable of n hashables, optional
        Where each candidate comes from (the document of a passage, for example). A candidate whose source is missing
        (None, NaN, NaT, NA, blank text) is a source of its own.
    max_per_source : int, optional
        The most candidates of one source that may be picked, shown ones included. Needs ``sources``.
    drop_near_duplicates : float in [-1, 1], optional
        No candidate is picked whose cosine with a picked or shown one is above this.
    prefer : iterable of n numbers or dates, optional
        Which one of near-duplicates may be picked: the one with the highest value (the newest, for example), at any
        gain. A date may be a datetime, or a string as ISO, mail or PDF write it. A missing value is the lowest. One
        that cannot be picked itself does not count. Needs ``drop_near_duplicates``.
    copy : bool
        False: vectors that have unit length already are not copied. The caller must not change them while the
        candidates are in use.

    Attributes
    ----------
    query, questions, vectors : ndarray, shapes (d,), (q, d) and (n, d), float32 or float64
        Copies at unit length. The query is the first of the questions; q = 1 without sub-questions.
    cosines : ndarray, shape (q, n), float32 or float64
        The cosine of each question with each candidate.
    relevance : ndarray, shape (n,), float32 or float64
        What was given; else the highest cosine of each candidate with one of the questions.
    relevance_given : bool
        Whether ``relevance`` was given.
    prefer : ndarray, shape (n,), int64, or None
        The ranks of what was given.

    Raises
    ------
    InvalidInputError, InvalidParameterError
        An argument is wrong; the message says which one, what is wrong, and in which row.

    Examples
    --------
    >>> from setselect import Candidates
    >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]])
    >>> c.relevance.tolist()
    [1.0, 0.0]
    """

    questions: FloatArray
    vectors: FloatArray
    cosines: FloatArray
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
        rows = unit_rows(given, copy, ids=names)
        units = as_unit_queries(query, rows.shape, rows.dtype)
        constraints: dict[str, Any] = dict.fromkeys(CONSTRAINTS)
        if max_per_source is not None or drop_near_duplicates is not None:
            constraints = check_constraints(max_per_source, drop_near_duplicates, has_sources=sources is not None)
        self.__dict__.update(
            # A view, because the caller's own array must stay writeable.
            vectors=read_only(rows[:]),
            **_measure_relevance(rows, units, None if relevance is None else as_column(relevance, n, "relevance")),
            quality=None if quality is None else as_column(quality, n, "quality"),
            words=None if words is None else as_parts(words, n, "words"),
            references=None if references is None else as_references(references, n),
            cover=None if cover is None else as_parts(cover, n, "cover"),
            ids=names,
            costs=None if costs is None else as_column(costs, n, "costs", least=0),
            sources=None if sources is None else _as_sources(sources, n),
            prefer=None if prefer is None else as_ranks(prefer, n, "prefer"),
            **constraints,
        )

    def with_query(self, query: ArrayLike, relevance: ArrayLike | None = None, **values: Any) -> Candidates:
        """The same candidates for another query; the rows are shared. ``values`` are those of :meth:`with_values`.

        If no relevance is given, and none was given before, it is the cosine with ``query``.
        """
        units = as_unit_queries(query, self.vectors.shape, self.dtype)
        other = self.with_values(relevance, **values)
        given = other.relevance if other.relevance_given else None
        return other.with_checked(**_measure_relevance(self.vectors, units, given))

    def with_values(
        self,
        relevance: ArrayLike | None = None,
        words: Parts | None = None,
        references: References | ArrayLike | None = None,
    ) -> Candidates:
        """The same candidates with these values in place of what was given before; None stays as it was."""
        changes: dict[str, Any] = {}
        if relevance is not None:
            changes = {"relevance": as_column(relevance, len(self), "relevance"), "relevance_given": True}
        if words is not None:
            changes["words"] = as_parts(words, len(self), "words")
        if references is not None:
            changes["references"] = as_references(references, len(self))
        return self.with_checked(**changes)

    def with_vectors(self, query: ArrayLike, vectors: ArrayLike) -> Candidates:
        """The same candidates with other vectors and another query; InvalidInputError if their number differs."""
        other = Candidates(query, vectors)
        if len(other) != len(self):
            raise InvalidInputError(f"vectors must have {len(self)} rows, one for each candidate, got {len(other)}")
        given = self.relevance if self.relevance_given else None
        return self.with_checked(vectors=other.vectors, **_measure_relevance(other.vectors, other.questions, given))

    def take(self, rows: ArrayLike) -> Candidates:
        """The candidates at these rows, in this order, with the same query."""
        index = _as_rows(rows, len(self))
        taken: dict[str, Any] = {"cosines": read_only(self.cosines[:, index])}
        for name in ("vectors", "relevance", "quality", "costs", "prefer"):
            column = getattr(self, name)
            taken[name] = None if column is None else read_only(column[index])
        for name in ("words", "cover"):
            parts = getattr(self, name)
            taken[name] = None if parts is None else parts.take(index)
        if self.references is not None:
            taken["references"] = self.references.take(index)
        for name in ("ids", "sources"):
            names = getattr(self, name)
            taken[name] = None if names is None else tuple(names[i] for i in index)
        return self.with_checked(**taken)

    @property
    def query(self) -> FloatArray:
        """The first of the questions."""
        first: FloatArray = self.questions[0]
        return first

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: the dtype of the vectors and of what is computed from them."""
        return self.vectors.dtype

    def with_checked(self, **changes: Any) -> Candidates:
        """The same candidates with these attributes, which are checked and read-only already."""
        other = object.__new__(Candidates)
        other.__dict__.update(self.__dict__, **changes)
        return other

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        n, d = self.vectors.shape
        extras = [f"{len(self.questions)} questions"] if len(self.questions) > 1 else []
        extras += ["relevance"] if self.relevance_given else []
        extras += [
            name
            for name in ("quality", "words", "references", "cover", "ids", "costs", "sources", "prefer")
            if getattr(self, name) is not None
        ]
        return f"Candidates(n={n}, d={d}, {self.dtype}{''.join(', ' + e for e in extras)})"


def check_constraints(
    max_per_source: int | None, drop_near_duplicates: float | None, *, has_sources: bool
) -> dict[str, Any]:
    """The ``CONSTRAINTS`` as arguments; an error if one is out of range, or if it needs sources and there are none."""
    if max_per_source is not None and not has_sources:
        raise InvalidInputError("max_per_source needs sources, one for each candidate")
    return check_ranges({"max_per_source": max_per_source, "drop_near_duplicates": drop_near_duplicates})


def _as_sources(sources: Iterable[Hashable], n: int) -> tuple[Hashable, ...]:
    """``sources`` as a tuple; None for a candidate without one, which :class:`PerSource` takes for a source."""
    return tuple(as_optional(as_names(sources, n, "sources")))


def _as_rows(values: ArrayLike, n: int) -> NDArray[np.intp]:
    """``values`` as a list of row numbers below ``n``."""
    rows = as_numeric(values, "rows")
    # numpy makes an empty list an array of floats.
    if rows.ndim != 1 or (rows.size and rows.dtype.kind == "f"):
        raise InvalidInputError(f"rows must be a list of row numbers, got shape {rows.shape} and dtype {rows.dtype}")
    if rows.size and not 0 <= rows.min() <= rows.max() < n:
        raise InvalidInputError(f"rows must be in 0..{n - 1}, got {rows.min()}..{rows.max()}")
    return rows.astype(np.intp)


def _measure_relevance(rows: FloatArray, units: FloatArray, given: FloatArray | None) -> dict[str, Any]:
    """The attributes that compare unit rows with unit queries; ``given`` is a relevance in place of the cosine."""
    # vecdot computes each row alone, unlike a matrix product, so copies of a row get exactly the same cosine. The
    # logarithm of a small cosine, or a low temperature, would enlarge a difference.
    cosines = read_only(np.vecdot(rows, units[:, None]))
    highest = cosines[0] if len(cosines) == 1 else read_only(cosines.max(axis=0))
    relevance = highest if given is None else given
    return {"questions": units, "cosines": cosines, "relevance": relevance, "relevance_given": given is not None}
