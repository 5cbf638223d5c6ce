"""Searches beside the vector search: extra retrievers of the framework, and the search by words."""

from __future__ import annotations

import operator
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
# After so many seconds the texts of a store that does not say what has changed are read again.
SECONDS = 60
# The searches that ``share_search`` made, by the id of the store.
_SHARED: dict[int, WordSearch[Any]] = {}
_SHARING = Lock()


@dataclass(frozen=True)
class FilteredRetriever:
    """An extra retriever that itself finds only what the filter of the search lets in.

    With a filter, or another argument of the store, a document of ``extra_retrievers`` is a candidate only if the
    filter is known to let it in. All documents of a filtered retriever are candidates.

    Parameters
    ----------
    retriever : object
        The retriever, with the same filter as the search.

    Examples
    --------
    ``SetSelectRetriever(vectorstore=store, search_kwargs={"filter": only_a}, extra_retrievers=[
    FilteredRetriever(other_store.as_retriever(search_kwargs={"filter": only_a, "k": 25}))])``
    """

    retriever: Any


class ExtraRetriever(NamedTuple):
    """A retriever of an adapter's framework: its name, its items for a text, and whether it filters them itself."""

    name: str
    retrieve: Callable[[str], Flow[Sequence[Any]]]
    filters: bool = False


class KnownItems(NamedTuple):
    """What a store knows of items that its search did not find, row by row.

    ``vectors``: None if the store has none. ``admitted``: whether the filter of the search lets the item in; None if
    that cannot be known. ``items``: the store's own, where it was asked.
    """

    ids: Sequence[Hashable]
    vectors: Sequence[Any]
    admitted: Sequence[bool | None]
    items: Sequence[Any]


class Extras(NamedTuple):
    """What an adapter gives for the extra retrievers: themselves, and the store's knowledge of what they find."""

    retrievers: Sequence[ExtraRetriever]
    look_up: Callable[[Sequence[Any], Sequence[Hashable]], Flow[KnownItems]]
    # The name of the model that embeds texts; empty if it keeps the vectors of texts that it has embedded.
    model: Callable[[], str]
    # Whether the store says which ids it has.
    knows_ids: bool = False
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


