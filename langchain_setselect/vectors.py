"""Where a LangChain vector store keeps its vectors, and what to do where nobody knows."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from numpy.typing import ArrayLike

from shared_core.errors import (
    EmbeddingFallbackWarning,
    InvalidInputError,
    InvalidParameterError,
    SetSelectWarning,
    VectorSourceError,
)

# Documents in the store's order, and for each its stored vector (None: the store no longer has it).
Hits = tuple[Sequence[Document], Sequence[ArrayLike | None] | ArrayLike]
VectorSource = Callable[..., Hits]
AsyncVectorSource = Callable[..., Awaitable[Hits]]
VectorFetch = Callable[[Any, Sequence[str]], Mapping[str, ArrayLike]]


class _Source(NamedTuple):
    search: VectorSource
    asearch: AsyncVectorSource | None
    fetch: VectorFetch | None


_SOURCES: dict[type | str, _Source] = {}
_WARNED: set[type] = set()


def register_vector_source(
    store_class: type | str,
    search: VectorSource,
    *,
    asearch: AsyncVectorSource | None = None,
    fetch: VectorFetch | None = None,
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
    for name, function in (("search", search), ("asearch", asearch), ("fetch", fetch)):
        if not callable(function) and (name == "search" or function is not None):
            raise InvalidParameterError(f"{name} must be a function, got {function!r}")
    _SOURCES[store_class] = _Source(search, asearch, fetch)


def source_of(store: VectorStore) -> _Source | None:
    """The source registered for the store's class or the nearest of its bases; None where there is none."""
    for cls in type(store).__mro__:
        source = _SOURCES.get(cls) or _SOURCES.get(f"{cls.__module__}.{cls.__qualname__}")
        if source is not None:
            return source
    return None


class Search(NamedTuple):
    """One search for candidates: where, with which embeddings, for what."""

    store: VectorStore
    embeddings: Embeddings
    text: str
    vector: list[float]
    projected: bool
    fetch_k: int
    store_kwargs: dict[str, Any]

    @property
    def reads_vectors(self) -> bool:
        """Whether vectors come from the store, so that a wider search embeds nothing."""
        return source_of(self.store) is not None

    def run(self) -> Hits:
        """Documents and vectors, from the store or, with a warning, by embedding the texts."""
        source = source_of(self.store)
        if source is not None:
            return _sound(*source.search(self.store, self.vector, self.fetch_k, **self.store_kwargs))
        self._warn()
        try:
            found = self.store.similarity_search_by_vector(self.vector, k=self.fetch_k, **self.store_kwargs)
        except NotImplementedError as error:
            self._refuse_projected(error)
            found = self.store.similarity_search(self.text, k=self.fetch_k, **self.store_kwargs)
        return found, self.embeddings.embed_documents([d.page_content for d in found]) if found else []

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
            return _sound(*hits)
        self._warn()
        try:
            found = await self.store.asimilarity_search_by_vector(self.vector, k=self.fetch_k, **self.store_kwargs)
        except NotImplementedError as error:
            self._refuse_projected(error)
            found = await self.store.asimilarity_search(self.text, k=self.fetch_k, **self.store_kwargs)
        return found, await self.embeddings.aembed_documents([d.page_content for d in found]) if found else []

    def _warn(self) -> None:
        cls = type(self.store)
        if cls in _WARNED:
            return
        _WARNED.add(cls)
        warnings.warn(
            f"setselect does not know how {cls.__name__} hands back its vectors, so each query embeds the texts of "
            f"its fetch_k={self.fetch_k} candidates with {type(self.embeddings).__name__} (often 5 ms a text on a CPU, "
            "or money at an API). langchain_setselect.register_vector_source teaches it in ten lines",
            EmbeddingFallbackWarning,
            stacklevel=2,
        )

    def _refuse_projected(self, error: NotImplementedError) -> None:
        if self.projected:
            raise VectorSourceError(
                f"{type(self.store).__name__} cannot be searched by vector, which a perspective needs: "
                "register a vector source for it"
            ) from error


