"""Compare every method on your own LlamaIndex index (extra ``eval``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters
from numpy.typing import NDArray

from shared_core.evaluation.compare import SearchedStore, check_options
from shared_core.evaluation.corpus import Query, first_value
from shared_core.evaluation.diagnosis import Diagnosis, Found
from shared_core.evaluation.results import Comparison
from shared_core.retrieval.flow import run_flow
from shared_core.retrieval.search import search_near, search_to_compare

from .retriever import SetSelectIndexRetriever
from .vectors import embed_as_queries
from .words import NODES


def compare_index(
    index: VectorStoreIndex,
    queries: Iterable[str | Mapping[str, Any] | Query],
    *,
    embed_model: BaseEmbedding | None = None,
    k: int | Sequence[int] = 5,
    fetch_k: int | None = None,
    filters: MetadataFilters | None = None,
    **options: Any,
) -> Comparison:
    """Compare all methods on the candidates that an index finds, with the vectors that its store keeps.

    Settings with ``keyword_search`` need an index whose nodes can be listed: see :meth:`WordRetriever.from_store`.

    Parameters
    ----------
    index : VectorStoreIndex
        Where the nodes and their vectors are searched; nothing is written to it.
    queries : iterable of str, mapping or Query
        See :func:`shared_core.evaluation.compare.compare`. ``gold`` holds ids of nodes. The metadata of a node may hold
        its ``source`` (by default the document that contains it) and its ``cost``.
    embed_model, filters
        As for :class:`SetSelectIndexRetriever`.
    k, fetch_k, **options
        See :func:`shared_core.evaluation.compare.compare`.

    Examples
    --------
    >>> from llama_index.core import MockEmbedding
    >>> from llama_index.core.schema import TextNode
    >>> vectors = {"a": [1.0, 0.0], "b": [1.0, 0.02], "c": [0.0, 1.0]}
    >>> nodes = [TextNode(id_=i, text=i, embedding=v) for i, v in vectors.items()]
    >>> index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=2))
    >>> found = compare_index(index, [{"text": "both", "gold": ["b", "c"]}], k=2, fetch_k=3)
    >>> [found.values[i, "recall"].mean for i, one in enumerate(found.settings) if one.label in ("similarity", "vrsd")]
    [0.5, 1.0]
    """
    return _search(index, embed_model, k, fetch_k, filters, compares=True).compare(queries, **options)


def diagnose_index(
    index: VectorStoreIndex,
    *,
    embed_model: BaseEmbedding | None = None,
    k: int = 5,
    fetch_k: int | None = None,
    filters: MetadataFilters | None = None,
    **options: Any,
) -> Diagnosis:
    """What the nodes of an index hold: copies, near copies, sources, and which lead to others.

    Typical nodes are drawn from the index, and each is searched for with the vector that the store keeps.

    Parameters
    ----------
    index, embed_model, k, fetch_k, filters, **options
        See :func:`compare_index`; ``title`` and ``track`` are options.

    Examples
    --------
    >>> from llama_index.core import MockEmbedding, schema
    >>> nodes = [schema.TextNode(text="A port.", embedding=[1.0, number]) for number in (0.0, 0.02, 9.0)]
    >>> index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=2))
    >>> found = diagnose_index(index, k=2)
    >>> found.findings[0].name, found.findings[0].share
    ('Texts that are stored more than once', 1.0)
    """
    return _search(index, embed_model, k, fetch_k, filters).diagnose(**options)


def _search(
    index: VectorStoreIndex, embed_model: Any, k: Any, fetch_k: Any, filters: Any, *, compares: bool = False
) -> SearchedStore:
    """The index as a diagnosis searches it, or a comparison, by words too."""
    sizes, fetch_k = check_options(k, fetch_k)
    # The settings to compare have no links. A diagnosis counts them.
    retriever = SetSelectIndexRetriever(
        index,
        similarity_top_k=max(sizes),
        fetch_k=fetch_k,
        filters=filters,
        embed_model=embed_model,
        links=None if compares else lambda node: node.metadata.get("links"),
        keyword_search=compares and NODES.can_index(index),
    )
    settings = retriever._settings
    searching, model = retriever._store(settings, QueryBundle("")), settings._vectors.need_model()

    def read(node: NodeWithScore) -> tuple[str, Mapping[str, Any]]:
        source = source_of(node) or node.node_id
        return node.get_content(MetadataMode.NONE), {**node.metadata, "source": source}

    def source_of(node: NodeWithScore) -> Any:
        return first_value(node.metadata, ("source",)) or node.node.ref_doc_id

    def nearest(vector: NDArray[np.float64], number: int) -> Found:
        return Found(*run_flow(search_near(settings._request, searching, source_of, vector, number)))

    return SearchedStore(
        type(index.vector_store).__name__,
        model.model_name,
        sizes,
        fetch_k,
        lambda texts: run_flow(embed_as_queries(model, texts)),
        lambda *asked: run_flow(search_to_compare(settings, settings._request, searching, read, *asked)),
        nearest,
        searching.widest,
        partial(NODES.count, index),
    )
