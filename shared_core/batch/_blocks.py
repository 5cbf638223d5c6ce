"""Queries and their candidates, block by block, from arrays, memory maps and iterators."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import as_numeric, working_dtype
from ..candidates import Candidates
from ..errors import InvalidInputError

Blocks = ArrayLike | Iterator[ArrayLike]


@dataclass(frozen=True)
class Block:
    """The queries from number ``start`` on, and what each of them chooses from."""

    start: int
    queries: NDArray[Any]
    shared: Candidates | None
    vectors: NDArray[Any] | None
    quality: NDArray[Any] | None

    @property
    def shape(self) -> tuple[int, int]:
        """How many each query chooses from, and of how many dimensions."""
        rows = self.vectors if self.shared is None else self.shared.rows_and_inverse()[0]
        assert rows is not None
        return rows.shape[-2], rows.shape[-1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: what the choice is made in."""
        if self.shared is not None:
            return self.shared.dtype
        assert self.vectors is not None
        return working_dtype(self.vectors.dtype)

    @property
    def has_quality(self) -> bool:
        """Whether candidates bring a quality."""
        return (self.quality if self.shared is None else self.shared.quality) is not None

    def candidates(self, i: int) -> Candidates:
        """What query ``start + i`` chooses from."""
        if self.shared is not None:
            return self.shared.with_query(self.queries[i])
        assert self.vectors is not None
        return Candidates.borrow(
            self.queries[i], self.vectors[i], quality=None if self.quality is None else self.quality[i]
        )

    def __len__(self) -> int:
        return len(self.queries)


@dataclass(frozen=True)
class QueryBlocks:
    """The blocks in their order, and how many queries they hold together where that is known."""

    blocks: Iterator[Block]
    total: int | None

    def __iter__(self) -> Iterator[Block]:
        return self.blocks


def blocks_of(
    queries: Blocks, vectors: Blocks, quality: Blocks | None, ids: Iterable[Hashable] | None, size: int
) -> QueryBlocks:
    """Check what can be checked before the first block, and cut.

    Raises
    ------
    InvalidInputError
        Shapes do not agree, or something is no numbers; of iterators when the block comes.

    Examples
    --------
    >>> import numpy as np
    >>> [len(block) for block in blocks_of(np.ones((5, 2)), np.eye(2), None, None, 2)]
    [2, 2, 1]
    """
    given = queries if isinstance(queries, Iterator) else _queries(queries)
    rows = vectors if isinstance(vectors, Iterator) else as_numeric(vectors, "vectors")
    total = None if isinstance(given, Iterator) else len(given)
    if not isinstance(rows, Iterator) and rows.ndim != 3:
        if isinstance(quality, Iterator):
            raise InvalidInputError("quality in blocks goes with candidates of each query's own, vectors (Q, n, d)")
        return QueryBlocks(_sharing(given, rows, quality, ids, size), total)
    if ids is not None:
        raise InvalidInputError("ids go with shared candidates, vectors of shape (n, d)")
    if isinstance(quality, Iterator) and not isinstance(given, Iterator) and not isinstance(rows, Iterator):
        raise InvalidInputError("quality in blocks goes with queries or vectors in blocks: give it whole, (Q, n), here")
    columns = quality if quality is None or isinstance(quality, Iterator) else as_numeric(quality, "quality")
    if not isinstance(rows, Iterator):
        if total is None:
            total = len(rows)
        elif not isinstance(given, Iterator) and len(rows) != total:
            raise InvalidInputError(f"queries {given.shape} and vectors {rows.shape} must be as many")
        if columns is not None and not isinstance(columns, Iterator) and columns.shape != rows.shape[:2]:
            raise InvalidInputError(f"quality must have shape {rows.shape[:2]}, got {columns.shape}")
    return QueryBlocks(_owning(given, rows, columns, size), total)


