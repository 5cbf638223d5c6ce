"""Where a LangChain vector store keeps its vectors, and what to do where nobody knows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStore
from numpy.typing import ArrayLike

from shared_core.errors import EmbeddingFallbackWarning, InvalidParameterError, SetSelectWarning, VectorSourceError
from shared_core.retrieval.request import WIDEST

from . import fallback
from .stores import SOURCES
from .stores.source import (
    AsyncVectorFetch,
    AsyncVectorSource,
    Hits,
    IdOf,
    Source,
    VectorFetch,
    VectorSource,
    document_id,
)

# A name stands for a class whose package may not be installed and must not be imported for nothing.
_SOURCES: dict[type | str, Source] = dict(SOURCES)
_WARNED: set[type] = set()


def register_vector_source(
    store_class: type | str,
    search: VectorSource,
    *,
    asearch: AsyncVectorSource | None = None,
    fetch: VectorFetch | None = None,
    afetch: AsyncVectorFetch | None = None,
    id_of: IdOf = document_id,
) -> None:
    """Tell setselect how a store hands back its vectors, so that no text is embedded again.

    Parameters
    ----------
    store_class : type or str
        The store's class, subclasses included; or its full name (``"package.module.Class"``), to be matched
        without importing it.
    search : callable
        ``search(store, query_vector, fetch_k, **store_kwargs) -> (documents, vectors)``: the store's own top
        ``fetch_k`` for a ``list[float]``, and the vectors it stores for them, row by row, as an array of shape
        (n, d) or a list in which ``None`` marks a document whose vector is gone. ``store_kwargs`` is what the
        caller passed for the store, ``filter`` for one.
    asearch : async callable, optional
        The same, awaited by ``ainvoke``; without it ``search`` runs in a thread.
    fetch : callable, optional
        ``fetch(store, ids) -> {id: vector}`` for :class:`SetSelectCompressor`, whose documents another retriever
        found. Ids that the store does not know are left out.
    afetch : async callable, optional
        The same, awaited; without it ``fetch`` runs in a thread.
    id_of : callable, optional
        ``id_of(store, document) -> str or None``, for stores that keep ids elsewhere than in ``document.id``: what
        ``fetch`` and ``shown`` go by.

    Raises
    ------
    InvalidParameterError
        ``store_class`` is neither a class nor a name, or a function cannot be called.

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
    if not isinstance(store_class, (type, str)):
        raise InvalidParameterError(f"store_class must be a class or its full name, got {store_class!r}")
    for name, function in (
        ("search", search),
        ("asearch", asearch),
        ("fetch", fetch),
        ("afetch", afetch),
        ("id_of", id_of),
    ):
        if not callable(function) and (name == "search" or function is not None):
            raise InvalidParameterError(f"{name} must be a function, got {function!r}")
    _SOURCES[store_class] = Source(search, asearch, fetch, afetch, id_of)


def source_of(store: VectorStore) -> Source | None:
    """The source registered for the store's class or the nearest of its bases; None where there is none."""
    for cls in type(store).__mro__:
        source = _SOURCES.get(cls) or _SOURCES.get(f"{cls.__module__}.{cls.__qualname__}")
        if source is not None:
            return source
    return None


def id_function(store: VectorStore | None) -> Callable[[Document], str | None]:
    """Where this store's documents have their ids."""
    source = None if store is None else source_of(store)
    return partial(document_id if source is None else source.id_of, store)


def ids_of(store: VectorStore, source: Source | None, documents: Sequence[Document]) -> list[str | None]:
    """The ids of documents that this source of the store's found."""
    if source is None or source.id_of is document_id:
        return [document.id for document in documents]
    return [source.id_of(store, document) for document in documents]


def widest_of(source: Source | None) -> int:
    """The most candidates that a store with this source is asked for unasked."""
    return WIDEST if source is None else source.widest


class Search(NamedTuple):
    """One search for candidates: where, with which embeddings, for what."""

    store: VectorStore
    embeddings: Embeddings
    text: str
    vector: list[float]
    projected: bool
    fetch_k: int
    store_kwargs: dict[str, Any]

    def run(self) -> Hits:
        """Documents and vectors, from the store or, with a warning, by embedding the texts."""
        source = source_of(self.store)
        if source is not None:
            hits = source.search(self.store, self.vector, self.fetch_k, **self.store_kwargs)
            return _sound(*hits, partial(source.id_of, self.store))
        try:
            found = self.store.similarity_search_by_vector(self.vector, k=self.fetch_k, **self.store_kwargs)
        except NotImplementedError as error:
            self._refuse_projected(error)
            found = self.store.similarity_search(self.text, k=self.fetch_k, **self.store_kwargs)
        return found, fallback.embed(self.embeddings, [d.page_content for d in found], self._warn)

    async def arun(self) -> Hits:
        """As :meth:`run`, awaiting the store and the embeddings."""
        source = source_of(self.store)
        if source is not None:
            if source.asearch is not None:
                hits = await source.asearch(self.store, self.vector, self.fetch_k, **self.store_kwargs)
            else:
                hits = await run_in_executor(
                    None, source.search, self.store, self.vector, self.fetch_k, **self.store_kwargs
                )
            return _sound(*hits, partial(source.id_of, self.store))
        try:
            found = await self.store.asimilarity_search_by_vector(self.vector, k=self.fetch_k, **self.store_kwargs)
        except NotImplementedError as error:
            self._refuse_projected(error)
            found = await self.store.asimilarity_search(self.text, k=self.fetch_k, **self.store_kwargs)
        return found, await fallback.aembed(self.embeddings, [d.page_content for d in found], self._warn)

    def _warn(self, number: int) -> None:
        cls = type(self.store)
        if cls in _WARNED:
            return
        _WARNED.add(cls)
        warnings.warn(
            f"setselect does not know how {cls.__name__} hands back its vectors, so each query embeds the texts of "
            f"its candidates again ({number} this time) with {type(self.embeddings).__name__} (often 5 ms a text on a "
            "CPU, or money at an API). langchain_setselect.register_vector_source teaches it in ten lines; "
            "CacheBackedEmbeddings as embeddings= embeds each text once",
            EmbeddingFallbackWarning,
            stacklevel=2,
        )

    def _refuse_projected(self, error: NotImplementedError) -> None:
        if self.projected:
            raise VectorSourceError(
                f"{type(self.store).__name__} cannot be searched by vector, which a perspective needs: "
                "register a vector source for it"
            ) from error


def _sound(
    documents: Sequence[Document],
    vectors: Sequence[ArrayLike | None] | ArrayLike,
    id_of: Callable[[Document], str | None],
) -> Hits:
    rows: Any = vectors
    if len(documents) != len(rows):
        raise VectorSourceError(f"the vector source gave {len(documents)} documents and {len(rows)} vectors")
    if isinstance(rows, np.ndarray):
        return documents, rows
    # A store that tells no ids has the text to know a document by.
    missing = [id_of(d) or d.page_content[:60] for d, v in zip(documents, rows, strict=True) if v is None]
    if not missing:
        return documents, rows
    warnings.warn(
        f"the store has no vector for {missing[0]!r}"
        + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
        + ": left out (deleted between search and fetch?)",
        SetSelectWarning,
        stacklevel=2,
    )
    kept = [(d, v) for d, v in zip(documents, rows, strict=True) if v is not None]
    return [d for d, _ in kept], [v for _, v in kept]
