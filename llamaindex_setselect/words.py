"""A LlamaIndex retriever by words: BM25 over nodes in memory, or over those of an index or a vector store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from operator import attrgetter
from typing import Any, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import BaseNode, IndexNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn
from typing_extensions import override

from shared_core import InvalidParameterError
from shared_core.retrieval.extra import ItemKind, StoreListing, WordSearch, check_integer
from shared_core.retrieval.inputs import check_instance, check_items, find_registered, refuse_unknown

from ._settings import QueryChecks, check_filters, say_place
from .stores import LISTINGS

_SETTINGS = ("similarity_top_k", "filters", "callback_manager", "object_map", "objects", "verbose")
_RULE = "WordRetriever has its own rule of what a word is, the one by which setselect selects"
# What users of LlamaIndex's BM25Retriever may pass.
_REMEDIES = dict.fromkeys(("language", "stemmer", "skip_stemming", "token_pattern", "tokenizer"), _RULE)


def _copy(node: BaseNode) -> BaseNode:
    return node.model_copy(update={"metadata": deepcopy(node.metadata)})


def _text(node: BaseNode) -> str:
    return node.get_content(metadata_mode=MetadataMode.EMBED)


def _list_docstore(index: VectorStoreIndex) -> Iterable[BaseNode]:
    # A docstore may also have nodes that are not in the index.
    nodes: list[BaseNode] = index.docstore.get_nodes([*index.index_struct.nodes_dict.values()], raise_error=False)
    return nodes


_IN_DOCSTORE = StoreListing(_list_docstore, lambda index: len(index.index_struct.nodes_dict))


def _find_listing(store: Any) -> tuple[StoreListing[BaseNode] | None, Any]:
    if not isinstance(store, VectorStoreIndex):
        return find_registered(LISTINGS, type(store)), store
    inside: Any = store.vector_store
    if not inside.stores_text or store._store_nodes_override:
        return _IN_DOCSTORE, store
    return find_registered(LISTINGS, type(inside)), inside


NODES: ItemKind[BaseNode] = ItemKind(_text, attrgetter("node_id"), _copy, _find_listing)


class WordRetriever(QueryChecks, BaseRetriever):
    """Returns the nodes that fit the words of the question best, by BM25 (bm25s); scores are those of BM25.

    It is for questions with names, error codes and identifiers, which a search by vector may rank low. Its words are
    those by which :class:`SetSelectIndexRetriever` selects: in any case, with or without accents, without the marks of
    Markdown and HTML, identifiers also by their parts, and Chinese, Japanese, Korean and Thai by pairs of characters.
    There is no stemming. Nodes without a word of the question are not returned, so there may be fewer than
    ``similarity_top_k``. The text of a node is the one that is embedded, with its metadata.

    Make one with :meth:`from_defaults` or :meth:`from_store`. The index is made at the first search. Any number of
    threads may search. You get copies of the nodes.

    Parameters
    ----------
    words : WordSearch
        The nodes with their index, which :meth:`from_defaults` makes.
    similarity_top_k : int
        The most nodes to return.
    filters : MetadataFilters, optional
        Which nodes may be returned.
    callback_manager, object_map, objects, verbose
        As for every LlamaIndex retriever.

    Raises
    ------
    InvalidParameterError
        ``similarity_top_k`` is below 1, or an argument is unknown.
    InvalidInputError
        An item is no node; the message names it.
    ImportError
        bm25s is missing (``pip install "setselect[words]"``).

    Examples
    --------
    >>> from llama_index.core.schema import TextNode
    >>> from llamaindex_setselect import WordRetriever
    >>> nodes = [TextNode(text="Set max_retries to 3.", id_="a"), TextNode(text="Error E1234: no disk.", id_="b")]
    >>> retriever = WordRetriever.from_defaults(nodes=nodes)
    >>> [scored.node_id for scored in retriever.retrieve("What does e1234 mean?")]
    ['b']
    """

    def __init__(
        self,
        words: WordSearch[BaseNode],
        similarity_top_k: int = 25,
        filters: MetadataFilters | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        self.words = words
        self.similarity_top_k = check_integer(similarity_top_k, "similarity_top_k", 1)
        self.filters: MetadataFilters | None = check_filters(filters)
        super().__init__(callback_manager, object_map, objects, verbose)

    @classmethod
    def from_defaults(
        cls,
        index: VectorStoreIndex | None = None,
        nodes: Sequence[BaseNode] | None = None,
        docstore: BaseDocumentStore | None = None,
        **settings: Any,
    ) -> Self:
        """A retriever over the nodes of an index, which follows it, or over copies of nodes or of those of a docstore.

        Parameters
        ----------
        index, nodes, docstore
            One of them; see :meth:`from_store` for ``index``. Of several nodes with the same id, the last one counts.
        **settings
            ``similarity_top_k``, ``filters``, ``callback_manager``, ``object_map``, ``objects``, ``verbose``.
        """
        if sum(source is not None for source in (index, nodes, docstore)) != 1:
            raise InvalidParameterError("pass one of index=, nodes= and docstore=")
        if index is not None:
            return cls.from_store(index, **settings)
        items = nodes if docstore is None else docstore.docs.values()
        return cls._over(WordSearch(NODES, _check_nodes(items)), settings)

    @classmethod
    def from_store(cls, store: VectorStoreIndex | BasePydanticVectorStore, **settings: Any) -> Self:
        """A retriever over the nodes of an index or of a vector store, which follows it.

        The nodes are read at the first search, and again when their number has changed. After a change that keeps the
        number, call :meth:`refresh`. Pickles contain the store, not the nodes.

        Parameters
        ----------
        store : VectorStoreIndex or vector store
            ``ChromaVectorStore``, ``DuckDBVectorStore``, ``LanceDBVectorStore``, ``PGVectorStore``, or an index over
            one of them; or an index whose docstore has the nodes, as with ``SimpleVectorStore`` and FAISS.
        **settings
            As for :meth:`from_defaults`.

        Raises
        ------
        InvalidParameterError
            The nodes cannot be listed, or, at the first search, there are more than a million.
        """
        check_instance(store, (VectorStoreIndex, BasePydanticVectorStore), "store", say_place(store))
        if not NODES.can_list(store):
            inside = store.vector_store if isinstance(store, VectorStoreIndex) else store
            remedy = "pass nodes= to WordRetriever.from_defaults" if inside.stores_text else "pass the index over it"
            raise InvalidParameterError(
                f"setselect cannot list the nodes of {type(inside).__name__}: {remedy}, or use the store's own search "
                "by words as a retriever"
            )
        if isinstance(store, VectorStoreIndex):
            settings = {"callback_manager": store._callback_manager, "object_map": store._object_map, **settings}
        return cls._over(WordSearch(NODES, store=store), settings)

    @classmethod
    def _over(cls, words: WordSearch[BaseNode], settings: dict[str, Any]) -> Self:
        refuse_unknown(cls.__name__, settings, _SETTINGS, _REMEDIES)
        return cls(words, **settings)

    def refresh(self) -> None:
        """Read the nodes from the index or store again at the next search, whatever their number is."""
        self.words.refresh()

    def __len__(self) -> int:
        return len(self.words)

    def __bool__(self) -> bool:
        # A retriever without nodes is a retriever.
        return True

    @override
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self.words.search(
            query_bundle.query_str, self.similarity_top_k, as_function(self.filters), "similarity_top_k"
        )
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


def _check_nodes(nodes: Any) -> list[BaseNode]:
    return check_items(nodes, BaseNode, "Wrap a text as TextNode(text=text)")
