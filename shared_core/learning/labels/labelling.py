"""Pseudo-labels: which small sets of examples serve a training item well, and how well (NDPP paper, 4.2)."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._validation import as_column, check_integer, check_number, check_one_of
from ...errors import InvalidInputError, InvalidParameterError
from ...signals.language_models import library
from ..feedback.coverage import Feedback, score_all
from ..neighbours import Neighbours
from .draws import GreedyDraws
from .label_file import LabelFile, Scored, name_of

Draw = Callable[[int, NDArray[np.int64], np.random.Generator], Iterable[Sequence[int]]]
"""``(query_row, candidate_rows, rng)`` to subsets of ``candidate_rows``, which come nearest first, read-only."""
DRAWS = ("random", "greedy")
Drawn = tuple[int, list[tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class LabelledSubset:
    """A subset and how well it serves a training item.

    Attributes
    ----------
    query : int
        The row of the training item.
    subset : tuple of int
        Rows of the pool, the one nearest to the training item last.
    score : float
        What the feedback gave.

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
    seed: int = 0,
    resume: str | os.PathLike[str] | None = None,
    progress: bool = False,
    say: Callable[[str], object] | None = None,
) -> list[LabelledSubset]:
    """Draw subsets from each training item's nearest neighbours, and have them scored (NDPP paper, 4.2).

    An item's candidates are the nearest in the pool by cosine, ties to the lower row. Left out are the item itself
    and its exact duplicates, since an example that holds the answer teaches nothing: items with the same
    ``question`` and ``answer`` (equal in everything, where one of the two is missing), and items whose vector has
    the same direction but for rounding, as that of the same text has, whatever their answer.

    A subset's rows stand in reverse order of nearness: a language model reads the nearest last, next to the
    question. A determinant does not care for the order.

    Parameters
    ----------
    items : sequence of n mappings
        The pool. The feedback gets them as they are; texts, numbers and lists of these can be told from others in a
        ``resume`` file, other values only as far as their ``repr`` goes.
    vectors : array-like, shape (n, d)
        The items' embeddings, of any length but, for a training item, zero.
    feedback : Feedback
        ``(query_item, subset_items) -> float``; what has ``score`` gets all subsets of an item at once.
    k : int >= 1
        The size of a subset, the largest where there are several.
    candidates : int >= k
        How many of the nearest are drawn from; fewer where the pool has no more.
    subsets : int >= 1, optional
        How many for each item. By default as many as fit: its candidates // k; for "greedy" 96 k at most.
    draw : "random", "greedy" or callable
        "random": subsets of k that do not overlap (paper). "greedy": subsets of 1 to k near what greedy MAP picks, at
        most ``subsets``, see :class:`GreedyDraws`. Or ``draw(query_row, candidate_rows, rng)``, which gives subsets of
        1 to k of the candidates (int64, nearest first); they may overlap, and are ``subsets`` if that is given.
    queries : iterable of int, optional
        The rows that are training items, in the order to label them in; by default all.
    seed : int >= 0
        Item i draws with ``np.random.default_rng([seed, i])``, whatever other items are labelled.
    resume : path, optional
        A file of JSON lines to which each item's labels are added at once, and from which those of earlier runs with
        the same items, vectors and settings are taken; ``queries`` may differ. A run that is killed loses no more
        than the item in hand. What feedback made the scores is told by its ``fingerprint`` (a string, or a method
        that gives one) or, without one, by its name or ``repr``: a function that has changed but for its name is
        not noticed.
    progress : bool
        Show a bar (tqdm) with the rate, the time left and the mean score.
    say : callable, optional
        Gets the one line with size and cost before a feedback that is ``remote`` is first called; by default it is
        written to standard error.

    Returns
    -------
    list of LabelledSubset
        Item by item in the order of ``queries``. The same input gives the same output.

    Raises
    ------
    InvalidInputError
        An item is no mapping, vectors are not as above or not as many, a training item's vector is zero or all other
        items are its duplicates, the feedback gives something else than a finite number, or ``resume`` is some other
        file, or damaged; the message names the row or line.
    InvalidParameterError
        A parameter is out of its range, an item has too few candidates, ``draw`` gives something else, or
        ``resume`` was begun with other settings.
    ImportError
        tqdm is missing.
    Exception
        Whatever ``feedback`` or ``draw`` raises, with a note that names the item.

    Examples
    --------
    >>> items = [{"question": f"{n} + 1?", "answer": str(n + 1)} for n in range(6)]
    >>> vectors = [[1.0, n] for n in range(6)]
    >>> def near(query, examples):
    ...     return -float(sum(abs(int(query["answer"]) - int(e["answer"])) for e in examples))
    >>> label(items, vectors, near, k=2, candidates=4, queries=[0])
    [LabelledSubset(query=0, subset=(3, 1), score=-4.0), LabelledSubset(query=0, subset=(4, 2), score=-6.0)]
    """
    k, candidates, seed = (
        check_integer(k, "k", 1),
        check_integer(candidates, "candidates", 1),
        check_integer(seed, "seed", 0),
    )
    subsets = None if subsets is None else check_integer(subsets, "subsets", 1)
    if not callable(draw):
        check_one_of(draw, "draw", DRAWS)
    drawing: Draw = draw if callable(draw) else _random(k, subsets)
    overlapping = callable(draw)
    if draw == "greedy":
        drawing, subsets, overlapping = GreedyDraws(vectors, k, subsets), None, True
    # What a callable draws may overlap.
    needed = k if overlapping else k * (subsets or 1)
    if needed > candidates:
        raise InvalidParameterError(f"{_asked(k, needed)} needs candidates >= {needed}, got {candidates}")
    neighbours = Neighbours(items, vectors)
    wanted = _rows(queries, len(neighbours))
    file = None
    if resume is not None:
        settings = {
            "k": k,
            "candidates": candidates,
            "subsets": subsets,
            "draw": name_of(drawing if draw == "greedy" else draw),
            "seed": seed,
        }
        settings |= {"feedback": name_of(feedback), "items and vectors": neighbours.sha256()}
        file = LabelFile(resume, settings, len(neighbours))
    known: dict[int, Scored] = {} if file is None else file.known
    missing = [row for row in wanted if row not in known]
    # All of them first: what does not fit is to come to light before hours of scoring, not after.
    nearest = dict(zip(missing, neighbours.nearest(missing, candidates), strict=True))
    for row, rows in nearest.items():
        if len(rows) < needed:
            raise _too_few(row, len(rows), k, needed)

    def work() -> Iterator[Drawn]:
        return ((row, _draw(drawing, row, nearest[row], seed, k, subsets)) for row in missing)

    def pairs(row: int, drawn: list[tuple[int, ...]]) -> list[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
        return [(neighbours.items[row], [neighbours.items[i] for i in subset]) for subset in drawn]

    if missing and getattr(feedback, "remote", False):
        asked: Any = feedback
        # Drawn once more afterwards: all prompts at once would fill the memory.
        cost = asked.cost(pair for row, drawn in work() for pair in pairs(row, drawn))
        tell = say or (lambda line: sys.stderr.write(line + "\n"))
        tell(f"to label: {len(missing)} items, {sum(len(drawn) for _, drawn in work())} subsets; {cost}")
    with file or contextlib.nullcontext(), _bar(len(wanted), len(wanted) - len(missing), progress) as advance:
        for row, drawn in work():
            with _noted(row):
                where = [f"item {row}, subset {place} (rows {subset})" for place, subset in enumerate(drawn)]
                scores = score_all(feedback, pairs(row, drawn), where)
            known[row] = list(zip(drawn, scores, strict=True))
            if file is not None:
                file.append(row, known[row])
            advance(scores)
    return [LabelledSubset(row, subset, score) for row in wanted for subset, score in known[row]]


def best(labels: Iterable[LabelledSubset], share: float = 0.1) -> list[LabelledSubset]:
    """The share of all subsets with the highest scores, over all items (NDPP paper, 4.2: 10 %).

    Parameters
    ----------
    labels : iterable of LabelledSubset
    share : float in (0, 1]
        How many of them; rounded down, but at least one.

    Returns
    -------
    list of LabelledSubset
        In the order they came. Of equal scores at the border the earlier stay.

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
        raise InvalidInputError("labels are empty: nothing to keep the best of")
    scores = as_column([entry.score for entry in pool], len(pool), "scores of labels")
    # .29 * 100 is a little less than 29.
    count = max(1, int(share * len(pool) + 1e-9))
    return [pool[place] for place in np.sort(np.argsort(-scores, kind="stable")[:count])]


def _random(k: int, subsets: int | None) -> Draw:
    def draw(query: int, candidates: NDArray[np.int64], rng: np.random.Generator) -> Iterable[Sequence[int]]:
        count = len(candidates) // k if subsets is None else subsets
        return list(rng.permutation(candidates)[: count * k].reshape(count, k))

    return draw


def _draw(
    draw: Draw, query: int, candidates: NDArray[np.int64], seed: int, k: int, subsets: int | None
) -> list[tuple[int, ...]]:
    """What ``draw`` gives for one item, checked, each subset with its nearest row last."""
    rank = {row: place for place, row in enumerate(candidates.tolist())}
    with _noted(query):
        sets = draw(query, candidates, np.random.default_rng([seed, query]))
        given = [tuple(check_integer(row, "a row of what draw gives") for row in subset) for subset in sets]
    for place, subset in enumerate(given):
        if not 1 <= len(subset) <= k or len(set(subset)) != len(subset) or not all(row in rank for row in subset):
            raise InvalidParameterError(
                f"draw: subset {place} of item {query} is {subset}; it must be 1 to {k} different rows of its "
                "candidates"
            )
    if not given or subsets not in (None, len(given)):
        wanted = "at least one" if subsets is None else subsets
        raise InvalidParameterError(f"draw gave {len(given)} subsets of item {query}; it must give {wanted}")
    return [tuple(sorted(subset, key=rank.__getitem__, reverse=True)) for subset in given]


def _rows(queries: Iterable[int] | None, n: int) -> list[int]:
    rows = [
        check_integer(row, f"queries[{place}]") for place, row in enumerate(range(n) if queries is None else queries)
    ]
    if not rows:
        raise InvalidParameterError("queries is empty: name at least one row, or leave it out for all")
    seen: set[int] = set()
    for place, row in enumerate(rows):
        if not 0 <= row < n:
            raise InvalidParameterError(f"queries[{place}] is {row}, but rows are 0..{n - 1}")
        if row in seen:
            raise InvalidParameterError(f"queries[{place}] is {row} a second time")
        seen.add(row)
    return rows


def _asked(k: int, needed: int) -> str:
    return f"a subset of k={k}" if needed == k else f"{needed // k} subsets of k={k} that do not overlap"


def _too_few(row: int, count: int, k: int, needed: int) -> Exception:
    so = "leave it out of queries"
    if not count:
        return InvalidInputError(f"item {row} has no candidates: all other items are its duplicates; {so}")
    return InvalidParameterError(f"item {row}: {_asked(k, needed)} needs {needed} candidates, it has {count}; {so}")


@contextlib.contextmanager
def _noted(row: int) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"setselect: while labelling item {row}")
        raise


@contextlib.contextmanager
def _bar(total: int, done: int, shown: bool) -> Iterator[Callable[[list[float]], None]]:
    if not shown:
        yield lambda scores: None
        return
    count, whole = 0, 0.0
    with library("tqdm", "train").tqdm(total=total, initial=done, unit="item", desc="labelling") as bar:

        def advance(scores: list[float]) -> None:
            nonlocal count, whole
            count, whole = count + len(scores), whole + sum(scores)
            bar.set_postfix(score=f"{whole / count:.3g}", refresh=False)
            bar.update()

        yield advance
