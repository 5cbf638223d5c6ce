"""The vector reader for LangChain's InMemoryVectorStore."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from numpy.typing import ArrayLike

from shared_core.errors import InvalidParameterError, check_query_length
from shared_core.retrieval.extra import StoreListing
from shared_core.retrieval.follow import Where, suits
from shared_core.stores.rows import nearest_of

from .reader import Hits, VectorReader


def _search(store: InMemoryVectorStore, query: list[float], fetch_k: int, *, filter: Any = None) -> Hits:
    """The store's own top ``fetch_k`` with their vectors."""
    if filter is not None and not callable(filter):
        raise InvalidParameterError(
            f"filter of InMemoryVectorStore must be a function of a document, got {filter!r}: for example "
            "lambda document: document.metadata['topic'] == 'a'"
        )
    first = next(iter(store.store.values()), None)
    if first is not None:
        check_query_length(len(query), len(first["vector"]), "the store's vectors")
    found = store.similarity_search_by_vector(query, k=fetch_k, filter=filter)
    stored = [store.store.get(document.id or "") for document in found]
    return found, [None if entry is None else entry["vector"] for entry in stored]


def _fetch(store: InMemoryVectorStore, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by document id."""
    return {name: store.store[name]["vector"] for name in ids if name in store.store}


def _find_ids(store: InMemoryVectorStore, texts: Collection[str]) -> Mapping[str, str]:
    """Ids by text. A copy, because another thread may add documents."""
    return {entry["text"]: name for name, entry in store.store.copy().items() if entry["text"] in texts}


def _passing(store: InMemoryVectorStore, ids: Sequence[str], *, filter: Any = None) -> dict[str, Document]:
    entries = [(name, store.store.get(name)) for name in ids]
    known = [(name, Document(entry["text"], id=name, metadata=entry["metadata"])) for name, entry in entries if entry]
    return {name: document for name, document in known if filter is None or filter(document)}


def _find(store: InMemoryVectorStore, query: list[float], k: int, *, where: Where, **more: Any) -> Hits:
    entries = store.store.copy()
    names = [name for name, entry in entries.items() if suits(where, entry["metadata"].get)]
    passing = _passing(store, names, **more)
    found = nearest_of([*passing], _fetch(store, [*passing]), query, k)
    return [passing[name] for name in found], [entries[name]["vector"] for name in found]


READER = VectorReader(_search, fetch=_fetch, find_ids=_find_ids, passing=_passing, find=_find, takes=["filter"])
LISTING = StoreListing(
    lambda store, ids: _passing(store, [*store.store.copy()] if ids is None else ids).values(),
    lambda store: {name: entry["text"] for name, entry in store.store.copy().items()},
)
