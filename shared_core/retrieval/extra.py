"""Searches beside the vector search: extra retrievers of the framework, and the search by words."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._validation import check_integer as check_integer
from .._validation import quoted
from ..errors import EmbeddingFallbackWarning, InvalidParameterError, warn
from ..signals.progress import progress_bar
from ..texts.word_index import WordIndex
from ..texts.words import Weigh
from .events import LOGGER, is_first
from .flow import Flow, together
from .pool import FOLLOW, KEYWORD_SEARCH, VECTOR_SEARCH, ExtraSearch, Pool, drop_ambiguous, unite
from .question import EmbeddedQuery

if TYPE_CHECKING:
    from .settings import Call, Settings

Item = TypeVar("Item")

# From so many texts on, splitting them takes seconds, and a progress bar shows it.
SHOWN_FROM = 20_000
# The most documents that are read out of a store. Splitting more takes minutes, and holding them gigabytes.
MOST = 1_000_000
# The searches that ``share_search`` made, by the id of the store.
_SHARED: dict[int, WordSearch[Any]] = {}
_SHARING = Lock()


class ExtraRetriever(NamedTuple):
    """A retriever of an adapter's framework: its name, and its items for a text."""

    name: str
    retrieve: Callable[[str], Flow[Sequence[Any]]]


class KnownItems(NamedTuple):
    """What a store knows of items that its search did not find, row by row.

    ``vectors``: None if the store has none. ``admitted``: whether the filter of the search lets the item in; None if
    that cannot be known.
    """

    ids: Sequence[Hashable]
    vectors: Sequence[Any]
    admitted: Sequence[bool | None]


class Extras(NamedTuple):
    """What an adapter gives for the extra retrievers: themselves, and the store's knowledge of what they find."""

    retrievers: Sequence[ExtraRetriever]
    look_up: Callable[[Sequence[Any], Sequence[Hashable]], Flow[KnownItems]]
    # The name of the model that embeds texts; empty if it keeps the vectors of texts that it has embedded.
    model: Callable[[], str]
    # Called if the keyword search finds documents that are not in the store any more. None if that cannot be known.
    refresh: Callable[[], None] | None = None
    # What words weigh in the corpus, if one of the retrievers has an index of words.
    weigh: Weigh | None = None
    # The BM25 scores of texts for a question in the corpus, if one of the retrievers has an index of words.
    score: Callable[[str, Sequence[str]], Any] | None = None


def check_retrievers(retrievers: Sequence[Any], kind: type, framework: str) -> None:
    """Refuse what is no retriever of the framework, whose class is ``kind``."""
    for value in retrievers:
        if isinstance(value, kind):
            continue
        if isinstance(value, type):
            fault = f"the class {value.__name__}: make an object of it, and pass that"
        elif callable(getattr(value, "as_retriever", None)):
            fault = f"a {type(value).__name__}, which is no retriever: pass its as_retriever(...)"
        elif callable(getattr(value, "invoke", None)) or callable(getattr(value, "retrieve", None)):
            fault = f"a {type(value).__name__} of another framework: pass retrievers of {framework}"
        else:
            fault = f"{quoted(value)}: pass retrievers of {framework}, such as a search by words"
        raise InvalidParameterError(f"extra_retrievers holds {fault}")


def gather_extras(
    kind: ItemKind[Any],
    store: Any,
    settings: Call,
    name_of: Callable[[Any], str],
    retrieve: Callable[[Any, str], Flow[Sequence[Any]]],
    search_words: Callable[[WordSearch[Any], str], Flow[Sequence[Any]]],
    look_up: Callable[[Sequence[Any], Sequence[Hashable]], Flow[KnownItems]],
    model: Callable[[], str],
    *,
    knows_ids: bool,
) -> Extras:
    """The extra retrievers and the search by words of the settings, whose names differ.

    ``knows_ids``: whether the store says which ids it has.
    """
    named: dict[str, ExtraRetriever] = {}
    words = share_search(kind, store) if settings.keyword_search else None
    if words is not None:
        named[KEYWORD_SEARCH] = ExtraRetriever(KEYWORD_SEARCH, partial(search_words, words))
    for retriever in settings.extra_retrievers:
        first = name = name_of(retriever)
        number = 1
        while name in named or name in (VECTOR_SEARCH, KEYWORD_SEARCH, FOLLOW):
            number += 1
            name = f"{first} {number}"
        named[name] = ExtraRetriever(name, partial(retrieve, retriever))
    indexes = [words, *(getattr(one, "words", None) for one in settings.extra_retrievers)]
    index = next((one for one in indexes if isinstance(one, WordSearch)), None)
    refresh = words.refresh if words is not None and knows_ids else None
    corpus = (None, None) if index is None else (index.weigh, index.score)
    return Extras([*named.values()], look_up, model, refresh, *corpus)


