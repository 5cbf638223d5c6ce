"""A LangChain retriever that returns the best set of documents from any vector store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, get_args
from uuid import uuid4

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager, Callbacks
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from pydantic import model_validator
from typing_extensions import override

from shared_core import VectorSourceError
from shared_core.errors import warn
from shared_core.retrieval.events import describe, in_shadow
from shared_core.retrieval.extra import (
    FilteredRetriever,
    Store,
    WordSearch,
    check_retrievers,
    gather_extras,
    share_search,
)
from shared_core.retrieval.flow import Flow, Step, run_flow, run_flow_async
from shared_core.retrieval.follow import Where
from shared_core.retrieval.inputs import EmbeddedQuery, check_items, check_question, embed_question
from shared_core.retrieval.pool import ItemSelection, Pool
from shared_core.retrieval.request import Request
from shared_core.retrieval.result import Joined, arrange
from shared_core.retrieval.search import search_and_select
from shared_core.retrieval.settings import Call, Fetching, Joining
from shared_core.selection.route import DEFAULT_K
from shared_core.selectors.registry import SelectorName

from ._settings import OF_DICT, SelectionSettings
from .stores.reader import FILTER_NAMES, VectorReader
from .vectors import (
    check_arguments,
    describe_embedding,
    embed_questions,
    embed_texts,
    fetch_or_embed,
    look_up,
    name_of_model,
    need_embeddings,
    reader_of,
    search_and_embed,
)
from .words import DOCUMENTS, WordRetriever

AnyRetriever = Runnable[str, list[Document]] | FilteredRetriever


def model_of(owner: Any) -> Any:
    """The embedding model of a class that has ``embeddings`` or a ``vectorstore``; None if neither has one."""
    return owner.embeddings or (None if owner.vectorstore is None else owner.vectorstore.embeddings)


def embed_queries(
    model: Embeddings, request: Request, question: str, callbacks: Callbacks
) -> Flow[list[EmbeddedQuery]]:
    """Embed the question, its sub-questions, and the text that its perspective needs.

    The ``callbacks`` see the run of a Runnable that splits the question.
    """
    if not question.strip():
        warn("the question is empty, so the set says nothing of what is relevant: pass a text")
    return embed_question(request.settings, question, partial(embed_questions, model), {"callbacks": callbacks})


def search_store(
    store: VectorStore,
    reader: VectorReader | None,
    model: Embeddings,
    kwargs: dict[str, Any],
    query: EmbeddedQuery,
    fetch_k: int,
) -> Flow[Pool]:
    """The store's documents nearest to the query, with their ids and vectors.

    Vectors are those that the store keeps, or embeddings of the texts. Documents without one are left out with a
    warning. A hit that the store's own search leaves out is None in place of a document.
    """
    if reader is None:
        found: Any = yield from search_and_embed(store, model, query, fetch_k, kwargs)
    else:
        arguments = (store, query.search_vector, fetch_k)
        found = yield Step(
            partial(reader.search, *arguments, **kwargs),
            None if reader.asearch is None else partial(reader.asearch, *arguments, **kwargs),
        )
    documents, vectors = found
    if vectors is None or len(documents) != len(vectors):
        count = vectors if vectors is None else len(vectors)
        raise VectorSourceError(f"the vector reader returned {len(documents)} documents and {count} vectors")
    exhausted = len(documents) < fetch_k
    if any(document is None for document in documents):
        rows = [row for row, document in enumerate(documents) if document is not None]
        documents, vectors = ([column[row] for row in rows] for column in (documents, vectors))
    ids = read_ids(store, reader, documents)
    missing = [row for row, vector in enumerate(vectors) if vector is None]
    # Some stores return documents without ids. The beginning of the text then names the document.
    without = [ids[row] or documents[row].page_content[:60] for row in missing]
    if missing:
        warn(
            f"the store has no vector for {without[0]!r}"
            + (f" and {len(missing) - 1} more documents" if len(missing) > 1 else "")
            + ". Documents without a vector, such as those that were deleted during the search, are left out"
        )
        kept = [row for row, vector in enumerate(vectors) if vector is not None]
        documents, ids, vectors = ([column[row] for row in kept] for column in (documents, ids, vectors))
    return Pool(documents, ids, text_of, text_of, vectors, fetch_k, exhausted, without_vector=without)


def fetch_documents(store: VectorStore, model: Embeddings, filtered: bool, ids: list[str]) -> Flow[Pool]:
    """The documents with these ids; none if the search is ``filtered``, because a look-up would ignore the filter."""
    documents: Sequence[Document] = []
    if not filtered:
        # The base class raises NotImplementedError. Stores whose ids are UUIDs, such as Qdrant, raise errors of their
        # own for a link that is a title. Then all links are searched as names.
        with suppress(Exception):
            documents = yield Step(partial(store.get_by_ids, ids), partial(store.aget_by_ids, ids))
    # A store may make a query of an id that it does not escape, and return other documents too.
    every = read_ids(store, reader_of(store), documents)
    rows = [row for row, name in enumerate(every) if name in ids]
    documents, known = [documents[row] for row in rows], [every[row] for row in rows]
    vectors = yield from fetch_or_embed(store, model, documents, known, fetch_documents)
    return Pool(documents, known, text_of, text_of, vectors)


def read_ids(store: VectorStore | None, reader: VectorReader | None, documents: Sequence[Document]) -> list[str | None]:
    """The documents' ids. The store's vector ``reader`` knows where the store keeps them."""
    id_of = None if reader is None else reader.id_of
    return [document.id if id_of is None else id_of(store, document) for document in documents]


text_of = attrgetter("page_content")


def tell(callbacks: Callbacks, make_data: Callable[[], dict[str, Any]]) -> Flow[None]:
    """Send the event to the handlers that want it, if there are any."""
    manager = CallbackManager.configure(callbacks)
    if not all(handler.ignore_custom_event for handler in manager.handlers):
        event: dict[str, Any] = {"name": "setselect", "data": make_data(), "run_id": manager.parent_run_id or uuid4()}
        asend = AsyncCallbackManager.configure(callbacks).on_custom_event
        yield Step(partial(manager.on_custom_event, **event), partial(asend, **event))


def describe_call(owner: Any, request: Request, selected: ItemSelection) -> dict[str, Any]:
    """What the event of a call holds."""
    return {"k": request.k, "vector_source": owner.vector_source, **describe(request, selected)}


def _retrieve(retriever: Any, text: str, config: Any) -> Flow[list[Document]]:
    """What an extra retriever finds; its run is a child of the run that the ``config`` names."""
    found = yield Step(partial(retriever.invoke, text, config), partial(retriever.ainvoke, text, config))
    return check_items(found, Document, f"{retriever.get_name()} must return documents")


def _search_words(
    store: VectorStore, kwargs: dict[str, Any], k: int, config: Any, words: WordSearch[Document], text: str
) -> Flow[list[Document]]:
    """The ``k`` best documents by words of those that the arguments of the search let in.

    If the store cannot be asked for that, they are the ``k`` best of all.
    """
    reader, size, retriever = reader_of(store), k, WordRetriever(words=words)
    while True:
        found: list[Document] = yield Step(
            partial(retriever.invoke, text, config, k=size), partial(retriever.ainvoke, text, config, k=size)
        )
        if not kwargs or reader is None or reader.passing is None:
            return found
        passing = yield Step(partial(reader.passing, store, [document.id for document in found], **kwargs))
        admitted = [document for document in found if document.id in passing]
        if len(admitted) >= k or len(found) < size or size >= reader.widest:
            return admitted[:k]
        size = min(4 * size, reader.widest)


def with_scores(document: Document, relevance: float, scores: dict[str, Any]) -> Document:
    """A copy that has the scores in its metadata."""
    return document.model_copy(update={"metadata": {**document.metadata, **scores}})


def join_documents(documents: list[Document], joined: Joined) -> Document:
    """One document of several neighbours."""
    return Document(joined.text, id=joined.id, metadata=joined.metadata)


class SearchSettings(SelectionSettings, Fetching):
    """The fields and the flow of the classes that search a store."""

    vectorstore: VectorStore

    vectorstore_kwargs: dict[str, Any] | None = None
    """Arguments of the store's search. They go to it unchanged, whatever their names are."""

    _remedies = MappingProxyType(
        dict.fromkeys(FILTER_NAMES, "pass the filter of the store in search_kwargs, under the store's own name for it")
    )

    if TYPE_CHECKING:
        # The core, which knows no framework, declares it.
        extra_retrievers: AnyRetriever | Sequence[AnyRetriever] = ()

    @override
    def _check_searches(self, call: Call) -> None:
        if call.keyword_search:
            DOCUMENTS.check_listing(self.vectorstore, "from_documents(documents)")
        check_retrievers(call.extra_retrievers, Runnable, "LangChain")

    @property
    def vector_source(self) -> str:
        """Where the candidates' vectors will come from, in words."""
        store = type(self.vectorstore).__name__
        if reader_of(self.vectorstore) is not None:
            return f"store: {store}"
        return f"{describe_embedding(model_of(self))}: no vector reader is registered for {store}"

    def refresh(self) -> None:
        """Read all documents for ``keyword_search`` again at the next search. See the page on keyword search."""
        share_search(DOCUMENTS, self.vectorstore).refresh()

    def _search(
        self, request: Request, question: str, store_kwargs: dict[str, Any], callbacks: Callbacks = None
    ) -> Flow[ItemSelection]:
        model = need_embeddings(self.vectorstore, self.embeddings)
        embedding = embed_queries(model, request, question, callbacks)
        selecting = search_and_select(request, self, embedding, self._store(model, request, store_kwargs, callbacks))
        if not request.settings.shadow:
            return (yield from selecting)
        store, arguments = self.vectorstore, {**(self.vectorstore_kwargs or {}), **store_kwargs}
        arguments["k"] = request.k or DEFAULT_K
        before: list[Document] = yield Step(
            partial(store.similarity_search, question, **arguments),
            partial(store.asimilarity_search, question, **arguments),
        )
        return (yield from in_shadow(request, question, before, read_ids(store, reader_of(store), before), selecting))

    def _store(
        self, model: Embeddings, request: Request, store_kwargs: dict[str, Any], callbacks: Callbacks = None
    ) -> Store:
        store, reader = self.vectorstore, reader_of(self.vectorstore)
        store_kwargs = {**(self.vectorstore_kwargs or {}), **store_kwargs}
        if store_kwargs:
            check_arguments(store, store_kwargs)

        def find(query: EmbeddedQuery, where: Where, k: int) -> Flow[Pool]:
            assert reader is not None
            if reader.find is not None:
                finding = reader._replace(search=reader.find, asearch=None)
                return search_store(store, finding, model, {**store_kwargs, "where": where}, query, k)
            assert reader.narrow is not None
            narrowed = {**store_kwargs, **reader.narrow(store, store_kwargs.get("filter"), where)}
            return search_store(store, reader, model, narrowed, query, k)

        settings, config = request.settings, {"callbacks": callbacks}
        extras = None
        if settings.keyword_search or settings.extra_retrievers:
            extras = gather_extras(
                DOCUMENTS,
                store,
                settings,
                lambda one: one.get_name(),
                partial(_retrieve, config=config),
                partial(_search_words, store, store_kwargs, settings.extra_k, config),
                partial(look_up, store, store_kwargs),
                partial(name_of_model, model),
            )
        return Store(
            partial(search_store, store, reader, model, store_kwargs),
            partial(read_ids, store, reader),
            partial(embed_texts, model),
            partial(fetch_documents, store, model, bool(store_kwargs)),
            None if reader is None else reader.widest,
            extras,
            bool(store_kwargs),
            None if reader is None or not (reader.find or reader.narrow) else find,
        )


