"""The result of a selection: the picks in order, with their gains, and of many queries."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import ReadOnlyArrays, read_only
from ..candidates import REFERENCE_KINDS, Candidates, standardise
from ..errors import InvalidInputError, quoted

# The repr of a selection shows at most this many picks.
MAX_SHOWN = 20
# A reason shows at most this many characters of a name.
MAX_NAME = 80
# What has a smaller share of a pick's worth than this, as 0 %, is no reason.
LEAST_SAID = 0.005
# How each kind of reference leads to a pick.
LEADS = dict(zip(REFERENCE_KINDS, ("named by", "linked by", "cited by", "next to"), strict=True))


@dataclasses.dataclass(frozen=True, eq=False)
class Selection(ReadOnlyArrays):
    """The selected set, in the order of the picks, with the gain of each pick.

    Attributes
    ----------
    indices : int64, shape (k,)
        Rows of the candidates, without repeats.
    gains : float64, shape (k,)
        What each pick added to the selector's own objective: a factor for :class:`NDPP`, a summand for the others.
        0 for a pick that was filled in.
    relevance : float64, shape (k,)
        Cosine of each pick with the query, or the relevance that was given, before it was scaled.
    objective : float
        The sum of the gains (for :class:`NDPP` their product).
    filled_from : int or None
        Position of the first pick that was filled in by relevance, because all further gains were 0.
    referred_by : int64, shape (k,), or None
        The row of the earlier pick, or of the ``shown`` candidate, that refers to the pick and brought it a bonus; -1
        where there is none. None if there were no ``references``, or the selector does not use them.
    reference_kinds : int8, shape (k,), or None
        The kind of that reference, as an index of ``REFERENCE_KINDS``; -1 where there is none. None if it is not known.
    serves : int64, shape (k,), or None
        With sub-questions: the row of the question that each pick serves best, by its cosine in standard deviations of
        all candidates. Of equal questions it is the first.
    shares : float64, shape (k, 3), or None
        What three things have of each pick's worth with :class:`Coverage`, with sum 1, or 0 where it has none: its
        relevance above that of the least relevant candidate; the parts (words, sub-questions, values of ``cover``) that
        it covers and no earlier pick does; and the bonus for what refers to it.
    left_out : tuple of int
        The rows of candidates that were left out because another one has the same text, if copies are dropped.
    ended : bool
        Whether ``min_gain`` ended the set before ``k`` picks.

    Examples
    --------
    >>> from setselect import select
    >>> s = select([1.0, 1.0], [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], k=2, selector="vrsd")
    >>> s
    Selection(k=2, indices=[1, 2], objective=0.9988)
    >>> s.relevance.round(3).tolist()
    [0.774, 0.707]
    """

    indices: NDArray[np.int64]
    gains: NDArray[np.float64]
    relevance: NDArray[np.float64]
    objective: float
    filled_from: int | None = None
    referred_by: NDArray[np.int64] | None = None
    reference_kinds: NDArray[np.int8] | None = None
    serves: NDArray[np.int64] | None = None
    shares: NDArray[np.float64] | None = None
    left_out: tuple[int, ...] = ()
    ended: bool = False

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        first = ", ".join(map(str, self.indices[:MAX_SHOWN].tolist()))
        more = ", ..." if len(self) > MAX_SHOWN else ""
        filled = "" if self.filled_from is None else f", filled_from={self.filled_from}"
        return f"Selection(k={len(self)}, indices=[{first}{more}], objective={self.objective:.4g}{filled})"


def make_selection(
    candidates: Candidates,
    picks: list[int],
    gains: list[float],
    *,
    product: bool = False,
    filled_from: int | None = None,
    referred_by: ArrayLike | None = None,
    shares: ArrayLike | None = None,
) -> Selection:
    """Make a read-only :class:`Selection` of picks and gains; for authors of selectors.

    Parameters
    ----------
    candidates : Candidates
        What was selected from.
    picks, gains : list of k int, and list of k float
        Rows of the candidates, in the order of the picks, and what each pick added to the objective.
    product : bool
        Whether the objective is the product of the gains; by default it is their sum.
    filled_from, referred_by, shares
        The attributes of :class:`Selection`.

    Examples
    --------
    >>> from setselect import Candidates
    >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]])
    >>> make_selection(c, [0], [1.0]).relevance.tolist()
    [1.0]
    """
    if len(picks) != len(gains) or (len(picks) and not 0 <= min(picks) <= max(picks) < len(candidates.vectors)):
        raise InvalidInputError(
            f"picks must be rows of the {len(candidates)} candidates, with one gain for each, got picks "
            f"{quoted(picks)} and gains {quoted(gains)}"
        )
    indices, references = np.array(picks, np.int64), candidates.references
    referring = kinds = serves = None
    if referred_by is not None:
        referring = np.array(referred_by, np.int64)
        if references is not None and references.kinds is not None:
            kinds = np.where(referring < 0, np.int8(-1), references.kinds[referring, indices])
    if len(candidates.questions) > 1:
        serves = best_question(candidates)[indices]
    arrays = {
        "indices": indices,
        "gains": np.array(gains, np.float64),
        "relevance": candidates.relevance.take(indices).astype(np.float64),
        "referred_by": referring,
        "reference_kinds": kinds,
        "serves": serves,
        "shares": None if shares is None else np.array(shares, np.float64),
    }
    for array in arrays.values():
        if array is not None:
            array.setflags(write=False)
    objective = float(math.prod(gains) if product else sum(gains))
    made = object.__new__(Selection)
    # A frozen dataclass sets its fields one by one, which takes 3 µs.
    made.__dict__.update(arrays, objective=objective, filled_from=filled_from, left_out=(), ended=False)
    return made


def best_question(candidates: Candidates) -> NDArray[np.int64]:
    """The row of the question that each candidate serves best, shape (n,): by its cosine in standard deviations."""
    best: NDArray[np.int64] = standardise(candidates.cosines)[0].argmax(axis=0)
    return best


def write_reasons(
    selection: Selection,
    *,
    words: Sequence[Sequence[str]] | None = None,
    exact: Sequence[Sequence[str]] | None = None,
    covers: Sequence[Sequence[str]] | None = None,
    name_row: Callable[[int], str] = str,
) -> list[str]:
    """Why each pick is there: its relevance, what it covers that no earlier pick does, and which text leads to it.

    ``words`` has for each pick those of the question, ``exact`` what the question names exactly, and ``covers`` its
    further parts. ``name_row`` names the text that leads to a pick. A percentage is the share of the pick's worth; the
    three have one together.

    >>> from setselect import select
    >>> write_reasons(select([1.0, 0.0], [[1.0, 0.1], [0.5, 1.0], [0.0, 1.0]], k=2, references=[[0, 1, 0]] * 3))
    ['relevance 0.995 (100 %)', 'relevance 0.447 (23 %); referred to by 0 (77 %)']
    """
    # Where only the relevance counts, its share says nothing.
    shares = None if selection.shares is None or not selection.shares[:, 1:].any() else selection.shares
    reasons = []
    for i, relevance in enumerate(selection.relevance.tolist()):
        percent = ["", "", ""] if shares is None else [f" ({100 * share:.0f} %)" for share in shares[i]]
        said = [f"relevance {relevance:.3g}{percent[0]}"]
        columns = {"exact name": exact, "words": words, "covers": covers}
        named = {what: column[i] if column else () for what, column in columns.items()}
        parts = "; ".join(f"{what}: {', '.join(map(_shorten, names))}" for what, names in named.items() if names)
        if shares is not None:
            parts = (parts or "covers more") if shares[i, 1] >= LEAST_SAID else ""
        if parts:
            said.append(parts + percent[1])
        if selection.referred_by is not None and selection.referred_by[i] >= 0:
            kinds = selection.reference_kinds
            lead = "referred to by" if kinds is None else LEADS[REFERENCE_KINDS[kinds[i]]]
            said.append(f"{lead} {_shorten(name_row(int(selection.referred_by[i])))}{percent[2]}")
        reasons.append("; ".join(said))
    return reasons


def _shorten(text: str) -> str:
    """The text on one line, without its end if it is long."""
    text = " ".join(text[: 2 * MAX_NAME].split())
    return text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 1].rstrip()}…"


def newly_served(selection: Selection, name: Callable[[int], str] = "sub-question {}".format) -> list[list[str]]:
    """For each pick the sub-question that it serves best, unless an earlier pick serves it too."""
    if selection.serves is None:
        return [[] for _ in selection.indices]
    serves = selection.serves.tolist()
    return [[] if row in serves[:i] else [name(row) if row else "the question"] for i, row in enumerate(serves)]


def at_rows(selection: Selection, rows: NDArray[np.int64]) -> Selection:
    """A selection among some rows, with the numbers that these rows have in a larger set."""
    referring = selection.referred_by
    # -1 stands for none.
    referred_by = None if referring is None else read_only(np.where(referring < 0, -1, rows[referring]))
    return dataclasses.replace(selection, indices=read_only(rows[selection.indices]), referred_by=referred_by)


@dataclasses.dataclass(frozen=True, eq=False)
class Selections(ReadOnlyArrays):
    """The selections of Q queries, read-only: one for each query, and their picks as arrays.

    Attributes
    ----------
    indices, gains, relevance : arrays, shape (Q, k)
        As in :class:`Selection`.
    objective : float64, shape (Q,)
        As in :class:`Selection`.
    members : tuple of Q Selection
        ``many[i]`` is ``many.members[i]``.

    Examples
    --------
    >>> from setselect import select_many
    >>> many = select_many([[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 3.0]], k=2)
    >>> many
    Selections(queries=2, k=2, mean objective=-4)
    >>> many.indices.tolist(), many[1]
    ([[0, 1], [1, 0]], Selection(k=2, indices=[1, 0], objective=-4))
    """

    indices: NDArray[np.int64]
    gains: NDArray[np.float64]
    relevance: NDArray[np.float64]
    objective: NDArray[np.float64]
    members: tuple[Selection, ...]

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        queries, k = self.indices.shape
        return f"Selections(queries={queries}, k={k}, mean objective={self.objective.mean():.4g})"

    def __getitem__(self, query: int) -> Selection:
        return self.members[query]


def join_selections(selections: Sequence[Selection]) -> Selections:
    """The selections of one or more queries, which all have k picks."""
    names = ("indices", "gains", "relevance", "objective")
    columns: Any = {name: read_only(np.array([getattr(one, name) for one in selections])) for name in names}
    return Selections(**columns, members=tuple(selections))