def ask(owner: Settings, retriever: ExtraRetriever, queries: Sequence[EmbeddedQuery], each: int) -> Flow[ExtraSearch]:
    """What a retriever finds for the queries, ``each`` items for one of them."""
    started = time.perf_counter()
    # A question of which only the embedding is known has no text. If all of its words are removed, its text counts.
    texts = [query.words if query.words.strip() else query.text for query in queries]
    texts = [text for text in texts if text.strip()]
    answers = yield from together([_ask_once(owner, retriever, text) for text in texts])
    items = [item for found, _ in answers for item in found[:each]]
    errors = [error for _, error in answers if error is not None] if texts else ["the question has no text"]
    milliseconds = 1000 * (time.perf_counter() - started)
    return ExtraSearch(retriever.name, items, errors[0] if errors else None, milliseconds)


def _ask_once(owner: Settings, retriever: ExtraRetriever, text: str) -> Flow[tuple[Sequence[Any], str | None]]:
    name = retriever.name
    try:
        return (yield from retriever.retrieve(text)), None
    # Every call would fail: the store holds too many documents for a keyword search, for example.
    except InvalidParameterError:
        raise
    # A retriever may raise anything, and the vector search has its candidates nevertheless.
    except Exception as failure:
        LOGGER.warning("the extra retriever %s failed; the set is selected without it", name, exc_info=True)
        error = f"{type(failure).__name__}: {failure}"
    if is_first(owner, f"_failed_{name}"):
        warn(
            f"extra_retrievers: {name} failed ({error}), so the set is selected without what it would have found. "
            "Later failures are in the log 'setselect' and in the event only"
        )
    return [], error


def read_answers(
    owner: Settings,
    pool: Pool,
    answers: Sequence[ExtraSearch],
    extras: Extras,
    read_ids: Callable[[Sequence[Any]], Sequence[Hashable]],
    embed: Callable[[list[str]], Flow[Any]],
) -> Flow[tuple[Pool, list[ExtraSearch]]]:
    """The items that the retrievers found, each with its vector and the searches that found it.

    ``pool`` is what the vector search found. One call looks up what is not in it, and one embeds what the store does
    not have.
    """
    found = []
    for answer in answers:
        ids = drop_ambiguous(read_ids(answer.items), list(map(pool.text, answer.items)))
        one = pool._replace(items=answer.items, ids=ids, vectors=[None] * len(ids), scores=None)
        found.append(one.found_by(answer.name))
    first = len(pool.items)
    united, _ = unite(pool.found_by(VECTOR_SEARCH), found)
    new, searches = range(first, len(united.items)), united.searches or ()
    joined = united.take([row for row in range(first) if len(searches[row]) > 1])
    left_out: list[int] = []
    if new:
        known = yield from extras.look_up(united.items[first:], united.ids[first:])
        united = united._replace(
            ids=[*united.ids[:first], *known.ids], vectors=[*united.vectors[:first], *known.vectors]
        )
        left_out = [row for row, admitted in zip(new, known.admitted, strict=True) if not admitted]
        if extras.refresh is not None:
            # The index of words may be older than the store.
            deleted = [row for row in new if searches[row] == (KEYWORD_SEARCH,) and united.vectors[row] is None]
            if deleted:
                extras.refresh()
                left_out = sorted({*left_out, *deleted})
        unknown = sum(admitted is None for admitted in known.admitted)
        if unknown and is_first(owner, "_warned_of_filter"):
            warn(
                f"extra_retrievers: {unknown} documents that {' or '.join(answer.name for answer in answers)} found "
                "are left out, because the search has a filter or another argument of the store, and it is not known "
                "whether it lets them in: they have no ids, or the store cannot be asked. Documents that the vector "
                "search finds too are candidates"
            )
        rows = [row for row in new if row not in {*left_out}]
        more = yield from _complete(owner, united, first, rows, extras, embed)
        joined, _ = unite(joined, [more])
    names = [united.text(united.items[row])[:60] if united.ids[row] is None else united.ids[row] for row in left_out]
    pairs = list(zip(names, left_out, strict=True))
    return joined, [
        answer._replace(left_out=[name for name, row in pairs if answer.name in searches[row]]) for answer in answers
    ]


