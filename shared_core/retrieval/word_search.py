"""Search by words over documents or nodes: those of a list, or those of a store that may change."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

# The adapters use it too.
from .._validation import check_integer as check_integer
from ..errors import InvalidParameterError
from ..signals.progress import progress_bar
from ..texts.word_index import WordIndex

Item = TypeVar("Item")

# From so many texts on, splitting them takes seconds, and a progress bar shows it.
SHOWN_FROM = 20_000
# The most documents that are read out of a store. Splitting more takes minutes, and holding them gigabytes.
MOST = 1_000_000


# What a class by words says of arguments that other classes have for their words.
WORD_RULE = "WordRetriever has its own rule of what a word is, the one by which setselect selects"

# The searches that ``share_search`` made, by the id of the store.
_SHARED: dict[int, WordSearch[Any]] = {}
_SHARING = Lock()


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
                f"setselect cannot list the texts of {type(listed).__name__}: use WordRetriever.{maker} or the store's "
                "own search by words, as one of the extra_retrievers"
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
