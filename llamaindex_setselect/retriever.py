"""A LlamaIndex retriever that fetches more nodes than asked for from an index and returns the best set."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable
from functools import partial
from typing import Any, Literal, TypedDict, Unpack

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import MetadataFilters, VectorStoreQueryMode
from typing_extensions import override

from shared_core import InvalidInputError, Kernel
from shared_core.retrieval import (
    Flow,
    Found,
    Order,
    Perspective,
    Request,
    Scale,
    Selected,
    Step,
    as_identifiers,
    refuse_unknown,
    run_flow,
    run_flow_async,
)

from ._settings import (
    NodeName,
    NodeNumber,
    SelectionSettings,
    SelectorOrName,
    embed_query,
    finish,
    read_vectors,
)
from .stores.faiss import takes_node_ids

# VectorIndexRetriever ignores arguments that it does not know. Its signature lists those that it knows.
_OWN = {"index", "similarity_top_k", "filters", "embed_model", "callback_manager", "object_map", "verbose", "kwargs"}
_SEARCH_NAMES = {"vector_store_kwargs", *inspect.signature(VectorIndexRetriever).parameters} - _OWN


class RetrieverOptions(TypedDict, total=False):
    """The options of a retriever that do not depend on what it returns, nodes or examples."""

    top_n: int | None
    fetch_k: int | None
    selector: SelectorOrName
    selector_kwargs: dict[str, Any]
    lambda_mult: float | None
    lambda_b: float | None
    refine: bool | None
    kernel: Kernel | None
    relevance_mapping: Literal["linear", "exponential"] | None
    temperature: float | Literal["auto"] | None
    ridge: float | None
    relevance_scale: Scale | None
    score_threshold: float | None
    shown: Iterable[str]
    budget: float | None
    max_per_source: int | None
    drop_duplicates: bool
    drop_near_duplicates: float | None
    order: Order
    perspective: Perspective
    perspective_vector: Literal["text", "difference"]
    direction: Literal["remove", "emphasize"]
    corpus: bool
    scores: bool
    filters: MetadataFilters | None
    vector_store_query_mode: VectorStoreQueryMode | str
    alpha: float | None
    node_ids: list[str] | None
    doc_ids: list[str] | None
    sparse_top_k: int | None
    hybrid_top_k: int | None
    vector_store_kwargs: dict[str, Any]
    callback_manager: CallbackManager | None
    object_map: dict[str, Any] | None
    verbose: bool


class NodeOptions(RetrieverOptions, total=False):
    """The options of :class:`SetSelectIndexRetriever`."""

    embed_model: BaseEmbedding | None
    relevance: NodeNumber | None
    quality: NodeNumber | None
    costs: NodeNumber | None
    source: NodeName | None


def known_options() -> tuple[str, ...]:
    """The names of all options, and those that another version of ``VectorIndexRetriever`` adds."""
    return *NodeOptions.__annotations__, *_SEARCH_NAMES


class SetSelectIndexRetriever(BaseRetriever):
    """Fetches ``fetch_k`` nodes from a ``VectorStoreIndex`` and returns the best *set* of ``top_n``.

    The query is embedded once. The store is searched with this vector, or with its projection under a perspective, and
    the selection uses the vectors that the store keeps.

    If ``max_per_source``, ``drop_duplicates`` or ``drop_near_duplicates`` leaves fewer than ``top_n`` nodes, a wider
    search follows, provided that the store returns its vectors. The event ``ReRankEndEvent`` holds the gains, under
    ``tags["setselect"]``.

    Parameters
    ----------
    index : VectorStoreIndex
    top_n : int
        How many nodes to return, at least 1; fewer if the index has fewer. By default 4, or, with a ``budget``, as
        many as fit.
    fetch_k : int, optional
        How many candidates to select from, at least ``top_n``; by default max(20, 5 * top_n), or 50 if only a budget
        is given. The number of ``shown`` ids is added.
    filters : MetadataFilters, optional
        The store's own filter.
    selector : str or Selector
        See :class:`SetSelectPostprocessor`.
    shown : iterable of str
        Ids of nodes that the reader has seen already. They count as picked, and are not returned. The ids can be set
        between calls: ``retriever.shown = [node.node_id for node in answer.source_nodes]``.
    callback_manager, object_map, verbose
        As for other retrievers; by default the index's.
    **options
        The other options of :class:`SetSelectPostprocessor` (``perspective``, ``quality``, ``relevance``, ``budget``,
        ``order``, the selector's parameters, ...), and those of ``VectorIndexRetriever`` (``doc_ids``, ``node_ids``,
        ``vector_store_kwargs``, ...), which go to it unchanged.

    Raises
    ------
    InvalidParameterError
        An option is unknown or out of range, or ``fetch_k`` is below ``top_n``.
    BudgetError, PerspectiveError, InvalidInputError, VectorSourceError
        See :class:`SetSelectPostprocessor`.

    Examples
    --------
    >>> from llama_index.core import MockEmbedding, VectorStoreIndex
    >>> from llama_index.core.schema import QueryBundle, TextNode
    >>> vectors = {"a": [1.0, 0.0], "b": [1.0, 0.02], "c": [0.0, 1.0]}
    >>> nodes = [TextNode(id_=i, text=i, embedding=v) for i, v in vectors.items()]
    >>> index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=2))
    >>> retriever = SetSelectIndexRetriever(index, top_n=2)
    >>> [n.node_id for n in retriever.retrieve(QueryBundle("both", embedding=[1.0, 0.9]))]
    ['b', 'c']
    """

    def __init__(self, index: VectorStoreIndex, **options: Unpack[NodeOptions]) -> None:
        refuse_unknown(type(self).__name__, options, ("index", *known_options()))
        given: dict[str, Any] = {**options}
        self._index = index
        self._filters, self._fetch_k = given.pop("filters", None), given.pop("fetch_k", None)
        self._search_kwargs = {name: given.pop(name) for name in _SEARCH_NAMES & given.keys()}
        object_map = given.pop("object_map", None)
        super().__init__(
            callback_manager=given.pop("callback_manager", None) or index._callback_manager,
            object_map=index._object_map if object_map is None else object_map,
            verbose=given.pop("verbose", False),
        )
        self._settings = SelectionSettings(index=index, **given)
        self._request = self._settings._request(self._fetch_k)

    @property
    def shown(self) -> tuple[str, ...]:
        """Ids of the nodes that the reader has seen already."""
        return tuple(self._settings.shown)

    @shown.setter
    def shown(self, shown: Iterable[str]) -> None:
        # New objects, because a call in another thread may be using the current ones.
        self._settings = self._settings.model_copy(update={"shown": as_identifiers(shown, "shown")})
        self._request = self._settings._request(self._fetch_k)

    @property
    def vector_source(self) -> str:
        """Where the nodes' vectors will come from, in words."""
        return self._settings._vectors.words

    @override
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        settings, request = self._settings, self._request
        return finish(settings, request, run_flow(self._select(settings, request, query_bundle)))

    @override
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        settings, request = self._settings, self._request
        return finish(settings, request, await run_flow_async(self._select(settings, request, query_bundle)))

    def _select(self, settings: SelectionSettings, request: Request, bundle: QueryBundle) -> Flow[Selected]:
        started = time.perf_counter()
        settings._warn_if_all_are_selected(request, request.fetch_k - len(request.shown), "Raise fetch_k")
        query = yield from embed_query(settings, request, bundle)
        searched = QueryBundle(bundle.query_str, embedding=self._check_length(query.search_vector))
        vectors = settings._vectors

        def search(fetch_k: int) -> Flow[Found]:
            retriever = self._search(fetch_k)
            nodes = yield Step(partial(retriever._retrieve, searched), partial(retriever._aretrieve, searched))
            return (yield from read_vectors(vectors, nodes, embed_unknown=False, fetch_k=fetch_k))

        # Without a vector reader a wider search would embed all texts that it finds.
        widest = None if vectors.reader is None else vectors.reader.widest
        selected = yield from request.search_and_select(query, search, widest)
        return request.report(selected, started, lambda: vectors.words)

    def _check_length(self, query: list[float]) -> list[float]:
        """``query`` if it is as long as the stored vectors, where their length is known before the search."""
        store = self._index.vector_store
        first = next(iter(store.data.embedding_dict.values()), query) if isinstance(store, SimpleVectorStore) else query
        if len(first) != len(query):
            raise InvalidInputError(
                f"the query has length {len(query)}, the store's vectors {len(first)}: "
                "they most likely come from different embedding models"
            )
        return query

    def _search(self, fetch_k: int) -> VectorIndexRetriever:
        # A VectorIndexRetriever reads the ids of the index's nodes when it is created, so each search needs a new one.
        takes = "node_ids" not in self._search_kwargs and takes_node_ids(self._index.vector_store)
        own_nodes = list(self._index.index_struct.nodes_dict.values()) if takes else None
        return VectorIndexRetriever(
            self._index,
            similarity_top_k=fetch_k,
            filters=self._filters,
            callback_manager=self.callback_manager,
            **{"node_ids": own_nodes, **self._search_kwargs},
        )