def _complete(
    owner: Settings,
    united: Pool,
    first: int,
    rows: Sequence[int],
    extras: Extras,
    embed: Callable[[list[str]], Flow[Any]],
) -> Flow[Pool]:
    """The items at ``rows`` with their vectors: stored ones, those of candidates with the same text, and new ones.

    The candidates of the vector search are the ``first`` ones.
    """
    pool = united.take(rows)
    missing = [row for row in rows if united.vectors[row] is None]
    if not missing:
        return pool
    texts = list(map(united.text, united.items))
    vectors = dict(zip(texts[:first], united.vectors[:first], strict=True))
    unknown = [row for row in missing if texts[row] not in vectors]
    if unknown:
        new = list(dict.fromkeys(texts[row] for row in unknown))
        model, nameless = extras.model(), sum(united.ids[row] is None for row in unknown)
        if model and is_first(owner, "_warned_of_embedding"):
            why, remedy = "they have no id to look vectors up by", "Give them the ids that they have in the store"
            if nameless < len(new):
                why = "the store has no vectors for them"
                why += f", and {nameless} of them have no id to look vectors up by" if nameless else ""
                remedy = "Search the documents that are in the store, with the ids that they have there"
            warn(
                f"extra_retrievers: each query embeds the texts of further documents ({len(new)} this time) with "
                f"{model}: {why}. {remedy}, or use a cache of embeddings",
                EmbeddingFallbackWarning,
            )
        vectors |= zip(new, (yield from embed(new)), strict=True)
    pairs = zip(rows, pool.vectors, strict=True)
    return pool._replace(vectors=[vectors[texts[row]] if vector is None else vector for row, vector in pairs])


@dataclass(frozen=True)
class StoreListing(Generic[Item]):
    """How all items of a store are listed, as its searches return them, and counted, which is fast."""

    items: Callable[[Any], Iterable[Item]]
    count: Callable[[Any], int]


@dataclass(frozen=True)
class ItemKind(Generic[Item]):
    """What a framework's documents or nodes are. The functions are those of a module, so that they can be pickled."""

    text: Callable[[Item], str]
    id: Callable[[Item], Hashable]
    # A copy whose metadata can be changed without a change of the original.
    copy: Callable[[Item], Item]
    # How a store is listed, None if it cannot be, and the argument of the listing, such as the store of an index.
    find_listing: Callable[[Any], tuple[StoreListing[Item] | None, Any]]

    def check_listing(self, store: Any, maker: str) -> None:
        """Refuse a store whose items cannot be listed; ``maker`` is another constructor of WordRetriever."""
        listing, listed = self.find_listing(store)
        if listing is None:
            raise InvalidParameterError(
                "a search by words (keyword_search, WordRetriever.from_store) lists the texts of the store, and "
                f"setselect cannot list those of {type(listed).__name__}: pass WordRetriever.{maker} or the store's "
                "own search by words as one of the extra_retrievers"
            )

    def can_index(self, store: Any) -> bool:
        """Whether an index of words can be made over all items: they can be listed, and they are not too many."""
        number = self.count(store)
        return number is not None and number <= MOST

    def count(self, store: Any) -> int | None:
        """The number of items of this store; None if it cannot list them."""
        listing, listed = self.find_listing(store)
        return None if listing is None else listing.count(listed)

    def list_items(self, store: Any) -> Iterable[Item]:
        """The items of a store that can be listed."""
        listing, listed = self.find_listing(store)
        assert listing is not None
        return listing.items(listed)


@dataclass(frozen=True)
class _State(Generic[Item]):
    """What one search sees."""

    items: tuple[Item, ...]
    index: WordIndex
    # How many items there were before they were listed; None if ``index`` is that of earlier items.
    counted: int | None = None


