"""What a user of an adapter asks for, checked, and the choice among a framework's items that follows from it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import as_identifiers, check_integer
from ..arrays import as_numeric
from ..candidates import Candidates
from ..errors import InvalidInputError, InvalidParameterError, SetSelectWarning
from ..perspective import PAP
from ..selectors.at_once import select_at_once
from ..selectors.base import Selection, Selector
from ..selectors.choose import choose
from ..selectors.compiled import MOST_BYTES
from ..selectors.mmr import MMR
from ..selectors.top_k import TopK
from ..selectors.vrsd import VRSD
from ..signals.extraction import checked_perspective_vector, pap_for
from ..signals.quality import ItemValue, item_values
from ._names import CHOICE_KEYS, all_parameters, refuse_near_misses
from ._settings import checked_budget, checked_perspective, cosine, key_or_function, selector_of, sizes
from .items import ItemName, item_names, stacked

# A retriever that is short of sources fetches more by itself, up to so many.
WIDEST = 20_000
# These choose k of n in about a millisecond while n k is at most so much; going to a thread and back takes 0.1 ms.
_QUICK = (TopK, VRSD, MMR)
_QUICK_SIZE = 4_000
# The first choice of a kind in a process may import a compiler and wait for it.
_MADE: set[Hashable] = set()


@dataclass(frozen=True, eq=False)
class Asked:
    """A query's embedding, and the perspective to see it under."""

    vector: NDArray[np.float64]
    pap: PAP | None
    given: Sequence[float] | None = None

    @property
    def searched(self) -> list[float]:
        """What to search a store with."""
        # As it came where it is a list of Python's own floats, which embedding models give.
        if self.pap is None and type(self.given) is list and type(self.given[0]) is float:
            return self.given
        searched: list[float] = (self.vector if self.pap is None else self.pap.project(self.vector)).tolist()
        return searched


class Choice(NamedTuple):
    """The chosen items in the order of choice, and why; ``selection.indices`` are rows of the items given."""

    items: list[Any]
    selection: Selection
    starved: bool


