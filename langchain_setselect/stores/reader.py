"""What a vector reader for a LangChain store is, and the one that most stores need."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.retrieval.follow import Where
from shared_core.stores import WIDEST, chroma

# Documents in the store's order and the vector stored for each; None if the store no longer has it. A hit that the
# store's own search leaves out, such as a record without text, is None in place of a document, because a search that
# has fewer hits than were asked for has found all.
Hits = tuple[Sequence[Document] | Sequence[Document | None], Sequence[ArrayLike | None] | ArrayLike]
VectorSearch = Callable[..., Hits]
AsyncVectorSearch = Callable[..., Awaitable[Hits]]
VectorFetch = Callable[..., Mapping[str, ArrayLike]]
AsyncVectorFetch = Callable[..., Awaitable[Mapping[str, ArrayLike]]]
IdOf = Callable[[Any, Document], str | None]


# What stores call a filter of their search.
FILTER_NAMES = "filter", "filters", "where", "expr", "pre_filter"


class VectorReader(NamedTuple):
    """How a store searches and returns its vectors, looks vectors up by id, and keeps the ids of its documents."""

    search: VectorSearch
    asearch: AsyncVectorSearch | None = None
    fetch: VectorFetch | None = None
    afetch: AsyncVectorFetch | None = None
    # None if it is in ``document.id``.
    id_of: IdOf | None = None
    # The most hits that the store returns; no search of setselect asks for more.
    widest: int = WIDEST
    # The arguments of a search that name a part of the store, such as a namespace. ``fetch`` takes them too.
    scope: Collection[str] = ()
    # ``find_ids(store, texts)``: the ids under which the store keeps these texts; None if it cannot be asked.
    find_ids: Callable[[Any, Collection[str]], Mapping[str, str]] | None = None
    # ``passing(store, ids, **kwargs)``: by id, the documents of these that a search with these arguments may find.
    passing: Callable[..., Mapping[str, Document]] | None = None
    # Those of the FILTER_NAMES that are arguments of the store; None if that is not known.
    filters: Collection[str] | None = ("filter",)
    # All arguments of a search; None if the store checks them, or passes them on to its client, which does.
    takes: Collection[str] | None = None
    # ``find(store, query_vector, k, where=, **kwargs)``: a search among the documents with some metadata, where it is
    # faster than one with a filter.
    find: VectorSearch | None = None
    # ``narrow(store, filter, where)``: the arguments of such a search, where the store's own filter does it.
    narrow: Callable[[Any, Any, Where], dict[str, Any]] | None = None


def narrow_by_operators(store: Any, own: Any, where: Where) -> dict[str, Any]:
    """``narrow`` of the stores whose filters have MongoDB's operators."""
    return {"filter": chroma.narrow_filter(own, where)}


def read_with_client(
    core: ModuleType,
    client: Callable[[Any], Any],
    request: Callable[..., dict[str, Any]],
    documents: Callable[..., Sequence[Document] | Sequence[Document | None]],
    *,
    aclient: Callable[[Any], Any] | None = None,
    lookup: Callable[..., dict[str, Any]] | None = None,
    **more: Any,
) -> VectorReader:
    """A reader that calls the functions of ``core``, a module of ``shared_core.stores``, with the store's client.

    ``client(store)`` is None while the store has nothing to search, ``aclient(store)`` if the sync client has to do.
    ``request(store, **kwargs)`` makes the arguments of the search from the caller's, ``lookup(store, ids, **where)``
    those of the look-up by id in the part of the store that the ``scope`` names, and
    ``documents(store, rows, kwargs)`` documents of what was found. ``more`` are further fields of the reader.
    """

    def search(store: Any, query: list[float], fetch_k: int, **kwargs: Any) -> Hits:
        sync = client(store)
        if sync is None:
            return [], []
        rows, vectors = core.search_with_vectors(sync, query=query, k=fetch_k, **request(store, **kwargs))
        return documents(store, rows, kwargs), vectors

    async def asearch(store: Any, query: list[float], fetch_k: int, **kwargs: Any) -> Hits:
        awaited = aclient(store) if aclient else None
        if awaited is None:
            return await asyncio.to_thread(search, store, query, fetch_k, **kwargs)
        rows, vectors = await core.asearch_with_vectors(awaited, query=query, k=fetch_k, **request(store, **kwargs))
        return documents(store, rows, kwargs), vectors

    def fetch(store: Any, ids: Sequence[str], **where: Any) -> Mapping[str, ArrayLike]:
        sync = client(store)
        return core.vectors_by_id(sync, **lookup(store, ids, **where)) if lookup and sync is not None else {}

    async def afetch(store: Any, ids: Sequence[str], **where: Any) -> Mapping[str, ArrayLike]:
        awaited = aclient(store) if aclient else None
        if awaited is None or lookup is None:
            return await asyncio.to_thread(fetch, store, ids, **where)
        found: Mapping[str, ArrayLike] = await core.avectors_by_id(awaited, **lookup(store, ids, **where))
        return found

    return VectorReader(
        search,
        asearch if aclient else None,
        fetch if lookup else None,
        afetch if aclient and lookup else None,
        widest=getattr(core, "WIDEST", WIDEST),
        **more,
    )
