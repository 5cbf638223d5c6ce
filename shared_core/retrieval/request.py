"""One retrieval, from an adapter's settings to the selected items.

The parts that sync and async code share are flows: generators that yield each :class:`Step` that may wait, and receive
its result. :func:`run_flow` and :func:`run_flow_async` run them.
"""

from __future__ import annotations

import asyncio
import difflib
import functools
import logging
import math
import time
import warnings
from collections.abc import Awaitable, Callable, Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._validation import as_identifiers, as_numeric, check_bool, check_integer, check_number, check_one_of, quoted
from ..candidates import Candidates
from ..errors import BudgetError, InvalidInputError, InvalidParameterError, PerspectiveError, SetSelectWarning
from ..perspective import DIRECTIONS, PAP
from ..scaling import SCALES, Scale, rescale
from ..selectors.base import (
    DEFAULT_SELECTOR,
    Selection,
    Selector,
    resolve_selector,
    selector_names,
    selector_parameters,
    warn_of_no_effect,
)
from ..selectors.choose import choose
from ..selectors.top_k import TopK
from ..selectors.vrsd import NO_RELEVANCE, VRSD
from ..signals.extraction import (
    PERSPECTIVE_VECTORS,
    PerspectiveExtractor,
    QueryParts,
    aread_perspective,
    check_perspective_vector,
    find_text_to_embed,
    make_pap,
    read_perspective,
)
from .items import ORDERS, ItemName, ItemNumber, read_numbers, read_values, sort_items

LOGGER = logging.getLogger("setselect")
LOGGER.addHandler(logging.NullHandler())

# The most candidates that a retriever fetches when it widens its search by itself.
WIDEST = 20_000

# Names that other libraries give to these settings.
_ELSEWHERE = {
    "k": ("top_n",),
    "lambda": ("lambda_mult",),
    "method": ("selector", "search_type"),
    "search_type": ("selector",),
    "similarity_top_k": ("top_n", "k"),
    "threshold": ("score_threshold",),
    "top_k": ("top_n", "k"),
    "top_n": ("k",),
    "topn": ("top_n", "k"),
}

Order = Literal["selection", "relevance", "nearest_last", "long_context"]
Perspective = (
    str | Sequence[float] | NDArray[Any] | Callable[[str], str | QueryParts | None] | PerspectiveExtractor | None
)
T = TypeVar("T")


class Step(NamedTuple):
    """A call that may wait: ``run()`` in sync code; ``await arun()``, or ``run()`` in a thread, in async code."""

    run: Callable[[], Any]
    arun: Callable[[], Awaitable[Any]] | None = None


Flow = Generator[Step, Any, T]


class _End(NamedTuple):
    """The end of a flow, with its result."""

    result: Any


def run_flow(flow: Flow[T]) -> T:
    """The result of ``flow``. An exception of a step is raised in the flow, at the line that yielded the step."""
    step = _advance(flow)
    while isinstance(step, Step):
        step = _run(flow, step)
    result: T = step.result
    return result


async def run_flow_async(flow: Flow[T]) -> T:
    """The async version of :func:`run_flow`. Successive steps without an async call run in one thread."""
    step = _advance(flow)
    while isinstance(step, Step):
        if step.arun is None:
            step = await asyncio.to_thread(_run_sync_steps, flow, step)
            continue
        try:
            answer = await step.arun()
        except Exception as error:
            step = _advance(flow, error=error)
        else:
            step = _advance(flow, answer)
    result: T = step.result
    return result


def _run_sync_steps(flow: Flow[Any], step: Step) -> Step | _End:
    following: Step | _End = step
    while isinstance(following, Step) and following.arun is None:
        following = _run(flow, following)
    return following


def _run(flow: Flow[Any], step: Step) -> Step | _End:
    try:
        answer = step.run()
    except Exception as error:
        return _advance(flow, error=error)
    return _advance(flow, answer)


def _advance(flow: Flow[Any], answer: Any = None, error: Exception | None = None) -> Step | _End:
    """Send the answer of a step, or throw its error, into the flow; the next step or the end."""
    try:
        return flow.send(answer) if error is None else flow.throw(error)
    except StopIteration as stop:
        return _End(stop.value)


