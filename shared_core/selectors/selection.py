"""The result of a selection: the picks in order, with their gains, and of many queries."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import ReadOnlyArrays, quoted, read_only
from ..candidates import CandidateBlock, Candidates, cosines_with_queries, standardise
from ..errors import InvalidInputError

# The repr of a selection shows at most this many picks.
MAX_SHOWN = 20


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
        Cosine of each pick with the query, or the relevance that was given. :func:`select`, batches and the adapters
        report a given relevance as it was before scaling.
    objective : float
        Value of the set by the selector's own measure: the sum of the gains (for :class:`NDPP` their product). If
        candidates were ``shown`` before, it is what the set adds to them.
    filled_from : int or None
        Position of the first pick that was filled in by relevance, because all further gains were 0.
        None if no pick was filled in.
    referred_by : int64, shape (k,), or None
        The row of the earlier pick, or of the ``shown`` candidate, that refers to the pick and brought it a bonus; -1
        where there is none. None if there were no ``references``, or the selector does not use them.
    reference_kinds : int8, shape (k,), or None
        The kind of that reference, as an index of ``REFERENCE_KINDS``; -1 where there is none. None if it is not known.
    serves : int64, shape (k,), or None
        With sub-questions: the row of the question that each pick serves best, by its cosine in standard deviations of
        all candidates. Of equal questions it is the first. None without sub-questions.
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
    left_out: tuple[int, ...] = ()
    ended: bool = False

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        first = ", ".join(map(str, self.indices[:MAX_SHOWN].tolist()))
        more = ", ..." if len(self) > MAX_SHOWN else ""
        filled = "" if self.filled_from is None else f", filled_from={self.filled_from}"
        return f"Selection(k={len(self)}, indices=[{first}{more}], objective={self.objective:.4g}{filled})"

    def _repr_html_(self) -> str:
        """A table for notebooks: each pick with its relevance and its gain."""
        columns: dict[str, Iterable[Any]] = {
            "candidate": self.indices.tolist(),
            "relevance": map("{:.4f}".format, self.relevance),
            "gain": map("{:.4f}".format, self.gains),
        }
        if self.referred_by is not None:
            columns["referred by"] = ("" if row < 0 else row for row in self.referred_by.tolist())
        if self.serves is not None:
            columns["serves"] = self.serves.tolist()
        rows = "".join(
            f"<tr><th>{pick}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
            for pick, cells in enumerate(islice(zip(*columns.values(), strict=True), MAX_SHOWN), 1)
        )
        head = f"<tr>{''.join(f'<th>{name}</th>' for name in ('pick', *columns))}</tr>"
        more = f" The first {MAX_SHOWN} are shown." if len(self) > MAX_SHOWN else ""
        caption = f"<caption>{len(self)} picks, objective {self.objective:.4g}.{more}</caption>"
        return f"<table>{caption}<thead>{head}</thead><tbody>{rows}</tbody></table>"


def make_selection(
    candidates: Candidates,
    picks: list[int],
    gains: list[float],
    *,
    product: bool = False,
    filled_from: int | None = None,
    referred_by: ArrayLike | None = None,
) -> Selection:
    """Make a read-only :class:`Selection` of picks and gains; for authors of selectors.

    Parameters
    ----------
    candidates : Candidates
        What was selected from.
    picks : list of k int
        Rows of the candidates, in the order of the picks.
    gains : list of k float
        What each pick added to the objective.
    product : bool
        Whether the objective is the product of the gains; by default it is their sum.
    filled_from : int >= 0, optional
        Position of the first pick that was filled in by relevance.
    referred_by : array-like of k int, optional
        The row that refers to each pick; -1 for none.

    Raises
    ------
    InvalidInputError
        A pick is not a row of the candidates, or the numbers of picks and gains differ.

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
    indices, values = np.array(picks, np.int64), np.array(gains, np.float64)
    relevance = candidates.relevance.take(indices).astype(np.float64)
    objective = float(math.prod(gains) if product else sum(gains))
    indices.flags.writeable = values.flags.writeable = relevance.flags.writeable = False
    referring = kinds = serves = None
    if referred_by is not None:
        referring = np.array(referred_by, np.int64)
        referring.flags.writeable = False
        if candidates.references is not None and candidates.references.kinds is not None:
            kinds = np.where(referring < 0, np.int8(-1), candidates.references.kinds[referring, indices])
            kinds.flags.writeable = False
    if len(candidates.questions) > 1:
        serves = read_only(best_question(candidates)[indices])
    return Selection(indices, values, relevance, objective, filled_from, referring, kinds, serves)


