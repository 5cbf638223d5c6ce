"""The checked settings of a call, the selection from the items that a search found, and what is said about it."""

from __future__ import annotations

import functools
import logging
import math
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..candidates import CONSTRAINTS, Candidates, References
from ..errors import InvalidInputError, warn
from ..scaling import rescale
from ..selectors.base import Selection, at_rows, make_selector, select_worthwhile, uses_references, uses_words
from ..selectors.choose import choose
from ..signals.references import find_references, read_name
from ..signals.words import match_words
from .flow import Flow
from .items import (
    OF_NAMES,
    describe_item,
    new_scores,
    read_keys,
    read_links,
    read_numbers,
    read_parts,
    read_ranks,
    read_titles,
    read_values,
    sort_items,
)
from .question import EmbeddedQuery

if TYPE_CHECKING:
    from .settings import Call, Settings

LOGGER = logging.getLogger("setselect")
LOGGER.addHandler(logging.NullHandler())


class Found(NamedTuple):
    """The items to select from, with their ids and vectors row by row.

    ``text`` gives the text of an item that was embedded. ``comparable_text`` gives the text by which an item is
    compared with others, and in which names are found; it is empty for an item that stands for more than its text.
    ``fetch_k`` is the size of the search; None if the user handed the items in. ``exhausted``: a wider search would not
    find more. ``scores``: what the items came with, where ``relevance`` may name it.
    """

    items: Sequence[Any]
    ids: Sequence[Hashable]
    text: Callable[[Any], str]
    comparable_text: Callable[[Any], str]
    vectors: Any
    fetch_k: int | None = None
    exhausted: bool = True
    scores: Sequence[float | None] | None = None

    def take(self, rows: Sequence[int]) -> Found:
        """The items at these rows."""
        items, ids, vectors = ([column[row] for row in rows] for column in (self.items, self.ids, self.vectors))
        scores = None if self.scores is None else [self.scores[row] for row in rows]
        return self._replace(items=items, ids=ids, vectors=vectors, scores=scores)


class Selected(NamedTuple):
    """The selected items in order of selection; ``selection.indices`` are rows of ``found``.

    ``selection.relevance`` is the cosine with the query, or the relevance that was given, before it was scaled.
    ``cut_short``: a constraint, or items with the same text, left fewer than ``k`` items, and more candidates may help.
    ``ignores_scores``: the user's items came with scores that order them otherwise than the cosine that was used.
    ``milliseconds``: the time that the selection took, with the embedding of the query and the search. ``followed``:
    the names and links that were followed, each with the rows that it added to the candidates. ``queries``: the texts
    of the question and its sub-questions, in the order of ``selection.serves``. ``question``: the embedding of the
    question. With ``shadow``, ``returned`` holds the items that the call returns, ``returned_ids`` their ids, and
    ``error`` says why the selection failed, if it did.
    """

    items: list[Any]
    selection: Selection
    found: Found
    cut_short: bool
    ignores_scores: bool = False
    milliseconds: float = 0.0
    followed: Sequence[tuple[str, list[int]]] = ()
    queries: Sequence[str] = ()
    question: NDArray[np.float64] | None = None
    returned: list[Any] | None = None
    returned_ids: Sequence[Hashable] = ()
    error: str | None = None

    @classmethod
    def nothing(cls, found: Found) -> Selected:
        """The selection from no items."""
        return cls([], Selection(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), 0.0), found, False)

    @property
    def ids(self) -> list[Hashable]:
        """Ids of the selected items."""
        return [self.found.ids[row] for row in self.selection.indices.tolist()]

    @property
    def serving(self) -> list[str | None]:
        """For each selected item the query that it serves best; None for a question without sub-questions."""
        serves = self.selection.serves
        return [None] * len(self.items) if serves is None else [self.queries[row] for row in serves.tolist()]

    @property
    def naming(self) -> list[int | None]:
        """For each selected item the row of the item that names it; None if there is none."""
        named_by = self.selection.named_by
        if named_by is None:
            return [None] * len(self.items)
        return [None if row < 0 else row for row in named_by.tolist()]


