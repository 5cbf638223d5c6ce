"""A LangChain document compressor: the best set out of the documents that any retriever found."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStore
from pydantic import Field
from typing_extensions import override

from shared_core import EmbeddingFallbackWarning, InvalidParameterError, VectorSourceError
from shared_core.retrieval.request import Request

from . import fallback
from ._settings import EVENT, ChoiceSettings, Chosen, aask, ask, choose_documents, event
from .stores.source import Source
from .vectors import id_function, source_of

_warned: set[type | None] = set()


class SetSelectCompressor(ChoiceSettings, BaseDocumentCompressor):
    """Chooses the best *set* of ``k`` among the documents of any retriever: keyword, hybrid, ensemble, multi-query.

    Vectors come from ``vectorstore`` by the documents' ids; what it does not know is embedded. With LangChain's
    ``CacheBackedEmbeddings`` as ``embeddings`` each text is embedded once.

    Parameters
    ----------
    embeddings : Embeddings, optional
        For the query, and for documents whose vector is stored nowhere; by default those of ``vectorstore``.
    vectorstore : VectorStore, optional
        Where the documents' vectors are stored; it needs a vector source that looks them up by id (see the page
        on vectors; others by :func:`register_vector_source`). An id beside different texts is that of none.
    search_type, selector, search_kwargs, perspective, perspective_vector, direction, corpus, quality, costs, source
        As in :class:`SetSelectRetriever`, but that nothing is searched: ``fetch_k`` and a store's own keys are refused.
    scores : bool
        As in :class:`SetSelectRetriever`.

    Raises
    ------
    InvalidParameterError
        A parameter is unknown or out of range.
    InvalidInputError
        A vector holds NaN or inf, or is of another length than the query; the message names the document.
    VectorSourceError
        There are no embeddings to work with.

    Examples
    --------
    >>> from langchain_core.documents import Document
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from langchain_core.vectorstores import InMemoryVectorStore
    >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    >>> documents = [Document(text, id=text) for text in ("one", "two", "three")]
    >>> _ = store.add_documents(documents)
    >>> compressor = SetSelectCompressor(vectorstore=store, k=2)
    >>> len(compressor.compress_documents(documents, "one"))
    2
    """

    vectorstore: VectorStore | None = None
    search_kwargs: dict[str, Any] = Field(default_factory=dict)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.vectorstore is None and self.embeddings is None:
            raise InvalidParameterError("SetSelectCompressor needs embeddings=, or a vectorstore= that carries some")

    @property
    def vector_source(self) -> str:
        """Where the documents' vectors will come from, in words."""
        embedding = fallback.words(self._embeddings())
        source = self._source()
        if source is None or (source.fetch is None and source.afetch is None):
            return embedding
        return f"store: {type(self.vectorstore).__name__}, else {embedding}"

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        request, scores, _ = self._request({})
        if not documents:
            return []
        embeddings = self._embeddings()
        asked = ask(request, embeddings, query)
        source, id_of = self._source(), id_function(self.vectorstore)
        ids = _telling_ids(documents, id_of)
        stored = list(dict.fromkeys(name for name in ids if name is not None))
        known: dict[str, Any] = {}
        if stored and source is not None and source.fetch is not None:
            known = dict(source.fetch(self.vectorstore, stored))
        embedded = fallback.embed(embeddings, _unknown(documents, ids, known), self._warn)
        rows = _joined(ids, known, embedded)
        chosen = choose_documents(request, (documents, rows), asked, ids=ids, scores=scores, fetch_k=len(documents) + 1)
        manager = CallbackManager.configure(callbacks)
        if manager.handlers:
            manager.on_custom_event(EVENT, self._told(chosen), run_id=manager.parent_run_id or uuid4())
        return chosen.documents

    @override
    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        request, scores, _ = self._request({})
        if not documents:
            return []
        embeddings = self._embeddings()
        asked = await aask(request, embeddings, query)
        source, id_of = self._source(), id_function(self.vectorstore)
        ids = _telling_ids(documents, id_of)
        stored = list(dict.fromkeys(name for name in ids if name is not None))
        known: dict[str, Any] = {}
        if stored and source is not None and source.afetch is not None:
            known = dict(await source.afetch(self.vectorstore, stored))
        elif stored and source is not None and source.fetch is not None:
            known = dict(await run_in_executor(None, source.fetch, self.vectorstore, stored))
        embedded = await fallback.aembed(embeddings, _unknown(documents, ids, known), self._warn)
        rows = _joined(ids, known, embedded)
        choose = partial(choose_documents, ids=ids, scores=scores, fetch_k=len(documents) + 1)
        chosen = await run_in_executor(None, choose, request, (documents, rows), asked)
        manager = AsyncCallbackManager.configure(callbacks)
        if manager.handlers:
            await manager.on_custom_event(EVENT, self._told(chosen), run_id=manager.parent_run_id or uuid4())
        return chosen.documents

    def _request(self, kwargs: dict[str, Any]) -> tuple[Request, bool, dict[str, Any]]:
        request, scores, rest = super()._request(kwargs)
        if "fetch_k" in self.search_kwargs:
            raise InvalidParameterError("a compressor fetches nothing: fetch_k belongs to the retriever before it")
        if rest:
            raise InvalidParameterError(
                f"SetSelectCompressor has no argument {next(iter(rest))!r}: it searches no store"
            )
        return request, scores, rest

    def _told(self, chosen: Chosen) -> dict[str, Any]:
        return {**event(chosen, self.vector_source), "fetch_k": None}

    def _embeddings(self) -> Embeddings:
        embeddings = self.embeddings or (None if self.vectorstore is None else self.vectorstore.embeddings)
        if embeddings is None:
            raise VectorSourceError(
                f"{type(self.vectorstore).__name__} carries no embeddings: "
                "pass SetSelectCompressor(..., embeddings=...)"
            )
        return embeddings

    def _source(self) -> Source | None:
        return None if self.vectorstore is None else source_of(self.vectorstore)

    def _warn(self, number: int) -> None:
        kind = None if self.vectorstore is None else type(self.vectorstore)
        if kind in _warned:
            return
        _warned.add(kind)
        where = "there is no vectorstore=" if kind is None else f"{kind.__name__} has no vector for them"
        warnings.warn(
            f"each query embeds the texts of its documents again ({number} this time): {where}. Pass the store "
            "that holds them, register_vector_source(..., fetch=...), or use CacheBackedEmbeddings",
            EmbeddingFallbackWarning,
            stacklevel=4,
        )


def _telling_ids(documents: Sequence[Document], id_of: Callable[[Document], str | None]) -> list[str | None]:
    """The documents' ids, without those that stand beside different texts: pieces of one document, or two stores'."""
    ids = [id_of(document) for document in documents]
    texts: dict[str | None, str] = {}
    torn = {
        name
        for name, document in zip(ids, documents, strict=True)
        if texts.setdefault(name, document.page_content) != document.page_content
    }
    return [None if name in torn else name for name in ids]


def _unknown(documents: Sequence[Document], ids: Sequence[str | None], known: dict[str, Any]) -> list[str]:
    return [d.page_content for d, name in zip(documents, ids, strict=True) if name not in known]


def _joined(ids: Sequence[str | None], known: dict[str, Any], embedded: list[list[float]]) -> list[Any]:
    rest = iter(embedded)
    return [next(rest) if name is None or name not in known else known[name] for name in ids]
