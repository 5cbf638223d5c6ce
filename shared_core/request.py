"""What a user of an adapter asks for, checked, and the choice among a framework's items that follows from it."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .candidates import Candidates
from .checks import identifiers, integer, number, one_of
from .choice import choose
from .errors import BudgetError, InvalidInputError, InvalidParameterError, PerspectiveError, SetSelectWarning
from .extraction import checked_perspective_vector, pap_for
from .items import ItemName, item_names, stacked
from .perspective import DIRECTIONS, PAP
from .quality import ItemValue, item_values
from .selection import Selection, Selector, resolve_selector, selector_names, selector_parameters

# LangChain's default, so that a move from as_retriever(search_type="mmr") changes the class and nothing else.
DEFAULT_LAMBDA_MULT = 0.5
# A retriever that is short of sources fetches more by itself, up to so many.
WIDEST = 20_000
CHOICE_KEYS = (
    "k",
    "fetch_k",
    "score_threshold",
    "shown",
    "budget",
    "costs",
    "quality",
    "source",
    "max_per_source",
    "drop_near_duplicates",
    "perspective",
    "perspective_vector",
    "direction",
    "corpus",
    "selector",
)


@dataclass(frozen=True, eq=False)
class Asked:
    """A query's embedding, and the perspective to see it under."""

    vector: Sequence[float]
    pap: PAP | None

    @property
    def searched(self) -> list[float]:
        """What to search a store with."""
        vector = self.vector if self.pap is None else self.pap.project(self.vector)
        searched: list[float] = np.asarray(vector, dtype=np.float64).tolist()
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
        k, fetch_k = _sizes(taken["k"], taken["fetch_k"], taken["budget"])
        shown = identifiers(taken["shown"], "shown")
        most = taken["max_per_source"]
        if most is not None and taken["source"] is None:
            raise InvalidParameterError("max_per_source needs source=: a metadata key or a function of the item")
        corpus, direction = taken["corpus"] or False, taken["direction"] or "remove"
        perspective = _perspective(taken["perspective"], corpus, direction)
        request = cls(
            selector=_selector(taken["selector"], parameters),
            k=k,
            fetch_k=fetch_k + len(shown),
            score_threshold=_cosine(taken["score_threshold"], "score_threshold"),
            shown=shown,
            budget=_budget(taken["budget"], taken["costs"]),
            costs=_key_or_function(taken["costs"], "costs"),
            quality=_key_or_function(taken["quality"], "quality"),
            source=_key_or_function(taken["source"], "source"),
            max_per_source=None if most is None else integer(most, "max_per_source", 1),
            drop_near_duplicates=_cosine(taken["drop_near_duplicates"], "drop_near_duplicates"),
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
        array = np.asarray(vector, dtype=np.float64)
        if not np.isfinite(array).all():
            raise InvalidInputError("the query's embedding holds NaN or inf")
        if not array.any():
            raise InvalidInputError("the query's embedding is the zero vector: it has no direction to be near to")
        if self.perspective is None:
            return Asked(vector, None)
        pap = pap_for(
            self.perspective,
            vector if own is None else own,
            embedded,
            perspective_vector=self.perspective_vector,
            corpus=self.corpus,
            direction=self.direction,
        )
        return Asked(vector, pap)

    def choose(self, items: Sequence[Any], ids: Sequence[Hashable], vectors: Any, asked: Asked) -> Choice:
        """Choose among items, whose vectors are given row by row.

        Of items with one id the first counts; those whose id is None cannot be told apart and all count.
        """
        rows = _first_of_each(ids)
        kept = [items[row] for row in rows]
        names = [ids[row] for row in rows]
        capped = self.max_per_source is not None
        matrix = vectors if len(rows) == len(items) else [vectors[row] for row in rows]
        candidates = Candidates.borrow(
            asked.vector,
            stacked(matrix, names),
            quality=None if self.quality is None else item_values(kept, self.quality, "quality"),
            ids=names,
            costs=None if self.costs is None else item_values(kept, self.costs, "costs"),
            sources=item_names(kept, self.source, "source") if capped and self.source is not None else None,
            max_per_source=self.max_per_source,
            drop_near_duplicates=self.drop_near_duplicates,
        )
        if asked.pap is not None:
            candidates = asked.pap.apply(candidates)
        known = set(self.shown)
        shown = [row for row, name in enumerate(names) if name is not None and name in known]
        chosen = choose(
            candidates,
            self.selector,
            self.k,
            budget=self.budget,
            shown=shown,
            score_threshold=self.score_threshold,
        )
        starved = self._starved(candidates, chosen, shown)
        if len(rows) < len(items):
            chosen = replace(chosen, indices=np.array(rows, dtype=np.int64)[chosen.indices])
        return Choice([items[row] for row in chosen.indices.tolist()], chosen, starved)

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


def all_parameters() -> dict[str, None]:
    """Names of all selectors' parameters, in a fixed order."""
    return dict.fromkeys(p for name in selector_names() for p in selector_parameters(name))


def refuse_near_misses(names: Iterable[str]) -> None:
    """Raise for a name that is most likely one of ours, misspelt.

    Raises
    ------
    InvalidParameterError
        The message says which name it is close to.

    Examples
    --------
    >>> refuse_near_misses(["filter"])
    """
    ours = [*CHOICE_KEYS, *all_parameters()]
    for name in names:
        close = difflib.get_close_matches(name, ours, n=1, cutoff=0.8)
        if close:
            raise InvalidParameterError(f"there is no {name!r}: did you mean {close[0]!r}?")


def _first_of_each(ids: Sequence[Hashable]) -> list[int]:
    first: dict[Hashable, int] = {}
    return [row for row, name in enumerate(ids) if name is None or first.setdefault(name, row) == row]


def _sizes(k: Any, fetch_k: Any, budget: Any) -> tuple[int | None, int]:
    if k is None and budget is None:
        k = 4
    if k is not None:
        k = integer(k, "k", 1)
    if fetch_k is None:
        return k, 50 if k is None else max(20, 5 * k)
    return k, integer(fetch_k, f"fetch_k (of which k={k or 1} are chosen)", k or 1)


def _selector(wanted: Any, parameters: dict[str, Any]) -> Selector:
    if wanted is None:
        wanted = "vrsd"
    if wanted == "similarity_score_threshold":
        raise InvalidParameterError("for 'similarity_score_threshold' say 'similarity' and give score_threshold")
    if isinstance(wanted, str) and wanted == "mmr" and not {"lambda_mult", "lambda_d"} & parameters.keys():
        parameters = {**parameters, "lambda_mult": DEFAULT_LAMBDA_MULT}
    return resolve_selector(wanted, parameters)


def _perspective(perspective: Any, corpus: Any, direction: str) -> Any:
    one_of(direction, "direction", DIRECTIONS)
    text = isinstance(perspective, str)
    if text and not perspective.strip():
        raise PerspectiveError("perspective is an empty text; None means no perspective")
    vector = perspective is not None and not text and not callable(perspective)
    # Any vector serves to have the other two checked.
    PAP(perspective if vector else [1.0], corpus=corpus, direction=direction)
    return perspective


def _key_or_function(value: Any, what: str) -> Any:
    if value is None or isinstance(value, (str, Mapping)) or callable(value):
        return value
    raise InvalidParameterError(
        f"{what} must be a metadata key, a mapping of ids or a function of the item, got {value!r}"
    )


def _cosine(value: Any, what: str) -> float | None:
    return None if value is None else number(value, f"{what} (a cosine)", -1, 1)


def _budget(budget: Any, costs: Any) -> float | None:
    if budget is not None and costs is None:
        raise BudgetError("a budget needs costs: a metadata key, or a function such as one that counts tokens")
    return None if budget is None else number(budget, "budget")
