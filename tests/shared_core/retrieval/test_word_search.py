"""What is below both WordRetrievers, with strings in place of documents."""

from __future__ import annotations

import threading

import pytest

from shared_core.retrieval.extra import ItemKind, StoreListing, WordSearch


class Store:
    """A store that counts how often it is listed."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.listed, self.down = list(texts), 0, False

    def items(self) -> list[str]:
        if self.down:
            raise ConnectionError("the store is down")
        self.listed += 1
        return list(self.texts)

    def search(self) -> WordSearch[str]:
        listing = StoreListing(lambda store, ids: store.items(), lambda store: (len(store.texts), None), by_id=False)
        return WordSearch(ItemKind(str, str, str, lambda store: (listing, store)), store=self)


def found(search: WordSearch[str], question: str) -> list[str]:
    return [item for item, _ in search.search(question, 10)]


def test_a_store_is_listed_at_the_first_search_and_when_its_number_changes() -> None:
    store = Store("red lamp", "fuse")
    search = store.search()
    assert store.listed == 0
    assert (found(search, "lamp"), found(search, "fuse"), store.listed) == (["red lamp"], ["fuse"], 1)
    store.texts = ["lamp of another colour"]
    assert (found(search, "lamp"), store.listed) == (["lamp of another colour"], 2)
    store.texts = []
    assert (found(search, "lamp"), store.listed) == ([], 3)
    search.refresh()
    assert (found(search, "lamp"), store.listed) == ([], 4)


def test_after_a_failure_of_the_store_the_next_search_tries_again() -> None:
    store = Store("red lamp")
    search = store.search()
    assert found(search, "lamp") == ["red lamp"]
    store.texts.append("blue lamp")
    store.down = True
    for _ in range(2):
        with pytest.raises(ConnectionError, match="down"):
            found(search, "lamp")
    store.down = False
    assert found(search, "blue") == ["blue lamp"]


def test_threads_that_search_first_list_the_store_once() -> None:
    store = Store(*(f"lamp {i}" for i in range(500)))
    search, results = store.search(), list[list[str]]()
    threads = [threading.Thread(target=lambda: results.append(found(search, "lamp"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.listed == 1
    assert results == [[f"lamp {i}" for i in range(10)]] * 8
