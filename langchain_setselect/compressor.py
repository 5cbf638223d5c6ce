"""A LangChain document compressor: the best set out of the documents that any retriever found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.vectorstores import VectorStore
from typing_extensions import override

from shared_core import InvalidParameterError
from shared_core.retrieval.events import in_shadow
from shared_core.retrieval.flow import Flow, run_flow, run_flow_async
from shared_core.retrieval.inputs import check_items, check_question, refuse_unknown
from shared_core.retrieval.pool import Pool, drop_ambiguous, read_scores
from shared_core.retrieval.request import Request
from shared_core.retrieval.result import arrange
from shared_core.retrieval.search import select_among
from shared_core.retrieval.settings import Joining

from ._settings import SelectionSettings
from .retriever import describe_call, embed_queries, join_documents, model_of, read_ids, tell, text_of, with_scores
from .stores.reader import FILTER_NAMES
from .vectors import describe_embedding, fetch_or_embed, find_ids, need_embeddings, reader_of

# How the keys end under which rerankers leave their score. FlashrankRerank may put a prefix before it.
RERANKED = ("relevance_score", "rerank_score", "reranker_score")
NO_SEARCH = "it does not search a store"
REMEDY = "Let the retriever in front of SetSelectCompressor return more (its k)"


class SetSelectCompressor(SelectionSettings, Joining, BaseDocumentCompressor):
    """Selects the best *set* of ``k`` among the documents of any retriever: keyword, hybrid, ensemble, multi-query.

    Vectors come from ``vectorstore`` by the documents' ids. Documents that the store does not know are embedded, and so
    is the question. With LangChain's ``CacheBackedEmbeddings`` as ``embeddings``, each text is embedded once.

    Parameters
    ----------
    embeddings : Embeddings, optional
        For the query, and for documents without a stored vector; by default those of ``vectorstore``.
    vectorstore : VectorStore, optional
        Where the documents' vectors are looked up by id; the page on vectors names the stores that can do that. An id
        that occurs with different texts is ignored.
    vectorstore_kwargs : dict, optional
        The part of the store in which they are looked up, such as the ``namespace`` of Pinecone.
    **settings
        See :class:`SelectionSettings`, :class:`Joining` and :class:`Settings`. A compressor does not search, so it
        refuses ``fetch_k`` and arguments of a store.

    Examples
    --------
    >>> from langchain_core import embeddings, vectorstores
    >>> store_class, model = vectorstores.InMemoryVectorStore, embeddings.DeterministicFakeEmbedding(size=8)
    >>> store = store_class.from_texts(["one", "two", "three"], model)
    >>> found = store.similarity_search("one", k=3)
    >>> len(SetSelectCompressor(vectorstore=store, k=2).compress_documents(found, "one"))
    2
    """

    vectorstore: VectorStore | None = None

    vectorstore_kwargs: dict[str, Any] | None = None

    _remedies = MappingProxyType(
        {
            "fetch_k": f"{NO_SEARCH}. {REMEDY}",
            **dict.fromkeys(("follow", "keyword_search", "extra_retrievers", "extra_k", *FILTER_NAMES), NO_SEARCH),
        }
    )

    @property
    def vector_source(self) -> str:
        """Where the documents' vectors will come from, in words."""
        embedding = describe_embedding(model_of(self))
        reader = reader_of(self.vectorstore)
        if reader is None or reader.fetch is None:
            return embedding
        return f"store: {type(self.vectorstore).__name__}, else {embedding}"

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        return run_flow(self._compress(documents, query, callbacks))

    @override
    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        return await run_flow_async(self._compress(documents, query, callbacks))

    def _compress(self, documents: Sequence[Document], query: str, callbacks: Callbacks | None) -> Flow[list[Document]]:
        request, _ = self._configured
        query = check_question(query)
        documents = check_items(documents, Document, "Wrap a text as Document(page_content=text), and leave scores out")
        if not documents:
            return []
        store, reader = self.vectorstore, reader_of(self.vectorstore)
        model = need_embeddings(store, self.embeddings)
        reranked = next((key for d in documents for key in d.metadata if str(key).endswith(RERANKED)), RERANKED[0])

        def read() -> Flow[Pool]:
            known: Any = drop_ambiguous(read_ids(store, reader, documents), list(map(text_of, documents)))
            known = yield from find_ids(store, documents, known)
            where = self.vectorstore_kwargs or {}
            vectors = yield from fetch_or_embed(store, model, documents, known, SetSelectCompressor, where)
            scores = None
            if request.settings.relevance is None:
                scores = read_scores(document.metadata.get(reranked) for document in documents)
            return Pool(documents, known, text_of, text_of, vectors, scores=scores)

        embedding = embed_queries(model, request, query, callbacks)
        selecting = select_among(request, self, len(documents), embedding, read(), reranked, REMEDY)
        if request.settings.shadow:
            selecting = in_shadow(request, query, documents, read_ids(store, reader, documents), selecting)
        selected = yield from selecting
        yield from tell(callbacks, partial(describe_call, self, request, selected))
        return arrange(request, selected, with_scores if request.settings.scores else None, join_documents)

    @override
    def _configure(self, kwargs: Mapping[str, Any], *, told: Sequence[str]) -> tuple[Request, dict[str, Any]]:
        if self.vectorstore is None and self.embeddings is None:
            raise InvalidParameterError("SetSelectCompressor needs embeddings=, or a vectorstore= that has embeddings")
        request, for_store = super()._configure(kwargs, told=told)
        for name in for_store:
            raise InvalidParameterError(
                f"SetSelectCompressor has no argument {name!r}: {self._remedies.get(name, NO_SEARCH)}"
            )
        reader = reader_of(self.vectorstore)
        refuse_unknown("the look-up by id", self.vectorstore_kwargs or {}, () if reader is None else reader.scope)
        return request, for_store
