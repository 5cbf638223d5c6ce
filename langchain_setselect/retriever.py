"""A LangChain retriever that returns the best set of documents from any vector store."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any, ClassVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import Field, model_validator
from typing_extensions import override

from shared_core import VectorSourceError
from shared_core.retrieval.request import Asked

from . import fallback
from ._settings import EVENT, ChoiceSettings, Chosen, aask, ask, choose_documents, event
from .vectors import Search, ids_of, source_of, widest_of


class SetSelectRetriever(ChoiceSettings, VectorStoreRetriever):
    """Over-fetches from a vector store and returns the best *set* of ``k`` documents.

    ``SetSelectRetriever(vectorstore=store)`` stands where ``store.as_retriever()`` stood;
    ``SetSelectRetriever(vectorstore=store, search_type="mmr", search_kwargs={...})`` picks what
    ``store.as_retriever(search_type="mmr", search_kwargs={...})`` would pick if the store's MMR were right.

    Parameters
    ----------
    vectorstore : VectorStore
    search_type : str
        ``"vrsd"`` (default), ``"similarity"``, ``"mmr"``, ``"ndpp"`` or another registered name.
    selector : Selector, optional
        An object (or a name) in place of ``search_type``.
    search_kwargs : dict
        ``k`` (4), ``fetch_k`` (max(20, 5k); 50 where only a budget is given), ``score_threshold`` (the least
        cosine), ``shown`` (ids of documents that the reader already has; those that this search finds count as
        picked), ``max_per_source`` (no more than so many of one ``source``), ``drop_near_duplicates`` (no two picks
        whose cosine is above this), ``budget`` (sum of ``costs`` that must not be exceeded; without ``k`` it alone
        ends the choice), the selector's own parameters (``lambda_mult``, 0.5 as in LangChain; ``refine``;
        ``kernel``; ...), and any other parameter of this class but ``embeddings``. What is left, ``filter`` for one,
        goes to the store unchanged. The same keys work as arguments of the constructor (but for the store's own) and
        at call time: ``retriever.invoke(query, k=3)``. Where ``max_per_source`` or ``drop_near_duplicates`` leaves
        the set short, more is fetched, if the store hands back its vectors.
    perspective : str, array-like of shape (d,), callable or PerspectiveExtractor, optional
        A text, its embedding, a function of the query that returns a text (or None), or an extractor: what is to be
        projected out of the query before the search (PAP).
    perspective_vector : {"text", "difference"}
        Embed the perspective's text, or take the query's embedding less its root's (needs an extractor).
    direction : {"remove", "emphasize"}
    corpus : bool
        Project the candidates as well (PAP+).
    quality : str, callable or mapping, optional
        A metadata key, a function of the document, or a number for each id; for ``"mmr"``.
    costs : str or callable, optional
        The same for what a document takes of the ``budget``: ``lambda d: len(d.page_content) / 4``.
    source : str or callable
        Where a document comes from, for ``max_per_source``: a metadata key (``"source"``) or a function.
    embeddings : Embeddings, optional
        For stores that carry none.
    scores : bool
        Put ``relevance_score`` (cosine with the query that was searched with) and ``selection_score`` (what the
        pick added) into the metadata of the returned copies.

    Raises
    ------
    InvalidParameterError
        A parameter is unknown or out of range: at construction, or at call time for what is given there.
    InvalidInputError
        A stored vector holds NaN or inf (the message names the document's id) or is of another length than the
        query.
    VectorSourceError
        There are no embeddings to work with; the message says which argument to pass.

    Examples
    --------
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from langchain_core.vectorstores import InMemoryVectorStore
    >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    >>> _ = store.add_texts(["one", "two", "three"])
    >>> retriever = SetSelectRetriever(vectorstore=store, search_kwargs={"k": 2})
    >>> sorted(retriever.invoke("one")[0].metadata)
    ['relevance_score', 'selection_score']
    """

    search_type: str = "vrsd"
    search_kwargs: dict[str, Any] = Field(default_factory=dict)

    allowed_search_types: ClassVar[Collection[str]] = ("similarity", "vrsd", "mmr", "ndpp")

    @model_validator(mode="before")
    @classmethod
    def validate_search_type(cls, values: dict[str, Any]) -> Any:
        """Nothing: the base class knows its own search types only, and ours are checked at construction."""
        return values

    @property
    def vector_source(self) -> str:
        """Where the candidates' vectors will come from, in words."""
        store = type(self.vectorstore).__name__
        if source_of(self.vectorstore) is not None:
            return f"store: {store}"
        embeddings = self.embeddings or self.vectorstore.embeddings
        if embeddings is None:
            return f"nowhere: no vector source is registered for {store}, and there are no embeddings"
        return f"{fallback.words(embeddings)}: no vector source is registered for {store}"

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        chosen = self._choose(query, kwargs)
        if run_manager.handlers:
            told = event(chosen, self.vector_source)
            dispatch_custom_event(EVENT, told, config={"callbacks": run_manager.get_child()})
        return chosen.documents

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        chosen = await self._achoose(query, kwargs)
        if run_manager.handlers:
            told = event(chosen, self.vector_source)
            await adispatch_custom_event(EVENT, told, config={"callbacks": run_manager.get_child()})
        return chosen.documents

    def _choose(self, query: str, kwargs: dict[str, Any]) -> Chosen:
        request, scores, rest = self._request(kwargs)
        asked = ask(request, self._embeddings(), query)
        source = source_of(self.vectorstore)
        widest = widest_of(source)
        fetch_k: int | None = request.fetch_k
        while fetch_k is not None:
            search = self._search(query, asked, fetch_k, rest)
            hits = search.run()
            ids = ids_of(self.vectorstore, source, hits[0])
            chosen = choose_documents(request, hits, asked, ids=ids, scores=scores, fetch_k=fetch_k, widest=widest)
            fetch_k = None if source is None else chosen.wider
        return chosen

    async def _achoose(self, query: str, kwargs: dict[str, Any]) -> Chosen:
        request, scores, rest = self._request(kwargs)
        asked = await aask(request, self._embeddings(), query)
        source = source_of(self.vectorstore)
        widest = widest_of(source)
        fetch_k: int | None = request.fetch_k
        while fetch_k is not None:
            search = self._search(query, asked, fetch_k, rest)
            hits = await search.arun()
            ids = ids_of(self.vectorstore, source, hits[0])
            choose = partial(choose_documents, ids=ids, scores=scores, fetch_k=fetch_k, widest=widest)
            if request.is_quick(hits[1]):
                chosen = choose(request, hits, asked)
            else:
                # Functions of the user's may take their time: not on the event loop.
                chosen = await run_in_executor(None, choose, request, hits, asked)
            fetch_k = None if source is None else chosen.wider
        return chosen

    def _embeddings(self) -> Embeddings:
        embeddings = self.embeddings or self.vectorstore.embeddings
        if embeddings is None:
            raise VectorSourceError(
                f"{type(self.vectorstore).__name__} carries no embeddings: pass "
                "SetSelectRetriever(..., embeddings=...) with the model that the store was filled with"
            )
        return embeddings

    def _search(self, text: str, asked: Asked, fetch_k: int, store_kwargs: dict[str, Any]) -> Search:
        return Search(
            store=self.vectorstore,
            embeddings=self._embeddings(),
            text=text,
            vector=asked.searched,
            projected=asked.pap is not None,
            fetch_k=fetch_k,
            store_kwargs=store_kwargs,
        )
