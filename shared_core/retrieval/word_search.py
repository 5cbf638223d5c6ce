"""Search by words over documents or nodes, which can be added, deleted, saved, or those of a store that may change."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from threading import Lock, RLock
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._files import read_sealed, write_sealed
from .._validation import as_identifiers, quoted

# The adapters use it too.
from .._validation import check_integer as check_integer
from ..errors import InvalidInputError, InvalidParameterError
from ..signals.progress import progress_bar
from ..texts.word_index import WordIndex

Item = TypeVar("Item")

FORMAT_VERSION = 1
# From so many texts on, splitting them takes seconds, and a progress bar shows it.
SHOWN_FROM = 20_000
# The most documents that are read out of a store. Splitting more takes minutes, and holding them gigabytes.
MOST = 1_000_000


# The searches that ``share_search`` made, by the id of the store.
_SHARED: dict[int, WordSearch[Any]] = {}
_SHARING = Lock()


class ItemKind(NamedTuple, Generic[Item]):
    """What a framework's documents or nodes are. The functions are those of a module, so that they can be pickled."""

    # What files call them, such as "setselect-documents".
    format: str
    text: Callable[[Item], str]
    id: Callable[[Item], Hashable]
    # A copy whose metadata can be changed without a change of the original.
    copy: Callable[[Item], Item]
    to_json: Callable[[Item], Any]
    from_json: Callable[[Any], Item]


@dataclass(frozen=True)
class Listing(Generic[Item]):
    """How the documents of a store are listed, and counted at each search; the functions are bound to the store."""

    items: Callable[[], Iterable[Item]]
    count: Callable[[], int]


@dataclass(frozen=True)
class _State(Generic[Item]):
    """What one search sees. ``index`` is that of an earlier state until it is ``current``."""

    items: tuple[Item, ...]
    index: WordIndex
    current: bool = False
    # How many documents the store counted before it listed them.
    counted: int | None = None


class WordSearch(Generic[Item]):
    """Items that can be searched by words, by any number of threads.

    A search sees all items before a change, or all after it. The index is made at the first search after a change;
    texts that have not changed are not split again. With a ``listing`` the items are those of a store: they are listed
    at the first search, and again when the store counts another number of them. Pickles do not contain these items.
    """

    def __init__(self, kind: ItemKind[Item], items: Iterable[Item] = (), listing: Listing[Item] | None = None) -> None:
        self.kind, self.listing = kind, listing
        self._lock = RLock()
        self._state: _State[Item] = _State(self._unite((), items), WordIndex(()))

    def __len__(self) -> int:
        return len((self._state if self.listing is None else self._current()).items)

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

    def add(self, items: Iterable[Item]) -> None:
        """Add items. One whose id is known replaces the earlier one, in its place."""
        with self._own_items():
            self._state = replace(self._state, items=self._unite(self._state.items, items), current=False)

    def delete(self, ids: Iterable[Hashable]) -> None:
        """Delete the items with these ids; unknown ids are ignored."""
        gone = set(as_identifiers(ids, "ids"))
        with self._own_items():
            kept = tuple(item for item in self._state.items if self.kind.id(item) not in gone)
            self._state = replace(self._state, items=kept, current=False)

    def refresh(self) -> None:
        """List the items of the store again at the next search, whatever their number is."""
        with self._lock:
            self._state = replace(self._state, current=False)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the items and the index to a file, in one step."""
        state = self._current()
        fingerprint, terms, ids, ends = state.index.to_arrays()
        items = f"[{', '.join(map(self._dump, state.items))}]".encode()
        parts = [items, json.dumps(terms).encode(), ids.astype("<i4").tobytes(), ends.astype("<i8").tobytes()]
        write_sealed(path, self.kind.format, FORMAT_VERSION, {"fingerprint": fingerprint}, parts)

    @classmethod
    def load(cls, path: str | PathLike[str], kind: ItemKind[Item]) -> Self:
        """What :meth:`save` wrote."""
        header, (items, terms, ids, ends) = read_sealed(path, kind.format, FORMAT_VERSION)
        made = cls(kind)
        loaded = tuple(map(kind.from_json, json.loads(bytes(items))))
        arrays = np.frombuffer(ids, "<i4").astype(np.int32), np.frombuffer(ends, "<i8").astype(np.int64)
        index = WordIndex.from_arrays(
            [*map(kind.text, loaded)], header["fingerprint"], json.loads(bytes(terms)), *arrays, track=_track
        )
        made._state = _State(loaded, index)
        return made

    def _dump(self, item: Item) -> str:
        try:
            return json.dumps(self.kind.to_json(item))
        except (TypeError, ValueError) as error:
            name = quoted(self.kind.id(item) or self.kind.text(item))
            raise InvalidInputError(
                f"the document {name} cannot be saved, because its metadata cannot be written as JSON ({error}): make "
                "the value a string or a number"
            ) from error

    def _current(self) -> _State[Item]:
        """The state, with its index."""
        state = self._state
        if state.current and (self.listing is None or self.listing.count() == state.counted):
            return state
        # The other threads wait, and find the new state.
        with self._lock:
            state, items, counted = self._state, self._state.items, None
            if self.listing is not None:
                counted = self.listing.count()
                if is_too_large(counted):
                    raise InvalidParameterError(
                        f"the store holds {counted} documents, and an index is made over at most {MOST}: use the word "
                        "search of the store itself, or make a WordRetriever from those documents that matter"
                    )
            if state.current and counted == state.counted:
                return state
            if self.listing is not None:
                items = self._unite((), self.listing.items())
            index = WordIndex([*map(self.kind.text, items)], state.index, _track).prepare()
            self._state = _State(items, index, True, counted)
            return self._state

    def _unite(self, items: Sequence[Item], more: Iterable[Item]) -> tuple[Item, ...]:
        united = list(items)
        rows = {self.kind.id(item): row for row, item in enumerate(united)}
        for item in map(self.kind.copy, more):
            name = self.kind.id(item)
            row = len(united) if name is None else rows.setdefault(name, len(united))
            united[row : row + 1] = [item]
        return tuple(united)

    @contextmanager
    def _own_items(self) -> Iterator[None]:
        if self.listing is not None:
            raise InvalidParameterError(
                "the documents are those of a store: add them to the store, or delete them there, and the next search "
                "by words knows it"
            )
        with self._lock:
            yield

    def __getstate__(self) -> dict[str, Any]:
        # A lock cannot be pickled, and a store may have changed when the pickle is read.
        state = replace(self._state, current=False) if self.listing is None else _State((), WordIndex(()))
        return {"kind": self.kind, "listing": self.listing, "_state": state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=RLock())


def is_too_large(count: int) -> bool:
    """Whether an index over so many documents of a store is refused."""
    return count > MOST


def share_search(
    store: Any, kind: ItemKind[Item], items: Callable[[Any], Iterable[Item]], count: Callable[[Any], int]
) -> WordSearch[Item]:
    """The search over the documents of a store that all who call this share. It lives as long as the store does."""
    with _SHARING:
        if id(store) not in _SHARED:
            of_store = weakref.ref(store)
            listing = Listing(lambda: items(of_store()), lambda: count(of_store()))
            _SHARED[id(store)] = WordSearch(kind, listing=listing)
            weakref.finalize(store, _SHARED.pop, id(store), None)
        return _SHARED[id(store)]


def _track(texts: Sequence[str]) -> Iterable[str]:
    with progress_bar(len(texts) >= SHOWN_FROM, len(texts), "text", "indexing words") as advance:
        for text in texts:
            yield text
            advance()
