"""A LlamaIndex retriever that over-fetches from an index and returns the best set."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import MetadataFilters
from typing_extensions import override

from shared_core import InvalidInputError, Selector
from shared_core.retrieval import Flow, Found, Step, as_identifiers, run_flow, run_flow_async

from ._settings import SelectionSettings, copy_nodes, embed_query, read_vectors, refuse_unknown
from .stores.faiss import takes_node_ids

# VectorIndexRetriever ignores arguments that it does not know. Its signature lists those that it knows.
_OWN = {"index", "similarity_top_k", "filters", "embed_model", "callback_manager", "object_map", "verbose", "kwargs"}
_SEARCH_NAMES = {"vector_store_kwargs", *inspect.signature(VectorIndexRetriever).parameters} - _OWN
_OPTIONS = set(SelectionSettings.model_fields) - {"index", "vector_store"}


class SetSelectIndexRetriever(BaseRetriever):
    """Over-fetches from a ``VectorStoreIndex`` and returns the best *set* of ``top_n`` nodes.

    The query is embedded once. The store is searched with this vector, or with its projection under a perspective, and
    the selection uses the vectors that the store keeps.

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
        Ids of nodes that the reader has already. They count as picked, and are not returned. The ids can be set between
        calls: ``retriever.shown = [node.node_id for node in answer.source_nodes]``.
    callback_manager, object_map, verbose
        As for other retrievers; by default the index's.
    **options
        The other options of :class:`SetSelectPostprocessor` (``perspective``, ``quality``, ``budget``, the
        selector's parameters, ...), and those of ``VectorIndexRetriever`` (``doc_ids``, ``node_ids``,
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

    def __init__(
        self,
        index: VectorStoreIndex,
        *,
        top_n: int | None = None,
        fetch_k: int | None = None,
        filters: MetadataFilters | None = None,
        selector: str | Selector = "vrsd",
        shown: Iterable[str] = (),
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
        **options: Any,
    ) -> None:
        self._search_kwargs = {name: value for name, value in options.items() if name in _SEARCH_NAMES}
        own = {name: value for name, value in options.items() if name not in _SEARCH_NAMES}
        known = ["index", "fetch_k", "filters", *sorted(_OPTIONS), *sorted(_SEARCH_NAMES)]
        refuse_unknown(type(self).__name__, own.keys() - _OPTIONS, selector, known)
        self._settings = SelectionSettings(top_n=top_n, selector=selector, shown=shown, index=index, **own)
        self._fetch_k = fetch_k
        self._settings._request(fetch_k)
        self._index = index
        self._filters = filters
        super().__init__(
            callback_manager=callback_manager or index._callback_manager,
            object_map=index._object_map if object_map is None else object_map,
            verbose=verbose,
        )

    @property
    def shown(self) -> tuple[str, ...]:
        """Ids of the nodes that the reader has already."""
        return self._settings.shown

    @shown.setter
    def shown(self, shown: Iterable[str]) -> None:
        # A new object, because a call in another thread may be using the current one.
        self._settings = self._settings.model_copy(update={"shown": as_identifiers(shown, "shown")})

    @property
    def vector_source(self) -> str:
        """Where the nodes' vectors will come from, in words."""
        return self._settings._vectors.words

    @override
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return run_flow(self._select(query_bundle))

    @override
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await run_flow_async(self._select(query_bundle))

    def _select(self, bundle: QueryBundle) -> Flow[list[NodeWithScore]]:
        settings = self._settings
        request = settings._request(self._fetch_k)
        query = yield from embed_query(settings, request, bundle)
        searched = QueryBundle(bundle.query_str, embedding=self._check_length(query.search_vector))
        nodes: list[NodeWithScore] = []

        def search(fetch_k: int) -> Flow[Found]:
            nonlocal nodes
            retriever = self._search(fetch_k)
            nodes = yield Step(partial(retriever._retrieve, searched), partial(retriever._aretrieve, searched))
            return (yield from read_vectors(settings, nodes, embed_unknown=False, fetch_k=fetch_k))

        # Without a vector reader a wider search would embed all texts that it finds.
        reader = settings._vectors.reader
        selected = yield from request.search_and_select(query, search, None if reader is None else reader.widest)
        return copy_nodes(nodes, selected, settings.scores)

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
