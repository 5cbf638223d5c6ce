"""Queries and their candidates, block by block, from arrays, memory maps and iterators."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import as_numeric
from ..candidates import CandidateBlock, Candidates, as_unit_rows, working_dtype
from ..errors import InvalidInputError

Blocks = ArrayLike | Iterator[ArrayLike]
_Column = NDArray[Any] | Iterator[ArrayLike]
# Queries' own candidates are validated in pieces of this size. A piece fits into the processor's cache, and a memory
# map as a whole may not fit into memory.
MAX_BYTES = 4 << 20


def max_queries(size: int) -> int:
    """The number of queries in a piece if the candidates of each take ``size`` bytes."""
    return max(1, MAX_BYTES // max(1, size))


@dataclass(frozen=True)
class Block:
    """Queries (b, d), numbered from ``start`` on, with shared candidates or with their own (b, n, d)."""

    start: int
    queries: NDArray[Any]
    shared: Candidates | None = None
    vectors: NDArray[Any] | None = None
    quality: NDArray[Any] | None = None
    relevance: NDArray[Any] | None = None

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
        columns = (self.vectors, self.quality, self.relevance)
        own = (None if column is None else column[part] for column in columns)
        return Block(self.start + part.start, self.queries[part], self.shared, *own)

    def validate(self) -> CandidateBlock:
        """The whole block for a compiled loop. If any part is wrong, an InvalidInputError is raised."""
        if self.shared is not None:
            rows, quality = self.shared.vectors[None], self.shared.quality
        else:
            assert self.vectors is not None
            rows, quality = as_unit_rows(self.vectors, copy=False), self.quality
        return CandidateBlock.validate(self.queries, rows, quality, self.relevance)

    def candidates(self, i: int) -> Candidates:
        """The candidates of query ``start + i``."""
        relevance = None if self.relevance is None else self.relevance[i]
        if self.shared is not None:
            return self.shared.with_query(self.queries[i], relevance)
        assert self.vectors is not None
        quality = None if self.quality is None else self.quality[i]
        return Candidates(self.queries[i], self.vectors[i], relevance=relevance, quality=quality, copy=False)


def read_blocks(
    queries: Blocks,
    vectors: Blocks,
    quality: Blocks | None,
    relevance: Blocks | None,
    ids: Iterable[Hashable] | None,
    size: int,
) -> tuple[Iterator[Block], int | None]:
    """The blocks in order, and the number of queries if it is known. Blocks of arrays have ``size`` queries."""
    columns: dict[str, _Column] = {"queries": queries if isinstance(queries, Iterator) else _as_queries(queries)}
    rows = vectors if isinstance(vectors, Iterator) else as_numeric(vectors, "vectors")
    shared = None
    if not isinstance(rows, Iterator) and rows.ndim != 3:
        if isinstance(quality, Iterator):
            raise InvalidInputError("quality in blocks needs candidates of each query's own: vectors (Q, n, d)")
        # Block.candidates replaces this query of ones by each query.
        shared = Candidates(np.ones(rows.shape[-1:]), rows, quality=quality, ids=ids, copy=False)
    else:
        if ids is not None:
            raise InvalidInputError("ids are for shared candidates: vectors of shape (n, d)")
        columns["vectors"] = rows
        if quality is not None:
            columns["quality"] = quality if isinstance(quality, Iterator) else as_numeric(quality, "quality")
    if relevance is not None:
        columns["relevance"] = relevance if isinstance(relevance, Iterator) else as_numeric(relevance, "relevance")
    arrays = {name: column for name, column in columns.items() if not isinstance(column, Iterator)}
    if len({array.shape[:1] for array in arrays.values()}) > 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InvalidInputError(f"{shapes}: they must have a row for each query")
    total = next((len(array) for array in arrays.values()), None)
    return _read(columns, shared, total, size), total


def _read(columns: dict[str, _Column], shared: Candidates | None, total: int | None, size: int) -> Iterator[Block]:
    # The first iterator determines the length of each block.
    leader = next((name for name, column in columns.items() if isinstance(column, Iterator)), None)
    start = 0
    while leader is not None or start != total:
        parts: dict[str, NDArray[Any]] = {}
        for name, column in sorted(columns.items(), key=lambda item: item[0] != leader):
            if isinstance(column, Iterator):
                given = next(column, None)
                if given is None and name == leader:
                    break
                if given is None:
                    raise InvalidInputError(f"{name}: no block is left for the queries from {start} on")
                where = f" (the block from query {start} on)"
                part = _as_queries(given, where) if name == "queries" else as_numeric(given, name + where)
                # An empty block, or one without a length, is refused by its shape below.
                size = max((1, *part.shape[:1])) if name == leader else size
            else:
                part = column[start : start + size]
            parts[name] = part
        if not parts:
            break
        if not len(parts["queries"]):
            raise InvalidInputError(f"{leader}: there are more blocks than the {start} queries need")
        block = Block(start, shared=shared, **parts)
        _check_shapes(block)
        yield block
        start += len(block)
    if not start:
        raise InvalidInputError(f"{leader}: the iterator is empty; it must yield blocks, one row for each query")
    for name, column in columns.items():
        if isinstance(column, Iterator):
            if next(column, None) is not None:
                raise InvalidInputError(f"{name}: there are more blocks than the {start} queries need")
        elif len(column) != start:
            raise InvalidInputError(
                f"the blocks of {leader} have {start} rows, {name} has shape {column.shape}: they must have the "
                "same number of rows"
            )


def _check_shapes(block: Block) -> None:
    vectors, quality, relevance = block.vectors, block.quality, block.relevance
    where = f"the block from query {block.start} on must have shape"
    if vectors is not None and (vectors.ndim != 3 or len(vectors) != len(block)):
        raise InvalidInputError(
            f"vectors: {where} ({len(block)}, n, d), one set for each of its queries, got {vectors.shape}"
        )
    if vectors is not None and quality is not None and quality.shape != vectors.shape[:2]:
        raise InvalidInputError(f"quality: {where} {vectors.shape[:2]}, got {quality.shape}")
    n = len(block.shared) if block.shared is not None else vectors.shape[1] if vectors is not None else 0
    if relevance is not None and relevance.shape != (len(block), n):
        raise InvalidInputError(f"relevance: {where} ({len(block)}, {n}), got {relevance.shape}")


def _as_queries(values: ArrayLike, where: str = "") -> NDArray[Any]:
    array = as_numeric(values, "queries" + where)
    if array.ndim != 2 or not len(array):
        raise InvalidInputError(f"queries{where} must have shape (Q, d) with Q >= 1, got {array.shape}")
    return array
