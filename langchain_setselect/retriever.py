"""A LangChain retriever that returns the best set of documents from any vector store."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from pydantic import BaseModel, ConfigDict, Field, model_validator
from typing_extensions import override

from shared_core import InvalidInputError, InvalidParameterError, VectorSourceError
from shared_core.errors import SetSelectWarning
from shared_core.retrieval import (
    SETTINGS,
    EmbeddedQuery,
    Flow,
    Found,
    Request,
    Selected,
    Step,
    as_perspective,
    parameter_names,
    run_flow,
    run_flow_async,
)

from .stores.reader import Hits, VectorReader, document_id
from .vectors import describe_embedding, find_reader, search_and_embed

EVENT = "setselect"


class SelectionSettings(BaseModel):
    """The fields that all LangChain classes share; settings without a field of their own go into ``search_kwargs``."""

    search_type: str = "vrsd"
    search_kwargs: dict[str, Any] = {}
    selector: Any = None
    perspective: Any = None
    perspective_vector: str = "text"
    direction: str = "remove"
    corpus: bool = False
    quality: Any = None
    costs: Any = None
    source: Any = "source"
    embeddings: Embeddings | None = None
    scores: bool = True

    model_config = ConfigDict(arbitrary_types_allowed=True)

    def __init__(self, **settings: Any) -> None:
        own = type(self).model_fields
        fields = {name: value for name, value in settings.items() if name in own}
        more = {name: value for name, value in settings.items() if name not in own}
        known = {*SETTINGS, *parameter_names()}
        for name in more:
            if name not in known:
                raise InvalidParameterError(
                    f"{type(self).__name__} has no argument {name!r}; it has {', '.join(sorted(known | set(own)))}"
                )
        # LangChain's configurable_fields passes all fields to the constructor, including those that have their default.
        rebuilt = own.keys() <= fields.keys() and fields["search_type"] == own["search_type"].default
        if fields.get("selector") is not None and "search_type" in fields and not rebuilt:
            raise InvalidParameterError("give search_type or selector, not both")
        if "perspective" in fields:
            fields["perspective"] = as_perspective(fields["perspective"])
        if more:
            fields["search_kwargs"] = {**(fields.get("search_kwargs") or {}), **more}
        super().__init__(**fields)
        # The settings are checked here, because a pydantic validator would wrap the error in a ValidationError.
        self._request({})

    def _request(self, kwargs: dict[str, Any]) -> tuple[Request, bool, dict[str, Any]]:
        """The request of one call with the arguments ``kwargs``, whether to add scores, and the store's arguments."""
        defaults = {
            **{name: getattr(self, name) for name in _FIELDS},
            "search_type": self.search_type,
            "scores": self.scores,
            **self.search_kwargs,
        }
        if "search_type" in kwargs and kwargs.get("selector") is not None:
            raise InvalidParameterError("give search_type or selector, not both")
        if "selector" in kwargs or kwargs.get("search_type", defaults["search_type"]) != defaults["search_type"]:
            # The parameters of the configured selector do not fit another selector that is given for this call.
            defaults = {name: value for name, value in defaults.items() if name not in parameter_names()}
        if "search_type" in kwargs:
            defaults["selector"] = None
        settings = {**defaults, **kwargs}
        name, scores = settings.pop("search_type"), settings.pop("scores")
        if settings["selector"] is None:
            settings["selector"] = name
        request, rest = Request.parse(settings)
        for name in rest:
            if name in type(self).model_fields:
                raise InvalidParameterError(f"{name} is set when {type(self).__name__} is made, not for one call")
        # Ids of documents are strings; those that a user reads from metadata may be integers.
        return (replace(request, shown=tuple(map(str, request.shown))) if request.shown else request), scores, rest


# The settings of a request that are fields of the classes.
_FIELDS = tuple(name for name in SETTINGS if name in SelectionSettings.model_fields)


def embed_query(request: Request, embeddings: Embeddings, query: str) -> Flow[EmbeddedQuery]:
    """Embed the query, and the text that its perspective needs."""
    text = yield from request.find_text_to_embed(query)
    vector = yield Step(partial(embeddings.embed_query, query), partial(embeddings.aembed_query, query))
    embedded = None
    if text is not None:
        embedded = yield Step(partial(embeddings.embed_query, text), partial(embeddings.aembed_query, text))
    return request.as_query(vector, embedded)


