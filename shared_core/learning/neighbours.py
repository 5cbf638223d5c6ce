"""The nearest neighbours of the items of a pool, without the item and its duplicates; exact, in bounded memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, as_numeric, quoted, read_only
from ..candidates import TIE_TOLERANCE, as_unit_rows, working_dtype
from ..errors import InvalidInputError

# Cosines in memory at the same time.
_BLOCK = 1 << 22
# Cosines are rounded to this many decimals, because equal cosines of vectors of different lengths differ in the last
# bits.
_DECIMALS = 12


class Neighbours:
    """A pool of n items and their nearest neighbours by cosine, from vectors (n, d) of any length.

    :func:`label` says which items are duplicates. Values that JSON cannot store are compared by their ``repr``.
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
        questions: dict[str, list[int]] = {}
        for row, item in enumerate(self.items):
            whole = _as_text(item, row)
            self._digest.update(whole.encode() + b"\n")
            pair = {key: item[key] for key in ("question", "answer") if key in item}
            same.setdefault(_as_text(pair, row) if len(pair) == 2 else whole, []).append(row)
            if isinstance(item.get("question"), str):
                questions.setdefault(_as_question(item["question"]), []).append(row)
        self._same = {row: group for group in same.values() if len(group) > 1 for row in group}
        self._asked = {row: group for group in questions.values() if len(group) > 1 for row in group}

    def __len__(self) -> int:
        return len(self.items)

    def groups(self, queries: Sequence[int]) -> list[list[int]]:
        """Q query rows in groups with all rows of the pool that repeat them, ordered by their first query: O(Q n d)."""
        leader = list(range(len(self)))

        def lead(n: int) -> int:
            while leader[n] != n:
                leader[n] = leader[leader[n]]
                n = leader[n]
            return n

        for row, cosines in self._cosines(queries):
            slack, equal = self._tolerances(cosines.dtype)
            near = np.flatnonzero(cosines >= equal - slack)
            alike = near[self._exact_cosines(row, near) >= equal].tolist()
            for other in (*alike, *self._same.get(row, ()), *self._asked.get(row, ())):
                leader[lead(other)] = lead(row)
        groups: dict[int, list[int]] = {lead(row): [] for row in queries}
        for row in range(len(self)):
            if lead(row) in groups:
                groups[lead(row)].append(row)
        return list(groups.values())

    def sha256(self) -> str:
        """A digest that identifies these items and vectors."""
        digest = self._digest.copy()
        digest.update(f"{self._given.dtype.str} {self._given.shape}\n".encode())
        digest.update(self._given.data)
        return digest.hexdigest()

    def nearest(
        self, queries: Sequence[int], count: int, among: Sequence[int] | None = None
    ) -> list[NDArray[np.int64]]:
        """For each of Q query rows up to ``count`` rows (of ``among``) with the highest cosine, int64: O(Q n d).

        The nearest row is first; ties go to the lower row. The query and its duplicates are left out.
        """
        left_out = np.zeros(len(self), dtype=bool)
        if among is not None:
            left_out[:] = True
            left_out[np.asarray(among, dtype=np.int64)] = False
        for row in queries:
            if not self._rows[row].any():
                raise InvalidInputError(
                    f"vectors: row {row} is zero, so it has no nearest items: embed it again, or leave the item out: "
                    f"{quoted(self.items[row])}"
                )
        return [read_only(self._nearest_of(row, cosines, count, left_out)) for row, cosines in self._cosines(queries)]

    def _cosines(self, queries: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
        step = max(1, _BLOCK // len(self))
        for start in range(0, len(queries), step):
            block = np.asarray(queries[start : start + step], dtype=np.int64)
            cosines = self._rows[block] @ self._rows.T
            yield from zip(block.tolist(), cosines, strict=True)

    def _tolerances(self, dtype: np.dtype[Any]) -> tuple[float, float]:
        """The rounding error of a cosine in a product of matrices, and the cosine from which vectors count as equal."""
        return (self._rows.shape[1] + 16) * float(np.finfo(dtype).eps), 1 - TIE_TOLERANCE[dtype]

    def _nearest_of(
        self, query: int, cosines: FloatArray, count: int, left_out: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        # In a product of matrices the rounding of a cosine depends on the other rows of the block. The product only
        # finds rows that may be near; _exact_cosines decides with cosines that depend on the two rows alone.
        slack, equal = self._tolerances(cosines.dtype)
        cosines[query] = -np.inf
        cosines[left_out] = -np.inf
        cosines[self._same.get(query, [])] = -np.inf
        alike = np.flatnonzero(cosines >= equal - slack)
        cosines[alike[self._exact_cosines(query, alike) >= equal]] = -np.inf
        left = int(np.count_nonzero(cosines > -np.inf))
        if not left:
            return np.empty(0, dtype=np.int64)
        border = len(cosines) - min(count, left)
        least = np.partition(cosines, border)[border]
        near = np.flatnonzero((cosines >= least - slack) & (cosines > -np.inf))
        order = np.lexsort((near, -np.round(self._exact_cosines(query, near), _DECIMALS)))
        return near[order[:count]].astype(np.int64)

    def _exact_cosines(self, query: int, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Cosines of a query with rows, in float64."""
        unit, step = self._unit(np.array([query]))[0], max(1, _BLOCK // self._given.shape[1])
        parts = [(self._unit(rows[at : at + step]) * unit).sum(axis=1) for at in range(0, len(rows), step)]
        return np.concatenate([np.empty(0), *parts])

    def _unit(self, rows: NDArray[np.intp]) -> FloatArray:
        return as_unit_rows(self._given[rows].astype(np.float64))


def _as_question(question: str) -> str:
    """The question without what a repetition may change: letter case, white space, punctuation at the end."""
    return " ".join(question.casefold().split()).rstrip(" .?!") or question


def _as_text(item: Mapping[str, Any], row: int) -> str:
    """A text that is equal for equal items; the order of their keys does not matter."""
    if not isinstance(item, Mapping):
        raise InvalidInputError(
            f"items: row {row} is {quoted(item)}; every item must be a mapping (question, answer, ...)"
        )
    return json.dumps(dict(item), sort_keys=True, default=_as_plain)


def _as_plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else repr(value)