def unwrap(retrievers: Iterable[Any]) -> list[Any]:
    """The retrievers, also those that filter themselves."""
    return [one.retriever if isinstance(one, FilteredRetriever) else one for one in retrievers]


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
    # What several find is the item of the first one.
    ordered = sorted(settings.extra_retrievers, key=lambda one: not isinstance(one, FilteredRetriever))
    retrievers = unwrap(ordered)
    for retriever, one in zip(retrievers, ordered, strict=True):
        first = name = name_of(retriever)
        number = 1
        while name in named or name in (VECTOR_SEARCH, KEYWORD_SEARCH, FOLLOW):
            number += 1
            name = f"{first} {number}"
        named[name] = ExtraRetriever(name, partial(retrieve, retriever), isinstance(one, FilteredRetriever))
    indexes = [words, *(getattr(one, "words", None) for one in retrievers)]
    index = next((one for one in indexes if isinstance(one, WordSearch)), None)
    corpus = (None, None) if index is None else (index.weigh, index.score)
    return Extras([*named.values()], look_up, model, knows_ids, *corpus)


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
            items=[*united.items[:first], *known.items],
            ids=[*united.ids[:first], *known.ids],
            vectors=[*united.vectors[:first], *known.vectors],
        )
        filtered = {retriever.name for retriever in extras.retrievers if retriever.filters}
        admitted = [
            passes or (passes is None and not filtered.isdisjoint(searches[row]))
            for row, passes in zip(new, known.admitted, strict=True)
        ]
        left_out = [row for row, passes in zip(new, admitted, strict=True) if not passes]
        if extras.knows_ids:
            # They were deleted since the search by words.
            deleted = [row for row in new if searches[row] == (KEYWORD_SEARCH,) and united.vectors[row] is None]
            left_out = sorted({*left_out, *deleted})
        unknown = sum(known.admitted[row - first] is None for row in left_out)
        if unknown and is_first(owner, "_warned_of_filter"):
            warn(
                f"extra_retrievers: {unknown} documents that {' or '.join(answer.name for answer in answers)} found "
                "are left out, because the search has a filter or another argument of the store, and it is not known "
                "whether it lets them in: they have no ids, the store does not have them, or it cannot be asked. "
                "Documents that the vector search finds too are candidates, and those of a FilteredRetriever"
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
    """How the items of a store are listed, as its searches return them, and counted, which is fast."""

    items: Callable[[Any], Iterable[Item]]
    count: Callable[[Any], int]
    # What differs after each change of the store: a number, or by id an object that another one replaces. None if the
    # store does not say it. Then a text that was replaced is noticed after a while.
    version: Callable[[Any], Any] = lambda store: None
    # The ids of all items, and by id those of some ids that the store has now. None if it has no ids.
    ids: Callable[[Any], Iterable[Hashable]] | None = None
    read: Callable[[Any, Sequence[Any]], Mapping[Any, Item]] | None = None


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


@dataclass(frozen=True)
class _State(Generic[Item]):
    """What one search sees."""

    # The items, or their ids where the store is asked for the items that a search finds.
    items: tuple[Any, ...]
    index: WordIndex
    version: Any = None
    # When all texts were read; None if they have to be read again. Those of the ``doubtful`` ids in any case.
    listed: float | None = None
    doubtful: frozenset[Hashable] = frozenset()


class WordSearch(Generic[Item]):
    """Items that can be searched by words, by any number of threads.

    With a ``store``, or a weak reference to one, the items are those that the store has now. What changed since the
    last search is read again, where the store says it, else what was added, and after ``SECONDS`` everything; texts
    that have not changed are not split again. Otherwise the index is made at the first search. Pickles contain the
    store, or the items and their words.
    """

    def __init__(self, kind: ItemKind[Item], items: Iterable[Item] = (), store: Any = None) -> None:
        self.kind, self._store = kind, store
        self._lock = Lock()
        self._state: _State[Item] = _State(tuple(self._by_id(map(kind.copy, items)).values()), WordIndex(()))

    def search(
        self, question: Any, k: Any, passes: Callable[[Item], bool] | None = None, name: str = "k"
    ) -> list[tuple[Item, float]]:
        """Copies of the ``k`` best items that pass and have a word of the question, with their BM25 scores.

        Messages call ``k`` by its ``name``.
        """
        k = check_integer(k, name, 1)
        state, (listing, place) = self._current(), self._find_store()
        rows, scores = state.index.best_rows(question, 2 * k if passes is None else max(len(state.items), 1))
        hits, doubtful, size = list[tuple[Item, float]](), set[Hashable](), k if passes is None else max(4 * k, 100)
        for start in range(0, len(rows), size):
            some, found = rows[start : start + size].tolist(), None
            if listing is not None and listing.read is not None:
                found = listing.read(place, [state.items[row] for row in some])
            for row, score in zip(some, scores[start : start + size].tolist(), strict=True):
                item = state.items[row] if found is None else found.get(state.items[row])
                if item is None or (found is not None and self.kind.text(item) != state.index.texts[row]):
                    doubtful.add(state.items[row])
                if item is not None and (passes is None or passes(item)):
                    hits.append((self.kind.copy(item), score))
            if len(hits) >= k:
                break
        if doubtful:
            with self._lock:
                self._state = replace(self._state, doubtful=self._state.doubtful | doubtful)
        return hits[:k]

    def weigh(self, terms: Sequence[str]) -> NDArray[np.float64]:
        """The inverse document frequency of each term among the items of the last search; 1 if none was possible."""
        index = self._state.index
        return index.weigh(terms) if index.texts else np.ones(len(terms))

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """The BM25 scores of these texts among the items of the last search; 0 for other texts."""
        return self._state.index.score_texts(question, texts)

    def refresh(self) -> None:
        """Read all items of the store again at the next search."""
        with self._lock:
            self._state = replace(self._state, listed=None)

    def _find_store(self) -> tuple[StoreListing[Item] | None, Any]:
        store = self._store() if isinstance(self._store, weakref.ref) else self._store
        return (None, None) if store is None else self.kind.find_listing(store)

    def _current(self) -> _State[Item]:
        """The state, with its index."""
        listing, place = self._find_store()
        if self._is_current(listing, version := _read_version(listing, place)):
            return self._state
        # The other threads wait, and find the new state.
        with self._lock:
            if not self._is_current(listing, version := _read_version(listing, place)):
                self._state = self._list(listing, place, version)
            return self._state

    def _is_current(self, listing: StoreListing[Item] | None, version: Any) -> bool:
        state = self._state
        if state.listed is None or state.doubtful or not _is_same(state.version, version):
            return False
        return listing is None or version[1] is not None or time.monotonic() - state.listed < SECONDS

    def _list(self, listing: StoreListing[Item] | None, place: Any, version: Any) -> _State[Item]:
        state, listed = self._state, time.monotonic()
        if listing is None:
            return _State(
                state.items, WordIndex([*map(self.kind.text, state.items)], state.index, _track), None, listed
            )
        if version[0] > MOST:
            raise InvalidParameterError(
                f"the store holds {version[0]} documents, and an index is made over at most {MOST}: use the word "
                "search of the store itself, or make a WordRetriever from those documents that matter"
            )
        is_old = state.listed is None or (version[1] is None and listed - state.listed >= SECONDS)
        if is_old or listing.read is None or listing.ids is None:
            items = self._by_id(listing.items(place))
            texts = {name: self.kind.text(item) for name, item in items.items()}
            names = tuple(items.values() if listing.read is None else items)
        else:
            listed = state.listed or listed
            texts = self._read_changes(
                listing, place, version[1], dict(zip(state.items, state.index.texts, strict=True))
            )
            names = tuple(texts)
        same = state.index.texts == tuple(texts.values())
        index = state.index if same else WordIndex([*texts.values()], state.index, _track).prepare()
        return _State(names, index, version, listed)

    def _read_changes(self, listing: Any, place: Any, marks: Any, old: dict[Any, str]) -> dict[Any, str]:
        """The texts by id. Those that are known and have not changed are not read."""
        state = self._state
        known = state.version[1] if isinstance(marks, dict) else None
        current = marks if isinstance(marks, dict) else dict.fromkeys(listing.ids(place))
        changed = [
            name
            for name, mark in current.items()
            if name not in old or name in state.doubtful or (known is not None and known.get(name) is not mark)
        ]
        found = listing.read(place, changed) if changed else {}
        texts = {**old, **dict.fromkeys(changed), **{name: self.kind.text(item) for name, item in found.items()}}
        return {name: text for name in current if (text := texts.get(name)) is not None}

    def _by_id(self, items: Iterable[Item]) -> dict[Hashable, Item]:
        """The items by id. Of several with the same id, the last one stands in the place of the first."""
        by_id: dict[Hashable, Item] = {}
        for item in items:
            name = self.kind.id(item)
            by_id[object() if name is None else name] = item
        return by_id

    def __getstate__(self) -> dict[str, Any]:
        # A lock cannot be pickled, and a store may have changed when the pickle is read.
        state = replace(self._state, listed=None) if self._store is None else _State((), WordIndex(()))
        return {"kind": self.kind, "_store": self._store, "_state": state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())


def _read_version(listing: StoreListing[Any] | None, place: Any) -> Any:
    """The number of items of a store, and its version."""
    return None if listing is None else (listing.count(place), listing.version(place))


def _is_same(first: Any, second: Any) -> bool:
    """Whether two versions are equal. The objects in a mapping are compared by identity."""
    if first is None or second is None or not isinstance(first[1], dict) or not isinstance(second[1], dict):
        return bool(first == second)
    one, other = first[1], second[1]
    return one.keys() == other.keys() and all(map(operator.is_, one.values(), map(other.__getitem__, one)))


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