@dataclass(frozen=True, eq=False)
class EmbeddedQuery:
    """A query's embedding, float64, shape (d,), and the projection on its perspective."""

    vector: NDArray[np.float64]
    pap: PAP | None

    @property
    def search_vector(self) -> list[float]:
        """The vector to search a store with."""
        vector: list[float] = (self.vector if self.pap is None else self.pap.project(self.vector)).tolist()
        return vector


class Found(NamedTuple):
    """The items to select from, with their ids and vectors row by row.

    ``text_of`` gives the text of an item. ``fetch_k`` is the size of the search for the items. ``exhausted``: a wider
    search would not find more.
    """

    items: Sequence[Any]
    ids: Sequence[Hashable]
    text_of: Callable[[Any], str]
    vectors: Any
    fetch_k: int | None = None
    exhausted: bool = True


class Selected(NamedTuple):
    """The selected items in order of selection; ``selection.indices`` are rows of ``found``.

    ``selection.relevance`` is the cosine with the query, or the relevance that was given, before it was scaled.
    ``cut_short``: a constraint, or items with the same text, left fewer than ``k`` items, and more candidates may help.
    ``milliseconds``: the time of the call, with the embedding of the query and the search.
    """

    items: list[Any]
    selection: Selection
    found: Found
    cut_short: bool
    milliseconds: float = 0.0

    def arrange(self, order: str) -> list[tuple[Any, float, float]]:
        """Each item with its relevance and its gain, in one of the ``ORDERS``."""
        relevance = self.selection.relevance.tolist()
        rows = list(zip(self.items, relevance, self.selection.gains.tolist(), strict=True))
        return rows if order == "selection" else sort_items(rows, relevance, order)

    @property
    def ids(self) -> list[Hashable]:
        """Ids of the selected items."""
        return [self.found.ids[row] for row in self.selection.indices.tolist()]


