"""A pool of items: each item's nearest neighbours without its duplicates, and the queries that are held out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, as_numeric, check_integer, read_only
from ..candidates import TIE_TOLERANCE, as_unit_rows, working_dtype
from ..errors import InvalidInputError, InvalidParameterError, quoted
from .settings import FitSettings

# Cosines in memory at the same time.
_BLOCK = 1 << 21
# Cosines that differ by less are equal: those of vectors of different lengths differ in the last bits, and in a product
# of matrices the last bits depend on the other rows of the block.
_TIE = 1e-13


class Neighbours:
    """A pool of n items and their nearest neighbours by cosine, from vectors (n, d) of any length.

    :func:`label` says which items are duplicates. ``unit`` are the vectors at length 1, in float64, and ``sha256``
    identifies items and vectors.
    """

    def __init__(self, items: Sequence[Mapping[str, Any]], vectors: ArrayLike) -> None:
        self.items = list(items)
        rows = as_numeric(vectors, "vectors")
        if rows.ndim != 2 or 0 in rows.shape or len(rows) != len(self.items):
            raise InvalidInputError(
                f"vectors must have shape (n, d), a row for each of the {len(self.items)} items and d >= 1, "
                f"got {rows.shape}"
            )
        given = rows.astype(working_dtype(rows.dtype), order="C", copy=False)
        self.unit = as_unit_rows(given.astype(np.float64))
        # Vectors with at least this cosine have the same direction.
        self._equal = 1 - TIE_TOLERANCE[given.dtype]
        digest = hashlib.sha256()
        same: dict[str, list[int]] = {}
        questions: dict[str, list[int]] = {}
        for row, item in enumerate(self.items):
            whole = _as_text(item, row)
            digest.update(whole.encode() + b"\n")
            pair = {key: item[key] for key in ("question", "answer") if key in item}
            same.setdefault(_as_text(pair, row) if len(pair) == 2 else whole, []).append(row)
            if isinstance(item.get("question"), str):
                questions.setdefault(_as_question(item["question"]), []).append(row)
        digest.update(f"{given.dtype.str} {given.shape}\n".encode())
        digest.update(given.data)
        self.sha256 = digest.hexdigest()
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
            alike = np.flatnonzero(cosines >= self._equal).tolist()
            for other in (*alike, *self._same.get(row, ()), *self._asked.get(row, ())):
                leader[lead(other)] = lead(row)
        groups: dict[int, list[int]] = {lead(row): [] for row in queries}
        for row in range(len(self)):
            if lead(row) in groups:
                groups[lead(row)].append(row)
        return list(groups.values())

    def nearest(
        self, queries: Sequence[int], count: int, among: Sequence[int] | None = None
    ) -> list[NDArray[np.int64]]:
        """For each of Q query rows up to ``count`` rows (of ``among``) with the highest cosine, int64: O(Q n d).

        The nearest row is first; ties go to the lower row. The query and its duplicates are left out.
        """
        for row in queries:
            if not self.unit[row].any():
                raise InvalidInputError(
                    f"vectors: row {row} is zero, so it has no nearest items: embed it again, or leave the item out: "
                    f"{quoted(self.items[row])}"
                )
        allowed = np.ones(len(self), dtype=bool)
        if among is not None:
            allowed[:] = False
            allowed[np.asarray(among, dtype=np.int64)] = True
        nearest = []
        for row, cosines in self._cosines(queries):
            left = allowed & (cosines < self._equal)
            left[self._same.get(row, [])] = False
            rows = np.flatnonzero(left)
            order = np.argsort(-cosines[rows], kind="stable")
            ranks = np.cumsum(np.diff(cosines[rows[order]], prepend=1.0) < -_TIE)
            order = order[np.lexsort((order, ranks))]
            nearest.append(read_only(rows[order[:count]].astype(np.int64)))
        return nearest

    def _cosines(self, queries: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
        step = max(1, _BLOCK // len(self))
        for start in range(0, len(queries), step):
            block = np.asarray(queries[start : start + step], dtype=np.int64)
            yield from zip(block.tolist(), self.unit[block] @ self.unit.T, strict=True)


@dataclass(frozen=True, slots=True)
class Split:
    """Rows of a pool: those that are trained on, and the queries that are held out.

    Attributes
    ----------
    examples : tuple of int
        All rows except the held-out queries and the items that repeat them. Training sees nothing else, and the
        examples for a held-out query are selected from these rows.
    trained : tuple of int
        The queries that are trained on; they are among ``examples``.
    held_out : tuple of int
        The queries on which the fit is measured.

    Examples
    --------
    >>> Split((0, 1, 3), (0, 3), (2,)).labelled(listwise=True)
    (0, 3)
    """

    examples: tuple[int, ...]
    trained: tuple[int, ...]
    held_out: tuple[int, ...]

    def labelled(self, listwise: bool) -> tuple[int, ...]:
        """The queries that need labels; the likelihood is also measured on subsets for held-out queries."""
        return self.trained if listwise else tuple(sorted((*self.trained, *self.held_out)))


def hold_out(
    items: Sequence[Mapping[str, Any]],
    vectors: ArrayLike,
    *,
    queries: Iterable[int] | None = None,
    held_out: float = 0.2,
    seed: int = 0,
) -> Split:
    """Choose the items that :func:`fit` holds out, before labels are drawn: then no label is lost to the split.

    Items that repeat each other stay on one side: duplicates (see :func:`label`), and items whose questions differ only
    in letter case, white space or punctuation at the end.

    Parameters
    ----------
    items, vectors, queries, held_out, seed
        As in :func:`label` and :class:`FitSettings`. ``held_out`` is a share of the different queries, at least one.

    Returns
    -------
    Split

    Examples
    --------
    >>> items = [{"question": text, "answer": "x"} for text in ("Who?", "who", "Why?", "How?")]
    >>> split = hold_out(items, np.eye(4), held_out=0.3)
    >>> split.held_out, split.examples
    ((3,), (0, 1, 2))
    """
    return split_queries(Neighbours(items, vectors), queries, FitSettings(held_out=held_out, seed=seed))


def split_queries(neighbours: Neighbours, queries: Iterable[int] | None, settings: FitSettings) -> Split:
    """See :func:`hold_out`."""
    rows = sorted(check_rows(queries, len(neighbours), "queries"))
    groups = neighbours.groups(rows)
    if len(groups) < 2:
        raise InvalidInputError(
            f"at least 2 different queries are needed, because one is held out; these {len(rows)} contain {len(groups)}"
        )
    count = min(max(1, round(settings.held_out * len(groups))), len(groups) - 1)
    drawn = np.random.default_rng([settings.seed, 0]).permutation(len(groups))[:count]
    apart = {row for place in drawn for row in groups[place]}
    return Split(
        tuple(row for row in range(len(neighbours)) if row not in apart),
        tuple(row for row in rows if row not in apart),
        tuple(row for row in rows if row in apart),
    )


def check_split(split: Split, n: int) -> Split:
    """The split with tuples of int, checked for a pool of n items."""
    parts = (split.examples, split.trained, split.held_out)
    examples, trained, held_out = (tuple(check_rows(part, n, "split")) for part in parts)
    if not set(examples).issuperset(trained) or not set(examples).isdisjoint(held_out):
        raise InvalidInputError(
            f"split: {quoted(split)} must have its trained rows among examples, and no held_out row among examples: "
            "make it with hold_out"
        )
    return Split(examples, trained, held_out)


def check_rows(values: Iterable[int] | None, n: int, name: str) -> list[int]:
    """The rows of a pool of n items that the argument ``name`` lists; all rows if it is None."""
    rows = [check_integer(row, f"{name}[{place}]") for place, row in enumerate(range(n) if values is None else values)]
    if not rows:
        raise InvalidParameterError(f"{name} is empty: name at least one row, or leave it out for all rows")
    seen: set[int] = set()
    for place, row in enumerate(rows):
        if not 0 <= row < n or row in seen:
            raise InvalidParameterError(f"{name}[{place}] is {row}; rows are 0..{n - 1}, each at most once")
        seen.add(row)
    return rows


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
