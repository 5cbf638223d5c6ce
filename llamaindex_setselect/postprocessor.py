"""A LlamaIndex node postprocessor that keeps the best set of the nodes retrieved."""

from __future__ import annotations

import dataclasses
import time
from functools import partial
from typing import Any

import numpy as np
from llama_index.core.instrumentation.events.rerank import ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseComponent, NodeWithScore, QueryBundle
from typing_extensions import override

from shared_core import InvalidInputError, InvalidParameterError, Selection, Selector, make_selector, selector_names
from shared_core.retrieval import Flow, Found, Request, Selected, Step, run_flow, run_flow_async

from ._settings import OF_NODES, SelectionSettings, dispatcher, embed_query, finish, is_heard, read_vectors

_NOTHING = Selected(
    [], Selection(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), 0.0), Found([], [], str, []), cut_short=False
)


class SetSelectPostprocessor(SelectionSettings, BaseNodePostprocessor):
    """Selects the best *set* of ``top_n`` nodes out of those that a retriever found.

    ``index.as_query_engine(similarity_top_k=50, node_postprocessors=[SetSelectPostprocessor(index=index)])``
    is all that a query engine needs. Vectors come from the store of ``index`` or ``vector_store``, else from the nodes.
    Texts are embedded again only if both have none, with an ``EmbeddingFallbackWarning``.

    The ``score`` of a returned node is the relevance that was used, before it was scaled: the cosine with the query
    (which is projected if there is a perspective), or what ``relevance`` gave.

    Parameters
    ----------
    top_n : int
        How many nodes to return, at least 1; fewer if the retriever found fewer. By default 4, or, with a ``budget``,
        as many as fit.
    selector : str or Selector
        ``"ndpp"`` (default), ``"mmr"``, ``"vrsd"``, ``"similarity"``, another registered name, or an object.
    lambda_mult : float in [0, 1]
        For ``"mmr"``: the weight of relevance, 0.5 by default as in LlamaIndex.
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
    selector_kwargs : dict
        Parameters of a selector that you registered.
    relevance : str, callable or mapping, optional
        What a node is worth for the query: ``"cosine"`` (default), ``"score"`` (the score that the retriever or the
        reranker in front gave it), a metadata key, a function of the node, or numbers by node id. ``"vrsd"`` takes the cosine only. Higher must be better: a
        ``"score"`` that is a distance, as ``FaissVectorStore`` gives over ``IndexFlatL2``, selects the worst nodes.
    relevance_scale : {"minmax", "rank", "sigmoid"} or None
        How a given relevance is mapped to [0, 1]; see :func:`rescale`.
    index : VectorStoreIndex, optional
    vector_store : BasePydanticVectorStore, optional
        Where stored vectors are. ``index`` also supplies the embedding model; ``FaissVectorStore`` needs ``index``.
    embed_model : BaseEmbedding, optional
        For queries that come without an embedding; by default the index's, else the one set in ``Settings``.
    perspective : str, array-like of shape (d,), callable or PerspectiveExtractor, optional
        What is projected out of the query (PAP, perspective-aware projection): a text or its embedding. A function of
        the query may return the text, ``QueryParts``, or None for no projection. An extractor finds the text in the
        query with a language model (:func:`extractor_from_llm`).
    perspective_vector : {"text", "difference"}
        The vector that is projected out: the embedding of the perspective's text, or the query's embedding minus that
        of its root (the query without its perspective). The difference needs ``QueryParts`` or an extractor.
    direction : {"remove", "emphasize"}
        Remove the perspective from the query (default), or give it more weight.
    corpus : bool
        Project the nodes too (PAP+).
    quality : str, callable or mapping, optional
        How good a node is by itself, for ``"mmr"``: a metadata key, a function of the node, or numbers by node id.
    costs : str, callable or mapping, optional
        What a node takes from the ``budget``: ``lambda node: len(node.get_content()) / 4``.
    budget : float, optional
        The sum of ``costs`` that the set must not exceed.
    max_per_source : int, optional
        The most nodes of one source, ``shown`` ones included.
    source : str or callable, optional
        What a source is: a metadata key or a function of the node; by default the document that contains the node.
    drop_duplicates : bool
        Nodes with the same text count once (default): the first, or the one with the highest ``relevance`` if that is
        given. Images and pointers to other objects (``IndexNode``) are compared by id only.
    drop_near_duplicates : float in [-1, 1], optional
        No two nodes have a cosine above this value.
    score_threshold : float, optional
        The lowest relevance that a node may have: a cosine, or what ``relevance`` gives, before it is scaled.
    shown : iterable of str
        Ids of nodes that the reader has seen already. Those among the nodes count as picked, and are not returned.
    order : {"selection", "relevance", "nearest_last", "long_context"}
        The order of the result: as selected, the most relevant first, the most relevant last, or the most relevant at
        both ends.
    scores : bool
        Add ``selection_score`` (the gain) and ``relevance_score`` to the metadata of copies of the nodes, hidden from
        the LLM and from embedding. A key that a node has already keeps its value. By default the nodes themselves are
        returned. The gains are in the event ``ReRankEndEvent`` in any case, under ``tags["setselect"]``.

    Raises
    ------
    InvalidParameterError, BudgetError, PerspectiveError, pydantic.ValidationError
        At construction: an unknown field or selector, a value out of range, a budget without costs,
        ``perspective_vector="difference"`` with a text or a vector.
    PerspectiveError
        In a call: the perspective is parallel to the query, or a function returned something other than a
        text, ``QueryParts`` or None.
    InvalidInputError
        In a call: there is no query, a stored vector holds NaN or inf (the message names the node's id) or differs in
        length from the query, or a node lacks a score, a quality or a cost.
    VectorSourceError
        In a call: no model can embed the query, or a store cannot return vectors.

    Notes
    -----
    ``to_dict`` leaves out ``index``, ``vector_store`` and ``embed_model``, which live in this process only:
    pass them to ``from_dict(data, index=index)``. ``to_dict`` refuses kernels, functions and extractors. Deep copies
    share ``index``, ``vector_store``, ``embed_model`` and the extractor.

    Examples
    --------
    >>> from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    >>> vectors = {"a": [1.0, 0.0], "b": [1.0, 0.02], "c": [0.0, 1.0]}
    >>> nodes = [NodeWithScore(node=TextNode(id_=i, text=i, embedding=v)) for i, v in vectors.items()]
    >>> query = QueryBundle("both", embedding=[1.0, 0.9])
    >>> [n.node_id for n in SetSelectPostprocessor(top_n=2).postprocess_nodes(nodes, query)]
    ['b', 'c']
    """

    @classmethod
    @override
    def class_name(cls) -> str:
        return "SetSelectPostprocessor"

    @property
    def vector_source(self) -> str:
        """Where the nodes' vectors will come from, in words."""
        return self._vectors.words

    @override
    def _request(self, fetch_k: int | None = None, *, warn: bool = False) -> Request:
        request = super()._request(fetch_k, warn=warn)
        if warn:
            request.warn_of_unused_perspective()
        return request

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        request = self._request()
        return finish(self, request, run_flow(self._select(request, nodes, query_bundle)))

    @override
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        request = self._request()
        return finish(self, request, await run_flow_async(self._select(request, nodes, query_bundle)))

    def _select(self, request: Request, nodes: list[NodeWithScore], bundle: QueryBundle | None) -> Flow[Selected]:
        started = time.perf_counter()
        if bundle is None:
            raise InvalidInputError(
                "there is no query to select for: pass postprocess_nodes(nodes, query_bundle=...) or query_str=..."
            )
        if is_heard():
            top_n, name = len(nodes) if request.k is None else request.k, repr(request.selector)
            dispatcher.event(ReRankStartEvent(query=bundle, nodes=nodes, top_n=top_n, model_name=name))
        if not nodes:
            return request.report(_NOTHING, started, lambda: self._vectors.words)
        remedy = (
            "Raise similarity_top_k of the retriever in front of SetSelectPostprocessor (2 by default), or lower top_n"
        )
        self._warn_if_all_are_selected(request, len(nodes), remedy)
        query = yield from embed_query(self, request, bundle)
        found = yield from read_vectors(self._vectors, nodes, embed_unknown=True)
        selected: Selected = yield Step(partial(request.select, found, query))
        return request.report(selected, started, lambda: self._vectors.words)

    @override
    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """The settings as plain values; see Notes of the class.

        Raises
        ------
        InvalidParameterError
            The selector is not a registered one with plain parameters (a kernel is not plain), or ``quality``,
            ``costs``, ``source`` or ``perspective`` is a function or an extractor.
        """
        kernel = {} if self.kernel is None else {"kernel": self.kernel}
        name, parameters = _as_name_and_parameters(self.selector, {**self.selector_kwargs, **kernel})
        for what in sorted(OF_NODES):
            if callable(getattr(self, what)):
                raise InvalidParameterError(f"to_dict cannot write {what}, a function: use a metadata key")
        if callable(self.perspective):
            raise InvalidParameterError(
                f"to_dict cannot write perspective={self.perspective!r}, a function or an extractor: use a text or a "
                "vector, or leave it out and pass it to from_dict"
            )
        data = super().to_dict(**kwargs)
        plain: dict[str, Any] = {"selector": name, "selector_kwargs": parameters, "shown": list(self.shown)}
        if self.perspective is not None and not isinstance(self.perspective, str):
            plain["perspective"] = list(self.perspective)
        data |= {key: value for key, value in plain.items() if key in data}
        return {key: value.item() if isinstance(value, np.generic) else value for key, value in data.items()}

    def __getstate__(self) -> dict[Any, Any]:
        # BaseComponent.__getstate__ would remove what cannot be pickled (a quality function) from this object too.
        state = super(BaseComponent, self).__getstate__()
        # LlamaIndex creates a new object from this state, which must hold fields only.
        kept = {name: getattr(self, name) for name in type(self).model_fields if name != "callback_manager"}
        return {**state, "__dict__": kept, "__pydantic_private__": None}

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> SetSelectPostprocessor:
        memo = {} if memo is None else memo
        for runtime in (self.index, self.vector_store, self.embed_model, self.perspective):
            memo.setdefault(id(runtime), runtime)
        return super().__deepcopy__(memo)


def _as_name_and_parameters(selector: str | Selector, parameters: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The registered name and the plain parameters that make the selector again."""
    if isinstance(selector, str):
        name: str | None = selector
    else:
        if dataclasses.is_dataclass(selector):
            # Defaults are left out, because a parameter that is given may cause the warning that it has no effect.
            values = {f: getattr(selector, f.name) for f in dataclasses.fields(selector) if f.init}
            parameters = {f.name: value for f, value in values.items() if value != f.default}
        name = next((n for n in selector_names() if _makes(n, parameters, selector)), None)
    if name is None:
        raise InvalidParameterError(f"to_dict needs a registered selector, got {selector!r}: call register_selector")
    parameters = {k: v.item() if isinstance(v, np.generic) else v for k, v in parameters.items()}
    for key, value in parameters.items():
        if value is not None and not isinstance(value, (bool, int, float, str)):
            raise InvalidParameterError(
                f"to_dict cannot write {key}={value!r}: save a kernel with its own save() and pass it again"
            )
    return name, dict(parameters)


def _makes(name: str, parameters: dict[str, Any], selector: Selector) -> bool:
    try:
        return make_selector(name, **parameters) == selector
    except (InvalidParameterError, TypeError):
        return False
