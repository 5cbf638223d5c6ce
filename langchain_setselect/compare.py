"""Compare every method on your own LangChain store (extra ``eval``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from numpy.typing import NDArray

from shared_core.evaluation.compare import SearchedStore, check_options
from shared_core.evaluation.corpus import Query
from shared_core.evaluation.diagnosis import Diagnosis, Found
from shared_core.evaluation.results import Comparison
from shared_core.retrieval.flow import run_flow
from shared_core.retrieval.inputs import check_instance
from shared_core.retrieval.search import search_near, search_to_compare

from .retriever import SetSelectRetriever
from .vectors import embed_questions, need_embeddings
from .words import DOCUMENTS


def compare_store(
    store: VectorStore,
    queries: Iterable[str | Mapping[str, Any] | Query],
    *,
    embeddings: Embeddings | None = None,
    k: int | Sequence[int] = 5,
    fetch_k: int | None = None,
    search_kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Comparison:
    """Compare all methods on the candidates that a vector store finds, with the vectors that it keeps.

    Settings with ``keyword_search`` need a store whose documents can be listed: see :meth:`WordRetriever.from_store`.

    Parameters
    ----------
    store : VectorStore
        Where the documents and their vectors are searched; nothing is written to it.
    queries : iterable of str, mapping or Query
        See :func:`shared_core.evaluation.compare.compare`. ``gold`` holds ids of documents in the store. The metadata
        of a document may hold its ``source`` and its ``cost``.
    embeddings, search_kwargs
        As for :class:`SetSelectRetriever`: a model for a store that carries none, and arguments of the store's search.
    k, fetch_k, **options
        See :func:`shared_core.evaluation.compare.compare`.

    Examples
    --------
    >>> from langchain_core import embeddings, vectorstores
    >>> texts, ids = zip(*((f"text {i}", f"id {i}") for i in range(9)))
    >>> model = embeddings.DeterministicFakeEmbedding(size=8)
    >>> store = vectorstores.InMemoryVectorStore.from_texts(texts, model, ids=ids)
    >>> found = compare_store(store, [{"text": "a question", "gold": ["id 3"]}], k=3, fetch_k=9)
    >>> found.values[0, "recall"].mean in (0.0, 1.0), found.corpus.model
    (True, 'DeterministicFakeEmbedding')
    """
    return _search(store, embeddings, k, fetch_k, search_kwargs, compares=True).compare(queries, **options)


def diagnose_store(
    store: VectorStore,
    *,
    embeddings: Embeddings | None = None,
    k: int = 5,
    fetch_k: int | None = None,
    search_kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Diagnosis:
    """What the documents of a vector store hold: copies, near copies, sources, and which lead to others.

    Typical texts are drawn from the store, and each is searched for with the vector that the store keeps.

    Parameters
    ----------
    store, embeddings, k, fetch_k, search_kwargs, **options
        See :func:`compare_store`; ``title`` and ``track`` are options.

    Examples
    --------
    >>> from langchain_core import embeddings, vectorstores
    >>> texts = ["A port.", "A port.", "A hill."]
    >>> store = vectorstores.InMemoryVectorStore.from_texts(texts, embeddings.DeterministicFakeEmbedding(size=8))
    >>> found = diagnose_store(store, k=2)
    >>> found.findings[0].name, round(found.findings[0].share, 2)
    ('Texts that are stored more than once', 0.67)
    """
    return _search(store, embeddings, k, fetch_k, search_kwargs).diagnose(**options)


def _search(
    store: VectorStore, embeddings: Any, k: Any, fetch_k: Any, search_kwargs: Any, *, compares: bool = False
) -> SearchedStore:
    """The store as a diagnosis searches it, or a comparison, by words too."""
    check_instance(store, VectorStore, "store")
    sizes, fetch_k = check_options(k, fetch_k)
    model = need_embeddings(store, embeddings)
    # The settings to compare have no links. A diagnosis counts them.
    retriever = SetSelectRetriever(
        vectorstore=store,
        embeddings=model,
        k=max(sizes),
        fetch_k=fetch_k,
        links=None if compares else lambda document: document.metadata.get("links"),
        keyword_search=compares and DOCUMENTS.can_index(store),
    )
    request, _ = retriever._configured
    searching = retriever._store(model, request, dict(search_kwargs or {}))

    def read(document: Document) -> tuple[str, Mapping[str, Any]]:
        return document.page_content, document.metadata

    def nearest(vector: NDArray[np.float64], number: int) -> Found:
        return Found(*run_flow(search_near(request, searching, lambda one: one.metadata.get("source"), vector, number)))

    return SearchedStore(
        type(store).__name__,
        _model_name(model),
        sizes,
        fetch_k,
        lambda texts: run_flow(embed_questions(model, texts)),
        lambda *asked: run_flow(search_to_compare(retriever, request, searching, read, *asked)),
        nearest,
        searching.widest,
        partial(DOCUMENTS.count, store),
    )


def _model_name(embeddings: Embeddings) -> str:
    names = (getattr(embeddings, attribute, None) for attribute in ("model_name", "model"))
    return next((name for name in names if isinstance(name, str) and name), type(embeddings).__name__)
