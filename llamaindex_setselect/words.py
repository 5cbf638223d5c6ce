"""A LlamaIndex retriever by words: BM25 over nodes in memory, or over those of an index or a vector store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from operator import attrgetter
from typing import Any, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn
from typing_extensions import override

from shared_core.retrieval.extra import ItemKind, StoreListing, WordSearch, check_integer
from shared_core.retrieval.inputs import check_instance, check_items, find_registered

from ._settings import QueryChecks, check_filters
from .stores import LISTINGS


def _copy(node: BaseNode) -> BaseNode:
    return node.model_copy(update={"metadata": deepcopy(node.metadata)})


def _text(node: BaseNode) -> str:
    return node.get_content(metadata_mode=MetadataMode.EMBED)


def _read_docstore(index: VectorStoreIndex, ids: Sequence[str] | None) -> list[BaseNode]:
    # A docstore may also have nodes that are not in the index.
    names = [*(index.index_struct.nodes_dict.values() if ids is None else ids)]
    nodes: list[BaseNode] = index.docstore.get_nodes(names, raise_error=False)
    return nodes


def _list_raw(index: VectorStoreIndex) -> dict[str, Any] | tuple[int, None]:
    """What a docstore in memory keeps for each id; the number of nodes for another one."""
    store, names = index.docstore, [*index.index_struct.nodes_dict.values()]
    kept = getattr(getattr(store, "_kvstore", None), "_data", None)
    if not isinstance(kept, dict):
        return len(names), None
    nodes = kept.get(store._node_collection, {})  # type: ignore[attr-defined]
    return {name: nodes[name] for name in names if name in nodes}


_IN_DOCSTORE = StoreListing(_read_docstore, _list_raw)


def _find_listing(store: Any) -> Any:
    if not isinstance(store, VectorStoreIndex):
        return find_registered(LISTINGS, type(store)), store
    inside: Any = store.vector_store
    if not inside.stores_text or store._store_nodes_override:
        return _IN_DOCSTORE, store
    return find_registered(LISTINGS, type(inside)), inside


NODES: ItemKind[BaseNode] = ItemKind(_text, attrgetter("node_id"), _copy, _find_listing)


class WordRetriever(QueryChecks, BaseRetriever):
    """Returns the nodes that fit the words of the question best, by BM25 (bm25s); scores are those of BM25.

    It is for questions with names, error codes and identifiers; see the page on keyword search. Its words are those by
    which :class:`SetSelectIndexRetriever` selects, without stemming. Nodes without a word of the question are not
    returned, so there may be fewer than ``similarity_top_k``. The text of a node is the one that is embedded.

    Make one with :meth:`from_nodes` or :meth:`from_store`. The index is made at the first search. You get copies of the
    nodes.

    Parameters
    ----------
    words : WordSearch
        The nodes with their index, which :meth:`from_nodes` makes.
    similarity_top_k : int
        The most nodes to return.
    filters : MetadataFilters, optional
        Which nodes may be returned.
    callback_manager, object_map, objects, verbose
        As for every LlamaIndex retriever.

    Examples
    --------
    >>> from llama_index.core.schema import TextNode
    >>> from llamaindex_setselect import WordRetriever
    >>> nodes = [TextNode(text="Set max_retries to 3.", id_="a"), TextNode(text="Error E1234: no disk.", id_="b")]
    >>> retriever = WordRetriever.from_nodes(nodes)
    >>> [scored.node_id for scored in retriever.retrieve("What does e1234 mean?")]
    ['b']
    """

    def __init__(
        self,
        words: WordSearch[BaseNode],
        similarity_top_k: int = 25,
        filters: MetadataFilters | None = None,
        **settings: Any,
    ) -> None:
        self.words = words
        self.similarity_top_k = check_integer(similarity_top_k, "similarity_top_k", 1)
        self.filters: MetadataFilters | None = check_filters(filters)
        super().__init__(**settings)

    @classmethod
    def from_nodes(cls, nodes: Iterable[BaseNode], **settings: Any) -> Self:
        """A retriever over copies of these nodes. Of several with the same id, the last one counts.

        ``settings`` are the parameters of the class.
        """
        return cls(WordSearch(NODES, check_items(nodes, BaseNode, "Wrap a text as TextNode(text=text)")), **settings)

    @classmethod
    def from_store(cls, store: VectorStoreIndex | BasePydanticVectorStore, **settings: Any) -> Self:
        """A retriever over the nodes of an index or of a vector store, which follows it; see :meth:`from_nodes`.

        The page on keyword search says when the index knows a change. ``retriever.words.refresh()`` reads everything
        again. Pickles contain the store, not the nodes. Pass the index of a store whose nodes cannot be listed: its
        docstore has them.
        """
        check_instance(store, (VectorStoreIndex, BasePydanticVectorStore), "store")
        has_texts = isinstance(store, VectorStoreIndex) or store.stores_text
        NODES.check_listing(store, "from_nodes(nodes)" if has_texts else "from_store(index)")
        if isinstance(store, VectorStoreIndex):
            settings = {"callback_manager": store._callback_manager, "object_map": store._object_map, **settings}
        return cls(WordSearch(NODES, store=store), **settings)

    @override
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        passes = as_function(self.filters)
        hits = self.words.search(query_bundle.query_str, self.similarity_top_k, passes, "similarity_top_k")
        return [NodeWithScore(node=node, score=score) for node, score in hits]

    @override
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def as_function(filters: MetadataFilters | None) -> Callable[[BaseNode], bool] | None:
    """The filters as a function of a node, by LlamaIndex's own rules."""
    if filters is None:
        return None
    # LlamaIndex's function takes an id, and looks up the metadata.
    return build_metadata_filter_fn(attrgetter("metadata"), filters)  # type: ignore[return-value]
