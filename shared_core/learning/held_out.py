"""Held-out items: a split of the pool, and the feedback that a selector's picks get for the held-out queries."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import quoted
from ..candidates import Candidates
from ..errors import InvalidInputError
from ..selection.route import select_set
from ..selectors.registry import Selector
from ..texts import Texts
from .feedback.coverage import Feedback, score_all
from .labels.labelling import check_rows
from .neighbours import Neighbours
from .settings import FitSettings


@dataclass(frozen=True, slots=True)
class Split:
    """Rows of a pool: those that are trained on, and the queries that are held out.

    Attributes
    ----------
    examples : tuple of int
        All rows of the pool except the held-out queries and the items that repeat them. Training sees nothing else,
        and the examples for a held-out query are selected from these rows, as a new query meets known examples.
    trained : tuple of int
        The queries that are trained on; they are among ``examples``.
    held_out : tuple of int
        The queries on which the fit is measured; they take no part in training.

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

    def sha256(self) -> str:
        """A digest that identifies this split."""
        return hashlib.sha256(repr((self.examples, self.trained, self.held_out)).encode()).hexdigest()


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
    items : sequence of n mappings
        The pool, for example of questions and answers.
    vectors : array-like, shape (n, d)
        The items' embeddings.
    queries : iterable of int, optional
        The rows that can be queries; default: all. The other items are examples only.
    held_out : float in (0, 1)
        Share of the different queries that is held out, at least one of them.
    seed : int >= 0
        The same seed gives the same split.

    Returns
    -------
    Split
        The split that :func:`fit` makes by itself with the same ``queries``, ``held_out`` and ``seed``.

    Raises
    ------
    InvalidInputError
        Items and vectors do not fit each other, or fewer than two queries differ.
    InvalidParameterError
        A parameter is out of its range.

    Examples
    --------
    >>> items = [{"question": text, "answer": "x"} for text in ("Who?", "who", "Why?", "How?")]
    >>> split = hold_out(items, np.eye(4), held_out=0.3)
    >>> split.held_out, split.examples
    ((3,), (0, 1, 2))
    """
    settings = FitSettings(held_out=held_out, seed=seed)
    return split_queries(Neighbours(items, vectors), queries, settings)


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


class HeldOut:
    """The feedback for a selector's picks of k of the ``fetch_k`` examples that are nearest to each held-out query."""

    def __init__(
        self,
        neighbours: Neighbours,
        vectors: NDArray[np.floating],
        split: Split,
        feedback: Feedback,
        k: int,
        fetch_k: int,
        ids: Sequence[Hashable] | None = None,
    ) -> None:
        self._items, self._feedback, self._k = neighbours.items, feedback, k
        self.queries = list(split.held_out)
        self._vectors, self._ids = vectors, ids
        self._rows = neighbours.nearest(self.queries, fetch_k, split.examples)
        # No set of picks is scored twice.
        self._known: dict[tuple[int, tuple[int, ...]], float] = {}

    def picks(self, selector: Selector) -> list[tuple[int, ...]]:
        """Rows of the pool that the selector picks for each query, the most similar last."""
        found = []
        for query, rows in zip(self.queries, self._rows, strict=True):
            ids = rows.tolist() if self._ids is None else [self._ids[row] for row in rows]
            # The vectors are copied for one query at a time: those of all queries together would fill the memory.
            candidates = Candidates(self._vectors[query], self._vectors[rows], ids=ids)
            question, texts = self._read_questions(query, rows.tolist())
            picks = select_set(candidates, selector, min(self._k, len(rows)), question=question, texts=texts).indices
            # The candidates are sorted, the nearest first, so the highest index is the least similar pick.
            found.append(tuple(rows[np.sort(picks)[::-1]].tolist()))
        return found

    def _read_questions(self, query: int, rows: list[int]) -> tuple[str, Texts | None]:
        """The question of an item, and those of others; no texts if an item has none."""
        items = [self._items[row] for row in (query, *rows)]
        questions = [text for item in items if isinstance(text := item.get("question"), str)]
        if len(questions) < len(items):
            return "", None
        # Examples do not refer to each other, as in the example selectors.
        return questions[0], Texts(questions[1:], refer=False)

    def values(self, selector: Selector) -> NDArray[np.float64]:
        """The feedback for each query's picks, shape (m,)."""
        keys = list(zip(self.queries, self.picks(selector), strict=True))
        missing = [key for key in dict.fromkeys(keys) if key not in self._known]
        pairs = [(self._items[query], [self._items[row] for row in subset]) for query, subset in missing]
        where = [f"held-out item {query}, rows {subset}" for query, subset in missing]
        self._known.update(zip(missing, score_all(self._feedback, pairs, where), strict=True))
        return np.array([self._known[key] for key in keys])