def _sound(documents: Sequence[Document], vectors: Sequence[ArrayLike | None] | ArrayLike) -> Hits:
    rows: Any = vectors
    if len(documents) != len(rows):
        raise VectorSourceError(f"the vector source gave {len(documents)} documents and {len(rows)} vectors")
    if isinstance(rows, np.ndarray):
        return documents, rows
    missing = [d.id for d, v in zip(documents, rows, strict=True) if v is None]
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


def _in_memory(
    store: InMemoryVectorStore, query: list[float], fetch_k: int, *, filter: Any = None, **unknown: Any
) -> Hits:
    _refuse("InMemoryVectorStore", unknown)
    first = next(iter(store.store.values()), None)
    if first is not None and len(first["vector"]) != len(query):
        raise InvalidInputError(
            f"the query has length {len(query)}, the store's vectors {len(first['vector'])}: "
            "they most likely come from different embedding models"
        )
    found = store.similarity_search_by_vector(query, k=fetch_k, filter=filter)
    stored = [store.store.get(document.id or "") for document in found]
    return found, [None if entry is None else entry["vector"] for entry in stored]


def _refuse(store: str, unknown: dict[str, Any]) -> None:
    if unknown:
        raise InvalidParameterError(f"{store} takes no search argument {next(iter(unknown))!r}; it takes filter")


def _faiss(store: Any, query: list[float], fetch_k: int, *, filter: Any = None, **unknown: Any) -> Hits:
    from shared_core.stores.faiss import search_with_vectors

    _refuse("FAISS", unknown)
    vector = np.asarray(query, dtype=np.float32)
    if store._normalize_L2:
        vector = vector / (np.sqrt(vector.dot(vector)) or 1)
    if filter is None:
        return _faiss_documents(store, *search_with_vectors(store.index, vector, fetch_k), lambda _: True)
    passes = store._create_filter_func(filter)
    wanted = 4 * fetch_k
    # FAISS knows no metadata: search wider until enough documents pass, or the index is exhausted.
    while True:
        documents, vectors = _faiss_documents(
            store, *search_with_vectors(store.index, vector, wanted), lambda d: passes(d.metadata)
        )
        if len(documents) >= fetch_k or wanted >= store.index.ntotal:
            return documents[:fetch_k], vectors[:fetch_k]
        wanted *= 4


def _faiss_documents(
    store: Any, labels: Any, vectors: Any, passes: Callable[[Document], bool]
) -> tuple[list[Document], list[Any]]:
    documents: list[Document] = []
    kept: list[Any] = []
    for label, row in zip(labels.tolist(), vectors, strict=True):
        name = store.index_to_docstore_id.get(label)
        document = store.docstore.search(name)
        if not isinstance(document, Document):
            documents.append(Document(id=str(name), page_content=""))
            kept.append(None)
        elif passes(document):
            documents.append(document if document.id else document.model_copy(update={"id": name}))
            kept.append(row)
    return documents, kept


def _fetch_in_memory(store: InMemoryVectorStore, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    return {name: store.store[name]["vector"] for name in ids if name in store.store}


# FAISS knows labels, the store which id each stands for; turning that round takes longer than a search, so it is
# kept for as long as the store lives and has as many documents.
_LABELS: WeakKeyDictionary[Any, tuple[int, dict[str, int]]] = WeakKeyDictionary()


def _fetch_faiss(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    from shared_core.stores.faiss import vectors_by_label

    names: dict[int, str] = store.index_to_docstore_id
    number, labels = _LABELS.get(store, (-1, {}))
    if number != len(names) or any(names.get(labels[name]) != name for name in ids if name in labels):
        # A copy: another thread may be adding documents.
        names = names.copy()
        labels = {name: label for label, name in names.items()}
        _LABELS[store] = len(names), labels
    known = [name for name in ids if name in labels]
    return dict(zip(known, vectors_by_label(store.index, [labels[name] for name in known]), strict=True))


register_vector_source(InMemoryVectorStore, _in_memory, fetch=_fetch_in_memory)
register_vector_source("langchain_community.vectorstores.faiss.FAISS", _faiss, fetch=_fetch_faiss)
