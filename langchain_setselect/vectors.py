"""The vector readers of LangChain's stores. For a store without one, the texts of the candidates are embedded."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from numpy.typing import NDArray

from shared_core.errors import VectorSourceError
from shared_core.retrieval.events import warn_of_fallback
from shared_core.retrieval.extra import KnownItems
from shared_core.retrieval.flow import Flow, Step, gather
from shared_core.retrieval.inputs import EmbeddedQuery, check_instance, find_registered, refuse_unknown
from shared_core.signals.embedding_models import as_embedding, as_embeddings

from .stores import READERS
from .stores.reader import (
    FILTER_NAMES,
    AsyncVectorFetch,
    AsyncVectorSearch,
    IdOf,
    VectorFetch,
    VectorReader,
    VectorSearch,
)

# The key is a class, or the full name of a class whose package need not be installed.
_READERS: dict[type | str, VectorReader] = dict(READERS)


def register_vector_source(
    store_class: type | str,
    search: VectorSearch,
    *,
    asearch: AsyncVectorSearch | None = None,
    fetch: VectorFetch | None = None,
    afetch: AsyncVectorFetch | None = None,
    id_of: IdOf | None = None,
    scope: Collection[str] = (),
) -> None:
    """Register functions that read the vectors of a store, so that no text is embedded again.

    Parameters
    ----------
    store_class : type or str
        The store's class, or its full name (``"package.module.Class"``), which is matched without an import. Subclasses
        are included unless they have their own vector reader.
    search : callable
        ``search(store, query_vector, fetch_k, **store_kwargs) -> (documents, vectors)``: the store's own top
        ``fetch_k`` for a ``list[float]``, and the vectors that it stores for them, row by row, as an array of shape
        (n, d) or as a list. None in the list marks a document that has no vector any more. ``store_kwargs`` are the
        caller's arguments for the store, for example ``filter``.
    fetch : callable, optional
        ``fetch(store, ids) -> {id: vector}``. Ids that the store does not know are left out.
    asearch, afetch : async callable, optional
        The async versions. Without them, ``search`` and ``fetch`` run in a thread.
    id_of : callable, optional
        ``id_of(store, document) -> str or None``, for stores whose ids are not in ``document.id``.
    scope : collection of str
        The arguments of a search that name a part of the store, such as a namespace. ``fetch`` takes them too.

    Examples
    --------
    >>> from langchain_core.vectorstores import InMemoryVectorStore
    >>> class MyStore(InMemoryVectorStore):
    ...     pass
    >>> def search(store, query_vector, fetch_k, **kwargs):
    ...     documents = store.similarity_search_by_vector(query_vector, k=fetch_k, **kwargs)
    ...     return documents, [store.store[document.id]["vector"] for document in documents]
    >>> register_vector_source(MyStore, search)
    """
    check_instance(store_class, (type, str), "store_class", ": pass a class or its full name")
    _READERS[store_class] = VectorReader(search, asearch, fetch, afetch, id_of, scope=scope, filters=None)


def reader_of(store: VectorStore | None) -> VectorReader | None:
    """The reader registered for the class of this store, or for the nearest of its base classes; None without one."""
    return find_registered(_READERS, type(store))


def check_arguments(store: VectorStore, kwargs: Collection[str]) -> None:
    """Refuse unknown arguments, and a filter under a name that other stores give it; some stores would ignore it."""
    reader = reader_of(store)
    if reader is not None and reader.takes is not None:
        refuse_unknown(type(store).__name__, kwargs, reader.takes)
    elif reader is not None and reader.filters is not None:
        foreign = [name for name in kwargs if name in FILTER_NAMES and name not in reader.filters]
        refuse_unknown(type(store).__name__, foreign, reader.filters)


def search_and_embed(
    store: VectorStore, embeddings: Embeddings, query: EmbeddedQuery, fetch_k: int, kwargs: dict[str, Any]
) -> Flow[tuple[Sequence[Document], Any]]:
    """Search a store that has no vector reader, and embed the texts of what it finds."""
    name, vector = type(store).__name__, query.search_vector
    try:
        found = yield Step(
            partial(store.similarity_search_by_vector, vector, k=fetch_k, **kwargs),
            partial(store.asimilarity_search_by_vector, vector, k=fetch_k, **kwargs),
        )
    except NotImplementedError as error:
        if query.pap is not None:
            raise VectorSourceError(
                f"{name} cannot be searched by vector, which a perspective needs: call register_vector_source for it"
            ) from error
        found = yield Step(
            partial(store.similarity_search, query.text, k=fetch_k, **kwargs),
            partial(store.asimilarity_search, query.text, k=fetch_k, **kwargs),
        )
    why = (
        f"no vector reader is registered for {name}. This often takes 5 ms a text on a CPU, or costs money at an API. "
        "Register a reader with langchain_setselect.register_vector_source"
    )
    return found, (yield from _embed_again(embeddings, found, type(store), why))


def fetch_or_embed(
    store: VectorStore | None,
    embeddings: Embeddings,
    documents: Sequence[Document],
    ids: Sequence[str | None],
    warned: Hashable,
    where: Mapping[str, Any] = MappingProxyType({}),
) -> Flow[list[Any]]:
    """The documents' vectors, row by row: stored ones, and embeddings of the texts of the others.

    ``where``: arguments of the reader's ``scope``.
    """
    known = yield from fetch_vectors(store, ids, where)
    unknown = [row for row, name in enumerate(ids) if name not in known]
    nameless = sum(ids[row] is None for row in unknown)
    why = "there is no vectorstore=" if store is None else f"{type(store).__name__} has no vectors for them by id"
    why += f", and {nameless} of them have no id" if nameless else ""
    why += ". Pass the store, and the ids that they have in it; register_vector_source(..., fetch=...) adds a look-up"
    key = warned, None if store is None else type(store)
    rest = iter((yield from _embed_again(embeddings, [documents[row] for row in unknown], key, why)))
    return [known[one] if one in known else next(rest) for one in ids]


def fetch_vectors(
    store: VectorStore | None, ids: Sequence[str | None], where: Mapping[str, Any] = MappingProxyType({})
) -> Flow[Mapping[str | None, Any]]:
    """The vectors that the store has under these ids, by id. ``where``: arguments of the reader's ``scope``."""
    reader = reader_of(store)
    wanted = list(dict.fromkeys(name for name in ids if name is not None))
    known: Mapping[str | None, Any] = {}
    if wanted and reader is not None and reader.fetch is not None:
        known = yield Step(
            partial(reader.fetch, store, wanted, **where),
            partial(reader.afetch, store, wanted, **where) if reader.afetch else None,
        )
    return known


