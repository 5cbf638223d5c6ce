"""A LlamaIndex retriever that fetches more nodes than asked for from an index and returns the best set."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import MetadataFilters, VectorStoreQueryMode
from pydantic import BeforeValidator
from typing_extensions import override

from shared_core import InvalidParameterError
from shared_core.errors import check_query_length
from shared_core.retrieval.events import in_shadow
from shared_core.retrieval.extra import (
    FilteredRetriever,
    KnownItems,
    Store,
    WordSearch,
    check_retrievers,
    gather_extras,
    share_search,
)
from shared_core.retrieval.flow import Flow, Step, run_flow, run_flow_async
from shared_core.retrieval.follow import Where
from shared_core.retrieval.inputs import EmbeddedQuery, check_instance, check_items
from shared_core.retrieval.pool import ItemSelection, Pool
from shared_core.retrieval.request import Request
from shared_core.retrieval.search import search_and_select
from shared_core.retrieval.settings import Fetching, Joining, Positive
from shared_core.selection.route import DEFAULT_K

from ._settings import (
    QueryChecks,
    SelectionSettings,
    check_filters,
    embed_queries,
    finish,
    read_ids,
    read_vectors,
)
from .stores import narrow, takes_node_ids
from .vectors import NodeVectors
from .words import NODES, as_function

P = ParamSpec("P")


class RetrieverSettings(SelectionSettings, Fetching, Joining):
    """The fields of :class:`SetSelectIndexRetriever`: settings, and arguments of ``VectorIndexRetriever``.

    ``callback_manager``, ``object_map`` and ``verbose`` are by default the index's. Arguments of the store's own MMR
    (``vector_store_query_mode="mmr"``, ``mmr_threshold``, ...) are an error: use ``selector="mmr"``.
    """

    if TYPE_CHECKING:
        # The core, which knows no framework, declares it.
        extra_retrievers: BaseRetriever | FilteredRetriever | Sequence[BaseRetriever | FilteredRetriever] = ()

    similarity_top_k: Positive | None = None
    """How many nodes, 4 by default; with a ``budget`` and no ``similarity_top_k``, as many as fit."""

    filters: Annotated[MetadataFilters | None, BeforeValidator(check_filters)] = None
    """The store's own filter."""

    vector_store_query_mode: VectorStoreQueryMode | str | None = None
    alpha: float | None = None
    node_ids: list[str] | None = None
    doc_ids: list[str] | None = None
    sparse_top_k: int | None = None
    hybrid_top_k: int | None = None
    callback_manager: CallbackManager | None = None
    object_map: dict[str, Any] | None = None
    verbose: bool = False

    size_name = "similarity_top_k"
    _owner = "SetSelectIndexRetriever"

    def _over(self, index: VectorStoreIndex) -> Self:
        check_instance(index, VectorStoreIndex, "index")
        if self.keyword_search:
            NODES.check_listing(index, "from_nodes(nodes)")
        self._index = index
        return self

    @override
    def _make_request(self) -> Request:
        mmr = [name for name in self.vector_store_kwargs or () if name.startswith("mmr_")]
        if mmr or self.vector_store_query_mode == VectorStoreQueryMode.MMR:
            raise InvalidParameterError(
                f"{', '.join(mmr) or 'vector_store_query_mode='} is for the MMR of the store: use selector='mmr' with "
                "fetch_k= and lambda_mult= instead"
            )
        if self.relevance == "score" and (self.follow or self.extra_retrievers or self.keyword_search):
            raise InvalidParameterError(
                "relevance='score' cannot be used with follow, extra_retrievers or keyword_search: the scores of the "
                "vector search and of another search cannot be compared"
            )
        retrievers: Any = self.extra_retrievers
        check_retrievers(retrievers, BaseRetriever, "LlamaIndex")
        return super()._make_request()


def _find_extra(asked: QueryBundle, retriever: Any, text: str) -> Flow[list[NodeWithScore]]:
    """What an extra retriever finds. It may search with another model, so it does not get the query's embedding."""
    bundle = QueryBundle(text)
    if text == asked.query_str:
        bundle = dataclasses.replace(asked, embedding=None)
    found = yield Step(partial(retriever.retrieve, bundle), partial(retriever.aretrieve, bundle))
    return check_items(found, NodeWithScore, f"{type(retriever).__name__} must return nodes with scores")


def _search_words(
    k: int, passes: Callable[[BaseNode], bool | None], words: WordSearch[BaseNode], text: str
) -> Flow[list[NodeWithScore]]:
    """The ``k`` best nodes by words of those that may pass."""
    hits = yield Step(partial(words.search, text, k, lambda node: passes(node) is not False))
    return [NodeWithScore(node=node, score=score) for node, score in hits]


# The fields that LlamaIndex's base class keeps itself, and those that each search takes.
_OF_BASE_CLASS = "callback_manager", "object_map"
_OF_SEARCH = (
    *("vector_store_query_mode", "alpha", "node_ids", "doc_ids", "sparse_top_k", "hybrid_top_k"),
    "vector_store_kwargs",
)


