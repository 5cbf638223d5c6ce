"""What a store gives; and searches beside its own: extra retrievers of the framework, and the search by words."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._validation import check_integer as check_integer
from ..errors import EmbeddingFallbackWarning, InvalidParameterError, quoted, warn
from ..texts.word_index import WordIndex
from .events import LOGGER, is_first
from .flow import Flow, together
from .inputs import EmbeddedQuery
from .pool import FOLLOW, KEYWORD_SEARCH, VECTOR_SEARCH, ExtraSearch, Pool, drop_ambiguous, unite
from .settings import Call, Settings

Item = TypeVar("Item")

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

    # By name what a retriever finds for a text.
    retrievers: Mapping[str, Callable[[str], Flow[Sequence[Any]]]]
    # The names of those that filter themselves.
    filtered: Collection[str]
    look_up: Callable[[Sequence[Any], Sequence[Hashable]], Flow[KnownItems]]
    # The name of the model that embeds texts; empty if it keeps the vectors of texts that it has embedded.
    model: Callable[[], str]
    # The index of words of one of the retrievers, if there is one.
    words: WordSearch[Any] | None = None


# The items nearest to a query, and how many.
Search = Callable[[EmbeddedQuery, int], Flow[Pool]]


class Store(NamedTuple):
    """What an adapter gives of a vector store and its embedding model."""

    search: Search
    read_ids: Callable[[Sequence[Any]], Sequence[Hashable]]
    # The vectors of names (n, d).
    embed: Callable[[list[str]], Flow[Any]]
    # The items with some ids, without those that the store does not have.
    fetch: Callable[[list[str]], Flow[Pool]]
    # The most candidates of one search. None, if there is no vector reader: there is no wider search, because it would
    # embed all texts that it finds.
    widest: int | None
    # None if there are no extra retrievers.
    extras: Extras | None = None
    # Whether the search has a filter, or another argument of the store.
    filtered: bool = False
    # The items nearest to a query of those whose metadata have these values, and that the filter of the search lets in.
    # None if the store cannot be asked for them.
    find: Callable[[EmbeddedQuery, Mapping[str, Sequence[Any]], int], Flow[Pool]] | None = None


def check_retrievers(retrievers: Sequence[Any], kind: type, framework: str) -> None:
    """Refuse what is no retriever of the framework, whose class is ``kind``."""
    for value in retrievers:
        if not isinstance(value.retriever if isinstance(value, FilteredRetriever) else value, kind):
            raise InvalidParameterError(
                f"extra_retrievers holds {quoted(value)}: pass retrievers of {framework}, such as the as_retriever() "
                "of another store or a WordRetriever"
            )


def gather_extras(
    kind: ItemKind[Any],
    store: Any,
    settings: Call,
    name_of: Callable[[Any], str],
    retrieve: Callable[[Any, str], Flow[Sequence[Any]]],
    search_words: Callable[[WordSearch[Any], str], Flow[Sequence[Any]]],
    look_up: Callable[[Sequence[Any], Sequence[Hashable]], Flow[KnownItems]],
    model: Callable[[], str],
) -> Extras:
    """The extra retrievers and the search by words of the settings, whose names differ."""
    named: dict[str, Callable[[str], Flow[Sequence[Any]]]] = {}
    filtered = set[str]()
    words = share_search(kind, store) if settings.keyword_search else None
    if words is not None:
        named[KEYWORD_SEARCH] = partial(search_words, words)
    # What several find is the item of the first one.
    for one in sorted(settings.extra_retrievers, key=lambda one: not isinstance(one, FilteredRetriever)):
        retriever, number = one.retriever if isinstance(one, FilteredRetriever) else one, 1
        first = name = name_of(retriever)
        while name in named or name in (VECTOR_SEARCH, KEYWORD_SEARCH, FOLLOW):
            number += 1
            name = f"{first} {number}"
        named[name] = partial(retrieve, retriever)
        filtered |= {name} if isinstance(one, FilteredRetriever) else set()
        own = getattr(retriever, "words", None)
        words = own if words is None and isinstance(own, WordSearch) else words
    return Extras(named, filtered, look_up, model, words)


def ask(
    owner: Settings, name: str, retrieve: Callable[[str], Flow[Any]], queries: Sequence[EmbeddedQuery], each: int
) -> Flow[ExtraSearch]:
    """What a retriever finds for the queries, ``each`` items for one of them."""
    # A question of which only the embedding is known has no text. If all of its words are removed, its text counts.
    texts = [query.words if query.words.strip() else query.text for query in queries]
    texts = [text for text in texts if text.strip()]
    answers = yield from together([_ask_once(owner, name, retrieve, text) for text in texts])
    items = [item for found, _ in answers for item in found[:each]]
    errors = [error for _, error in answers if error is not None] if texts else ["the question has no text"]
    return ExtraSearch(name, items, next(iter(errors), None))


def _ask_once(
    owner: Settings, name: str, retrieve: Callable[[str], Flow[Any]], text: str
) -> Flow[tuple[Sequence[Any], str | None]]:
    try:
        return (yield from retrieve(text)), None
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
    searches = united.searches or ()
    joined = united.take([row for row in range(first) if len(searches[row]) > 1])
    if len(united.items) == first:
        return joined, [*answers]
    known = yield from extras.look_up(united.items[first:], united.ids[first:])
    new = united.take(range(first, len(united.items)))
    new = new._replace(items=known.items, ids=known.ids, vectors=known.vectors)
    filtered = [any(name in extras.filtered for name in names) for names in new.searches or ()]
    admitted = [filters if passes is None else passes for filters, passes in zip(filtered, known.admitted, strict=True)]
    unknown = sum(passes is None and not kept for passes, kept in zip(known.admitted, admitted, strict=True))
    if unknown and is_first(owner, "_warned_of_filter"):
        warn(
            f"extra_retrievers: {unknown} documents that {' or '.join(answer.name for answer in answers)} found are "
            "left out, because the search has a filter, or another argument of the store, and it is not known whether "
            "it lets them in: they have no ids, or the store cannot be asked. A FilteredRetriever filters them itself"
        )
    more = yield from _complete(owner, new.take([row for row, passes in enumerate(admitted) if passes]), extras, embed)
    joined, _ = unite(joined, [more])
    out = new.take([row for row, passes in enumerate(admitted) if not passes])
    names = [pool.text(item)[:60] if name is None else name for item, name in zip(out.items, out.ids, strict=True)]
    left = [*zip(names, out.searches or (), strict=True)]
    return joined, [one._replace(left_out=[name for name, found in left if one.name in found]) for one in answers]


def _complete(owner: Settings, pool: Pool, extras: Extras, embed: Callable[[list[str]], Flow[Any]]) -> Flow[Pool]:
    """The items with their vectors: stored ones, and new ones of the texts that the store does not have."""
    missing = [row for row, vector in enumerate(pool.vectors) if vector is None]
    if not missing:
        return pool
    if (model := extras.model()) and is_first(owner, "_warned_of_embedding"):
        nameless = sum(pool.ids[row] is None for row in missing)
        warn(
            f"extra_retrievers: each query embeds the texts of further documents ({len(missing)} this time) with "
            f"{model}: the store has no vectors for them, and {nameless or 'none'} of them have no id to look vectors "
            "up by. Search documents with the ids that they have there, or use a cache of embeddings",
            EmbeddingFallbackWarning,
        )
    vectors = [*pool.vectors]
    new = yield from embed([pool.text(pool.items[row]) for row in missing])
    for row, vector in zip(missing, new, strict=True):
        vectors[row] = vector
    return pool._replace(vectors=vectors)


@dataclass(frozen=True)
class StoreListing(Generic[Item]):
    """How the items of a store are listed, as its searches return them."""

    # The items that the store has now: those with these ids, or all of them.
    read: Callable[[Any, Sequence[Any] | None], Iterable[Item]]
    # What differs after a change, which is fast: by id what another value replaces; or the number of items, and what
    # else the store says of its changes. If that is None, a text that was replaced is noticed after a while.
    marks: Callable[[Any], dict[Any, Any] | tuple[int, Any]]
    # Whether items can be read by their ids.
    by_id: bool = True
    # The ids of all items, where the marks do not have them and listing them is faster than reading the items.
    ids: Callable[[Any], Iterable[Any]] | None = None


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
        return None if listing is None else _count(listing.marks(listed))


def _count(marks: Any) -> int:
    return len(marks) if isinstance(marks, dict) else marks[0]


# Items that never change, as a store.
_LIST: StoreListing[Any] = StoreListing(lambda items, ids: items, lambda items: (len(items), ""), by_id=False)


@dataclass(frozen=True)
class _State(Generic[Item]):
    """What one search sees."""

    # By id, in the order of the index. None where the store is asked for the items that a search finds.
    items: dict[Any, Item | None] = field(default_factory=dict)
    index: WordIndex = field(default_factory=lambda: WordIndex(()))
    marks: Any = None
    # When the texts were read.
    listed: float = -math.inf


class WordSearch(Generic[Item]):
    """Items that can be searched by words, by any number of threads.

    With a ``store``, or a weak reference to one, the items are those that the store has now. Texts are read again if
    the marks of the store differ, if a search finds one that has changed, and after ``SECONDS`` if the marks do not say
    everything; only those that are new are split. Pickles contain the store, or the items and their words.
    """

    def __init__(self, kind: ItemKind[Item], items: Iterable[Item] = (), store: Any = None) -> None:
        self.kind, self._store, self._items = kind, store, [*map(kind.copy, items)]
        self._lock, self._state = Lock(), _State[Item]()

    def search(
        self, question: Any, k: Any, passes: Callable[[Item], bool] | None = None, name: str = "k"
    ) -> list[tuple[Item, float]]:
        """Copies of the ``k`` best items that pass and have a word of the question, with their BM25 scores.

        Messages call ``k`` by its ``name``.
        """
        k = check_integer(k, name, 1)
        store = self._store() if isinstance(self._store, weakref.ref) else self._store
        listing: Any
        listing, place = (_LIST, self._items) if store is None else self.kind.find_listing(store)
        state = self._update(listing, place)
        names, texts, hits = [*state.items], state.index.texts, list[tuple[Item, float]]()
        rows, scores = state.index.best_rows(question, 2 * k if passes is None else max(len(names), 1))
        size = k if passes is None else max(4 * k, 100)
        for start in range(0, len(rows), size):
            some = rows[start : start + size].tolist()
            found = self._by_id(listing.read(place, [names[row] for row in some])) if listing.by_id else state.items
            for row, score in zip(some, scores[start : start + size].tolist(), strict=True):
                item = found.get(names[row])
                if item is None or self.kind.text(item) != texts[row]:
                    self.refresh()
                if item is not None and (passes is None or passes(item)):
                    hits.append((self.kind.copy(item), score))
            if len(hits) >= k:
                break
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
            self._state = replace(self._state, listed=-math.inf)

    def _update(self, listing: StoreListing[Item], place: Any) -> _State[Item]:
        """The state of now. Threads that search at the same time wait until one of them has read what changed."""
        with self._lock:
            marks: Any = listing.marks(place)
            state, now = self._state, time.monotonic()
            age, is_by_id = now - state.listed, isinstance(marks, dict)
            if marks == state.marks and age < (SECONDS if not is_by_id and marks[1] is None else math.inf):
                return state
            if (number := _count(marks)) > MOST:
                raise InvalidParameterError(
                    f"the store holds {number} documents, and an index is made over at most {MOST}: use the word "
                    "search of the store itself, or make a WordRetriever from those documents that matter"
                )
            # The texts that have not changed, by id, or of which that is not known yet.
            kept: dict[Any, str] = {}
            names, pairs = marks, zip(state.items, state.index.texts, strict=True)
            if is_by_id and isinstance(state.marks, dict) and age < math.inf:
                old, missing = state.marks, object()
                kept = {name: text for name, text in pairs if marks.get(name, missing) == old.get(name)}
            elif listing.ids is not None and age < SECONDS:
                names, now = dict.fromkeys(listing.ids(place)), state.listed
                kept = {name: text for name, text in pairs if name in names}
            items = self._by_id(listing.read(place, [name for name in names if name not in kept] if kept else None))
            texts = kept | {name: self.kind.text(item) for name, item in items.items()}
            if kept:
                texts = {name: texts[name] for name in names if name in texts}
            index, rows = state.index, tuple(texts.values())
            if rows != index.texts:
                index = WordIndex(rows, index).prepare()
            self._state = _State(dict.fromkeys(texts) if listing.by_id else {**items}, index, marks, now)
            return self._state

    def _by_id(self, items: Iterable[Item]) -> dict[Any, Item]:
        """The items by id. Of several with the same id, the last one stands in the place of the first."""
        by_id: dict[Any, Item] = {}
        for item in items:
            name = self.kind.id(item)
            by_id[object() if name is None else name] = item
        return by_id

    def __getstate__(self) -> dict[str, Any]:
        # A lock cannot be pickled, and a store may have changed when the pickle is read.
        return {**self.__dict__, "_lock": None, "_state": self._state if self._store is None else _State[Item]()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())


def as_predicate(given: Any) -> Callable[[Any], bool] | None:
    """The filter of a search by words, a dict of metadata or a function of an item, as a function."""
    if given is None or (callable(given) and not isinstance(given, Mapping)):
        return given
    if not isinstance(given, Mapping) or any(k.startswith("$") or isinstance(v, Mapping) for k, v in given.items()):
        raise InvalidParameterError(
            "filter must be a function filter(document) -> bool, or a dict of values that metadata have, without "
            f"operators, got {given!r}"
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