def search_store(
    store: VectorStore, embeddings: Embeddings, text: str, query: EmbeddedQuery, fetch_k: int, kwargs: dict[str, Any]
) -> Flow[Hits]:
    """The store's documents nearest to the query, and their vectors: stored ones, or embeddings of the texts."""
    reader = find_reader(type(store))
    if reader is None:
        return (yield from search_and_embed(store, embeddings, text, query, fetch_k, kwargs))
    arguments = (store, query.search_vector, fetch_k)
    documents, vectors = yield Step(
        partial(reader.search, *arguments, **kwargs),
        None if reader.asearch is None else partial(reader.asearch, *arguments, **kwargs),
    )
    if len(documents) != len(vectors):
        raise VectorSourceError(f"the vector reader returned {len(documents)} documents and {len(vectors)} vectors")
    if isinstance(vectors, np.ndarray) or all(vector is not None for vector in vectors):
        return documents, vectors
    # Some stores return documents without ids. The beginning of the text then names the document.
    missing = [
        name or document.page_content[:60]
        for document, name, vector in zip(documents, read_ids(store, reader, documents), vectors, strict=True)
        if vector is None
    ]
    warnings.warn(
        f"the store has no vector for {missing[0]!r}"
        + (f" and {len(missing) - 1} more documents" if len(missing) > 1 else "")
        + ". Documents without a vector, such as those that were deleted during the search, are left out",
        SetSelectWarning,
        stacklevel=2,
    )
    kept = [row for row, vector in enumerate(vectors) if vector is not None]
    return [documents[row] for row in kept], [vectors[row] for row in kept]


def read_ids(store: VectorStore | None, reader: VectorReader | None, documents: Sequence[Document]) -> list[str | None]:
    """The documents' ids. The store's vector reader knows where the store keeps them."""
    if reader is None or reader.id_of is document_id:
        return [document.id for document in documents]
    return [reader.id_of(store, document) for document in documents]


def check_shown(request: Request, ids: Sequence[str | None]) -> None:
    """Raise if ``shown`` is given and no candidate has an id."""
    if request.shown and ids and all(name is None for name in ids):
        raise InvalidInputError(
            "shown= compares the documents' ids, and no candidate has an id: store documents with ids, or pass "
            "register_vector_source(..., id_of=...) if the ids are in the metadata"
        )


def copy_documents(selected: Selected, scores: bool) -> list[Document]:
    """Copies of the selected documents, with their scores in the metadata if ``scores``."""
    copies = []
    relevance, gains = selected.selection.relevance.tolist(), selected.selection.gains.tolist()
    for document, cosine, gain in zip(selected.items, relevance, gains, strict=True):
        more = {"relevance_score": cosine, "selection_score": gain} if scores else {}
        copies.append(document.model_copy(update={"metadata": {**document.metadata, **more}}))
    return copies


def describe_selection(request: Request, selected: Selected, vector_source: str) -> dict[str, Any]:
    """The data of the event ``setselect`` for callback handlers."""
    found, selection = selected.found, selected.selection
    return {
        "selector": repr(request.selector),
        "k": request.k,
        "fetch_k": found.fetch_k,
        "candidates": len(found.items),
        "vector_source": vector_source,
        "ids": selected.ids,
        "gains": selection.gains.tolist(),
        "relevance": selection.relevance.tolist(),
        "objective": selection.objective if found.items else None,
        "filled_from": selection.filled_from,
    }


