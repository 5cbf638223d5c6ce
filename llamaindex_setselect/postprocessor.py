"""A LlamaIndex node postprocessor that keeps the best set of the nodes retrieved."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseComponent, BaseNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from typing_extensions import override

from shared_core import PAP, InvalidInputError, InvalidParameterError, Selector
from shared_core._validation import as_identifiers, check_integer
from shared_core.retrieval._memory import RequestMemory
from shared_core.retrieval._names import CHOICE_KEYS
from shared_core.retrieval.request import Request
from shared_core.signals.extraction import QueryParts, checked_perspective_vector

from ._choice import aask, achoose_nodes, ask, choose_nodes
from ._settings import name_and_parameters, refuse_unknown
from ._tracing import listening
from .vectors import NodeVectors, resolve_embed_model

dispatcher = get_dispatcher(__name__)


class SetSelectPostprocessor(BaseNodePostprocessor):
    """Chooses the best *set* of ``top_n`` nodes out of those that a retriever found.

    ``index.as_query_engine(similarity_top_k=50, node_postprocessors=[SetSelectPostprocessor(index=index)])``
    is the whole set-up. Vectors come from the store of ``index`` or ``vector_store``, then from the nodes;
    only for want of both are texts embedded again, with an ``EmbeddingFallbackWarning``.

    Parameters
    ----------
    top_n : int
        How many nodes to return, at least 1; fewer where there are not so many. By default 4, or, with a
        ``budget``, as many as fit.
    selector : str or Selector
        ``"vrsd"``, ``"mmr"``, ``"ndpp"``, ``"similarity"``, another registered name, or an object.
    **parameters
        The selector's own (``lambda_mult``, ``refine``, ``kernel``, ...), kept in ``selector_kwargs``.
    index : VectorStoreIndex, optional
    vector_store : BasePydanticVectorStore, optional
        Where stored vectors are. ``index`` also supplies the embedding model; ``FaissVectorStore`` needs it.
    embed_model : BaseEmbedding, optional
        For queries that come without an embedding; by default the index's, then the one set in ``Settings``.
    perspective : str, array-like of shape (d,), callable or PerspectiveExtractor, optional
        What to project out of the query (PAP): a text, its embedding, a function of the query that returns a
        text, ``QueryParts`` or None (no projection), or an extractor, which finds it in the query with a
        language model (:func:`extractor_from_llm`).
    perspective_vector : {"text", "difference"}
        Project on the embedding of the perspective's text, or on that of the query less that of its root, for
        which there must be ``QueryParts`` or an extractor.
    direction : {"remove", "emphasize"}
    corpus : bool
        Project the nodes as well (PAP+).
    quality : str, callable or mapping, optional
        A metadata key, a function of the node, or a number for each node id; for ``"mmr"``.
    costs : str or callable, optional
        The same for what a node takes of the ``budget``: ``lambda node: len(node.get_content()) / 4``.
    budget : float, optional
        Sum of ``costs`` that must not be exceeded.
    max_per_source : int, optional
        No more than so many nodes of one source, ``shown`` ones counted in.
    source : str or callable, optional
        What a source is: a metadata key or a function of the node; by default the document a node was cut from.
    drop_near_duplicates : float in [-1, 1], optional
        No two nodes whose cosine is above this.
    score_threshold : float in [-1, 1], optional
        The least cosine with the query that a node may have.
    shown : iterable of str
        Ids of nodes that the reader already has: those among the nodes count as chosen, and are not returned.
    scores : bool
        Put what each node added into the metadata of the returned copy, as ``selection_score``, hidden from
        the LLM and from embedding. ``score`` is always the cosine with the query (the projected one).

    Raises
    ------
    InvalidParameterError, BudgetError, PerspectiveError, pydantic.ValidationError
        At construction: an unknown field or selector, a value out of range, a budget without costs,
        ``perspective_vector="difference"`` with a text or a vector.
    PerspectiveError
        Later: the perspective is parallel to the query, or what a function returned is none.
    InvalidInputError
        There is no query, a stored vector holds NaN or inf (the message names the node's id) or is of another
        length than the query, or a node has no such quality.
    VectorSourceError
        There is nothing to embed the query with, or a store cannot hand back vectors.

    Notes
    -----
    ``to_dict`` leaves out ``index``, ``vector_store`` and ``embed_model``, which live in this process only:
    pass them to ``from_dict(data, index=index)``. It refuses kernels, functions and extractors. Deep copies
    share all three, and the extractor.

    Examples
    --------
    >>> from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    >>> vectors = {"a": [1.0, 0.0], "b": [1.0, 0.02], "c": [0.0, 1.0]}
    >>> nodes = [NodeWithScore(node=TextNode(id_=i, text=i, embedding=v)) for i, v in vectors.items()]
    >>> query = QueryBundle("both", embedding=[1.0, 0.9])
    >>> [n.node_id for n in SetSelectPostprocessor(top_n=2).postprocess_nodes(nodes, query)]
    ['b', 'c']
    """

    top_n: int | None = None
    selector: str | Selector = "vrsd"
    selector_kwargs: dict[str, Any] = Field(default_factory=dict)
    perspective: str | tuple[float, ...] | Callable[[str], str | QueryParts | None] | None = None
    perspective_vector: str = "text"
    direction: str = "remove"
    corpus: bool = False
    quality: str | dict[str, float] | Callable[[BaseNode], float] | None = None
    costs: str | dict[str, float] | Callable[[BaseNode], float] | None = None
    budget: float | None = None
    source: str | Callable[[BaseNode], Hashable] | None = None
    max_per_source: int | None = None
    drop_near_duplicates: float | None = None
    score_threshold: float | None = None
    shown: tuple[str, ...] = ()
    scores: bool = True
    embed_model: BaseEmbedding | None = Field(default=None, exclude=True)
    vector_store: BasePydanticVectorStore | None = Field(default=None, exclude=True)
    index: VectorStoreIndex | None = Field(default=None, exclude=True)

    _perspective_memory: tuple[BaseEmbedding | None, str, list[float]] | None = PrivateAttr(default=None)

    def __init__(self, **settings: Any) -> None:
        given = {name: value for name, value in settings.items() if name in type(self).model_fields}
        parameters = {name: value for name, value in settings.items() if name not in given}
        selector = given.get("selector", "vrsd")
        parameters = {**(given.get("selector_kwargs") or {}), **parameters}
        refuse_unknown(type(self).__name__, parameters, selector, type(self).model_fields)
        given["selector_kwargs"] = parameters
        if given.get("top_n") is not None:
            check_integer(given["top_n"], "top_n", 1)
        given["shown"] = as_identifiers(given.get("shown"), "shown")
        perspective = given.get("perspective")
        checked_perspective_vector(given.get("perspective_vector", "text"), perspective)
        if perspective is not None and not isinstance(perspective, str) and not callable(perspective):
            given["perspective"] = tuple(PAP(perspective).perspective.tolist())  # type: ignore[union-attr]
        super().__init__(**given)
        if self.top_n is None and self.budget is None:
            self.top_n = 4
        self._request()
        # One store's vectors under the labels of another's index would be the wrong ones.
        store = self.vector_store
        if self.index is not None and store is not None and store is not self.index.vector_store:
            raise InvalidParameterError("index= is over another store than vector_store=: give one of them")

    @classmethod
    @override
    def class_name(cls) -> str:
        return "SetSelectPostprocessor"

    @property
    def vector_source(self) -> str:
        """Where the nodes' vectors will come from, in words."""
        return self._vectors.words

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        request = self._request()
        bundle = self._start(request, nodes, query_bundle)
        chosen = choose_nodes(self, request, nodes, ask(self, request, bundle)).nodes if nodes else []
        if listening(dispatcher):
            dispatcher.event(ReRankEndEvent(nodes=chosen))
        return chosen

    @override
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        request = self._request()
        bundle = self._start(request, nodes, query_bundle)
        chosen = (await achoose_nodes(self, request, nodes, await aask(self, request, bundle))).nodes if nodes else []
        if listening(dispatcher):
            dispatcher.event(ReRankEndEvent(nodes=chosen))
        return chosen

    @override
    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """The settings as plain values; see Notes of the class.

        Raises
        ------
        InvalidParameterError
            The selector is not a registered one with plain parameters (a kernel is none), ``quality``, ``costs`` or
            ``source`` is a function, or ``perspective`` is one or an extractor.
        """
        name, parameters = name_and_parameters(self.selector, self.selector_kwargs)
        for what in ("quality", "costs", "source"):
            if callable(getattr(self, what)):
                raise InvalidParameterError(f"to_dict cannot write {what}, a function: use a metadata key")
        if callable(self.perspective):
            raise InvalidParameterError(
                f"to_dict cannot write perspective={self.perspective!r}, a function or an extractor: use a text or a "
                "vector, or write the rest of the settings and pass it again"
            )
        data = super().to_dict(**kwargs)
        plain: dict[str, Any] = {"selector": name, "selector_kwargs": parameters, "shown": list(self.shown)}
        if self.perspective is not None and not isinstance(self.perspective, str):
            plain["perspective"] = list(self.perspective)
        return {**data, **{key: value for key, value in plain.items() if key in data}}

    def __getstate__(self) -> dict[Any, Any]:
        # BaseComponent's would drop what cannot be pickled, a quality function for one, from this object too.
        state = super(BaseComponent, self).__getstate__()
        # LlamaIndex makes the object anew from what is kept, which must be fields only.
        kept = {name: value for name, value in self.__dict__.items() if name not in ("callback_manager", "_memory")}
        return {**state, "__dict__": kept, "__pydantic_private__": None}

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> SetSelectPostprocessor:
        memo = {} if memo is None else memo
        for runtime in (self.index, self.vector_store, self.embed_model, self.perspective):
            memo.setdefault(id(runtime), runtime)
        return super().__deepcopy__(memo)

    @property
    def _vectors(self) -> NodeVectors:
        store = self.vector_store
        if store is None and self.index is not None:
            store = self.index.vector_store
        return NodeVectors(store, self.index, resolve_embed_model(self.embed_model, self.index))

    def _start(self, request: Request, nodes: list[NodeWithScore], query_bundle: QueryBundle | None) -> QueryBundle:
        if query_bundle is None:
            raise InvalidInputError(
                "there is no query to choose for: postprocess_nodes(nodes, query_bundle=...) or query_str=..."
            )
        # An event checks every node of its own.
        if listening(dispatcher):
            name = repr(request.selector)
            top_n = len(nodes) if self.top_n is None else self.top_n
            dispatcher.event(ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=top_n, model_name=name))
        return query_bundle

    @cached_property
    def _memory(self) -> RequestMemory:
        # Not a private attribute: pydantic would compare those when it compares two models.
        return RequestMemory()

    def _request(self, fetch_k: int | None = None) -> Request:
        settings = {name: getattr(self, name) for name in _FIELDS}
        settings |= {"k": self.top_n, "fetch_k": fetch_k, **self.selector_kwargs}
        if self.source is None:
            settings["source"] = _document_of
        return self._memory.parse(settings)[0]

    def _remembered_perspective(self, text: str) -> list[float] | None:
        memory = self._perspective_memory
        return memory[2] if memory and memory[0] is self._vectors.model and memory[1] == text else None

    def _remember_perspective(self, text: str, vector: list[float]) -> None:
        self._perspective_memory = (self._vectors.model, text, vector)


_FIELDS = tuple(name for name in CHOICE_KEYS if name in SetSelectPostprocessor.model_fields)


def _document_of(node: BaseNode) -> str:
    return node.ref_doc_id or node.node_id