class Request:
    """The checked settings of a call, and what follows from them.

    It checks together the settings that were checked one by one, and makes the selector. A function that is the value
    of a setting gets ``view(item)``. ``names_by_default``: whether names are read if no setting asks for it.
    It warns about settings that have no effect, except for the warnings in ``known``.
    """

    def __init__(
        self, settings: Call, *, view: Callable[[Any], Any], names_by_default: bool, known: Collection[str] = ()
    ) -> None:
        self.settings, self.view = settings, view
        self.warnings: list[str] = []
        self.selector = settings.make_selector(self.warnings.append)
        for message in self.warnings:
            if message not in known:
                warn(message)
        self.k, fetch_k = settings.sizes()
        self.shown = frozenset(settings.shown)
        self.fetch_k = fetch_k + len(self.shown)
        limits = settings.budget, settings.score_threshold, settings.min_gain
        limited = settings.is_constrained or any(limit is not None for limit in limits)
        ordered = settings.order != "selection" or self.selector == make_selector("similarity")
        # Of this many candidates, or fewer, every selector selects all. 0 for plain similarity, whose user asked for
        # the nearest items and not for a selection, and if a constraint is set, or an order other than the default.
        self.all_of = 0 if self.k is None or limited or ordered else self.k
        asked = names_by_default or any(
            getattr(settings, name) not in (None, False) for name in (*OF_NAMES, "bridge_weight")
        )
        # Whether the texts are searched for names of other items.
        self.reads_names = asked and uses_references(self.selector)

    def select(self, found: Found, queries: Sequence[EmbeddedQuery]) -> Selected:
        """Select among the items.

        If several items have the same id, only the first one is a candidate. Items whose id is None stay separate.
        With ``drop_duplicates`` no two items of the result have the same text, and no item has the text of a shown
        one. Empty texts are not compared. ``_distinct_texts`` says which item of a text is the candidate.
        """
        if not found.items:
            return Selected.nothing(found)._replace(queries=[query.text for query in queries])
        # Nodes have ids; documents may have none.
        if self.shown and all(name is None for name in found.ids):
            raise InvalidInputError(
                "shown= compares the documents' ids, and no candidate has an id: store documents with ids, or pass "
                "register_vector_source(..., id_of=...) if the ids are in the metadata"
            )
        settings = self.settings
        rows = _distinct_ids(found.ids) if len(set(found.ids)) < len(found.ids) else None
        # Repeated texts are rare, so the texts of the other candidates are read only after one was selected twice.
        # With ``prefer`` another copy than the selected one may be preferred.
        if settings.prefer is None or not settings.drop_duplicates:
            selected = self._select_rows(found, rows, queries)
            shown = [found.items[row] for row in self._shown_rows(found.ids)]
            texts = list(filter(None, map(found.comparable_text, [*selected.items, *shown])))
            if not settings.drop_duplicates or len(set(texts)) == len(texts):
                return selected
        every = range(len(found.ids)) if rows is None else rows
        distinct = self._distinct_texts(found, every)
        return self._select_rows(found, distinct if len(distinct) < len(every) else rows, queries)

    def _shown_rows(self, ids: Sequence[Hashable]) -> list[int]:
        return [row for row, name in enumerate(ids) if name in self.shown] if self.shown else []

    def _relevance(self, found: Found) -> NDArray[np.float64] | None:
        """The relevance that the settings give the items; None for the cosine."""
        given = self.settings.relevance
        if given is None or given == "cosine":
            return None
        if given != "score" or found.scores is None:
            return read_numbers(found.items, given, "relevance", self.view)
        for row, (item, score) in enumerate(zip(found.items, found.scores, strict=True)):
            if score is None:
                raise InvalidInputError(
                    f"relevance='score' uses the score of each node, but {describe_item(item, row)} has none: put a "
                    "retriever or a reranker in front that sets it, or leave relevance out"
                )
        return np.array(found.scores, np.float64)

    def _distinct_texts(self, found: Found, rows: Sequence[int]) -> list[int]:
        """The shown rows, and one row for each text: by ``prefer``, then by given relevance, then the first one.

        A copy that costs more than the whole budget, or whose given relevance is below ``score_threshold``, is the
        last choice.
        """
        some, settings = found.take(rows), self.settings
        items, relevance = some.items, self._relevance(some)
        fits = np.ones(len(rows), bool)
        order = np.arange(len(rows))
        if relevance is not None:
            order = np.argsort(-relevance, kind="stable")
            fits = relevance >= (-np.inf if settings.score_threshold is None else settings.score_threshold)
        if settings.prefer is not None:
            ranks = read_ranks(items, settings.prefer, "prefer", self.view, found.items)
            order = order[np.argsort(-ranks[order], kind="stable")]
        if settings.budget is not None and settings.costs is not None:
            fits &= read_numbers(items, settings.costs, "costs", self.view) <= settings.budget
        order = order[np.argsort(~fits[order], kind="stable")]
        texts = list(map(found.comparable_text, items))
        shown = {*self._shown_rows(some.ids)}
        seen = {texts[number] for number in shown}
        distinct = []
        for number in order.tolist():
            if number in shown or not texts[number] or texts[number] not in seen:
                distinct.append(rows[number])
            seen.add(texts[number])
        return sorted(distinct)

    def _select_rows(self, found: Found, rows: list[int] | None, queries: Sequence[EmbeddedQuery]) -> Selected:
        """Select among the items at these rows; None for all of them."""
        some, settings = found if rows is None else found.take(rows), self.settings
        items, ids, vectors = some.items, some.ids, _as_rows(some.vectors, some.ids)
        relevance = self._relevance(some)
        source = None if settings.max_per_source is None else settings.source
        prefer = None if settings.drop_near_duplicates is None else settings.prefer
        words = cover = references = None
        if uses_words(self.selector):
            # Reading the texts takes longer than the selection.
            asked = [query.words for query in queries]
            if any(asked) and settings.word_weight != 0:
                words = match_words(asked, list(map(found.text, items)))
            if settings.cover is not None:
                cover = read_parts(items, settings.cover, "cover", self.view, found.items)
            if self.reads_names:
                references = self._references(found, items)
        question, pap = queries[0].vector, queries[0].pap
        candidates = Candidates(
            question if len(queries) == 1 else np.array([query.vector for query in queries]),
            vectors,
            relevance=None if relevance is None else rescale(relevance, settings.relevance_scale),
            quality=None if settings.quality is None else read_numbers(items, settings.quality, "quality", self.view),
            words=words,
            references=references,
            cover=cover,
            ids=ids,
            costs=None if settings.costs is None else read_numbers(items, settings.costs, "costs", self.view),
            sources=None if source is None else read_values(items, source, "source", self.view),
            prefer=None if prefer is None else read_ranks(items, prefer, "prefer", self.view, found.items),
            copy=False,
            **{name: getattr(settings, name) for name in CONSTRAINTS},
        )
        ignores_scores = False
        if some.scores is not None and found.fetch_k is None and settings.relevance is None:
            # The retriever in front searched without the perspective.
            ignores_scores = _are_of_no_search(np.array(some.scores, np.float64), candidates, question, vectors)
        if pap is not None:
            candidates = pap.apply(candidates)
        shown = self._shown_rows(ids)
        choose_up_to = functools.partial(
            choose,
            candidates,
            self.selector,
            budget=settings.budget,
            shown=shown,
            score_threshold=settings.score_threshold,
            threshold_on=relevance,
        )
        selection, ended = select_worthwhile(choose_up_to, self.k, self.selector, settings.min_gain, settings.min_k)
        cut_short = not ended and self._is_cut_short(candidates, relevance, selection, shown, dropped=rows is not None)
        if relevance is not None:
            selection = replace(selection, relevance=relevance[selection.indices])
        picked = [items[row] for row in selection.indices.tolist()]
        if rows is not None:
            selection = at_rows(selection, np.array(rows, np.int64))
        texts = [query.text for query in queries]
        return Selected(picked, selection, found, cut_short, ignores_scores, queries=texts, question=question)

    def _references(self, found: Found, items: Sequence[Any]) -> References | None:
        """How clearly the text of each item names each other item; None without texts."""
        # What LlamaIndex embeds begins with the metadata, and a text is called by the name that it begins with.
        texts = list(map(found.comparable_text, items))
        if not any(texts):
            return None
        given = self.settings.links
        return find_references(
            texts,
            read_titles(items, self.settings.title, self.view),
            links=None if given is None else read_links(items, given, self.view),
            keys=None if given is None else list(map(read_keys, items)),
        )

    def _is_cut_short(
        self,
        candidates: Candidates,
        relevance: NDArray[np.float64] | None,
        selection: Selection,
        shown: Sequence[int],
        *,
        dropped: bool,
    ) -> bool:
        """Whether a constraint or repeated items left the set short, and further candidates may fill it."""
        settings = self.settings
        if not dropped and not settings.is_constrained:
            return False
        if self.k is not None and len(selection) >= self.k:
            return False
        threshold = None if relevance is not None else settings.score_threshold
        cosines = candidates.relevance.astype(np.float64)
        # Where the store returns the highest cosines first, a wider search finds none above a threshold that is passed.
        if threshold is not None and cosines[-1] < threshold and (np.diff(cosines) < 1e-6).all():
            return False
        if settings.budget is None or candidates.costs is None:
            return True
        unpicked = np.ones(len(cosines), bool)
        unpicked[[*selection.indices.tolist(), *shown]] = False
        left = settings.budget - float(candidates.costs[selection.indices].sum())
        # If only the budget forbids the others, it ended the selection.
        return not unpicked.any() or bool((candidates.costs[unpicked] <= left).any())

    def arrange(self, selected: Selected, make: Callable[[Any, float, dict[str, Any]], Any]) -> list[Any]:
        """``make(item, relevance, added)`` of each selected item, in the ``order`` of the settings.

        ``added`` is what ``scores`` adds to its metadata. With ``shadow``, the items that were returned before.
        """
        if selected.returned is not None:
            return selected.returned
        relevance = selected.selection.relevance.tolist()
        added: list[dict[str, Any]] = [{} for _ in relevance]
        if self.settings.scores:
            names = [None if row is None else self._name(selected.found, row) for row in selected.naming]
            columns = selected.items, relevance, selected.selection.gains.tolist(), names, selected.serving
            added = [new_scores(item.metadata, *row) for item, *row in zip(*columns, strict=True)]
        made = list(map(make, selected.items, relevance, added))
        return sort_items(made, relevance, self.settings.order)

    def _name(self, found: Found, row: int) -> str | None:
        """The name of an item; its id if it has none."""
        item, name = found.items[row], found.ids[row]
        titles = read_titles(found.items, self.settings.title, self.view)
        title = titles[row] or read_name(found.comparable_text(item))
        return title or (None if name is None else str(name))

    def warn_if_all_are_selected(self, owner: Settings, candidates: int, remedy: str) -> None:
        """Warn, once for each ``owner``, if there is nothing to select from."""
        if 0 < candidates <= self.all_of:
            every = f"{owner.size_name}={self.k}"
            message = f"{every} of {candidates} candidates: all of them are selected, whatever the method. {remedy}"
            _warn_once(owner, "_warned", message)

    def warn_of_ignored_scores(self, owner: Settings, selected: Selected, name: str) -> None:
        """Warn, once for each ``owner``, that the candidates came with scores under ``name`` that were not used."""
        if selected.ignores_scores:
            _warn_once(
                owner,
                "_warned_of_scores",
                f"the {name} of the candidates is ignored: it orders them otherwise than their cosine with the query, "
                f"which is the relevance here. relevance={name!r} selects by it; relevance='cosine' keeps the cosine "
                "without this warning",
            )

    def timed(self, selecting: Flow[Selected], vector_source: Callable[[], str]) -> Flow[Selected]:
        """The result of ``selecting`` with the time that it took; writes one line to the log.

        The line holds no query, text or id. ``vector_source`` is called only if the line is written.
        """
        started = time.perf_counter()
        selected = yield from selecting
        milliseconds = 1000 * (time.perf_counter() - started)
        if LOGGER.isEnabledFor(logging.DEBUG):
            fields = {
                "selector": repr(self.selector),
                "k": self.k,
                "fetch_k": selected.found.fetch_k,
                "candidates": len(selected.found.items),
                "selected": len(selected.items),
                "vector_source": vector_source(),
                "milliseconds": milliseconds,
            }
            LOGGER.debug(
                "%(selector)s selected %(selected)d of %(candidates)d candidates (k=%(k)s, fetch_k=%(fetch_k)s, "
                "vectors from %(vector_source)s) in %(milliseconds).1f ms",
                fields,
                extra={"setselect": fields},
            )
        return selected._replace(milliseconds=milliseconds)

    def describe(self, selected: Selected) -> dict[str, Any]:
        """What the adapters' events say about a selection, in the order of the picks.

        ``named_by`` holds, for each pick, the id of the earlier pick (or ``shown`` item) whose text names it, or None.
        ``followed`` holds each name that was searched for, the ids of the candidates that it added, and those of them
        that were selected. ``queries`` holds the question and its sub-questions, and ``serves`` for each pick the one
        that it serves best, or None if there is only the question. With ``shadow`` all of this is about what the
        selection would have returned, and ``returned`` holds the ids of what the call returned.
        """
        found, selection = selected.found, selected.selection
        picked = {*selection.indices.tolist()}
        shadow = {"shadow": True, "returned": [*selected.returned_ids], "error": selected.error}
        return {
            "selector": repr(self.selector),
            "fetch_k": found.fetch_k,
            "candidates": len(found.items),
            "queries": [*selected.queries],
            "ids": selected.ids,
            "serves": selected.serving,
            "named_by": [None if row is None else found.ids[row] for row in selected.naming],
            "gains": selection.gains.tolist(),
            "relevance": selection.relevance.tolist(),
            "objective": selection.objective if found.items else None,
            "filled_from": selection.filled_from,
            "followed": [
                {
                    "name": name,
                    "found": [found.ids[row] for row in rows],
                    "selected": [found.ids[row] for row in rows if row in picked],
                }
                for name, rows in selected.followed
            ],
            "milliseconds": selected.milliseconds,
            **({} if selected.returned is None else shadow),
        }

    def warn_of_unused_perspective(self) -> None:
        """For callers that do not search: warn if a perspective has no effect, because relevance is given."""
        settings = self.settings
        if settings.perspective is not None and settings.has_relevance and not settings.corpus:
            warn(
                "perspective has no effect here: it projects the query, and the given relevance takes the place of "
                "the cosine with the query. corpus=True projects the candidates too"
            )