class SetSelectRetriever(SelectionSettings, VectorStoreRetriever):
    """Over-fetches from a vector store and returns the best *set* of ``k`` documents.

    ``SetSelectRetriever(vectorstore=store)`` replaces ``store.as_retriever()``, and
    ``SetSelectRetriever(vectorstore=store, search_type="mmr", search_kwargs={...})`` replaces
    ``store.as_retriever(search_type="mmr", search_kwargs={...})``.

    Parameters
    ----------
    vectorstore : VectorStore
    search_type : str
        ``"vrsd"`` (default), ``"similarity"``, ``"mmr"``, ``"ndpp"`` or another registered name.
    selector : Selector, optional
        An object (or a name) in place of ``search_type``.
    search_kwargs : dict
        The keys below, the selector's own parameters (``lambda_mult``, 0.5 as in LangChain; ``refine``; ``kernel``;
        ...), and any other parameter of this class except ``vectorstore`` and ``embeddings``. The same keys work as
        arguments of the constructor and at call time: ``retriever.invoke(query, k=3)``. Other keys (``filter``, for
        example) go to the store unchanged; the constructor does not take them as arguments.

        - ``k`` (4): how many documents.
        - ``fetch_k``: how many candidates; max(20, 5k) by default, or 50 if only a budget is given. The number of
          ``shown`` ids is added.
        - ``score_threshold``: the lowest cosine with the query that a document may have.
        - ``shown``: ids of documents that the reader has already. Those that the search finds count as picked, and
          are not returned.
        - ``max_per_source``: the most documents of one ``source``.
        - ``drop_near_duplicates``: no two documents have a cosine above this value.
        - ``budget``: the sum of ``costs`` that the set must not exceed. Without ``k`` only the budget ends the
          selection.

        If ``max_per_source`` or ``drop_near_duplicates`` leaves fewer than ``k`` documents, a wider search follows,
        provided that the store returns its vectors.
    perspective : str, array-like of shape (d,), callable or PerspectiveExtractor, optional
        What is projected out of the query before the search (PAP, perspective-aware projection): a text, its
        embedding, a function of the query that returns a text, ``QueryParts`` or None (no projection), or an extractor,
        which finds it in the query with a language model (:func:`extractor_from_chat_model`).
    perspective_vector : {"text", "difference"}
        The vector to project on: the embedding of the perspective's text, or the query's embedding minus that of its
        root, which needs ``QueryParts`` or an extractor.
    direction : {"remove", "emphasize"}
    corpus : bool
        Project the candidates too (PAP+).
    quality : str, callable or mapping, optional
        How good a document is by itself, for ``"mmr"``: a metadata key, a function of the document, or numbers by id.
    costs : str, callable or mapping, optional
        What a document takes from the ``budget``: ``lambda d: len(d.page_content) / 4``.
    source : str, callable or mapping
        Where a document comes from, for ``max_per_source``: a metadata key (``"source"``), a function of the
        document, or names by id.
    embeddings : Embeddings, optional
        For stores that carry none.
    scores : bool
        Add ``relevance_score`` (cosine with the query that was searched for) and ``selection_score`` (the gain) to
        the metadata of the returned copies.

    Raises
    ------
    InvalidParameterError
        A parameter is unknown or out of range: at construction, or at call time for call-time arguments.
    InvalidInputError
        A stored vector holds NaN or inf (the message names the document's id), or differs in length from the query.
    VectorSourceError
        There are no embeddings; the message names the argument to pass.

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
        """Replaces LangChain's check, which accepts its own search types only. ``__init__`` checks ``search_type``."""
        return values

    @property
    def vector_source(self) -> str:
        """Where the candidates' vectors will come from, in words."""
        store = type(self.vectorstore).__name__
        if find_reader(type(self.vectorstore)) is not None:
            return f"store: {store}"
        embeddings = self.embeddings or self.vectorstore.embeddings
        if embeddings is None:
            return f"nowhere: no vector reader is registered for {store}, and there are no embeddings"
        return f"{describe_embedding(embeddings)}: no vector reader is registered for {store}"

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return run_flow(self._retrieve(query, run_manager, kwargs))

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        return await run_flow_async(self._retrieve(query, run_manager, kwargs))

    def _retrieve(
        self,
        query: str,
        run_manager: CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun,
        kwargs: dict[str, Any],
    ) -> Flow[list[Document]]:
        request, scores, store_kwargs = self._request(kwargs)
        selected = yield from self._select(request, query, store_kwargs)
        if run_manager.handlers:
            data = describe_selection(request, selected, self.vector_source)
            config: Any = {"callbacks": run_manager.get_child()}
            yield Step(
                partial(dispatch_custom_event, EVENT, data, config=config),
                partial(adispatch_custom_event, EVENT, data, config=config),
            )
        return copy_documents(selected, scores)

    def _select(self, request: Request, query: str, store_kwargs: dict[str, Any]) -> Flow[Selected]:
        store, embeddings = self.vectorstore, self.embeddings or self.vectorstore.embeddings
        if embeddings is None:
            raise VectorSourceError(
                f"{type(store).__name__} carries no embeddings: pass SetSelectRetriever(..., embeddings=...) with the "
                "model that filled the store"
            )
        embedded = yield from embed_query(request, embeddings, query)

        reader = find_reader(type(store))

        def search(fetch_k: int) -> Flow[Found]:
            documents, vectors = yield from search_store(store, embeddings, query, embedded, fetch_k, store_kwargs)
            ids = read_ids(store, reader, documents)
            check_shown(request, ids)
            return Found(documents, ids, vectors, fetch_k, exhausted=len(documents) < fetch_k)

        # Without a vector reader a wider search would embed all texts that it finds.
        return (yield from request.search_and_select(embedded, search, None if reader is None else reader.widest))