def find_ids(
    store: VectorStore | None, documents: Sequence[Document], ids: Sequence[str | None]
) -> Flow[Sequence[str | None]]:
    """``ids``, with those that another document or the store has for the same text in place of None."""
    if None not in ids:
        return ids
    texts = [document.page_content for document in documents]
    by_text = {text: name for text, name in zip(texts, ids, strict=True) if name is not None}
    missing = {text for text, name in zip(texts, ids, strict=True) if name is None and text not in by_text}
    reader = reader_of(store)
    if missing and reader is not None and reader.find_ids is not None:
        by_text |= yield Step(partial(reader.find_ids, store, missing))
    return [by_text.get(text) if name is None else name for text, name in zip(texts, ids, strict=True)]


def look_up(
    store: VectorStore, kwargs: Mapping[str, Any], documents: Sequence[Document], ids: Sequence[Any]
) -> Flow[KnownItems]:
    """What the store knows of documents that its search with the arguments ``kwargs`` did not find."""
    reader = reader_of(store)
    ids = yield from find_ids(store, documents, ids)
    where = {name: value for name, value in kwargs.items() if reader is not None and name in reader.scope}
    known = yield from fetch_vectors(store, ids, where)
    items, admitted = [*documents], list[bool | None]([True] * len(ids))
    if kwargs:
        passing: Any = None if kwargs.keys() - where.keys() else known
        if reader is not None and reader.passing is not None:
            passing = yield Step(partial(reader.passing, store, [name for name in known if name is not None], **kwargs))
        for row, name in enumerate(ids):
            admitted[row] = None if name not in known or passing is None else name in passing
            own = passing.get(name) if admitted[row] else None
            # The store's document passes the filter. One of another source may have the same id.
            if isinstance(own, Document):
                items[row] = own
                admitted[row] = True if own.page_content == documents[row].page_content else None
    return KnownItems(ids, [known.get(name) for name in ids], admitted, items)


def need_embeddings(store: VectorStore | None, embeddings: Embeddings | None) -> Embeddings:
    """The embeddings, or else those of the store; an error names the argument for them."""
    embeddings = embeddings or (None if store is None else store.embeddings)
    if embeddings is None:
        raise VectorSourceError(
            f"{type(store).__name__} has no embeddings: pass embeddings= with the model that filled the store"
        )
    return embeddings


def embed_texts(embeddings: Embeddings, texts: list[str]) -> Flow[Any]:
    """The vectors of texts, shape (n, d); an empty list for none."""
    if not texts:
        return []
    answer = yield Step(partial(embeddings.embed_documents, texts), partial(embeddings.aembed_documents, texts))
    return as_embeddings(answer, texts, f"{type(embeddings).__name__}.embed_documents")


def embed_questions(embeddings: Embeddings, texts: list[str]) -> Flow[list[NDArray[np.float64]]]:
    """The vectors of texts as queries, each of shape (d,)."""
    # The base class would embed each text in a thread of its own, side by side. Not every local model allows that.
    waits = type(embeddings).aembed_query is not Embeddings.aembed_query
    answers = yield Step(
        partial(list, map(embeddings.embed_query, texts)),
        partial(gather, map(embeddings.aembed_query, texts)) if waits else None,
    )
    source = f"{type(embeddings).__name__}.embed_query"
    return [as_embedding(answer, source, text) for answer, text in zip(answers, texts, strict=True)]


def _embed_again(embeddings: Embeddings, documents: Sequence[Document], key: Hashable, why: str) -> Flow[Any]:
    """The vectors of texts that each query embeds, with one warning for each ``key`` unless a cache keeps them."""
    if not _is_cache(embeddings):
        why += ", or pass CacheBackedEmbeddings as embeddings=, which embeds each text once"
        warn_of_fallback(key, len(documents), type(embeddings).__name__, why)
    return (yield from embed_texts(embeddings, [document.page_content for document in documents]))


def name_of_model(embeddings: Embeddings) -> str:
    """The class of the embedding model; empty if it keeps what it has embedded."""
    return "" if _is_cache(embeddings) else type(embeddings).__name__


def describe_embedding(embeddings: Embeddings | None) -> str:
    """Where the vectors of texts come from, for ``vector_source``."""
    if embeddings is None:
        return "nowhere: there are no embeddings"
    return f"embedding the texts with {type(embeddings).__name__}"


def _is_cache(embeddings: Embeddings) -> bool:
    # LangChain's CacheBackedEmbeddings has this attribute. Its package need not be installed.
    return hasattr(embeddings, "document_embedding_store")