def _warn_once(owner: Settings, flag: str, message: str) -> None:
    if flag not in owner.__dict__:
        # Pydantic compares private attributes. The flag is not one, so equal objects stay equal after a warning.
        owner.__dict__[flag] = True
        warn(message)


def _are_of_no_search(
    scores: NDArray[np.float64], candidates: Candidates, query: NDArray[np.float64], vectors: NDArray[Any]
) -> bool:
    """Whether scores (NaN: none) order the candidates otherwise than a search by cosine, product or distance."""
    known = np.isfinite(scores)
    scores, cosines = scores[known], candidates.relevance[known]
    if not _orders_otherwise(scores, cosines):
        return False
    # With vectors of length 1 the products and the distances have the order of the cosines.
    rows = vectors[known].astype(np.float64)
    products, squares = rows @ query, np.vecdot(rows, rows)
    scale = math.sqrt(query @ query * squares.mean())
    return all(_orders_otherwise(scores, values / scale) for values in (products, products - squares / 2))


def _orders_otherwise(scores: NDArray[np.float64], cosines: NDArray[Any]) -> bool:
    """Whether scores order the candidates neither as their cosines do nor the other way round.

    Stores give cosines, rescaled cosines or distances. Quantized vectors may change the order of cosines that differ
    by less than 0.01.
    """

    def largest_rise(values: NDArray[Any]) -> float:
        ordered = values[np.lexsort((-values, -scores))]
        return float((ordered - np.minimum.accumulate(ordered)).max(initial=0))

    return min(largest_rise(cosines), largest_rise(-cosines)) > 0.01


def _distinct_ids(ids: Sequence[Hashable]) -> list[int]:
    """The first row of each id, and all rows without an id."""
    first: dict[Hashable, int] = {}
    return [row for row, name in enumerate(ids) if name is None or first.setdefault(name, row) == row]


def _as_rows(vectors: Any, ids: Sequence[Hashable]) -> NDArray[Any]:
    """``vectors`` as an array. If a row differs in length from the first, the error names it."""
    try:
        return np.asarray(vectors)
    except ValueError:
        shapes = list(map(np.shape, vectors))
        odd = next((row for row, shape in enumerate(shapes) if shape != shapes[0]), 0)
        raise InvalidInputError(
            f"the vector of {ids[odd]!r} has shape {shapes[odd]}, that of {ids[0]!r} has {shapes[0]}: "
            "they most likely come from different embedding models"
        ) from None
