"""A LangChain retriever that returns the best set of documents from any vector store."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal, TypeVar

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
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, SkipValidation, model_validator
from typing_extensions import override

from shared_core import InvalidInputError, InvalidParameterError, Kernel, Selector, VectorSourceError
from shared_core.errors import SetSelectWarning
from shared_core.retrieval import (
    DEFAULT_SELECTOR,
    SETTINGS,
    EmbeddedQuery,
    Flow,
    Found,
    Order,
    Perspective,
    Request,
    Scale,
    Selected,
    Step,
    as_perspective,
    as_vector,
    check_bool,
    check_spelling,
    is_default,
    parameter_names,
    refuse_unknown,
    run_flow,
    run_flow_async,
)

from .stores.reader import VectorReader, document_id
from .vectors import describe_embedding, find_reader, search_and_embed

EVENT = "setselect"
RAISE_FETCH_K = "Raise fetch_k"


# The types and ranges are for editors, type checkers and the fields' JSON schema. Request.parse checks the values, so
# that both adapters raise the same errors. Without the serializer, pydantic warns when it dumps a list as an iterable.
T = TypeVar("T")
Setting = Annotated[T, SkipValidation, PlainSerializer(lambda value: value)]
Positive = Annotated[int, Field(ge=1)]
Weight = Annotated[float, Field(ge=0, le=1)]
Cosine = Annotated[float, Field(ge=-1, le=1)]
NonNegative = Annotated[float, Field(ge=0)]
# Functions get a document, those of the example selector an example.
Number = str | Mapping[str, float] | Callable[[Any], float]
Name = str | Mapping[str, Hashable] | Callable[[Any], Hashable]


class SelectionSettings(BaseModel):
    """The fields that all LangChain classes share; :class:`SetSelectRetriever` documents each of them.

    ``search_kwargs`` may hold the same settings, under the same names, and those of a registered selector.
    """

    search_type: Setting[Literal["ndpp", "mmr", "vrsd", "similarity"] | str] = DEFAULT_SELECTOR
    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    selector: Setting[Selector | str | None] = None
    k: Setting[Positive | None] = None
    lambda_mult: Setting[Weight | None] = None
    lambda_b: Setting[Weight | None] = None
    refine: Setting[bool | None] = None
    kernel: Setting[Kernel | None] = None
    relevance_mapping: Setting[Literal["linear", "exponential"] | None] = None
    temperature: Setting[float | Literal["auto"] | None] = None
    ridge: Setting[NonNegative | None] = None
    relevance: Setting[Number | None] = None
    relevance_scale: Setting[Scale | None] = "minmax"
    quality: Setting[Number | None] = None
    score_threshold: Setting[float | None] = None
    shown: Setting[Iterable[Hashable]] = ()
    budget: Setting[float | None] = None
    costs: Setting[Number | None] = None
    max_per_source: Setting[Positive | None] = None
    source: Setting[Name | None] = "source"
    drop_duplicates: Setting[bool] = True
    drop_near_duplicates: Setting[Cosine | None] = None
    order: Setting[Order] = "selection"
    perspective: Setting[Perspective] = None
    perspective_vector: Setting[Literal["text", "difference"]] = "text"
    direction: Setting[Literal["remove", "emphasize"]] = "remove"
    corpus: Setting[bool] = False
    scores: Setting[bool] = False
    embeddings: Embeddings | None = None

    model_config = ConfigDict(arbitrary_types_allowed=True)

    def __init__(self, **settings: Any) -> None:
        own = type(self).model_fields
        fields = {name: value for name, value in settings.items() if name in own}
        more = {name: value for name, value in settings.items() if name not in own}
        refuse_unknown(type(self).__name__, [name for name in more if name not in SETTINGS], own)
        kwargs = fields.pop("search_kwargs", None)
        kwargs = {} if kwargs is None else kwargs
        if not isinstance(kwargs, Mapping):
            raise InvalidParameterError(f"search_kwargs must be a dict, got {type(kwargs).__name__}")
        kwargs = {**kwargs, **more}
        given = {name for name, value in fields.items() if value is not None or name == "relevance_scale"}
        if own.keys() <= settings.keys():
            # LangChain's configurable_fields passes all fields, including those that have their default.
            given = {name for name in given if not is_default(fields[name], own[name].default)}
        if {"search_type", "selector"} <= given | kwargs.keys():
            raise InvalidParameterError("give search_type or selector, not both")
        for name in kwargs:
            if name in given:
                raise InvalidParameterError(f"{name} is given twice: as an argument and in search_kwargs")
        if "perspective" in fields:
            fields["perspective"] = as_perspective(fields["perspective"])
        if isinstance(fields.get("shown"), Iterator):
            fields["shown"] = list(fields["shown"])
        if kwargs:
            fields["search_kwargs"] = kwargs
        super().__init__(**fields)
        # The settings are checked here, because a pydantic validator would wrap the error in a ValidationError.
        self._request({}, warn=True)

    def _request(self, kwargs: dict[str, Any], *, warn: bool = False) -> tuple[Request, bool, dict[str, Any]]:
        """The request of one call with the arguments ``kwargs``, whether to add scores, and the store's arguments."""
        defaults = {"search_type": self.search_type, "source": self.source, "scores": self.scores}
        for name in _FIELDS & self.model_fields_set:
            value = getattr(self, name)
            if value is not None or name == "relevance_scale":
                defaults[name] = value
        defaults |= self.search_kwargs
        if "search_type" in kwargs and kwargs.get("selector") is not None:
            raise InvalidParameterError("give search_type or selector, not both")
        configured = defaults["search_type"] if defaults.get("selector") is None else defaults["selector"]
        if "selector" in kwargs or not is_default(kwargs.get("search_type", configured), configured):
            # The parameters of the configured selector do not fit another selector that is given for this call.
            defaults = {name: value for name, value in defaults.items() if name not in parameter_names()}
        if "search_type" in kwargs:
            defaults["selector"] = None
        settings = {**defaults, **kwargs}
        name, scores = settings.pop("search_type"), check_bool(settings.pop("scores"), "scores")
        if settings.get("selector") is None:
            settings["selector"] = name
        request, rest = Request.parse(settings, warn=warn or not _USED_TOGETHER.isdisjoint(kwargs))
        for name in rest:
            if name in type(self).model_fields:
                raise InvalidParameterError(f"{name} is set when {type(self).__name__} is made, not for one call")
        check_spelling(rest, ("scores",))
        return request, scores, rest

    def _warn_if_all_are_selected(self, request: Request, candidates: int, remedy: str, *, stacklevel: int = 6) -> None:
        """Warn once if there are no more candidates than are asked for, so that every method selects the same.

        ``stacklevel`` leads to the line that calls the class, in a sync call.
        """
        # Pydantic compares private attributes. The flag is not one, so equal objects stay equal after a warning.
        if request.selects_all(candidates) and "_warned" not in self.__dict__:
            self.__dict__["_warned"] = True
            warnings.warn(
                f"k={request.k} of {candidates} candidates: all of them are selected, whatever the method. {remedy}",
                SetSelectWarning,
                stacklevel=stacklevel,
            )


