"""Pseudo-labels: which small sets of examples serve a training item well, and how well (NDPP paper, 4.2)."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._argument_names import argument_name
from ..._files import hold_lock
from ..._validation import as_column, check_integer, check_number, check_one_of, quoted
from ...errors import InvalidInputError, InvalidParameterError
from ...signals.progress import progress_bar
from ..feedback.coverage import Feedback, Pair, noting, score_all
from ..neighbours import Neighbours
from .draws import GreedyDraws
from .label_file import LabelFile, Scored, describe_callable

Draw = Callable[[int, NDArray[np.int64], np.random.Generator], Iterable[Sequence[int]]]
"""A function ``(query_row, candidate_rows, rng)`` that returns subsets of the candidates (read-only, nearest first)."""
DRAWS = ("random", "greedy")


@dataclass(frozen=True, slots=True)
class LabelledSubset:
    """A subset of the pool and how well it serves a training item.

    Attributes
    ----------
    query : int
        The row of the training item.
    subset : tuple of int
        Rows of the pool; the row nearest to the training item is last.
    score : float
        The feedback for the subset.

    Examples
    --------
    >>> LabelledSubset(0, (3, 1), 0.5).subset
    (3, 1)
    """

    query: int
    subset: tuple[int, ...]
    score: float


def label(
    items: Sequence[Mapping[str, Any]],
    vectors: ArrayLike,
    feedback: Feedback,
    *,
    k: int = 4,
    candidates: int = 50,
    subsets: int | None = None,
    draw: str | Draw = "random",
    queries: Iterable[int] | None = None,
    examples: Iterable[int] | None = None,
    seed: int = 0,
    resume: str | os.PathLike[str] | None = None,
    progress: bool = False,
    say: Callable[[str], object] | None = None,
) -> list[LabelledSubset]:
    """Draw subsets of each training item's nearest neighbours, and score them by the feedback (NDPP paper, 4.2).

    The candidates of an item are the nearest items in the pool by cosine; ties go to the lower row. The item itself
    and its duplicates are left out, because an example that holds the answer teaches nothing. Duplicates are items with
    the same ``question`` and ``answer`` (items without these keys: with the same content), and items whose vectors have
    the same direction up to rounding.

    The rows of a subset are in reverse order of nearness, so a language model reads the nearest example last, next to
    the question. The order does not change a determinant.

    Parameters
    ----------
    items : sequence of n mappings
        The pool. The feedback gets them unchanged.
    vectors : array-like, shape (n, d)
        The items' embeddings, of any length; the vector of a training item must not be zero.
    feedback : Feedback
        ``(query_item, subset_items) -> float``. A feedback with a method ``score`` gets all subsets of an item at once.
    k : int >= 1
        The size of a subset; for draws of several sizes the largest.
    candidates : int >= k
        The number of nearest items from which subsets are drawn; fewer if the pool has fewer.
    subsets : int >= 1, optional
        Subsets for each item. Default: the number of its candidates // k; for "greedy" at most 96 k.
    draw : "random", "greedy" or callable
        "random": subsets of k that do not overlap (paper). "greedy": at most ``subsets`` subsets of 1 to k items near
        the picks of greedy MAP, see :class:`GreedyDraws`. Or ``draw(query_row, candidate_rows, rng)``, which returns
        subsets of 1 to k of the candidates (int64, nearest first); they may overlap. If ``subsets`` is given, it must
        return that many.
    queries : iterable of int, optional
        The rows of the training items, in the order of labelling; default: all.
    examples : iterable of int, optional
        The rows that subsets are drawn from; default: all. Those of :func:`hold_out` leave held-out items out.
    seed : int >= 0
        Item i draws with ``np.random.default_rng([seed, i])``, independently of the other items.
    resume : path, optional
        A file of JSON lines. The labels of each item are added at once, and labels of earlier runs with the same
        items, vectors and settings are read from it; ``queries`` and ``examples`` may differ. The file identifies the
        feedback by its ``fingerprint`` (a string, or a method that returns one), else by its name or ``repr``. A change
        in the code of a function is not detected.
    progress : bool
        Show a bar (tqdm) with the rate, the time left and the mean score.
    say : callable, optional
        Called with one line about size and cost before a ``remote`` feedback is called for the first time; default:
        written to standard error.

    Returns
    -------
    list of LabelledSubset
        Item by item, in the order of ``queries``. The same input gives the same output.

    Raises
    ------
    InvalidInputError
        The vectors have another shape or length, a training item's vector is zero or has too few candidates, the
        feedback returns something other than a finite number, or ``resume`` is damaged or a file of another kind; the
        message names the row or line.
    InvalidParameterError
        A parameter is out of its range, ``draw`` returns something other than such subsets, or ``resume`` was started
        with other settings or is in use by another run.
    Exception
        Any exception of ``feedback`` or ``draw``, with a note that names the item.

    Examples
    --------
    >>> items = [{"question": f"{n} + 1?", "answer": str(n + 1)} for n in range(6)]
    >>> vectors = [[1.0, n] for n in range(6)]
    >>> def near(query, examples):
    ...     return -float(sum(abs(int(query["answer"]) - int(e["answer"])) for e in examples))
    >>> label(items, vectors, near, k=2, candidates=4, queries=[0])
    [LabelledSubset(query=0, subset=(3, 1), score=-4.0), LabelledSubset(query=0, subset=(4, 2), score=-6.0)]
    """
    k = check_integer(k, "k", 1)
    candidates, seed = check_integer(candidates, "candidates", 1), check_integer(seed, "seed", 0)
    subsets = None if subsets is None else check_integer(subsets, "subsets", 1)
    if not callable(draw):
        check_one_of(draw, "draw", DRAWS)
    if draw == "greedy":
        draw, subsets = GreedyDraws(vectors, k, subsets), None
    needed = k if callable(draw) else k * (subsets or 1)
    if needed > candidates:
        raise InvalidParameterError(
            f"{argument_name('candidates')} must be at least {needed} to draw {needed // k} subsets of "
            f"{argument_name('k')} = {k}, got {candidates}"
        )

    def draw_apart(query: int, candidates: NDArray[np.int64], rng: np.random.Generator) -> Iterable[Sequence[int]]:
        count = len(candidates) // k if subsets is None else subsets
        return list(rng.permutation(candidates)[: count * k].reshape(count, k))

    draw_subsets = draw if callable(draw) else draw_apart
    neighbours = Neighbours(items, vectors)
    rows = check_rows(queries, len(neighbours), "queries")
    among = None if examples is None else check_rows(examples, len(neighbours), "examples")
    with hold_lock(resume):
        file = None
        if resume is not None:
            settings = {
                "k": k, "candidates": candidates, "subsets": subsets, "draw": describe_callable(draw), "seed": seed,
                "feedback": describe_callable(feedback), "items and vectors": neighbours.sha256(),
            }  # fmt: skip
            file = LabelFile(resume, settings, len(neighbours))
        scored: dict[int, Scored] = {} if file is None else file.known
        missing = [row for row in rows if row not in scored]
        # All neighbours are found first, so that an item without enough of them is refused before hours of scoring.
        nearest = dict(zip(missing, neighbours.nearest(missing, candidates, among), strict=True))
        for row, near in nearest.items():
            if len(near) < needed:
                raise InvalidInputError(
                    f"item {row} has {len(near)} candidates besides its duplicates, but {needed} are needed: leave the "
                    f"item out: {quoted(neighbours.items[row])}"
                )

        def drawn() -> Iterator[tuple[int, list[tuple[int, ...]], list[Pair]]]:
            for row in missing:
                sets = _draw(draw_subsets, row, nearest[row], seed, k, subsets)
                yield row, sets, [(neighbours.items[row], [neighbours.items[i] for i in subset]) for subset in sets]

        if missing and getattr(feedback, "remote", False):
            remote: Any = feedback
            # The subsets are drawn again below, because all prompts together would fill the memory.
            cost = remote.cost(pair for _, _, pairs in drawn() for pair in pairs)
            tell = say or (lambda line: sys.stderr.write(line + "\n"))
            tell(f"to label {len(missing)} items: {cost}")
        if file is not None:
            file.journal.begin()
        count, total = 0, 0.0
        with progress_bar(progress, len(rows), "item", "labelling", len(rows) - len(missing)) as advance:
            for row, sets, pairs in drawn():
                with noting(f"labelling item {row}"):
                    where = [f"item {row}, subset {place} (rows {subset})" for place, subset in enumerate(sets)]
                    scores = score_all(feedback, pairs, where)
                scored[row] = list(zip(sets, scores, strict=True))
                if file is not None:
                    file.append(row, scored[row])
                count, total = count + len(scores), total + sum(scores)
                advance(score=f"{total / count:.3g}")
    return [LabelledSubset(row, subset, score) for row in rows for subset, score in scored[row]]


def best(labels: Iterable[LabelledSubset], share: float = 0.1) -> list[LabelledSubset]:
    """The share of all subsets that has the highest scores, over all items together (NDPP paper, 4.2: 10 %).

    Parameters
    ----------
    labels : iterable of LabelledSubset
        What :func:`label` returns.
    share : float in (0, 1]
        Rounded down to a number of subsets, at least one.

    Returns
    -------
    list of LabelledSubset
        In the order of ``labels``. If scores at the limit are equal, the earlier ones are kept.

    Raises
    ------
    InvalidInputError
        There is no label, or a score is NaN or inf (the message names the row).
    InvalidParameterError
        ``share`` is out of its range.

    Examples
    --------
    >>> [kept.score for kept in best([LabelledSubset(0, (1,), s) for s in (0.1, 0.9, 0.4, 0.9)], share=0.5)]
    [0.9, 0.9]
    """
    pool = list(labels)
    if check_number(share, "share", 0, 1) == 0:
        raise InvalidParameterError("share must be above 0")
    if not pool:
        raise InvalidInputError("labels are empty: there is no best label")
    scores = as_column([entry.score for entry in pool], len(pool), "scores of labels")
    # In floating point, 0.29 * 100 is slightly less than 29.
    count = max(1, int(share * len(pool) + 1e-9))
    return [pool[place] for place in np.sort(np.argsort(-scores, kind="stable")[:count])]


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


def check_labels(labels: Iterable[LabelledSubset], n: int) -> list[LabelledSubset]:
    """The labels as a list; the message about an entry that does not fit n items has its number."""
    entries = list(labels)
    if not entries:
        raise InvalidInputError("labels are empty: there is nothing to learn from")
    for place, entry in enumerate(entries):
        rows = {int(row) for row in (entry.query, *entry.subset) if 0 <= row < n}
        if not 0 < len(entry.subset) == len(rows) - 1 or not np.isfinite(entry.score):
            raise InvalidInputError(
                f"labels: number {place}, {quoted(entry)}, must hold different rows of the {n} items, without the "
                "query's row, and a finite score"
            )
    return entries


def digest_labels(labels: Iterable[LabelledSubset]) -> str:
    """A digest that identifies the labels, whatever types their numbers have."""
    digest = hashlib.sha256()
    for entry in labels:
        rows = (int(entry.query), *map(int, entry.subset))
        digest.update(f"{rows} {float(entry.score)!r}\n".encode())
    return digest.hexdigest()


def _draw(
    draw: Draw, query: int, candidates: NDArray[np.int64], seed: int, k: int, subsets: int | None
) -> list[tuple[int, ...]]:
    """The subsets that ``draw`` returns for one item, checked, each with its nearest row last."""
    rank = {row: place for place, row in enumerate(candidates.tolist())}
    with noting(f"drawing subsets of item {query}"):
        drawn = [tuple(map(int, subset)) for subset in draw(query, candidates, np.random.default_rng([seed, query]))]
    for place, subset in enumerate(drawn):
        if not 1 <= len(subset) <= k or len(set(subset)) != len(subset) or not all(row in rank for row in subset):
            raise InvalidParameterError(
                f"draw: subset {place} of item {query} is {subset}; it must be 1 to {k} different rows of the item's "
                "candidates"
            )
    if not drawn or subsets not in (None, len(drawn)):
        needed = "at least one" if subsets is None else subsets
        raise InvalidParameterError(f"draw returned {len(drawn)} subsets of item {query}; it must return {needed}")
    return [tuple(sorted(subset, key=rank.__getitem__, reverse=True)) for subset in drawn]
