"""Every method compared on your own LangChain store (extra ``eval``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from shared_core.errors import VectorSourceError
from shared_core.evaluation.compare import compare_candidates
from shared_core.evaluation.judging import Found
from shared_core.evaluation.records import Query, found_documents
from shared_core.evaluation.results import Comparison

from .vectors import Search, id_function


def compare_store(
    store: VectorStore,
    queries: Iterable[str | Mapping[str, Any] | Query],
    *,
    embeddings: Embeddings | None = None,
    k: int = 5,
    fetch_k: int = 50,
    search_kwargs: Mapping[str, Any] | None = None,
    model: str | None = None,
    **options: Any,
) -> Comparison:
    """Compare all methods on the candidates that a vector store finds, with the vectors that it keeps.

    Parameters
    ----------
    store : VectorStore
    queries : iterable of str, mapping or Query
        See :func:`shared_core.evaluation.compare.compare`. ``gold`` are ids of documents in the store; a document's
        labels stand in its metadata, under ``subtopics``.
    embeddings : Embeddings, optional
        For stores that carry none.
    k, fetch_k : int
        How many are picked, and from how many of the nearest.
    search_kwargs : mapping, optional
        Goes to the store unchanged: ``{"filter": ...}``.
    model : str, optional
        Name of the embedding model, for the record; by default what the embeddings call themselves.
    **options
        The other options of :func:`shared_core.evaluation.compare.compare_candidates`.

    Raises
    ------
    VectorSourceError
        There are no embeddings to work with.
    InvalidInputError, InvalidParameterError, ImportError
        As :func:`shared_core.evaluation.compare.compare_candidates`.

    Examples
    --------
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from langchain_core.vectorstores import InMemoryVectorStore
    >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    >>> _ = store.add_texts([f"text {i}" for i in range(9)], ids=[f"id {i}" for i in range(9)])
    >>> found = compare_store(store, [{"text": "a question", "gold": ["id 3"]}], k=3, fetch_k=9)
    >>> found.values[0, "recall"].mean in (0.0, 1.0), found.corpus.model
    (True, 'DeterministicFakeEmbedding')
    """
    embedding = embeddings or store.embeddings
    if embedding is None:
        raise VectorSourceError(
            f"{type(store).__name__} carries no embeddings: pass compare_store(..., embeddings=...) with the model "
            "that the store was filled with"
        )
    id_of = id_function(store)

    def candidates_of(query: Query) -> Found:
        vector = embedding.embed_query(query.text)
        search = Search(store, embedding, query.text, vector, False, fetch_k, dict(search_kwargs or {}))
        documents, vectors = search.run()
        rows = [(id_of(d), d.page_content, d.metadata.get("subtopics")) for d in documents]
        return Found(vector, found_documents(rows), np.asarray(vectors))

    called = model or _name_of(embedding)
    return compare_candidates(queries, candidates_of, k=k, fetch_k=fetch_k, model=called, **options)


def _name_of(embeddings: Embeddings) -> str:
    names = (getattr(embeddings, attribute, None) for attribute in ("model_name", "model"))
    return next((name for name in names if isinstance(name, str) and name), type(embeddings).__name__)
