"""A LangChain retriever that returns the best set of documents from any vector store."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import model_validator
from typing_extensions import override

from shared_core import PAP, InvalidParameterError, VectorSourceError

from ._request import CHOICE_KEYS, Request, all_parameters
from .vectors import Search, source_of


class SetSelectRetriever(VectorStoreRetriever):
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
        cosine), ``shown`` (ids of documents that the reader already has), ``budget`` (sum of ``costs`` that must
        not be exceeded; without ``k`` it alone ends the choice), the selector's own parameters (``lambda_mult``,
        0.5 as in LangChain; ``refine``; ``kernel``; ...), and any other parameter of this class. What is left,
        ``filter`` for one, goes to the store unchanged. The same keys work as arguments of the constructor (but
        for the store's own) and at call time: ``retriever.invoke(query, k=3)``.
    perspective : str or array-like of shape (d,), optional
        A text or its embedding, to be projected out of the query before the search (PAP).
    direction : {"remove", "emphasize"}
    corpus : bool
        Project the candidates as well (PAP+).
    quality : str or callable, optional
        A metadata key or a function of the document; for ``"mmr"``.
    costs : str or callable, optional
        The same for what a document takes of the ``budget``: ``lambda d: len(d.page_content) / 4``.
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
    selector: Any = None
    perspective: Any = None
    direction: str = "remove"
    corpus: bool = False
    quality: Any = None
    costs: Any = None
    embeddings: Embeddings | None = None
    scores: bool = True

    allowed_search_types: ClassVar[Collection[str]] = ("similarity", "vrsd", "mmr", "ndpp")

    @model_validator(mode="before")
    @classmethod
    def validate_search_type(cls, values: dict[str, Any]) -> Any:
        """Sort the constructor's arguments into fields and ``search_kwargs``; refuse unknown ones."""
        fields = {k: v for k, v in values.items() if k in cls.model_fields}
        more = {k: v for k, v in values.items() if k not in cls.model_fields}
        known = {*CHOICE_KEYS, *all_parameters()}
        for name in more:
            if name not in known:
                raise InvalidParameterError(
                    f"SetSelectRetriever has no argument {name!r}; it has "
                    f"{', '.join(sorted(known | set(cls.model_fields)))}. "
                    "What is for the store goes into search_kwargs"
                )
        if fields.get("selector") is not None and "search_type" in fields:
            raise InvalidParameterError("give search_type or selector, not both")
        if more:
            fields["search_kwargs"] = {**(fields.get("search_kwargs") or {}), **more}
        return fields

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._request({})
        return self

    @property
    def vector_source(self) -> str:
        """Where the candidates' vectors will come from, in words."""
        store = type(self.vectorstore).__name__
        if source_of(self.vectorstore) is not None:
            return f"store: {store}"
        embeddings = self.embeddings or self.vectorstore.embeddings
        return f"embedding the texts with {type(embeddings).__name__}: no source is registered for {store}"

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        request = self._request(kwargs)
        embeddings = self._embeddings()
        vector = embeddings.embed_query(query)
        text = request.perspective_text
        pap = request.pap(None if text is None else embeddings.embed_query(text))
        hits = self._search(request, embeddings, query, vector, pap).run()
        return request.choose(hits, vector, pap)

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        request = self._request(kwargs)
        embeddings = self._embeddings()
        vector = await embeddings.aembed_query(query)
        text = request.perspective_text
        pap = request.pap(None if text is None else await embeddings.aembed_query(text))
        hits = await self._search(request, embeddings, query, vector, pap).arun()
        return request.choose(hits, vector, pap)

    def _embeddings(self) -> Embeddings:
        embeddings = self.embeddings or self.vectorstore.embeddings
        if embeddings is None:
            raise VectorSourceError(
                f"{type(self.vectorstore).__name__} carries no embeddings: pass "
                "SetSelectRetriever(..., embeddings=...) with the model that the store was filled with"
            )
        return embeddings

    def _search(
        self, request: Request, embeddings: Embeddings, text: str, vector: list[float], pap: PAP | None
    ) -> Search:
        return Search(
            store=self.vectorstore,
            embeddings=embeddings,
            text=text,
            vector=vector if pap is None else pap.project(vector).tolist(),
            projected=pap is not None,
            fetch_k=request.fetch_k,
            store_kwargs=request.store_kwargs,
        )

    def _request(self, kwargs: dict[str, Any]) -> Request:
        own = {name: getattr(self, name) for name in CHOICE_KEYS if name in type(self).model_fields}
        defaults = {**own, **self.search_kwargs}
        if "selector" in kwargs or kwargs.get("search_type", self.search_type) != self.search_type:
            # Another selector for one call: the parameters of the usual one are not its own.
            defaults = {name: value for name, value in defaults.items() if name not in all_parameters()}
        if "search_type" in kwargs:
            defaults["selector"] = None
        return Request.parse({**defaults, **kwargs})