def _sharing(
    queries: NDArray[Any] | Iterator[ArrayLike],
    rows: NDArray[Any],
    quality: ArrayLike | None,
    ids: Iterable[Hashable] | None,
    size: int,
) -> Iterator[Block]:
    # A query of no account: what is wrong with the candidates is no query's fault.
    shared = Candidates.borrow(np.ones(rows.shape[-1:]), rows, quality=quality, ids=ids)
    start = 0
    for block in _cut_queries(queries, size):
        yield Block(start, block, shared, None, None)
        start += len(block)


def _owning(
    queries: NDArray[Any] | Iterator[ArrayLike],
    rows: NDArray[Any] | Iterator[ArrayLike],
    columns: NDArray[Any] | Iterator[ArrayLike] | None,
    size: int,
) -> Iterator[Block]:
    start = 0
    for block, vectors in _paired(queries, rows, size):
        if vectors.ndim != 3 or len(vectors) != len(block):
            raise InvalidInputError(
                f"vectors: the block from query {start} on must have shape ({len(block)}, n, d), one set for each of "
                f"its queries, got {vectors.shape}"
            )
        quality = None
        if columns is not None:
            quality = (
                _next(columns, "quality", start) if isinstance(columns, Iterator) else columns[start:][: len(block)]
            )
            if quality.shape != vectors.shape[:2]:
                raise InvalidInputError(
                    f"quality: the block from query {start} on must have shape {vectors.shape[:2]}, got {quality.shape}"
                )
        yield Block(start, block, None, vectors, quality)
        start += len(block)
    for what, rest in (("vectors", rows), ("quality", columns)):
        if isinstance(rest, Iterator) and next(rest, None) is not None:
            raise InvalidInputError(f"{what}: there are more blocks than the {start} queries have")
    if columns is not None and not isinstance(columns, Iterator) and len(columns) != start:
        raise InvalidInputError(f"queries are {start} and quality {columns.shape}: they must be as many")


def _paired(
    queries: NDArray[Any] | Iterator[ArrayLike], rows: NDArray[Any] | Iterator[ArrayLike], size: int
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    start = 0
    if isinstance(queries, Iterator) or not isinstance(rows, Iterator):
        for block in _cut_queries(queries, size):
            vectors = _next(rows, "vectors", start) if isinstance(rows, Iterator) else rows[start : start + len(block)]
            yield block, vectors
            start += len(block)
        if not isinstance(rows, Iterator) and start != len(rows):
            raise InvalidInputError(f"queries are {start} and vectors {rows.shape}: they must be as many")
        return
    # The blocks of vectors say how the queries are cut.
    while start < len(queries):
        vectors = _next(rows, "vectors", start)
        # What has no length of its own, and an empty block, is told by the caller.
        yield queries[start : start + max(1, len(vectors) if vectors.ndim else 1)], vectors
        start += len(vectors)


def _cut_queries(queries: NDArray[Any] | Iterator[ArrayLike], size: int) -> Iterator[NDArray[Any]]:
    if not isinstance(queries, Iterator):
        for start in range(0, len(queries), size):
            yield queries[start : start + size]
        return
    number = 0
    for given in queries:
        block = _queries(given, f" (the block from query {number} on)")
        number += len(block)
        yield block
    if not number:
        raise InvalidInputError("queries: the iterator is empty; it must yield blocks of shape (b, d)")


def _queries(values: ArrayLike, where: str = "") -> NDArray[Any]:
    array = as_numeric(values, "queries" + where)
    if array.ndim != 2 or not len(array):
        raise InvalidInputError(f"queries{where} must have shape (Q, d) with Q >= 1, got {array.shape}")
    return array


def _next(blocks: Iterator[ArrayLike], what: str, start: int) -> NDArray[Any]:
    try:
        block = next(blocks)
    except StopIteration:
        raise InvalidInputError(f"{what}: no block is left for the queries from {start} on") from None
    return as_numeric(block, f"{what} (the block from query {start} on)")
