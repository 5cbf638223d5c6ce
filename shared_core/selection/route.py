"""The one route from candidates and their texts to a selection, and how many candidates it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import read_only
from ..candidates import TIE_TOLERANCE, Candidates
from ..errors import NothingLeftError, warn
from ..scaling import Scale, rescale
from ..selectors.registry import Selector, capabilities_of, check_usable
from ..selectors.selection import Selection, at_rows
from ..texts import Texts

# The number of picks of all adapters, batches and commands that are given none.
DEFAULT_K = 4
# How many documents of each extra retriever join the candidates: of 10, 25 and 50, 25 found the most on the development
# halves of the benchmarks.
DEFAULT_EXTRA_K = 25
# The number of picks that a set has in any case where ``min_gain`` ends it, chosen by benchmarks/min_gain.py.
DEFAULT_MIN_K = 2


def default_fetch_k(k: int | None) -> int:
    """The number of nearest candidates to select ``k`` from, where none is given; k is None if a budget ends the set.

    benchmarks/fetch_k.py measures what other numbers find and cost.
    """
    return max(50, 5 * (k or 0))


_EMPTY = Selection(read_only(np.zeros(0, np.int64)), read_only(np.zeros(0)), read_only(np.zeros(0)), 0.0)


class Limits(NamedTuple):
    """What ends a set, and what may not be in it, besides the constraints of :class:`Candidates`."""

    budget: float | None = None
    score_threshold: float | None = None
    min_gain: float | None = None
    min_k: int = DEFAULT_MIN_K
    # No two picks have the same text.
    drop_copies: bool = False
    # Too few candidates for k are an error.
    exactly_k: bool = False


_NO_LIMITS = Limits()


def select_set(
    candidates: Candidates,
    selector: Selector,
    k: int | None,
    *,
    question: str | Sequence[str] = "",
    texts: Texts | None = None,
    relevance_scale: Scale | None = "minmax",
    shown: Sequence[int] = (),
    limits: Limits = _NO_LIMITS,
) -> Selection:
    """Select up to ``k`` candidates. Whatever selects in this package calls this function.

    Words and references are read from ``texts``, if the selector uses them and the candidates have none. A given
    relevance is scaled for the selector, and reported as it was given. ``shown`` candidates may be below the threshold.
    Copies are left out before anything is measured on the candidates, so one more copy of a text changes nothing.
    """
    capabilities = check_usable(selector, candidates, limits.budget, shown)
    rows, left_out = _EMPTY.indices, list[int]()
    if texts is not None and limits.drop_copies:
        left_out = _find_copies(candidates, texts.bodies, shown, limits)
    if texts is not None and left_out:
        rows = np.delete(np.arange(len(candidates)), left_out)
        candidates, texts = candidates.take(rows), texts.take(rows.tolist())
        shown = np.searchsorted(rows, list(shown)).tolist()
        if candidates.cover is not None:
            candidates = candidates.with_checked(cover=candidates.cover.that_count())
    read = dict[str, Any]()
    if texts is not None and capabilities.words and candidates.words is None and any(question):
        read["words"] = texts.match_words(question)
    refers, adjoins = capabilities.references, capabilities.neighbours
    if texts is not None and (refers or adjoins) and candidates.references is None:
        read["references"] = texts.find_references(refer=refers, neighbours=adjoins, prefer=candidates.prefer)
    used = candidates.with_checked(**read) if read else candidates
    if candidates.relevance_given:
        used = used.with_values(relevance=rescale(candidates.relevance, relevance_scale))
    selection = _select_up_to(k, used, candidates.relevance, selector, shown, limits)
    if limits.min_gain is not None:
        count = count_worthwhile(selection, selector, limits.min_gain, limits.min_k)
        if count < len(selection):
            # The first picks of a larger set are not always the smaller set.
            fewer = _select_up_to(count, used, candidates.relevance, selector, shown, limits) if count else _EMPTY
            selection = replace(fewer, ended=True)
    if candidates.relevance_given:
        plain = read_only(candidates.relevance[selection.indices].astype(np.float64))
        selection = replace(selection, relevance=plain)
    return replace(at_rows(selection, rows), left_out=tuple(left_out)) if left_out else selection


def _find_copies(candidates: Candidates, bodies: Sequence[str], shown: Sequence[int], limits: Limits) -> list[int]:
    """The rows of texts that another row has. A shown row stays; else by ``prefer``, by given relevance, the first one.

    A copy that costs more than the whole budget, or whose given relevance is below the threshold, is the last choice.
    """
    fits, order = np.ones(len(bodies), np.bool_), np.arange(len(bodies))
    if candidates.relevance_given:
        order = np.argsort(-candidates.relevance, kind="stable")
        if limits.score_threshold is not None:
            fits = candidates.relevance >= limits.score_threshold
    if candidates.prefer is not None:
        order = order[np.argsort(-candidates.prefer[order], kind="stable")]
    if limits.budget is not None and candidates.costs is not None:
        fits &= candidates.costs <= limits.budget
    order = order[np.argsort(~fits[order], kind="stable")]
    seen = {bodies[row] for row in shown}
    left_out = []
    for row in order.tolist():
        if row not in shown and bodies[row] and bodies[row] in seen:
            left_out.append(row)
        seen.add(bodies[row])
    return sorted(left_out)


def _select_up_to(
    k: int | None,
    candidates: Candidates,
    plain: NDArray[np.floating],
    selector: Selector,
    shown: Sequence[int],
    limits: Limits,
) -> Selection:
    """Select ``k`` of the candidates whose plain relevance is high enough, or all of them if there are fewer."""
    if limits.exactly_k:
        return selector.select(candidates, k, budget=limits.budget, shown=shown)
    rows = None
    if limits.score_threshold is not None:
        # A threshold of 1 must not drop copies of the query, whose cosine may be 1 minus rounding.
        tolerance = 0.0 if candidates.relevance_given else TIE_TOLERANCE[candidates.dtype]
        near = plain.astype(np.float64) >= limits.score_threshold - tolerance
        near[list(shown)] = True
        rows = np.flatnonzero(near)
        shown = np.searchsorted(rows, list(shown)).tolist()
        if len(rows) == len(shown):
            return _EMPTY
        candidates = candidates.take(rows)
    available = len(candidates.vectors) - len(shown)
    if not available:
        return _EMPTY
    budget, costs = limits.budget, candidates.costs
    if budget is not None and costs is not None and (cheapest := np.delete(costs, shown).min()) > budget:
        warn(f"nothing fits into budget={budget:g}: the cheapest candidate costs {cheapest:g}")
    try:
        selection = selector.select(candidates, None if k is None else min(k, available), budget=budget, shown=shown)
    except NothingLeftError:
        return _EMPTY
    return selection if rows is None else at_rows(selection, rows)


def count_worthwhile(selection: Selection, selector: Selector, min_gain: float, min_k: int) -> int:
    """How many picks come before the first after ``min_k`` whose gain is below ``min_gain``; see :func:`select`.

    Gains that are logarithms are 0 for the most relevant candidate by itself. Other gains are divided by the first.
    """
    gains = selection.gains
    if capabilities_of(selector).log_gains:
        worth = np.exp(np.minimum(gains, 0))
    elif len(gains) and gains[0] > 0:
        worth = gains / gains[0]
    else:
        return len(gains)
    below = np.flatnonzero(worth[min_k:] < min_gain)
    return min_k + int(below[0]) if len(below) else len(gains)