@dataclass(frozen=True, eq=False)
class Request:
    """The checked settings of one call; the adapters' classes document each of them."""

    selector: Selector
    k: int | None
    fetch_k: int
    score_threshold: float | None = None
    shown: tuple[Hashable, ...] = ()
    budget: float | None = None
    costs: ItemNumber | None = None
    quality: ItemNumber | None = None
    relevance: ItemNumber | None = None
    relevance_scale: Scale | None = "minmax"
    source: ItemName | None = None
    max_per_source: int | None = None
    drop_near_duplicates: float | None = None
    drop_duplicates: bool = True
    order: str = "selection"
    perspective: Any = None
    perspective_vector: str = "text"
    direction: str = "remove"
    corpus: bool = False

    @classmethod
    def parse(cls, settings: Mapping[str, Any], *, warn: bool = True) -> tuple[Request, dict[str, Any]]:
        """The request, and what is neither a setting nor a selector's parameter (arguments of the store).

        ``warn``: whether to warn about a setting that has no effect.

        Raises
        ------
        InvalidParameterError, BudgetError, PerspectiveError
            A value is out of range, or an unknown name is close to a known one.
        """
        rest = {name: value for name, value in settings.items() if name not in SETTINGS}
        # ``rest`` is mostly empty. The names of all parameters are read only if it is not.
        parameters = {name: rest.pop(name) for name in parameter_names() if name in rest} if rest else {}
        check_spelling(rest)
        given = {
            name: value
            for name, value in settings.items()
            if name in SETTINGS and (value is not None or name == "relevance_scale")
        }
        if isinstance(given.get("relevance"), str) and given["relevance"] == "cosine":
            del given["relevance"]
        k, fetch_k = _check_sizes(given.pop("k", None), given.pop("fetch_k", None), given.get("budget"))
        if "max_per_source" in given and "source" not in given:
            raise InvalidParameterError("max_per_source needs source=: a metadata key or a function of the item")
        if "budget" in given and "costs" not in given:
            raise BudgetError("a budget needs costs: a metadata key, or a function such as one that counts tokens")
        selector = _as_selector(given.pop("selector", DEFAULT_SELECTOR), parameters)
        threshold = check_number if "relevance" in given else _check_cosine
        checks = {**_CHECKS, "score_threshold": threshold}
        checked = {name: checks[name](value, name) for name, value in given.items()}
        request = cls(selector, k, fetch_k + len(checked.get("shown", ())), **checked)
        _check_perspective(request.perspective, request.perspective_vector)
        if request.relevance is not None and isinstance(request.selector, VRSD):
            raise InvalidParameterError(NO_RELEVANCE)
        if warn:
            warn_of_no_effect(request.selector, parameters, quality=request.quality is not None)
        return request, rest

    def find_text_to_embed(self, query: str) -> Flow[str | None]:
        """The text that must be embedded for the projection, besides the query; None if there is no such text."""
        if self.perspective is None:
            return None
        parts = yield Step(
            functools.partial(read_perspective, self.perspective, query),
            functools.partial(aread_perspective, self.perspective, query),
        )
        return find_text_to_embed(parts, query, self.perspective_vector)

    def as_query(
        self, embedding: Sequence[float], embedded: Sequence[float] | None, own: Sequence[float] | None = None
    ) -> EmbeddedQuery:
        """The query with its perspective; ``embedded`` is the embedding of what :meth:`find_text_to_embed` returned.

        ``own`` is the embedding of the query's own words if ``embedding`` is that of other words (HyDE).

        Raises
        ------
        InvalidInputError
            The query's embedding is zero or not finite.
        PerspectiveError
            The perspective is zero, differs in length from the query, or is parallel to it.
        """
        vector = as_vector(embedding, "the query's embedding").astype(np.float64)
        # The square may overflow or underflow where the vector does not.
        if not 0 < np.vdot(vector, vector) < math.inf:
            if not np.isfinite(vector).all():
                raise InvalidInputError("the query's embedding holds NaN or inf")
            if not vector.any():
                raise InvalidInputError(
                    "the query's embedding is the zero vector, which has no direction: check the model that embedded it"
                )
        if self.perspective is None:
            return EmbeddedQuery(vector, None)
        pap = make_pap(
            self.perspective,
            vector if own is None else own,
            embedded,
            perspective_vector=self.perspective_vector,
            corpus=self.corpus,
            direction=self.direction,
        )
        return EmbeddedQuery(vector, pap)

    def search_and_select(
        self, query: EmbeddedQuery, search: Callable[[int], Flow[Found]], widest: int | None
    ) -> Flow[Selected]:
        """Search for ``fetch_k`` candidates and select. If a constraint cuts the set short, search for more candidates.

        ``search(fetch_k)`` is a flow. ``widest`` is the most candidates that one search of the store can return. With
        None there is only one search.
        """
        fetch_k: int | None = self.fetch_k
        while fetch_k is not None:
            found = yield from search(fetch_k)
            selected: Selected = yield Step(functools.partial(self.select, found, query))
            fetch_k = None if widest is None else _wider(selected, widest)
        return selected

    def select(self, found: Found, query: EmbeddedQuery) -> Selected:
        """Select among the items.

        If several items have the same id, only the first one is a candidate. Items whose id is None stay separate.
        With ``drop_duplicates`` no two items of the result have the same text, and no item has the text of a shown
        one. Empty texts are not compared. Among items with the same text, the candidate is the first one, or the one
        with the highest given relevance.
        """
        if not found.items:
            return Selected([], Selection(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), 0.0), found, False)
        repeated_ids = len(set(found.ids)) < len(found.ids)
        distinct = _distinct_ids(found.ids) if repeated_ids else None
        selected = self._select_rows(found, distinct, query)
        if not self.drop_duplicates:
            return selected
        # Repeated texts are rare, so the texts of the other candidates are read only after one was selected twice.
        known = set(self.shown)
        shown = [item for item, name in zip(found.items, found.ids, strict=True) if name in known] if known else []
        texts = list(filter(None, map(found.text_of, [*selected.items, *shown])))
        if len(set(texts)) == len(texts):
            return selected
        rows = range(len(found.ids)) if distinct is None else distinct
        return self._select_rows(found, self._distinct_texts(found, rows), query)

    def _distinct_texts(self, found: Found, rows: Sequence[int]) -> list[int]:
        """The shown rows, and one row for each text: the first one, or the one with the highest given relevance."""
        items = [found.items[row] for row in rows]
        order: Sequence[int] = range(len(rows))
        if self.relevance is not None:
            order = np.argsort(-read_numbers(items, self.relevance, "relevance"), kind="stable").tolist()
        texts = [found.text_of(item) for item in items]
        known = set(self.shown)
        is_shown = [found.ids[row] in known for row in rows]
        seen = {text for text, kept in zip(texts, is_shown, strict=True) if kept}
        distinct = []
        for number in order:
            if is_shown[number] or not texts[number] or texts[number] not in seen:
                distinct.append(rows[number])
            seen.add(texts[number])
        return sorted(distinct)

    def _select_rows(self, found: Found, rows: list[int] | None, query: EmbeddedQuery) -> Selected:
        """Select among the items at these rows; None for all of them."""
        items, ids, vectors = found.items, found.ids, _as_rows(found.vectors, found.ids)
        if rows is not None:
            items, ids, vectors = [items[row] for row in rows], [ids[row] for row in rows], vectors[rows]
        relevance = None if self.relevance is None else read_numbers(items, self.relevance, "relevance")
        source = None if self.max_per_source is None else self.source
        candidates = Candidates(
            query.vector,
            vectors,
            relevance=None if relevance is None else rescale(relevance, self.relevance_scale),
            quality=None if self.quality is None else read_numbers(items, self.quality, "quality"),
            ids=ids,
            costs=None if self.costs is None else read_numbers(items, self.costs, "costs"),
            sources=None if source is None else read_values(items, source, "source"),
            max_per_source=self.max_per_source,
            drop_near_duplicates=self.drop_near_duplicates,
            copy=False,
        )
        if query.pap is not None:
            candidates = query.pap.apply(candidates)
        known = set(self.shown)
        shown = [row for row, name in enumerate(ids) if name in known] if known else []
        selection = choose(
            candidates,
            self.selector,
            self.k,
            budget=self.budget,
            shown=shown,
            score_threshold=self.score_threshold,
            threshold_on=relevance,
        )
        if relevance is not None:
            selection = replace(selection, relevance=relevance[selection.indices])
        picked = [items[row] for row in selection.indices.tolist()]
        cut_short = self._is_cut_short(candidates, relevance, selection, shown, dropped=rows is not None)
        if rows is not None:
            selection = replace(selection, indices=np.array(rows, np.int64)[selection.indices])
        return Selected(picked, selection, found, cut_short)

    def selects_all(self, candidates: int) -> bool:
        """Whether every selector would select all of this many candidates, in an order that does not matter.

        False for plain similarity, because its user asked for the nearest items and not for a selection. False also
        if a constraint is set, or an ``order`` other than the default.
        """
        limits = self.score_threshold, self.budget, self.max_per_source, self.drop_near_duplicates
        if self.k is None or not 0 < candidates <= self.k or any(limit is not None for limit in limits):
            return False
        return self.order == ORDERS[0] and not isinstance(self.selector, TopK)

    def report(self, selected: Selected, started: float, vector_source: Callable[[], str]) -> Selected:
        """``selected`` with its time since ``started`` (``time.perf_counter()``); writes one line to the log.

        The line holds no query, text or id. ``vector_source`` is called only if the line is written.
        """
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
        """What the adapters' events say about a selection, in the order of the picks."""
        found, selection = selected.found, selected.selection
        return {
            "selector": repr(self.selector),
            "fetch_k": found.fetch_k,
            "candidates": len(found.items),
            "ids": selected.ids,
            "gains": selection.gains.tolist(),
            "relevance": selection.relevance.tolist(),
            "objective": selection.objective if found.items else None,
            "filled_from": selection.filled_from,
            "milliseconds": selected.milliseconds,
        }

    def warn_of_unused_perspective(self) -> None:
        """For callers that do not search: warn if a perspective has no effect, because relevance is given."""
        if self.perspective is not None and self.relevance is not None and not self.corpus:
            warnings.warn(
                "perspective has no effect here: it projects the query, and the given relevance takes the place of "
                "the cosine with the query. corpus=True projects the candidates too",
                SetSelectWarning,
                stacklevel=3,
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
        if self.max_per_source is None and self.drop_near_duplicates is None and not dropped:
            return False
        if self.k is not None and len(selection) >= self.k:
            return False
        # The store returns the nearest first, so a wider search finds no candidate of a higher cosine.
        threshold = None if relevance is not None else self.score_threshold
        if threshold is not None and float(candidates.relevance.min()) < threshold:
            return False
        if self.budget is None or candidates.costs is None:
            return True
        affordable = candidates.costs <= self.budget - float(candidates.costs[selection.indices].sum())
        affordable[[*selection.indices.tolist(), *shown]] = False
        return bool(affordable.any())


# Every field of a request is a setting of the adapters, under the same name.
SETTINGS = tuple(field.name for field in fields(Request))


def as_perspective(perspective: Any) -> Any:
    """``perspective`` with a vector as a tuple, which pydantic can compare and hash."""
    if perspective is None or isinstance(perspective, str) or callable(perspective):
        return perspective
    return tuple(PAP(perspective).perspective.tolist())  # type: ignore[union-attr]


def find_registered(table: Mapping[type | str, T], cls: type) -> T | None:
    """The entry of ``cls`` or of the nearest of its base classes, by the class or by its full name."""
    for base in cls.__mro__:
        entry = table.get(base) or table.get(f"{base.__module__}.{base.__qualname__}")
        if entry is not None:
            return entry
    return None


def is_default(value: Any, default: Any) -> bool:
    """Whether the value of a setting is its default. After pickling or JSON, an equal string is another object.

    >>> is_default("".join(["select", "ion"]), "selection")
    True
    """
    return value is default or (isinstance(value, str) and value == default)


def parameter_names() -> dict[str, None]:
    """The names of all selectors' parameters, in a fixed order."""
    return dict.fromkeys(p for name in selector_names() for p in selector_parameters(name))


def check_spelling(names: Iterable[str], more: tuple[str, ...] = ()) -> None:
    """Raise for an unknown name that is close to a setting, to a selector's parameter or to one of ``more``.

    >>> check_spelling(["filter"])
    """
    for name in names:
        near = _nearest(name, (*SETTINGS, *parameter_names(), *more))
        if near is not None:
            raise InvalidParameterError(f"there is no {name!r}: did you mean {near!r}?")


def refuse_unknown(owner: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise for the first name that ``owner`` does not know; ``known`` are its arguments besides selectors' parameters.

    >>> refuse_unknown("Retriever", ["lambda"], ["k"])
    Traceback (most recent call last):
    ...
    setselect.InvalidParameterError: Retriever has no argument 'lambda': did you mean 'lambda_mult'?
    """
    allowed = tuple(dict.fromkeys((*known, *parameter_names())))
    for name in names:
        if name not in allowed:
            near = _nearest(name, allowed)
            hint = f"it has {', '.join(sorted(allowed))}" if near is None else f"did you mean {near!r}?"
            raise InvalidParameterError(f"{owner} has no argument {quoted(name)}: {hint}")


@functools.lru_cache(maxsize=256)
def _nearest(name: str, known: tuple[str, ...]) -> str | None:
    elsewhere = (alias for alias in _ELSEWHERE.get(name, ()) if alias in known)
    return next(elsewhere, None) or next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.8)), None)


def _check_sizes(k: Any, fetch_k: Any, budget: Any) -> tuple[int | None, int]:
    """``k`` and ``fetch_k``, or their defaults."""
    if k is None and budget is None:
        k = 4
    if k is not None:
        k = check_integer(k, "k", 1)
    if fetch_k is None:
        return k, 50 if k is None else max(20, 5 * k)
    return k, check_integer(fetch_k, f"fetch_k (from which k={k or 1} are selected)", k or 1)


def _as_selector(given: Any, parameters: dict[str, Any]) -> Selector:
    """The selector that a name and its parameters make, or the object that was given."""
    if isinstance(given, str) and given == "similarity_score_threshold":
        raise InvalidParameterError(
            "there is no selector 'similarity_score_threshold': use 'similarity' and score_threshold="
        )
    return resolve_selector(given, parameters)


def _check_perspective(perspective: Any, how: str) -> None:
    if how != "text":
        check_perspective_vector(how, perspective)
    if isinstance(perspective, str):
        if not perspective.strip():
            raise PerspectiveError("perspective is an empty text; use None for no perspective")
    elif perspective is not None and not callable(perspective):
        PAP(perspective)


def _check_item_value(value: Any, what: str) -> Any:
    """``value`` if it can give numbers or names of items."""
    if isinstance(value, (str, Mapping)) or callable(value):
        return value
    raise InvalidParameterError(
        f"{what} must be a metadata key, a mapping by id or a function of the item, got {quoted(value)}"
    )


def _check_scale(scale: Any, what: str) -> str | None:
    return None if scale is None else check_one_of(scale, what, SCALES)


def _check_cosine(value: Any, what: str) -> float:
    return check_number(value, f"{what} (a cosine)", -1, 1)


# The check of each setting that is not None. A selector, the sizes and a score_threshold have checks of their own.
_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    # The ids of documents and nodes are strings. Those that a user reads from metadata may be integers.
    "shown": lambda value, what: tuple(map(str, as_identifiers(value, what))),
    "budget": check_number,
    "costs": _check_item_value,
    "quality": _check_item_value,
    "relevance": _check_item_value,
    "relevance_scale": _check_scale,
    "source": _check_item_value,
    "max_per_source": functools.partial(check_integer, least=1),
    "drop_near_duplicates": _check_cosine,
    "drop_duplicates": check_bool,
    "order": functools.partial(check_one_of, allowed=ORDERS),
    "perspective": lambda value, what: value,
    "perspective_vector": functools.partial(check_one_of, allowed=PERSPECTIVE_VECTORS),
    "direction": functools.partial(check_one_of, allowed=DIRECTIONS),
    "corpus": check_bool,
}


def as_vector(embedding: Any, what: str) -> NDArray[Any]:
    """``embedding`` as an array of shape (d,); InvalidInputError if it is not one vector. Messages call it ``what``."""
    vector = as_numeric(embedding, what)
    if vector.ndim != 1:
        raise InvalidInputError(f"{what} must be one vector, got shape {vector.shape}")
    return vector


def _distinct_ids(ids: Sequence[Hashable]) -> list[int]:
    """The first row of each id, and all rows without an id."""
    first: dict[Hashable, int] = {}
    return [row for row, name in enumerate(ids) if name is None or first.setdefault(name, row) == row]


def _as_rows(vectors: Any, ids: Sequence[Hashable]) -> NDArray[Any]:
    """``vectors`` as an array. If a row differs in length from the first, the error names it."""
    if not isinstance(vectors, np.ndarray):
        odd = next((row for row, vector in enumerate(vectors) if not hasattr(vector, "__len__")), None)
        if odd is not None:
            raise InvalidInputError(
                f"the vector of {ids[odd]!r} is {quoted(vectors[odd])}, which is not a list of numbers"
            )
        lengths = list(map(len, vectors))
        if len(set(lengths)) > 1:
            odd = next(row for row, length in enumerate(lengths) if length != lengths[0])
            raise InvalidInputError(
                f"the vector of {ids[odd]!r} has length {lengths[odd]}, that of {ids[0]!r} has {lengths[0]}: "
                "they most likely come from different embedding models"
            )
    return as_numeric(vectors, "vectors")


def _wider(selected: Selected, widest: int) -> int | None:
    """The size of the next search; None if more candidates would not help, or if ``widest`` is reached."""
    found = selected.found
    if not selected.cut_short or found.exhausted or found.fetch_k is None:
        return None
    if found.fetch_k >= widest:
        warnings.warn(
            f"only {len(selected.items)} of {len(found.items)} candidates are selected: the others have the same text "
            f"as one of them, or max_per_source or drop_near_duplicates forbids them. No more than {widest} candidates "
            "are fetched automatically; a larger fetch_k= fetches more",
            SetSelectWarning,
            stacklevel=3,
        )
        return None
    return min(4 * found.fetch_k, widest)
