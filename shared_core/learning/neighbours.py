"""The items nearest to items of one pool, without the item itself and its duplicates; exact, in bounded memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, as_numeric, read_only
from ..candidates import as_unit_rows, tie_tolerance, working_dtype
from ..errors import InvalidInputError

# Cosines held at once.
_BLOCK = 1 << 22
# Equal cosines, computed from vectors of different lengths, differ in the last bits.
_DECIMALS = 12


class Neighbours:
    """A pool of items, and who is near to whom by cosine.

    Duplicates are items with the same ``question`` and ``answer`` (equal in everything, where one of the two is
    missing), and items whose vectors have the same direction but for rounding.

    Parameters
    ----------
    items : sequence of n mappings
        Their values should be plain (JSON); others are compared by their ``repr``.
    vectors : array-like, shape (n, d)
        Their embeddings, of any length.

    Attributes
    ----------
    items : list of n mappings
        As given.

    Raises
    ------
    InvalidInputError
        An item is no mapping or contains itself, vectors are not numbers of shape (n, d), or hold NaN or inf; the
        message names the row.

    Examples
    --------
    >>> items = [{"question": q, "answer": "a"} for q in ("x", "y", "y", "z")]
    >>> pool = Neighbours(items, [[1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    >>> [rows.tolist() for rows in pool.nearest([0, 1], 3)]
    [[1, 2, 3], [0, 3]]
    """

    def __init__(self, items: Sequence[Mapping[str, Any]], vectors: ArrayLike) -> None:
        self.items = list(items)
        rows = as_numeric(vectors, "vectors")
        if rows.ndim != 2 or 0 in rows.shape or len(rows) != len(self.items):
            raise InvalidInputError(
                f"vectors must have shape (n, d), a row for each of the {len(self.items)} items and d >= 1, "
                f"got {rows.shape}"
            )
        self._given = rows.astype(working_dtype(rows.dtype), order="C", copy=False)
        self._rows = as_unit_rows(self._given, copy=False)
        self._digest = hashlib.sha256()
        same: dict[str, list[int]] = {}
        for row, item in enumerate(self.items):
            whole = _text(item, row)
            self._digest.update(whole.encode() + b"\n")
            same.setdefault(_pair(item, row) or whole, []).append(row)
        self._same = {row: group for group in same.values() if len(group) > 1 for row in group}

    def __len__(self) -> int:
        return len(self.items)

    def groups(self, queries: Sequence[int]) -> list[list[int]]:
        """These rows in groups of duplicates, in the order of their first; most groups have one row.

        What is a duplicate of a duplicate is in the group. Cost: O(Q² d) in the vectors' type.

        >>> items = [{"question": q, "answer": "a"} for q in ("x", "y", "y", "z")]
        >>> Neighbours(items, [[1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [2.0, 0.0]]).groups([0, 1, 2, 3])
        [[0, 3], [1, 2]]
        """
        rows = np.asarray(queries, dtype=np.int64)
        place = {row: n for n, row in enumerate(rows.tolist())}
        leader = list(range(len(rows)))

        def lead(n: int) -> int:
            while leader[n] != n:
                leader[n] = leader[leader[n]]
                n = leader[n]
            return n

        for n, (row, cosines) in enumerate(self._cosines(rows.tolist(), rows)):
            slack, equal = self._equal(cosines.dtype)
            near = rows[np.flatnonzero(cosines >= equal - slack)]
            alike = near[self._exact(row, near) >= equal].tolist()
            for other in (*alike, *self._same.get(row, ())):
                if other in place:
                    one, two = sorted((lead(n), lead(place[other])))
                    leader[two] = one
        found: dict[int, list[int]] = {}
        for n, row in enumerate(rows.tolist()):
            found.setdefault(lead(n), []).append(row)
        return list(found.values())

    def sha256(self) -> str:
        """What tells these items and vectors from others.

        >>> Neighbours([{"a": 1}], [[1.0]]).sha256() == Neighbours([{"a": 2}], [[1.0]]).sha256()
        False
        """
        digest = self._digest.copy()
        digest.update(f"{self._given.dtype.str} {self._given.shape}\n".encode())
        digest.update(self._given.data)
        return digest.hexdigest()

    def nearest(self, queries: Sequence[int], count: int) -> list[NDArray[np.int64]]:
        """For each query row the ``count`` rows of the highest cosine with it, or all there are.

        A query's rows do not depend on the other queries. Cost: O(Q n d) in the vectors' type.

        Returns
        -------
        list of int64 arrays, read-only
            Nearest first, ties to the lower row; without the query and its duplicates.

        Raises
        ------
        InvalidInputError
            A query's vector is zero.
        """
        for row in queries:
            if not self._rows[row].any():
                raise InvalidInputError(
                    f"vectors: row {row} is zero, so nothing is near to it; leave it out of queries"
                )
        return [read_only(self._of(row, cosines, count)) for row, cosines in self._cosines(queries)]

    def _cosines(
        self, queries: Sequence[int], among: NDArray[np.int64] | None = None
    ) -> Iterator[tuple[int, FloatArray]]:
        rows = self._rows if among is None else self._rows[among]
        step = max(1, _BLOCK // len(rows))
        for start in range(0, len(queries), step):
            block = np.asarray(queries[start : start + step], dtype=np.int64)
            cosines = self._rows[block] @ rows.T
            yield from zip(block.tolist(), cosines, strict=True)

    def _equal(self, dtype: np.dtype[Any]) -> tuple[float, float]:
        """How far a product of matrices may be from a cosine, and from which cosine on vectors are equal."""
        return (self._rows.shape[1] + 16) * float(np.finfo(dtype).eps), 1 - tie_tolerance(dtype)

    def _of(self, query: int, cosines: FloatArray, count: int) -> NDArray[np.int64]:
        # A product of matrices rounds a row's cosine one way or another, by what stands beside it in the block: it
        # only says what may be near. What is near is told by cosines that depend on the two rows alone.
        slack, equal = self._equal(cosines.dtype)
        cosines[query] = -np.inf
        cosines[self._same.get(query, [])] = -np.inf
        alike = np.flatnonzero(cosines >= equal - slack)
        cosines[alike[self._exact(query, alike) >= equal]] = -np.inf
        left = int(np.count_nonzero(cosines > -np.inf))
        if not left:
            return np.empty(0, dtype=np.int64)
        border = len(cosines) - min(count, left)
        least = np.partition(cosines, border)[border]
        near = np.flatnonzero((cosines >= least - slack) & (cosines > -np.inf))
        order = np.lexsort((near, -np.round(self._exact(query, near), _DECIMALS)))
        return near[order[:count]].astype(np.int64)

    def _exact(self, query: int, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        unit = _unit(self._given[query : query + 1])[0]
        step = max(1, _BLOCK // len(unit))
        parts = [_unit(self._given[rows[at : at + step]]) * unit for at in range(0, len(rows), step)]
        return np.concatenate([np.empty(0), *(part.sum(axis=1) for part in parts)])


def _unit(rows: FloatArray) -> NDArray[np.float64]:
    wide = rows.astype(np.float64)
    # Values of 1e200 overflow in a square.
    largest = np.abs(wide).max(axis=1, keepdims=True)
    wide /= np.where(largest > 0, largest, 1)
    lengths = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    wide /= np.where(lengths > 0, lengths, 1)
    return wide


def _pair(item: Mapping[str, Any], row: int) -> str | None:
    if "question" in item and "answer" in item:
        return _text({"question": item["question"], "answer": item["answer"]}, row)
    return None


def _text(item: Mapping[str, Any], row: int) -> str:
    """The same text for equal items, in whatever order their keys are."""
    if not isinstance(item, Mapping):
        raise InvalidInputError(f"items: row {row} is {item!r}; every item must be a mapping (question, answer, ...)")
    try:
        return json.dumps(dict(item), sort_keys=True, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"items: row {row} cannot be compared with others: {error}") from error


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else repr(value)