@dataclass(frozen=True, eq=False)
class Request:
    """The settings of one choice; see the adapters' classes for what each means."""

    selector: Selector
    k: int | None
    fetch_k: int
    score_threshold: float | None
    shown: tuple[Hashable, ...]
    budget: float | None
    costs: ItemValue | None
    quality: ItemValue | None
    source: ItemName | None
    max_per_source: int | None
    drop_near_duplicates: float | None
    perspective: Any
    perspective_vector: str
    direction: str
    corpus: bool

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> tuple[Request, dict[str, Any]]:
        """The request, and what is neither a setting nor a parameter of a selector (the store's, perhaps).

        Raises
        ------
        InvalidParameterError, BudgetError, PerspectiveError
            A value is out of range, or a name is close to one of ours without being it.
        """
        rest = dict(settings)
        taken = {name: rest.pop(name, None) for name in CHOICE_KEYS}
        parameters = {name: rest.pop(name) for name in all_parameters() if name in rest}
        refuse_near_misses(rest)
        k, fetch_k = sizes(taken["k"], taken["fetch_k"], taken["budget"])
        shown = as_identifiers(taken["shown"], "shown")
        most = taken["max_per_source"]
        if most is not None and taken["source"] is None:
            raise InvalidParameterError("max_per_source needs source=: a metadata key or a function of the item")
        corpus, direction = taken["corpus"] or False, taken["direction"] or "remove"
        perspective = checked_perspective(taken["perspective"], corpus, direction)
        request = cls(
            selector=selector_of(taken["selector"], parameters),
            k=k,
            fetch_k=fetch_k + len(shown),
            score_threshold=cosine(taken["score_threshold"], "score_threshold"),
            shown=shown,
            budget=checked_budget(taken["budget"], taken["costs"]),
            costs=key_or_function(taken["costs"], "costs"),
            quality=key_or_function(taken["quality"], "quality"),
            source=key_or_function(taken["source"], "source"),
            max_per_source=None if most is None else check_integer(most, "max_per_source", 1),
            drop_near_duplicates=cosine(taken["drop_near_duplicates"], "drop_near_duplicates"),
            perspective=perspective,
            perspective_vector=checked_perspective_vector(taken["perspective_vector"] or "text", perspective),
            direction=direction,
            corpus=corpus,
        )
        return request, rest

    def asked(
        self,
        vector: Sequence[float],
        embedded: Sequence[float] | None,
        own: Sequence[float] | None = None,
    ) -> Asked:
        """The query as it is to be seen, from its embedding and that of what ``text_to_embed`` named.

        ``own`` is the embedding of the query's own words, where ``vector`` is that of others (HyDE).

        Raises
        ------
        InvalidInputError
            The query's embedding is zero or not finite.
        PerspectiveError
            The perspective cannot be projected on.
        """
        array = as_numeric(vector, "the query's embedding").astype(np.float64, copy=False)
        # One pass that tells most of the time; a square may leave the range of a double where the vector does not.
        if not 0 < np.vdot(array, array) < math.inf:
            if not np.isfinite(array).all():
                raise InvalidInputError("the query's embedding holds NaN or inf")
            if not array.any():
                raise InvalidInputError("the query's embedding is the zero vector: it has no direction to be near to")
        if self.perspective is None:
            return Asked(array, None, vector)
        pap = pap_for(
            self.perspective,
            array if own is None else own,
            embedded,
            perspective_vector=self.perspective_vector,
            corpus=self.corpus,
            direction=self.direction,
        )
        return Asked(array, pap, vector)

    def choose(self, items: Sequence[Any], ids: Sequence[Hashable], vectors: Any, asked: Asked) -> Choice:
        """Choose among items, whose vectors are given row by row.

        Of items with one id the first counts; those whose id is None cannot be told apart and all count.
        """
        rows = _first_of_each(ids)
        kept, names, matrix = items, ids, vectors
        if rows is not None:
            kept, names = [items[row] for row in rows], [ids[row] for row in rows]
            matrix = [vectors[row] for row in rows]
        chosen, starved = self._choose(kept, names, matrix, asked)
        if rows is not None:
            chosen = replace(chosen, indices=np.array(rows, dtype=np.int64)[chosen.indices])
        _MADE.add(self._kind(vectors))
        return Choice([items[row] for row in chosen.indices.tolist()], chosen, starved)

    def _choose(
        self, items: Sequence[Any], names: Sequence[Hashable], vectors: Any, asked: Asked
    ) -> tuple[Selection, bool]:
        """The choice among items of different names, and whether a wider search would bring more."""
        rows = as_numeric(stacked(vectors, names), "vectors")
        quality = None if self.quality is None else item_values(items, self.quality, "quality")
        plain = self.k is not None and self._nothing_but_k and asked.pap is None
        if plain and rows.ndim == 2 and len(names) == len(rows):
            assert self.k is not None
            at_once = select_at_once(asked.vector, rows, min(self.k, len(names)), self.selector, quality)
            if at_once is not None:
                return at_once, False
        capped = self.max_per_source is not None
        candidates = Candidates.borrow(
            asked.vector,
            rows,
            quality=quality,
            ids=names,
            costs=None if self.costs is None else item_values(items, self.costs, "costs"),
            sources=item_names(items, self.source, "source") if capped and self.source is not None else None,
            max_per_source=self.max_per_source,
            drop_near_duplicates=self.drop_near_duplicates,
        )
        if asked.pap is not None:
            candidates = asked.pap.apply(candidates)
        known = set(self.shown)
        shown = [row for row, name in enumerate(names) if name is not None and name in known] if known else []
        chosen = choose(
            candidates,
            self.selector,
            self.k,
            budget=self.budget,
            shown=shown,
            score_threshold=self.score_threshold,
        )
        return chosen, self._starved(candidates, chosen, shown)

    def _kind(self, vectors: Any) -> Hashable:
        """What tells which code makes the choice: that of another kind may have to be compiled."""
        refined = isinstance(self.selector, VRSD) and bool(self.selector.refine)
        plain = self._nothing_but_k and self.perspective is None
        if isinstance(vectors, np.ndarray):
            return type(self.selector), refined, plain, vectors.dtype, vectors.flags.carray, vectors.nbytes > MOST_BYTES
        return type(self.selector), refined, plain, getattr(vectors[0], "dtype", None)

    @property
    def _nothing_but_k(self) -> bool:
        limits = self.budget, self.costs, self.max_per_source, self.drop_near_duplicates, self.score_threshold
        return not self.shown and limits == (None,) * len(limits)

    def is_quick(self, vectors: Any) -> bool:
        """Whether the choice among these takes about a millisecond at most and calls no function of the user's.

        Then an event loop makes it by itself sooner than in a thread. The first of a kind in a process is not quick.
        """
        return (
            type(self.selector) in _QUICK
            and self.k is not None
            and 0 < len(vectors) * self.k <= _QUICK_SIZE
            and self._kind(vectors) in _MADE
            and not any(callable(given) for given in (self.quality, self.costs))
            and not (self.max_per_source is not None and callable(self.source))
        )

    def wider(self, choice: Choice, fetched: int, fetch_k: int, widest: int = WIDEST) -> int | None:
        """How many candidates to fetch in another try; None where that would not help, or not be worth it.

        ``widest`` is the most that the store gives at a time.
        """
        if not choice.starved or fetched < fetch_k:
            return None
        if fetch_k >= widest:
            warnings.warn(
                f"{len(choice.items)} chosen out of {fetched} candidates: max_per_source or drop_near_duplicates "
                f"forbids the others, and no more than {widest} are fetched unasked. A larger fetch_k= fetches more",
                SetSelectWarning,
                stacklevel=3,
            )
            return None
        return min(4 * fetch_k, widest)

    def _starved(self, candidates: Candidates, chosen: Selection, shown: Sequence[int]) -> bool:
        """Whether the set is short because sources or near-duplicates forbid what there is, and more may be allowed."""
        limited = self.max_per_source is not None or self.drop_near_duplicates is not None
        if not limited or (self.k is not None and len(chosen) >= self.k):
            return False
        if self.score_threshold is not None and float(candidates.relevance.min()) < self.score_threshold:
            return False
        if self.budget is None or candidates.costs is None:
            return True
        open_ = np.ones(len(candidates), dtype=np.bool_)
        open_[[*chosen.indices.tolist(), *shown]] = False
        left = self.budget - float(candidates.costs[chosen.indices].sum())
        return bool((candidates.costs[open_] <= left).any())


def _first_of_each(ids: Sequence[Hashable]) -> list[int] | None:
    """Rows of the items that count; None where all do."""
    if len(set(ids)) == len(ids):
        return None
    first: dict[Hashable, int] = {}
    rows = [row for row, name in enumerate(ids) if name is None or first.setdefault(name, row) == row]
    return None if len(rows) == len(ids) else rows
