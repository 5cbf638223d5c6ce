"""Pseudo-labels: which small sets of examples serve a training item well, and how well (NDPP paper, 4.2)."""

from __future__ import annotations

import json
import operator
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._files import hold_lock, named_errors, write_through
from .._parsing import parse_json
from .._validation import FloatArray, as_float, check_integer, check_one_of
from ..errors import InvalidInputError, InvalidParameterError, argument_name, quoted
from ..signals.language_models import progress_bar
from .feedback import Feedback, Pair, noting, score_all
from .pool import Neighbours, check_rows

DRAWS = ("random", "greedy")
FORMAT, VERSION = "setselect labels", 1
# Of greedy draws: the selections of an item, the next items that are tried at each of their steps, the temperature of
# the relevance, and the strength of the noise.
PATHS, EACH, TEMPERATURE, NOISE = 3, 32, 0.1, 0.5


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
    draw: str = "random",
    queries: Iterable[int] | None = None,
    examples: Iterable[int] | None = None,
    seed: int = 0,
    resume: str | os.PathLike[str] | None = None,
    progress: bool = False,
    say: Callable[[str], object] | None = None,
) -> list[LabelledSubset]:
    """Draw subsets of each training item's nearest neighbours, and score them by the feedback (NDPP paper, 4.2).

    The item itself and its duplicates are left out, because an example that holds the answer teaches nothing.
    Duplicates are items with the same ``question`` and ``answer`` (items without these keys: with the same content),
    and items whose vectors have the same direction up to rounding. The nearest row of a subset is last, so a language
    model reads it next to the question.

    Parameters
    ----------
    items : sequence of n mappings
        The pool of queries and examples. The feedback gets them unchanged.
    vectors : array-like, shape (n, d)
        The items' embeddings, of any length; the vector of a training item must not be zero.
    feedback : Feedback
        ``(query_item, subset_items) -> float``. A feedback with a method ``score`` gets all subsets of an item at once.
    k : int >= 1
        The size of a subset; with "greedy" the largest.
    candidates : int >= k
        The number of nearest items from which subsets are drawn; fewer if the pool has fewer.
    subsets : int >= 1, optional
        Subsets for each item. Default: the number of its candidates // k; for "greedy" at most 96 k.
    draw : "random" or "greedy"
        "random": subsets of k that do not overlap (paper). "greedy": subsets of 1 to k items near the picks of greedy
        MAP, the selection of :class:`NDPP`: the picks so far, and one of several items that could come next.
    queries, examples : iterable of int, optional
        The rows of the training items, in the order of labelling, and the rows that subsets are drawn from; default:
        all. The ``examples`` of :func:`hold_out` leave held-out items out.
    seed : int >= 0
        Item i draws with ``np.random.default_rng([seed, i])``, independently of the other items.
    resume : path, optional
        A file of JSON lines, to which the labels of each item are added at once. Labels of earlier runs with the same
        items, vectors and settings are read from it; ``queries`` and ``examples`` may differ. It identifies the
        feedback by its ``fingerprint``, else by its name or ``repr``, not by its code.
    progress : bool
        Show a progress bar (tqdm).
    say : callable, optional
        Called with one line about the size before a ``remote`` feedback is called; default: written to standard error.

    Returns
    -------
    list of LabelledSubset
        Item by item, in the order of ``queries``. The same input gives the same output.

    Raises
    ------
    InvalidInputError
        Items and vectors do not fit each other, a training item has too few candidates, the feedback is not a finite
        number, or ``resume`` is damaged; the message names the row or line.
    InvalidParameterError
        A parameter is out of its range, or ``resume`` was started with other settings or is in use by another run.

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
    check_one_of(draw, "draw", DRAWS)
    if draw == "greedy" and subsets is not None:
        # A comparison needs two subsets of each size.
        check_integer(subsets, "subsets", 2 * k)
    needed = k if draw == "greedy" else k * (subsets or 1)
    if needed > candidates:
        raise InvalidParameterError(
            f"{argument_name('candidates')} must be at least {needed} to draw {needed // k} subsets of "
            f"{argument_name('k')} = {k}, got {candidates}"
        )
    neighbours = Neighbours(items, vectors)
    rows = check_rows(queries, len(neighbours), "queries")
    among = None if examples is None else check_rows(examples, len(neighbours), "examples")
    with hold_lock(resume):
        file = None
        if resume is not None:
            settings = {
                "k": k, "candidates": candidates, "subsets": subsets, "draw": draw, "seed": seed,
                "feedback": describe(feedback), "items and vectors": neighbours.sha256,
            }  # fmt: skip
            file = LabelFile(resume, settings, len(neighbours))
        scored: dict[int, list[LabelledSubset]] = {} if file is None else file.known
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
                near, rng = nearest[row], np.random.default_rng([seed, row])
                if draw == "greedy":
                    places = _draw_greedily(neighbours.unit[row], neighbours.unit[near], k, subsets, rng)
                else:
                    count = len(near) // k if subsets is None else subsets
                    places = rng.permutation(len(near))[: count * k].reshape(count, k).tolist()
                sets = [tuple(near[sorted(subset, reverse=True)].tolist()) for subset in places]
                yield row, sets, [(neighbours.items[row], [neighbours.items[i] for i in subset]) for subset in sets]

        if getattr(feedback, "remote", False):
            # The subsets are drawn again below, because all prompts together would fill the memory.
            cost = feedback.cost(pair for _, _, pairs in drawn() for pair in pairs)  # type: ignore[attr-defined]
            (say or print_line)(f"to label {len(missing)} items: {cost}")
        if file is not None:
            file.begin()
        count, total = 0, 0.0
        with progress_bar(progress, len(rows), "item", "labelling", len(rows) - len(missing)) as advance:
            for row, sets, pairs in drawn():
                with noting(f"labelling item {row}"):
                    where = [f"item {row}, subset {place} (rows {subset})" for place, subset in enumerate(sets)]
                    scores = score_all(feedback, pairs, where)
                scored[row] = [LabelledSubset(row, subset, score) for subset, score in zip(sets, scores, strict=True)]
                if file is not None:
                    file.append(scored[row])
                count, total = count + len(scores), total + sum(scores)
                advance(score=f"{total / count:.3g}")
    return [entry for row in rows for entry in scored[row]]


def best(labels: Iterable[LabelledSubset], share: float) -> list[LabelledSubset]:
    """The share of all subsets with the highest scores, over all items together and in their order; at least one.

    The NDPP paper (4.2) takes 10 %. Of equal scores at the limit the earlier ones are kept.

    >>> [kept.score for kept in best([LabelledSubset(0, (1,), s) for s in (0.1, 0.9, 0.4, 0.9)], share=0.5)]
    [0.9, 0.9]
    """
    pool = list(labels)
    # In floating point, 0.29 * 100 is slightly less than 29.
    count = max(1, int(share * len(pool) + 1e-9))
    order = np.argsort([-entry.score for entry in pool], kind="stable")
    return [pool[place] for place in np.sort(order[:count])]


def check_labels(labels: Iterable[LabelledSubset], n: int) -> list[LabelledSubset]:
    """The labels as a list; the message about an entry that does not fit n items has its number."""
    entries = list(labels)
    if not entries:
        raise InvalidInputError("labels are empty: there is nothing to learn from")
    for place, entry in enumerate(entries):
        rows = {operator.index(row) for row in (entry.query, *entry.subset) if 0 <= row < n}
        if not 0 < len(entry.subset) == len(rows) - 1 or not np.isfinite(entry.score):
            raise InvalidInputError(
                f"labels: number {place}, {quoted(entry)}, must hold different rows of the {n} items, without the "
                "query's row, and a finite score"
            )
    return entries


def print_line(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(line + "\n")


def _draw_greedily(
    query: FloatArray, rows: FloatArray, k: int, subsets: int | None, rng: np.random.Generator
) -> list[list[int]]:
    """Different sets of 1 to k places in ``rows``, the unit vectors of a query's candidates.

    A path is a greedy selection with the unlearned kernel E Eᵀ and exponential relevance. The first path is exact; the
    others add Gumbel noise to the logarithms of the gains. Half of the items that are tried at a step have the largest
    gains with noise, the others are random.
    """
    weights = rows.dot(query) / TEMPERATURE
    steps = min(k, len(rows))
    most = PATHS * EACH * k if subsets is None else subsets
    # If few subsets are allowed, one whole path is better than the first steps of three.
    paths = max(1, min(PATHS, most // (2 * steps)))
    each = max(2, most // (paths * steps))
    sets: dict[frozenset[int], list[int]] = {}
    for path in range(paths):
        picks: list[int] = []
        ratios = np.einsum("nd,nd->n", rows, rows)
        explained = np.empty((steps, len(rows)))
        for step in range(steps):
            # A candidate in the span of the picks has ratio 0: it stays possible and comes last.
            scores = np.log(np.maximum(ratios, 1e-12)) + weights
            noisy = scores / NOISE + rng.gumbel(size=len(rows))
            scores[picks] = noisy[picks] = -np.inf
            order = np.argsort(-noisy, kind="stable")[: len(rows) - step]
            pick = int(order[0] if path else scores.argmax())
            near, far = order[: each // 2], order[each // 2 :]
            random = rng.choice(far, min(each - len(near), len(far)), replace=False)
            for place in (pick, *near.tolist(), *random.tolist()):
                sets.setdefault(frozenset((*picks, place)), [*picks, place])
            column = rows.dot(rows[pick]) - explained[:step, pick].dot(explained[:step])
            column /= max(ratios[pick], 1e-12) ** 0.5
            explained[step] = column
            ratios -= column * column
            picks.append(pick)
    return list(sets.values())[:most]


class LabelFile:
    """A file of JSON lines that grows: a header with the settings, then a line for each labelled item of a pool.

    The constructor reads and checks the file; ``known`` has its labels by the item's row.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any], pool: int) -> None:
        self.path, self._settings = Path(path), dict(settings)
        header = {"format": FORMAT, "version": VERSION, "settings": self._settings}
        self._header = json.dumps(header).encode() + b"\n"
        self.known: dict[int, list[LabelledSubset]] = {}
        content = self.path.read_bytes() if self.path.exists() else b""
        *lines, torn = content.split(b"\n")
        self._whole = len(content) - len(torn)
        wrong = f"is not a label for a pool of {pool} items: the file is damaged or of another kind; name another file"
        for number, line in enumerate(lines, 1):
            entry: Any = None
            with suppress(InvalidInputError):
                entry = parse_json(line)
            if number == 1:
                self._check_header(entry)
                continue
            try:
                pairs = zip(entry["subsets"], entry["scores"], strict=True)
                labels = [LabelledSubset(entry["query"], tuple(subset), as_float(score)) for subset, score in pairs]
                check_labels(labels, pool)
            except (TypeError, KeyError, ValueError):
                raise self._error(number, wrong) from None
            if labels[0].query in self.known:
                raise self._error(number, f"labels item {labels[0].query} a second time: remove one of the two")
            self.known[labels[0].query] = labels
        start = b'{"query": ' if lines else self._header
        if torn[: len(start)] != start[: len(torn)]:
            raise self._error(len(lines) + 1, wrong)

    def begin(self) -> None:
        """Create the file, or remove a torn last line, so that labels can be appended."""
        with named_errors(self.path), self.path.open("ab") as file:
            file.truncate(self._whole)
            if not self._whole:
                write_through(file, self._header)

    def append(self, labels: Sequence[LabelledSubset]) -> None:
        """Add an item's labels, and wait until they are on the disk."""
        subsets, scores = [entry.subset for entry in labels], [entry.score for entry in labels]
        line = json.dumps({"query": labels[0].query, "subsets": subsets, "scores": scores})
        with named_errors(self.path), self.path.open("ab") as file:
            write_through(file, line.encode() + b"\n")

    def _check_header(self, header: Any) -> None:
        then = header.get("settings") if isinstance(header, dict) else None
        if not isinstance(then, dict) or (header.get("format"), header.get("version")) != (FORMAT, VERSION):
            raise self._error(1, f"is not the header of labels of version {VERSION}; name another file")
        differing = "; ".join(
            f"{argument_name(name)} = {quoted(then.get(name))} then, {quoted(now)} now"
            for name, now in self._settings.items()
            if then.get(name) != now
        )
        if differing:
            raise InvalidParameterError(
                f"{self.path}: the labels were made with other settings: {differing}. Use the settings of the file, or "
                "name another file"
            )

    def _error(self, number: int, problem: str) -> InvalidInputError:
        return InvalidInputError(f"{self.path}: line {number} {problem}")


def describe(value: Any) -> str:
    """A text that identifies a feedback, also after a restart: its fingerprint, else its name or ``repr``."""
    if hasattr(value, "fingerprint"):
        return str(value.fingerprint)
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
