"""A LlamaIndex node postprocessor that keeps the best set of the nodes retrieved."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.instrumentation.events.rerank import ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseComponent, NodeWithScore, QueryBundle
from typing_extensions import override

from shared_core import InvalidInputError
from shared_core.retrieval.events import in_shadow
from shared_core.retrieval.flow import Flow, run_flow, run_flow_async
from shared_core.retrieval.inputs import EmbeddedQuery, check_items, refuse_unknown
from shared_core.retrieval.pool import ItemSelection
from shared_core.retrieval.request import Request
from shared_core.retrieval.search import select_among
from shared_core.retrieval.settings import Call, Joining, Positive

from ._settings import (
    SelectionSettings,
    check_query,
    dispatcher,
    embed_queries,
    finish,
    is_heard,
    read_ids,
    read_vectors,
)
from .vectors import NodeVectors

Nodes = list[NodeWithScore]
NO_SEARCH = "it does not search a store"
REMEDY = "Raise similarity_top_k of the retriever in front of SetSelectPostprocessor (2 by default)"


class _Call(Call):
    size_name = "top_n"


class SetSelectPostprocessor(SelectionSettings, Joining, BaseNodePostprocessor):
    """Selects the best *set* of ``top_n`` nodes out of those that a retriever found.

    ``index.as_query_engine(similarity_top_k=50, node_postprocessors=[SetSelectPostprocessor(index=index)])``
    is all that a query engine needs. Vectors come from the store of ``index``, else from the nodes.
    Texts are embedded again only if both have none, with an ``EmbeddingFallbackWarning``. In async code the question is
    embedded twice; :class:`SetSelectIndexRetriever` embeds it once.

    The ``score`` of a returned node is the relevance that was used, before it was scaled: the highest cosine with one
    of the queries, or what ``relevance`` gave. The event ``ReRankEndEvent`` holds the gains, under
    ``tags["setselect"]``.

    Parameters
    ----------
    **settings
        The fields below, and all settings of :class:`SelectionSettings`, :class:`Settings` and :class:`Joining`.
        ``relevance="score"`` selects by the score that the retriever or the reranker in front gave to each node. Higher
        must be better: a score that is a distance, as ``FaissVectorStore`` gives over ``IndexFlatL2``, selects the
        worst nodes. ``drop_duplicates`` compares images and pointers to other objects (``IndexNode``) by id only.

    Examples
    --------
    >>> from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    >>> vectors = {"a": [1.0, 0.0], "b": [1.0, 0.02], "c": [0.0, 1.0]}
    >>> nodes = [NodeWithScore(node=TextNode(id_=i, text=i, embedding=v)) for i, v in vectors.items()]
    >>> query = QueryBundle("both", embedding=[1.0, 1.0])
    >>> [n.node_id for n in SetSelectPostprocessor(top_n=2).postprocess_nodes(nodes, query)]
    ['b', 'c']
    """

    top_n: Positive | None = None
    """How many nodes, 4 by default; with a ``budget`` and no ``top_n``, as many as fit."""

    index: VectorStoreIndex | None = Field(default=None, exclude=True)
    """Supplies the store, where stored vectors are, and the embedding model."""

    size_name = "top_n"
    _call = _Call
    _remedies = MappingProxyType(
        {
            "fetch_k": f"{NO_SEARCH}. {REMEDY}",
            "vector_store": "pass an index over it, index=VectorStoreIndex.from_vector_store(store, embed_model=...)",
            **dict.fromkeys(("follow", "keyword_search", "extra_retrievers", "extra_k"), NO_SEARCH),
        }
    )

    @classmethod
    @override
    def class_name(cls) -> str:
        return "SetSelectPostprocessor"

    @property
    def vector_source(self) -> str:
        """Where the nodes' vectors will come from, in words."""
        return self._vectors.words

    @property
    @override
    def _vectors(self) -> NodeVectors:
        return NodeVectors.of(self.index, self.embed_model, self.vector_store_kwargs)

    @override
    def _make_request(self) -> Request:
        reader = self._vectors.reader
        refuse_unknown("the look-up by id", self.vector_store_kwargs or {}, () if reader is None else reader.scope)
        return super()._make_request()

    @override
    def _postprocess_nodes(self, nodes: Nodes, query_bundle: QueryBundle | None = None) -> Nodes:
        request = self._request
        return finish(self, request, run_flow(self._flow(request, nodes, query_bundle)))

    @override
    async def _apostprocess_nodes(self, nodes: Nodes, query_bundle: QueryBundle | None = None) -> Nodes:
        request = self._request
        return finish(self, request, await run_flow_async(self._flow(request, nodes, query_bundle)))

    def _flow(self, request: Request, nodes: list[NodeWithScore], bundle: QueryBundle | None) -> Flow[ItemSelection]:
        nodes = check_items(nodes, NodeWithScore, "Wrap a node as NodeWithScore(node=node)")
        if isinstance(bundle, str):
            raise InvalidInputError("query_bundle must be a QueryBundle: pass a text as query_str=")
        if bundle is not None:
            check_query(bundle)

        def embed() -> Flow[list[EmbeddedQuery]]:
            if bundle is None:
                raise InvalidInputError(
                    "there is no query to select for: pass postprocess_nodes(nodes, query_bundle=...) or query_str=..."
                )
            if is_heard():
                top_n, name = len(nodes) if request.k is None else request.k, repr(request.selector)
                dispatcher.event(ReRankStartEvent(query=bundle, nodes=nodes, top_n=top_n, model_name=name))
            return (yield from embed_queries(self, request, bundle)) if nodes else []

        pool = read_vectors(self._vectors, nodes, embed_unknown=True)
        selecting = select_among(request, self, len(nodes), embed(), pool, "score", f"{REMEDY}, or lower top_n")
        question = "" if bundle is None else bundle.query_str
        return in_shadow(request, question, nodes, read_ids(nodes), selecting) if request.settings.shadow else selecting

    def __getstate__(self) -> dict[Any, Any]:
        # BaseComponent.__getstate__ would remove what cannot be pickled (a quality function) from this object too.
        state = super(BaseComponent, self).__getstate__()
        # LlamaIndex creates a new object from this state, which must hold fields only.
        kept = {name: getattr(self, name) for name in type(self).model_fields if name != "callback_manager"}
        return {**state, "__dict__": kept, "__pydantic_private__": None}

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> SetSelectPostprocessor:
        memo = {} if memo is None else memo
        for runtime in (self.index, self.embed_model, self.perspective, self.queries):
            memo.setdefault(id(runtime), runtime)
        return super().__deepcopy__(memo)
