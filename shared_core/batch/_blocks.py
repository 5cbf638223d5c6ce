"""Queries and their candidates, block by block, from arrays, memory maps and iterators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import as_float64, as_numeric, quoted
from ..candidates import CandidateBlock, Candidates, Parts, References, as_unit_rows, working_dtype
from ..errors import InvalidInputError
from ..scaling import Scale, rescale

Blocks = ArrayLike | Iterator[ArrayLike]
Queries = Blocks | Sequence[ArrayLike] | Iterator[Sequence[ArrayLike]]
Words = Sequence[Parts] | Iterator[Sequence[Parts]]
Named = References | ArrayLike | Sequence[References] | Iterator[Sequence[References | ArrayLike]]
# The arguments of select_many that hold something of each candidate.
COLUMNS = ("words", "references", "cover", "relevance", "quality", "ids")
# Queries' own candidates are validated in pieces of this size. A piece fits into the processor's cache, and a memory
# map as a whole may not fit into memory.
MAX_BYTES = 4 << 20


def max_queries(size: int) -> int:
    """The number of queries in a piece if the candidates of each take ``size`` bytes."""
    return max(1, MAX_BYTES // max(1, size))


@dataclass(frozen=True)
class Block:
    """Queries, numbered from ``start`` on, with shared candidates or with their own (b, n, d)."""

    start: int
    # (b, d); with sub-questions (b, q, d), or an array of b arrays (q_i, d).
    queries: NDArray[Any]
    shared: Candidates | None = None
    vectors: NDArray[Any] | None = None
    # Quality, relevance, words and references: a row for each query.
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.queries)

    def split(self, length: int) -> list[Block]:
        """Pieces of at most ``length`` queries, or fewer if the candidates of these take more than MAX_BYTES."""
        if self.shared is not None:
            # The shared rows are validated once. Each further query adds only its relevance.
            size = self.shared.relevance.nbytes
        else:
            assert self.vectors is not None
            size = self.vectors[0].size * working_dtype(self.vectors.dtype).itemsize
        length = min(length, max_queries(size))
        return [self._take(slice(i, i + length)) for i in range(0, len(self), length)]

    def _take(self, part: slice) -> Block:
        vectors = None if self.vectors is None else self.vectors[part]
        columns = {name: column[part] for name, column in self.columns.items()}
        return Block(self.start + part.start, self.queries[part], self.shared, vectors, columns)

    def scaled(self, scale: Scale | None) -> Block:
        """The block with its given relevance scaled, query by query."""
        if "relevance" not in self.columns:
            return self
        relevance = as_float64(self.columns["relevance"], "relevance")
        # Numbers that are not finite are left as they are. The selection of their query refuses them and names it.
        if not np.isfinite(relevance).all():
            return self
        return replace(self, columns={**self.columns, "relevance": rescale(relevance, scale)})

    @property
    def has_several(self) -> bool:
        """Whether each question has a row for each of its queries."""
        return self.queries.ndim != 2

    @property
    def needs_candidates(self) -> bool:
        """Whether there is what a :class:`CandidateBlock` does not hold: words, references, parts, or sub-questions."""
        shared = self.shared is not None and not (self.shared.cover is None and self.shared.references is None)
        return shared or self.has_several or not self.columns.keys().isdisjoint(("words", "references"))

    def validate(self) -> CandidateBlock:
        """The whole block for a compiled loop. If any part is wrong, an InvalidInputError is raised."""
        quality, relevance = self.columns.get("quality"), self.columns.get("relevance")
        if self.shared is not None:
            return CandidateBlock.validate(self.queries, self.shared.vectors[None], self.shared.quality, relevance)
        assert self.vectors is not None
        return CandidateBlock.validate(self.queries, as_unit_rows(self.vectors, copy=False), quality, relevance)

    def candidates(self, i: int) -> Candidates:
        """The candidates of query ``start + i``."""
        own: dict[str, Any] = {name: column[i] for name, column in self.columns.items()}
        if self.shared is not None:
            return self.shared.with_query(self.queries[i], own.get("relevance"), own.get("words"))
        assert self.vectors is not None
        return Candidates(self.queries[i], self.vectors[i], **own, copy=False)


def read_blocks(
    queries: Queries, vectors: Blocks, columns: dict[str, Any], size: int
) -> tuple[Iterator[Block], int | None]:
    """The blocks in order, and the number of queries if it is known. Blocks of arrays have ``size`` queries."""
    given = {name: column for name, column in columns.items() if column is not None}
    of_shared: dict[str, Any] = {name: given.pop(name) for name in ("ids", "cover") if name in given}
    by_query = {"queries": _as_column(queries, "queries"), "vectors": _as_column(vectors, "vectors")}
    shared = None
    if not isinstance(by_query["vectors"], Iterator) and by_query["vectors"].ndim != 3:
        rows = by_query.pop("vectors")
        of_shared |= {name: given.pop(name) for name in ("quality", "references") if name in given}
        # Block.candidates replaces this query of ones by each query.
        shared = Candidates(np.ones(rows.shape[-1:]), rows, **of_shared, copy=False)
    elif of_shared:
        raise InvalidInputError(f"the argument {min(of_shared)} is for shared candidates: vectors of shape (n, d)")
    by_query |= {name: _as_column(column, name) for name, column in given.items()}
    streams = {name: column for name, column in by_query.items() if isinstance(column, Iterator)}
    arrays = {name: column for name, column in by_query.items() if name not in streams}
    if len({array.shape[:1] for array in arrays.values()}) > 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InvalidInputError(f"{shapes}: they must have a row for each query")
    total = next((len(array) for array in arrays.values()), None)
    if not streams:
        whole = arrays.pop("queries")
        _check_queries(whole, "queries", "Q")
        streams["queries"] = (whole[start : start + size] for start in range(0, len(whole), size))
    return _read(streams, arrays, shared), total


def _as_column(values: Any, name: str, where: str = "") -> Any:
    """An iterator as it is; numbers as an array; words, references, and queries (q_i, d) as an array of objects."""
    if isinstance(values, Iterator):
        return values
    if name == "queries":
        in_objects = isinstance(values, (list, tuple)) or getattr(values, "dtype", None) is np.dtype(object)
        if not in_objects or getattr(next(iter(values), None), "ndim", 0) != 2:
            return as_numeric(values, name + where)
        values = [as_numeric(rows, f"queries{where}: row {number}") for number, rows in enumerate(values)]
    elif name not in ("words", "references"):
        return as_numeric(values, name + where)
    elif isinstance(values, (Parts, References)):
        raise InvalidInputError(f"{name}{where} must be a sequence, one for each query, got those of one query")
    array = np.empty(len(values), object)
    for row, value in enumerate(values):
        if name == "words" and not isinstance(value, Parts):
            raise InvalidInputError(
                f"words{where}: row {row} is {quoted(value)}; match_words makes the words of a query"
            )
        array[row] = value
    return array


def _read(
    streams: dict[str, Iterator[ArrayLike]], arrays: dict[str, NDArray[Any]], shared: Candidates | None
) -> Iterator[Block]:
    """One block for each step of the iterators, with the rows of the arrays that belong to it."""
    start = 0
    for parts in zip_longest(*streams.values()):
        where = f" (the block from query {start} on)"
        columns = {}
        for name, part in zip(streams, parts, strict=True):
            if part is None:
                raise InvalidInputError(f"{name}: no block is left for the queries from {start} on")
            columns[name] = _as_column(part, name, where)
        length = len(np.atleast_1d(next(iter(columns.values()))))
        columns |= {name: array[start : start + length] for name, array in arrays.items()}
        block = Block(start, columns.pop("queries"), shared, columns.pop("vectors", None), columns)
        _check_shapes(block, where)
        yield block
        start += length
    if not start:
        raise InvalidInputError(f"{next(iter(streams))}: the iterator is empty; it must yield blocks")
    for name, array in arrays.items():
        if len(array) != start:
            raise InvalidInputError(f"{name} has {len(array)} rows, one for each query, but there are {start} queries")


def _check_queries(queries: NDArray[Any], name: str, b: str) -> None:
    if not len(queries.shape) or not len(queries) or (queries.ndim not in (2, 3) and queries.dtype != object):
        raise InvalidInputError(
            f"{name} must have shape ({b}, d) with {b} >= 1, or ({b}, q, d) for questions with sub-questions, got "
            f"{queries.shape}"
        )


def _check_shapes(block: Block, where: str) -> None:
    queries, vectors = block.queries, block.vectors
    _check_queries(queries, f"queries{where}", "b")
    if vectors is not None and (vectors.ndim != 3 or len(vectors) != len(queries)):
        raise InvalidInputError(
            f"vectors{where} must have shape ({len(queries)}, n, d), one set for each query, got {vectors.shape}"
        )
    n = len(block.shared or ()) if vectors is None else vectors.shape[1]
    for name, column in block.columns.items():
        if name in ("words", "references"):
            if len(column) != len(queries):
                raise InvalidInputError(f"{name}{where} must be {len(queries)}, one for each query, got {len(column)}")
        elif column.shape != (len(queries), n):
            raise InvalidInputError(f"{name}{where} must have shape {(len(queries), n)}, got {column.shape}")