def best_question(candidates: Candidates) -> NDArray[np.int64]:
    """The row of the question that each candidate serves best, shape (n,): by its cosine in standard deviations."""
    best: NDArray[np.int64] = standardise(cosines_with_queries(candidates), candidates.dtype)[0].argmax(axis=0)
    return best


def at_rows(selection: Selection, rows: NDArray[np.int64]) -> Selection:
    """A selection among some rows, with the numbers that these rows have in a larger set."""
    referring = selection.referred_by
    # -1 stands for none.
    referred_by = None if referring is None else read_only(np.where(referring < 0, -1, rows[referring]))
    return dataclasses.replace(selection, indices=read_only(rows[selection.indices]), referred_by=referred_by)


@dataclasses.dataclass(frozen=True, eq=False)
class Selections(ReadOnlyArrays):
    """The selections of Q queries, read-only.

    Attributes
    ----------
    indices : int64, shape (Q, k)
        The rows of the picks of each query, in the order of the picks.
    gains, relevance : float64, shape (Q, k)
        What each pick added to the objective, and its relevance for the query.
    objective : float64, shape (Q,)
        What the selector maximised, for each query.
    filled_from : int64, shape (Q,)
        As in :class:`Selection`, with -1 for None.
    referred_by : int64, reference_kinds : int8, shape (Q, k), or None
        As in :class:`Selection`.
    serves : int64, shape (Q, k), or None
        As in :class:`Selection`, with 0 for a question without sub-questions. None if no array of several was given.

    Examples
    --------
    >>> from setselect import select_many
    >>> many = select_many([[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 3.0]], k=1)
    >>> many
    Selections(queries=2, k=1, mean objective=0.04879)
    >>> many.indices.tolist(), many[1]
    ([[0], [1]], Selection(k=1, indices=[1], objective=0.04879))
    """

    indices: NDArray[np.int64]
    gains: NDArray[np.float64]
    relevance: NDArray[np.float64]
    objective: NDArray[np.float64]
    filled_from: NDArray[np.int64]
    referred_by: NDArray[np.int64] | None = None
    reference_kinds: NDArray[np.int8] | None = None
    serves: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        queries, k = self.indices.shape
        return f"Selections(queries={queries}, k={k}, mean objective={self.objective.mean():.4g})"

    def __getitem__(self, query: int) -> Selection:
        filled_from = int(self.filled_from[query])
        return Selection(
            self.indices[query],
            self.gains[query],
            self.relevance[query],
            float(self.objective[query]),
            None if filled_from < 0 else filled_from,
            None if self.referred_by is None else self.referred_by[query],
            None if self.reference_kinds is None else self.reference_kinds[query],
            None if self.serves is None else self.serves[query],
        )


def make_selections(
    block: CandidateBlock,
    picks: NDArray[np.int64],
    gains: NDArray[np.float64],
    objective: NDArray[np.float64],
    filled_from: NDArray[np.int64] | None = None,
) -> Selections:
    """Read-only :class:`Selections` of picks (b, k) and gains (b, k) for each query of a block."""
    relevance = np.take_along_axis(block.relevance, picks, axis=1).astype(np.float64)
    filled = np.full(len(picks), -1) if filled_from is None else filled_from
    columns: tuple[NDArray[Any], ...] = (picks, gains, relevance, objective, filled)
    return Selections(*map(read_only, columns))