class WordSearch(Generic[Item]):
    """Items that can be searched by words, by any number of threads.

    With a ``store``, or a weak reference to one, the items are those of the store: they are listed at the first search,
    and again when the store counts another number of them; texts that have not changed are not split again. Otherwise
    the index is made at the first search. Pickles contain the store, or the items and their words.
    """

    def __init__(self, kind: ItemKind[Item], items: Iterable[Item] = (), store: Any = None) -> None:
        self.kind, self._store = kind, store
        self._lock = Lock()
        self._state: _State[Item] = _State(self._copy(items), WordIndex(()))

    def search(
        self, question: Any, k: Any, passes: Callable[[Item], bool] | None = None, name: str = "k"
    ) -> list[tuple[Item, float]]:
        """Copies of the ``k`` best items that pass and have a word of the question, with their BM25 scores.

        Messages call ``k`` by its ``name``.
        """
        k = check_integer(k, name, 1)
        state = self._current()
        row_passes = None if passes is None else lambda row: passes(state.items[row])
        rows, scores = state.index.best_rows(question, k, row_passes)
        return [(self.kind.copy(state.items[row]), score) for row, score in zip(rows, scores.tolist(), strict=True)]

    def weigh(self, terms: Sequence[str]) -> NDArray[np.float64]:
        """The inverse document frequency of each term among the items of the last search; 1 if none was possible."""
        index = self._state.index
        return index.weigh(terms) if index.texts else np.ones(len(terms))

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """The BM25 scores of these texts among the items of the last search; 0 for other texts."""
        return self._state.index.score_texts(question, texts)

    def refresh(self) -> None:
        """List the items of the store again at the next search, whatever their number is."""
        with self._lock:
            self._state = replace(self._state, counted=None)

    def _current(self) -> _State[Item]:
        """The state, with its index."""
        state, store = self._state, self._store() if isinstance(self._store, weakref.ref) else self._store
        if state.counted is not None and state.counted == self._count(store):
            return state
        # The other threads wait, and find the new state.
        with self._lock:
            state, counted = self._state, self._count(store)
            if state.counted == counted:
                return state
            if store is not None and counted > MOST:
                raise InvalidParameterError(
                    f"the store holds {counted} documents, and an index is made over at most {MOST}: use the word "
                    "search of the store itself, or make a WordRetriever from those documents that matter"
                )
            items = state.items if store is None else self._copy(self.kind.list_items(store))
            index = WordIndex([*map(self.kind.text, items)], state.index, _track).prepare()
            self._state = _State(items, index, counted)
            return self._state

    def _count(self, store: Any) -> int:
        return len(self._state.items) if store is None else self.kind.count(store) or 0

    def _copy(self, items: Iterable[Item]) -> tuple[Item, ...]:
        """Copies of the items. Of several with the same id, the last one stands in the place of the first."""
        copies: dict[Hashable, Item] = {}
        for item in map(self.kind.copy, items):
            name = self.kind.id(item)
            copies[object() if name is None else name] = item
        return tuple(copies.values())

    def __getstate__(self) -> dict[str, Any]:
        # A lock cannot be pickled, and a store may have changed when the pickle is read.
        state = replace(self._state, counted=None) if self._store is None else _State((), WordIndex(()))
        return {"kind": self.kind, "_store": self._store, "_state": state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())


def as_predicate(given: Any) -> Callable[[Any], bool] | None:
    """The filter of a search by words, a dict of metadata or a function of an item, as a function."""
    if given is None or (callable(given) and not isinstance(given, Mapping)):
        return given
    if not isinstance(given, Mapping):
        raise InvalidParameterError(f"filter must be a dict of metadata, or a function of a document, got {given!r}")
    names = [*given, *(name for value in given.values() if isinstance(value, Mapping) for name in value)]
    if any(str(name).startswith("$") for name in names):
        raise InvalidParameterError(
            f"filter={given!r}: WordRetriever compares values for equality and knows no operators: pass a function "
            "filter(document) -> bool"
        )
    keys, values = [*given], [*given.values()]
    return lambda item: [item.metadata.get(key) for key in keys] == values


def share_search(kind: ItemKind[Item], store: Any) -> WordSearch[Item]:
    """The search over the items of a store that all who call this share. It lives as long as the store does."""
    with _SHARING:
        if id(store) not in _SHARED:
            _SHARED[id(store)] = WordSearch(kind, store=weakref.ref(store))
            weakref.finalize(store, _SHARED.pop, id(store), None)
        return _SHARED[id(store)]


def _track(texts: Sequence[str]) -> Iterable[str]:
    with progress_bar(len(texts) >= SHOWN_FROM, len(texts), "text", "indexing words") as advance:
        for text in texts:
            yield text
            advance()