class SetSelectRetriever(SearchSettings, Joining, VectorStoreRetriever):
    """Fetches ``fetch_k`` candidates from a vector store and returns the best *set* of ``k`` documents.

    By default the documents are relevant, repeat little, together cover the words of the question, and lead to each
    other (:class:`Coverage`). ``SetSelectRetriever(vectorstore=store, search_type="mmr", search_kwargs={...})``
    replaces ``store.as_retriever(search_type="mmr", search_kwargs={...})``. If a constraint or repeated texts leave
    fewer than ``k`` documents, a wider search follows, provided that the store returns its vectors.

    Parameters
    ----------
    vectorstore : VectorStore
        Where the documents are searched; the vectors are those that it keeps, if there is a vector reader for it.
    search_type, search_kwargs, k, vectorstore_kwargs, embeddings
        See :class:`SelectionSettings`.
    tags : list of str, optional
        As for ``as_retriever``: by default the names of the classes of the store and of its embeddings.
    **settings
        All settings of :class:`Settings`, :class:`Fetching` and :class:`Joining`. They may also be given in
        ``search_kwargs``, as for ``as_retriever``, and at call time: ``retriever.invoke(query, k=3)``. A setting at
        call time overrides one given before.

    Examples
    --------
    >>> from langchain_core import embeddings, vectorstores
    >>> model = embeddings.DeterministicFakeEmbedding(size=8)
    >>> store = vectorstores.InMemoryVectorStore.from_texts(["one", "two", "three"], model)
    >>> retriever = SetSelectRetriever(vectorstore=store, k=2)
    >>> len(retriever.invoke("one"))
    2
    """

    allowed_search_types: ClassVar[Collection[str]] = get_args(SelectorName)

    @model_validator(mode="before")
    @classmethod
    def validate_search_type(cls, values: dict[str, Any]) -> Any:
        """Replaces LangChain's check, which accepts only its own search types; adds the tags of ``as_retriever``."""
        store = values.get("vectorstore")
        if values.get("tags") or not isinstance(store, VectorStore):
            return values
        return {**values, "tags": store._get_retriever_tags()}

    @override
    def _get_relevant_documents(self, query: str, *, run_manager: Any, **kwargs: Any) -> list[Document]:
        return run_flow(self._retrieve(query, run_manager, kwargs))

    @override
    async def _aget_relevant_documents(self, query: str, *, run_manager: Any, **kwargs: Any) -> list[Document]:
        return await run_flow_async(self._retrieve(query, run_manager, kwargs))

    def _retrieve(self, query: str, run_manager: Any, kwargs: dict[str, Any]) -> Flow[list[Document]]:
        query = check_question(query, OF_DICT)
        request, store_kwargs = self._configured
        if kwargs:
            request, store_kwargs = self._configure(kwargs, told=request.without_effect)
        selected = yield from self._search(request, query, store_kwargs, run_manager.get_child())
        if run_manager.handlers:
            yield from tell(run_manager.get_child(), partial(describe_call, self, request, selected))
        return arrange(request, selected, with_scores if request.settings.scores else None, join_documents)
