"""The checked settings of a call, what they say of each item, and the selection from the items of a pool."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._validation import as_float, check_number
from .._values import as_optional, as_plain, as_ranks
from ..candidates import CONSTRAINTS, Candidates, as_parts
from ..errors import BudgetError, InvalidInputError, InvalidParameterError, quoted, warn
from ..facts import Facts, describe_item, item_id, read_facts
from ..selection.effects import find_without_effect
from ..selection.reasons import explain
from ..selection.route import DEFAULT_K, Limits, default_fetch_k, select_set
from ..selectors.registry import (
    DEFAULT_SELECTOR,
    Selector,
    capabilities_of,
    check_capability,
    make_selector,
    resolve_selector,
)
from ..selectors.selection import Selection
from ..signals.extraction import check_perspective_vector
from ..texts import Texts
from ..texts.words import Weigh
from .inputs import EmbeddedQuery
from .pool import VECTOR_SEARCH, ItemSelection, Pool, is_name_of_text, name_of_text, stack_vectors
from .settings import Call

# Search types of the stores' own retrievers that are no selectors.
_SEARCH_TYPES = {
    "similarity_score_threshold": "use 'similarity' and score_threshold=",
    "hybrid": "pass keyword_search=True, which adds what a search by words finds to the candidates",
}
# References among n items take memory and time that grow with n². A search that was widened beyond this number, because
# a constraint left the set short, reads none.
MOST_REFERRING = 5_000


class Request:
    """The checked settings of a call, and what follows from them.

    It checks together the settings that were checked one by one, and makes the selector. A function that is the value
    of a setting gets ``view(item)``. ``refer_by_default``: whether references are read if no setting asks for it.
    A setting without effect gives a warning; the messages that were ``told`` before are not repeated.
    """

    def __init__(
        self, settings: Call, *, view: Callable[[Any], Any], refer_by_default: bool, told: Sequence[str] = ()
    ) -> None:
        self.settings, self.view = settings, view
        self.is_constrained = any(getattr(settings, name) is not None for name in CONSTRAINTS)
        self.has_relevance = settings.relevance is not None and settings.relevance != "cosine"
        self.selector = _make_selector(settings, self.has_relevance)
        self.capabilities = capabilities_of(self.selector)
        self.without_effect = list(self._find_without_effect())
        for message in self.without_effect:
            if message not in told:
                warn(message)
        # None if only the budget ends the selection.
        self.k = DEFAULT_K if settings.k is None and settings.budget is None else settings.k
        fetch_k = settings.fetch_k or default_fetch_k(self.k)
        if self.k is not None and fetch_k < self.k:
            raise InvalidParameterError(f"fetch_k={fetch_k} is less than the {self.k} to select: raise fetch_k")
        self.shown = frozenset(settings.shown)
        self.fetch_k = fetch_k + len(self.shown)
        limits = settings.budget, settings.score_threshold, settings.min_gain
        self.limits = Limits(*limits, settings.min_k, settings.drop_duplicates)
        limited = self.is_constrained or any(limit is not None for limit in limits)
        ordered = settings.order != "selection" or self.selector == make_selector("similarity")
        # Of this many candidates, or fewer, every selector selects all. 0 for plain similarity, whose user asked for
        # the nearest items and not for a selection, and if a constraint is set, or an order other than the default.
        self.all_of = 0 if self.k is None or limited or ordered else self.k
        given = settings.title or settings.identifier or settings.links or settings.follow
        asked = refer_by_default or given or getattr(self.selector, "reference_weight", 1) != 1
        # Examples stand next to each other by accident.
        self.reads_neighbours = refer_by_default and self.capabilities.neighbours
        # Whether the texts are searched for references to other items.
        self.reads_references = bool(asked) and self.capabilities.references

    def _find_without_effect(self) -> Iterable[str]:
        """A message for each setting that has no effect."""
        settings, fields = self.settings, type(self.settings).model_fields
        # A retriever may be made with costs and a source, and get the budget or the cap at call time.
        skipped = {"costs", "source", "drop_duplicates"} | (set() if self.has_relevance else {"relevance"})
        skipped |= {"neighbours"} if settings.join_neighbours else set()
        given = [
            name for name, field in fields.items() if name not in skipped and getattr(settings, name) != field.default
        ]
        given += ["drop_duplicates"] if settings.drop_duplicates else []
        yield from find_without_effect(self.selector, given, fields)
        # Only the classes that search have fetch_k.
        if {"perspective", "relevance"} <= {*given} and not (settings.corpus or "fetch_k" in settings.model_fields_set):
            yield "perspective does not change a given relevance: pass corpus=True, which projects the candidates too"

    def with_shown(self, names: Iterable[str]) -> Self:
        """The request with further shown items; nothing is checked again."""
        other = copy.copy(self)
        other.shown = self.shown.union(names)
        other.fetch_k = self.fetch_k + len(other.shown) - len(self.shown)
        return other

    def share(self, number: int, queries: int) -> int:
        """How many of a ``number`` of candidates to search for each of several queries: at least k and those shown."""
        return max(1 if self.k is None else self.k + len(self.shown), -(-number // queries))

    def select(self, pool: Pool, queries: Sequence[EmbeddedQuery], weigh: Weigh | None = None) -> ItemSelection:
        """Select among the items; ``weigh`` says what words weigh in the corpus.

        If several items have the same id, only the first one is a candidate. Items whose id is None stay separate.
        With ``drop_duplicates`` no two items of the result have the same text, and no item has the text of a shown
        one. Empty texts are not compared.
        """
        asked = [query.text for query in queries]
        if not pool.items:
            return ItemSelection.nothing(pool, asked)
        # Nodes have ids; documents may have none.
        if all(name is None for name in pool.ids) and not all(map(is_name_of_text, self.shown)):
            origin = "the retriever in front" if pool.fetch_k is None else "the store"
            raise InvalidInputError(
                f"shown= compares the documents' ids, and no candidate has an id: give {origin} documents with ids, or "
                "pass register_vector_source(..., id_of=...) if the ids are in the metadata"
            )
        distinct = pool if len({*pool.ids}) == len(pool.ids) else pool.with_each_id_once()
        candidates = searched = self._make_candidates(distinct, queries)
        if queries[0].pap is not None:
            candidates = queries[0].pap.apply(candidates)
        texts, shown = self.read_texts(distinct, weigh), self._find_shown(distinct) if self.shown else []
        question = [] if getattr(self.selector, "word_weight", 1) == 0 else [query.words for query in queries]
        selection = select_set(
            candidates,
            self.selector,
            self.k,
            question=question,
            texts=texts,
            relevance_scale=self.settings.relevance_scale,
            shown=shown,
            limits=self.limits,
        )

        # A constraint or repeated items may have left the set short.
        may_be_short = self.is_constrained or len(distinct.items) < len(pool.items) or bool(selection.left_out)
        return ItemSelection(
            [distinct.items[row] for row in selection.indices.tolist()],
            selection,
            distinct,
            may_be_short and self._is_cut_short(distinct, candidates, selection, shown),
            # The retriever in front searched without the perspective.
            None if searched.relevance_given else searched.relevance,
            queries=asked,
            texts=texts,
            neighbours=texts.neighbours if texts is not None and self.settings.join_neighbours else None,
            explain=partial(
                explain, selection, self.selector, question=question, queries=asked, texts=texts, shown=shown
            ),
        )

    def _find_shown(self, pool: Pool) -> list[int]:
        """The rows of the items whose ids, or the names of whose texts, are shown."""
        rows = {row for row, name in enumerate(pool.ids) if name in self.shown}
        if any(map(is_name_of_text, self.shown)):
            names = [name_of_text(pool.body(item)) for item in pool.items]
            known = [row for row, name in enumerate(names) if name in self.shown]
            # select_set leaves out the copies of a shown text. One row of each is enough.
            rows.update({names[row]: row for row in reversed(known)}.values() if self.limits.drop_copies else known)
        return sorted(rows)

    def _make_candidates(self, pool: Pool, queries: Sequence[EmbeddedQuery]) -> Candidates:
        items, settings, n = pool.items, self.settings, len(pool.items)
        # Copies are left out by ``prefer`` too, and references lead to the version that it says.
        prefers = settings.drop_duplicates or settings.drop_near_duplicates is not None or self.reads_references
        read: dict[str, Any] = {}
        for name in ("quality", "costs"):
            if (value := getattr(settings, name)) is not None:
                read[name] = read_numbers(items, value, name, self.view)
        if self.has_relevance:
            scores = pool.scores if settings.relevance == "score" else None
            read["relevance"] = read_numbers(items, settings.relevance, "relevance", self.view, scores)
        if settings.cover is not None and self.capabilities.words:
            values = read_some(items, settings.cover, "cover", self.view, required=True)
            read["cover"] = as_parts(values, n, "cover", lambda row: describe_item(items[row], row))
        if settings.prefer is not None and prefers:
            values = read_some(items, settings.prefer, "prefer", self.view, required=True)
            read["prefer"] = as_ranks(values, n, "prefer", lambda row: describe_item(items[row], row))
        if settings.source is not None and settings.max_per_source is not None:
            read["sources"] = read_some(items, settings.source, "source", self.view)
        read |= {name: getattr(settings, name) for name in CONSTRAINTS}
        query = queries[0].vector if len(queries) == 1 else np.array([query.vector for query in queries])
        try:
            return Candidates(query, pool.vectors, ids=pool.ids, copy=False, **read)
        except InvalidInputError:
            stack_vectors(pool.vectors, pool.ids)  # names the item whose vector is wrong
            raise

    def read_facts(self, pool: Pool) -> list[Facts]:
        """What the items say of themselves, by the settings and by their metadata."""
        settings, given, named = self.settings, {}, dict[str, str]()
        names = ["source"]
        names += [name for name in ("title", "identifier", "links") if self.reads_references]
        names += ["neighbours"] if self.reads_neighbours or settings.join_neighbours else []
        for name in names:
            if (value := getattr(settings, name)) is not None:
                given[name] = read_some(pool.items, value, name, self.view, tells=name != "source")
                named |= {name: value} if isinstance(value, str) else {}
        return read_facts(pool.items, pool.ids, given, named)

    def read_texts(self, pool: Pool, weigh: Weigh | None = None) -> Texts | None:
        """The texts by which copies are found, with what the selector reads in them."""
        is_small = (pool.fetch_k or 0) <= max(self.fetch_k, MOST_REFERRING)
        refers, adjoins = self.reads_references and is_small, self.reads_neighbours and is_small
        reads_facts = refers or adjoins or self.settings.join_neighbours
        bodies = list(map(pool.body, pool.items))
        if not (reads_facts or self.capabilities.words):
            return Texts(bodies, refer=False, neighbours=False) if self.settings.drop_duplicates else None
        texts = bodies if pool.text is pool.body else list(map(pool.text, pool.items))
        facts = self.read_facts(pool) if reads_facts else None
        return Texts(texts, facts, bodies=bodies, refer=refers, neighbours=adjoins, weigh=weigh)

    def _is_cut_short(self, pool: Pool, candidates: Candidates, selection: Selection, shown: Sequence[int]) -> bool:
        """Whether the set is short, and further candidates may fill it."""
        settings = self.settings
        if selection.ended or (self.k is not None and len(selection) >= self.k):
            return False
        threshold = None if candidates.relevance_given else settings.score_threshold
        cosines = candidates.relevance.astype(np.float64)
        # Where the store returns the highest cosines first, a wider search finds none above a threshold that is passed.
        falling = cosines[[pool.searches is None or VECTOR_SEARCH in pool.searches[row] for row in range(len(cosines))]]
        if threshold is not None and falling.size and falling[-1] < threshold and (np.diff(falling) < 1e-6).all():
            return False
        if settings.budget is None or candidates.costs is None:
            return True
        unpicked = np.ones(len(cosines), bool)
        unpicked[[*selection.indices.tolist(), *shown, *selection.left_out]] = False
        left = settings.budget - float(candidates.costs[selection.indices].sum())
        # If only the budget forbids the others, it ended the selection.
        return not unpicked.any() or bool((candidates.costs[unpicked] <= left).any())


def _make_selector(settings: Call, has_relevance: bool) -> Selector:
    """The selector with its parameters; raises if settings do not fit together."""
    if settings.max_per_source is not None and settings.source is None:
        raise InvalidParameterError("max_per_source needs source=: a metadata key or a function")
    if settings.budget is not None and settings.costs is None:
        raise BudgetError("a budget needs costs: a metadata key, or a function such as one that counts tokens")
    if settings.score_threshold is not None and not has_relevance:
        check_number(settings.score_threshold, "score_threshold (a cosine)", -1, 1)
    check_perspective_vector(settings.perspective_vector, settings.perspective)
    if isinstance(settings.selector, str) and settings.selector in _SEARCH_TYPES:
        raise InvalidParameterError(f"there is no selector {settings.selector!r}: {_SEARCH_TYPES[settings.selector]}")
    parameters = {} if settings.lambda_mult is None else {"lambda_mult": settings.lambda_mult}
    selector = resolve_selector(DEFAULT_SELECTOR if settings.selector is None else settings.selector, parameters)
    if has_relevance:
        check_capability(selector, "relevance")
    if settings.queries:
        check_capability(selector, "sub_questions")
    return selector


def read_numbers(
    items: Sequence[Any], given: Any, what: str, view: Callable[[Any], Any], known: Sequence[Any] | None = None
) -> NDArray[np.float64]:
    """One finite number per item, (n,): what is ``known``, or else what :func:`read_some` reads."""
    numbers = np.empty(len(items))
    values = read_some(items, given, what, view, required=True) if known is None else known
    for row, value in enumerate(map(as_plain, values)):
        if value is None:
            named, item = f"{what}={given!r}" if isinstance(given, str) else what, describe_item(items[row], row)
            raise InvalidInputError(f"{named} of {item} is missing: add it, or pass a function as {what}=")
        number = int(value) if isinstance(value, bool) else value
        numbers[row] = math.nan if isinstance(value, str) else as_float(number)
        if not np.isfinite(numbers[row]):
            raise InvalidInputError(
                f"{what} of {describe_item(items[row], row)} is {quoted(value)}, which is not a finite number"
            )
    return numbers


def read_some(
    items: Sequence[Any],
    given: Any,
    what: str,
    view: Callable[[Any], Any] = lambda item: item,
    *,
    required: bool = False,
    tells: bool = True,
) -> list[Any]:
    """One value per item; None for one without. ``given``: a metadata key, values by id, or a function of the item.

    It warns if no item has a value in its metadata or in the mapping by id. If a value is ``required``, it raises an
    error in place of the warning. With ``tells=False`` it does neither.
    """
    if isinstance(given, str):
        values = [item.metadata.get(given) for item in items]
    elif isinstance(given, Mapping):
        values = [given.get(item_id(item)) for item in items]
    else:
        values = []
        for row, item in enumerate(items):
            try:
                values.append(given(view(item)))
            except (TypeError, AttributeError) as error:
                raise InvalidInputError(
                    f"{what}={getattr(given, '__name__', given)} fails for {describe_item(item, row)}: {error}. The "
                    f"function gets the whole {type(view(item)).__name__}, not its text"
                ) from error
    values = as_optional(values)
    if tells and isinstance(given, (str, Mapping)) and all(value is None for value in values):
        keys = dict.fromkeys(key for item in items for key in item.metadata)
        origin = f"metadata {given!r}" if isinstance(given, str) else "a mapping by id"
        message = (
            f"{what} is read from {origin}, but none of the {len(items)} candidates has a value there; the keys of "
            f"their metadata are {', '.join(map(repr, keys)) or 'none'}. Name another, or pass a function as {what}="
        )
        if required:
            raise InvalidInputError(message)
        warn(message)
    return values