def takes_fields_of(
    model: Callable[P, Any],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, VectorStoreIndex, P], None]]:
    """Decorator: type checkers and editors see the fields of ``model`` as the arguments after ``index``."""
    return lambda function: function


class SetSelectIndexRetriever(QueryChecks, BaseRetriever):
    """Fetches ``fetch_k`` nodes from a ``VectorStoreIndex`` and returns the best *set* of
    ``similarity_top_k``.

    By default the nodes are relevant, repeat little, together cover the words of the question, and lead to each other
    (:class:`Coverage`). If a constraint or repeated texts leave fewer than ``similarity_top_k`` nodes, a wider search
    follows, provided that the store returns its vectors. Scores, events and errors are those of
    :class:`SetSelectPostprocessor`.

    Parameters
    ----------
    index : VectorStoreIndex
        Where the nodes are searched; the vectors are those that its vector store keeps.
    **options
        See :class:`RetrieverSettings`, :class:`Settings`, :class:`Fetching` and :class:`Joining`. They can be changed
        between calls: ``retriever.shown = [node.node_id for node in answer.source_nodes]``.

    Examples
    --------
    >>> from llama_index.core import MockEmbedding, VectorStoreIndex
    >>> from llama_index.core.schema import QueryBundle, TextNode
    >>> vectors = {"a": [1.0, 0.0], "b": [1.0, 0.02], "c": [0.0, 1.0]}
    >>> nodes = [TextNode(id_=i, text=i, embedding=v) for i, v in vectors.items()]
    >>> index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=2))
    >>> retriever = SetSelectIndexRetriever(index, similarity_top_k=2)
    >>> [n.node_id for n in retriever.retrieve(QueryBundle("both", embedding=[1.0, 1.0]))]
    ['b', 'c']
    """

    @takes_fields_of(RetrieverSettings)
    def __init__(self, index: VectorStoreIndex, **options: Any) -> None:
        self._index = index
        self._settings = settings = RetrieverSettings(**options)._over(index)
        super().__init__(
            callback_manager=settings.callback_manager or index._callback_manager,
            object_map=index._object_map if settings.object_map is None else settings.object_map,
            verbose=settings.verbose,
        )

    # A setting can be changed between calls, as in the other classes.
    if TYPE_CHECKING:
        similarity_top_k: int | None
        fetch_k: int | None
        shown: Iterable[str]
    else:

        def __setattr__(self, name: str, value: Any) -> None:
            if name.startswith("_") or name in _OF_BASE_CLASS:
                super().__setattr__(name, value)
                return
            # A new object, because a call in another thread may be using the current one.
            given = {field: getattr(self._settings, field) for field in self._settings.model_fields_set}
            self._settings = RetrieverSettings(**{**given, name: value})._over(self._index)
            self._verbose = self._settings.verbose

        def __getattr__(self, name: str) -> Any:
            if name in RetrieverSettings.model_fields:
                return getattr(self._settings, name)
            raise AttributeError(f"{type(self).__name__} has no {name}")

    @property
    def vector_source(self) -> str:
        """Where the nodes' vectors will come from, in words."""
        return self._settings._vectors.words

    def refresh(self) -> None:
        """Read all nodes for ``keyword_search`` again at the next search. See the page on keyword search."""
        share_search(NODES, self._index).refresh()

    @override
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        settings, request = self._settings, self._settings._request
        return finish(settings, request, run_flow(self._flow(settings, request, query_bundle)))

    @override
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        settings, request = self._settings, self._settings._request
        return finish(settings, request, await run_flow_async(self._flow(settings, request, query_bundle)))

    def _flow(self, settings: SelectionSettings, request: Request, bundle: QueryBundle) -> Flow[ItemSelection]:
        embedding = embed_queries(settings, request, bundle)
        selecting = search_and_select(request, settings, embedding, self._store(settings, bundle))
        if not request.settings.shadow:
            return (yield from selecting)
        retriever = self._retriever(request.k or DEFAULT_K)
        before: list[NodeWithScore] = yield Step(
            partial(retriever._retrieve, bundle), partial(retriever._aretrieve, bundle)
        )
        return (yield from in_shadow(request, bundle.query_str, before, read_ids(before), selecting))

    def _store(self, settings: SelectionSettings, asked: QueryBundle) -> Store:
        vectors, retriever, store = settings._vectors, cache(self._retriever), self._index.vector_store
        call = settings._request.settings
        extras = None
        if call.keyword_search or call.extra_retrievers:
            extras = gather_extras(
                NODES,
                self._index,
                call,
                lambda one: type(one).__name__,
                partial(_find_extra, asked),
                partial(_search_words, call.extra_k, self._make_filter()),
                partial(self._look_up, vectors),
                lambda: vectors.model_name,
            )

        def search_with(searching: VectorIndexRetriever, query: EmbeddedQuery, fetch_k: int) -> Flow[Pool]:
            if isinstance(store, SimpleVectorStore) and store.data.embedding_dict:
                first = next(iter(store.data.embedding_dict.values()))
                check_query_length(len(query.search_vector), len(first), "the store's vectors")
            bundle = QueryBundle(query.text, embedding=query.search_vector)
            nodes = yield Step(partial(searching._retrieve, bundle), partial(searching._aretrieve, bundle))
            return (yield from read_vectors(vectors, nodes, embed_unknown=False, fetch_k=fetch_k))

        def find(query: EmbeddedQuery, where: Where, k: int) -> Flow[Pool]:
            filters = narrow(store, self._settings.filters, where)
            if filters is None:
                return ItemSelection.nothing().pool
            pool = yield from search_with(self._retriever(k, filters), query, k)
            # A hybrid search returns as many as its hybrid_top_k says.
            return pool.take(range(len(pool.items))[:k])

        return Store(
            lambda query, fetch_k: search_with(retriever(fetch_k), query, fetch_k),
            read_ids,
            vectors.embed,
            partial(self._fetch, vectors),
            None if vectors.reader is None else vectors.reader.widest,
            extras,
            self._is_filtered,
            find if vectors.reader is not None and takes_node_ids(store) else None,
        )

    def _look_up(
        self, vectors: NodeVectors, nodes: Sequence[NodeWithScore], ids: Sequence[Hashable]
    ) -> Flow[KnownItems]:
        """What the store knows of nodes that its search did not find; LlamaIndex's filters are for any node."""
        settings, known = self._settings, (yield from vectors.look_up(nodes))
        arguments = settings.vector_store_kwargs or {}
        # Of other arguments, and of nodes outside the part of the store that is searched, it is not known.
        in_part = vectors.reader is not None and arguments.keys() <= {*vectors.reader.scope}
        passes = self._make_filter()

        def admits(node: BaseNode, vector: Any) -> bool | None:
            passed = passes(node)
            return passed if not passed or not arguments or (in_part and vector is not None) else None

        admitted = [admits(one.node, vector) for one, vector in zip(nodes, known, strict=True)]
        return KnownItems(ids, known, admitted, nodes)

    def _make_filter(self) -> Callable[[BaseNode], bool | None]:
        """Whether a node is in the part of the index that is searched; None if that is not known."""
        settings, of_filters = self._settings, as_function(self._settings.filters)

        def passes(node: BaseNode) -> bool | None:
            if settings.node_ids is not None and node.node_id not in settings.node_ids:
                return False
            if settings.doc_ids is not None and node.ref_doc_id not in settings.doc_ids:
                return False
            # Nested filters, and values of another type than the filter's.
            with suppress(TypeError, ValueError):
                return of_filters is None or of_filters(node)
            return None

        return passes

    def _fetch(self, vectors: NodeVectors, ids: list[str]) -> Flow[Pool]:
        """The nodes with these ids; none if the search is filtered, because a look-up would ignore the filter."""
        nodes: Sequence[BaseNode] = []
        store, documents = self._index.vector_store, self._index.docstore
        if not self._is_filtered:
            get, aget = store.get_nodes, store.aget_nodes
            if not store.stores_text:
                get = partial(documents.get_nodes, raise_error=False)
                aget = partial(documents.aget_nodes, raise_error=False)
            # Many stores raise NotImplementedError. Stores whose ids are UUIDs, such as Qdrant, raise errors of their
            # own for a link that is a title. Then all links are searched as names.
            with suppress(Exception):
                nodes = yield Step(partial(get, ids), partial(aget, ids))
        # A store may make a query of an id that it does not escape, and return other nodes too.
        nodes = [node for node in nodes if node.node_id in ids]
        return (yield from read_vectors(vectors, [NodeWithScore(node=node) for node in nodes], embed_unknown=False))

    @property
    def _is_filtered(self) -> bool:
        return self._settings.filters is not None or bool(self._search_arguments())

    def _search_arguments(self) -> dict[str, Any]:
        given = {name: getattr(self._settings, name) for name in _OF_SEARCH}
        return {name: value for name, value in given.items() if value is not None}

    def _retriever(self, fetch_k: int, filters: MetadataFilters | None = None) -> VectorIndexRetriever:
        # A VectorIndexRetriever reads the ids of the index's nodes when it is created, so each search needs a new one.
        given = self._search_arguments()
        takes = "node_ids" not in given and takes_node_ids(self._index.vector_store)
        own_nodes = list(self._index.index_struct.nodes_dict.values()) if takes else None
        return VectorIndexRetriever(
            self._index,
            similarity_top_k=fetch_k,
            filters=filters or self._settings.filters,
            callback_manager=self.callback_manager,
            **{"node_ids": own_nodes, **given},
        )