_FIELDS = {*SelectionSettings.model_fields, "fetch_k"} - {"search_kwargs", "embeddings"}
# Whether one of these has an effect depends on the others. A call that gives one may warn again.
_USED_TOGETHER = {"selector", "search_type", "quality", "lambda_b"}


def embed_query(request: Request, embeddings: Embeddings, query: str) -> Flow[EmbeddedQuery]:
    """Embed the query, and the text that its perspective needs."""
    text = yield from request.find_text_to_embed(query)
    vector = yield Step(partial(embeddings.embed_query, query), partial(embeddings.aembed_query, query))
    embedded = None
    if text is not None:
        answer = yield Step(partial(embeddings.embed_query, text), partial(embeddings.aembed_query, text))
        embedded = as_vector(answer, "the perspective's embedding").tolist()
    return request.as_query(vector, embedded)


def search_store(
    store: VectorStore, embeddings: Embeddings, text: str, query: EmbeddedQuery, fetch_k: int, kwargs: dict[str, Any]
) -> Flow[tuple[Sequence[Document], Sequence[str | None], Any]]:
    """The store's documents nearest to the query, their ids, and their vectors.

    Vectors are those that the store keeps, or embeddings of the texts. Documents without one are left out with a
    warning.
    """
    reader = find_reader(type(store))
    if reader is None:
        documents, vectors = yield from search_and_embed(store, embeddings, text, query, fetch_k, kwargs)
        return documents, read_ids(store, None, documents), vectors
    arguments = (store, query.search_vector, fetch_k)
    documents, vectors, *more = yield Step(
        partial(reader.search, *arguments, **kwargs),
        None if reader.asearch is None else partial(reader.asearch, *arguments, **kwargs),
    )
    if vectors is None or len(documents) != len(vectors):
        count = vectors if vectors is None else len(vectors)
        raise VectorSourceError(f"the vector reader returned {len(documents)} documents and {count} vectors")
    ids = more[0] if more else read_ids(store, reader, documents)
    if isinstance(vectors, np.ndarray) or all(vector is not None for vector in vectors):
        return documents, ids, vectors
    # Some stores return documents without ids. The beginning of the text then names the document.
    missing = [
        name or document.page_content[:60]
        for document, name, vector in zip(documents, ids, vectors, strict=True)
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
    return [documents[row] for row in kept], [ids[row] for row in kept], [vectors[row] for row in kept]


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


text_of = attrgetter("page_content")


def arrange_documents(request: Request, selected: Selected, scores: bool) -> list[Document]:
    """The selected documents in the ``order`` asked for; with ``scores``, copies that have scores in their metadata."""
    if not scores:
        return [document for document, _, _ in selected.arrange(request.order)]
    copies = []
    for document, relevance, gain in selected.arrange(request.order):
        # A key that is there already, such as a reranker's score, keeps its value.
        metadata = {"relevance_score": relevance, "selection_score": gain, **document.metadata}
        copies.append(document.model_copy(update={"metadata": metadata}))
    return copies


class SetSelectRetriever(SelectionSettings, VectorStoreRetriever):
    """Fetches ``fetch_k`` candidates from a vector store and returns the best *set* of ``k`` documents.

    ``SetSelectRetriever(vectorstore=store)`` replaces ``store.as_retriever()``, and
    ``SetSelectRetriever(vectorstore=store, search_type="mmr", search_kwargs={...})`` replaces
    ``store.as_retriever(search_type="mmr", search_kwargs={...})``.

    If ``max_per_source``, ``drop_duplicates`` or ``drop_near_duplicates`` leaves fewer than ``k`` documents, a wider
    search follows, provided that the store returns its vectors.

    Parameters
    ----------
    vectorstore : VectorStore
    search_type : str
        ``"ndpp"`` (default), ``"mmr"``, ``"vrsd"``, ``"similarity"`` or another registered name.
    search_kwargs : dict
        The settings below may also be given here, as for ``as_retriever``, and at call time:
        ``retriever.invoke(query, k=3)``. A setting at call time overrides one in ``search_kwargs``. Other keys
        (``filter``, for example) go to the store unchanged.
    selector : Selector, optional
        An object (or a name) in place of ``search_type``.
    k : int
        How many documents, 4 by default; with a ``budget`` and no ``k``, as many as fit.
    fetch_k : int
        How many candidates; max(20, 5k) by default, or 50 if only a budget is given. The number of ``shown`` ids is
        added.
    lambda_mult : float in [0, 1]
        For ``"mmr"``: the weight of relevance, 0.5 by default as in LangChain.
    lambda_b : float in [0, 1]
        For ``"mmr"`` with ``quality``: the weight of relevance against quality, 0.95 by default.
    refine : bool
        For ``"vrsd"``: exchange picks after the greedy pass.
    kernel : Kernel, optional
        For ``"ndpp"``: a :class:`LowRankKernel` or :class:`LinearKernel`.
    relevance_mapping : {"linear", "exponential"}
        For ``"ndpp"``: how the relevance enters its kernel; see :class:`NDPP`.
    temperature : "auto" or float > 0
        For ``"ndpp"`` with exponential relevance: the lower, the more relevance counts. ``"auto"`` (default) is
        1.25 standard deviations of the candidates' relevance.
    ridge : float >= 0
        For ``"ndpp"``, a number on the diagonal of its kernel: the higher, the smaller the penalty for repetition.
        Default: 0.05 without a ``kernel``, 0 with one.
    relevance : str, callable or mapping, optional
        What a document is worth for the query: ``"cosine"`` (default), a metadata key (``"relevance_score"`` holds the
        score of LangChain's rerankers), a function of the document, or numbers by id. ``"vrsd"`` takes the cosine only.
    relevance_scale : {"minmax", "rank", "sigmoid"} or None
        How a given relevance is mapped to [0, 1] for the selector; see :func:`rescale`. The event, ``order``
        and ``relevance_score`` use the relevance as it was given.
    quality : str, callable or mapping, optional
        How good a document is by itself, for ``"mmr"``: a metadata key, a function of the document, or numbers by id.
    score_threshold : float
        The lowest relevance that a document may have: a cosine, or what ``relevance`` gives, before it is scaled.
    shown : iterable of str
        Ids of documents that the reader has seen already. Those that the search finds count as picked, and are not
        returned.
    budget : float
        The sum of ``costs`` that the set must not exceed. Without ``k`` only the budget ends the selection.
    costs : str, callable or mapping, optional
        What a document takes from the ``budget``: ``lambda d: len(d.page_content) / 4``.
    max_per_source : int
        The most documents of one ``source``.
    source : str, callable or mapping
        Where a document comes from, for ``max_per_source``: a metadata key (``"source"``), a function of the
        document, or names by id.
    drop_duplicates : bool
        Documents with the same text count once (default): the first that the store returns, or the one with the
        highest ``relevance`` if that is given.
    drop_near_duplicates : float in [-1, 1]
        No two documents have a cosine above this value.
    order : {"selection", "relevance", "nearest_last", "long_context"}
        The order of the result: as selected, the most relevant first, the most relevant last, or the most relevant at
        both ends.
    perspective : str, array-like of shape (d,), callable or PerspectiveExtractor, optional
        What is projected out of the query before the search (PAP, perspective-aware projection): a text or its
        embedding. A function of the query may return the text, ``QueryParts``, or None for no projection. An extractor
        finds the text in the query with a language model (:func:`extractor_from_chat_model`).
    perspective_vector : {"text", "difference"}
        The vector that is projected out: the embedding of the perspective's text, or the query's embedding minus that
        of its root (the query without its perspective). The difference needs ``QueryParts`` or an extractor.
    direction : {"remove", "emphasize"}
        Remove the perspective from the query (default), or give it more weight.
    corpus : bool
        Project the candidates too (PAP+).
    embeddings : Embeddings, optional
        The embedding model, for stores that have none.
    scores : bool
        Add ``selection_score`` (the gain) and ``relevance_score`` to the metadata of copies of the documents. A key
        that a document has already keeps its value. By default the store's own documents are returned, and the scores
        are in the event ``setselect`` only.
    tags : list of str, optional
        As for ``as_retriever``: by default the names of the classes of the store and of its embeddings.

    Raises
    ------
    InvalidParameterError
        A parameter is unknown or out of range: at construction, or at call time for call-time arguments.
    InvalidInputError
        A stored vector holds NaN or inf (the message names the document's id), or differs in length from the query; or
        a document has no relevance, quality or cost.
    VectorSourceError
        There are no embeddings; the message names the argument to pass.

    Examples
    --------
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from langchain_core.vectorstores import InMemoryVectorStore
    >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    >>> _ = store.add_texts(["one", "two", "three"])
    >>> retriever = SetSelectRetriever(vectorstore=store, k=2)
    >>> len(retriever.invoke("one"))
    2
    """

    fetch_k: Setting[Positive | None] = None

    allowed_search_types: ClassVar[Collection[str]] = ("ndpp", "mmr", "vrsd", "similarity")

    @model_validator(mode="before")
    @classmethod
    def validate_search_type(cls, values: dict[str, Any]) -> Any:
        """Replaces LangChain's check, which accepts only its own search types; adds the tags of ``as_retriever``."""
        store = values.get("vectorstore")
        if values.get("tags") or not isinstance(store, VectorStore):
            return values
        return {**values, "tags": store._get_retriever_tags()}

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
        self._warn_if_all_are_selected(request, request.fetch_k - len(request.shown), RAISE_FETCH_K, stacklevel=7)
        selected = yield from self._select(request, query, store_kwargs)
        if run_manager.handlers:
            data = {"k": request.k, "vector_source": self.vector_source, **request.describe(selected)}
            config: Any = {"callbacks": run_manager.get_child()}
            yield Step(
                partial(dispatch_custom_event, EVENT, data, config=config),
                partial(adispatch_custom_event, EVENT, data, config=config),
            )
        return arrange_documents(request, selected, scores)

    def _select(self, request: Request, query: str, store_kwargs: dict[str, Any]) -> Flow[Selected]:
        started = time.perf_counter()
        store, embeddings = self.vectorstore, self.embeddings or self.vectorstore.embeddings
        if embeddings is None:
            raise VectorSourceError(
                f"{type(store).__name__} has no embeddings: pass SetSelectRetriever(..., embeddings=...) with the "
                "model that filled the store"
            )
        embedded = yield from embed_query(request, embeddings, query)

        reader = find_reader(type(store))

        def search(fetch_k: int) -> Flow[Found]:
            documents, ids, vectors = yield from search_store(store, embeddings, query, embedded, fetch_k, store_kwargs)
            check_shown(request, ids)
            return Found(documents, ids, text_of, vectors, fetch_k, exhausted=len(documents) < fetch_k)

        # Without a vector reader a wider search would embed all texts that it finds.
        selected: Selected = yield from request.search_and_select(
            embedded, search, None if reader is None else reader.widest
        )
        selected = request.report(selected, started, lambda: self.vector_source)
        if reader is None or reader.id_of is not document_id:
            return selected
        # A FAISS store of an earlier version holds documents without ids. It knows their ids, which ``shown`` needs.
        items = [
            document if document.id or not name else document.model_copy(update={"id": name})
            for document, name in zip(selected.items, selected.ids, strict=True)
        ]
        return selected._replace(items=items)
