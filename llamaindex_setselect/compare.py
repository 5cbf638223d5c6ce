"""Compare every method on your own LlamaIndex index (extra ``eval``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import MetadataMode, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters

from shared_core.evaluation.compare import check_options, compare_candidates, searches_words
from shared_core.evaluation.corpus import Query, first_value
from shared_core.evaluation.judging import SearchResult, found_documents
from shared_core.evaluation.results import Comparison
from shared_core.retrieval.flow import run_flow
from shared_core.retrieval.names import read_identifiers, read_sources, read_titles
from shared_core.retrieval.question import EmbeddedQuery
from shared_core.retrieval.search import search_with_words
from shared_core.selection.sizes import DEFAULT_EXTRA_K

from .retriever import SetSelectIndexRetriever
from .vectors import embed_as_queries
from .words import can_index


def compare_index(
    index: VectorStoreIndex,
    queries: Iterable[str | Mapping[str, Any] | Query],
    *,
    embed_model: BaseEmbedding | None = None,
    k: int | Sequence[int] = 5,
    fetch_k: int | None = None,
    filters: MetadataFilters | None = None,
    model: str | None = None,
    **options: Any,
) -> Comparison:
    """Compare all methods on the candidates that an index finds, with the vectors that its store keeps.

    If the nodes of the index can be listed, a setting with ``keyword_search`` selects from those, too, that a search by
    words finds: see :meth:`WordRetriever.from_store`.

    Parameters
    ----------
    index : VectorStoreIndex
        Where the nodes and their vectors are searched; nothing is written to it.
    queries : iterable of str, mapping or Query
        See :func:`shared_core.evaluation.compare.compare`. ``gold`` holds ids of nodes. The labels of a node are
        its metadata ``subtopics``. For settings with constraints, its metadata may hold ``source`` (by default the
        document that contains the node) and ``cost``.
    embed_model : BaseEmbedding, optional
        By default the index's.
    k : int or sequence of int
        How many nodes are picked; several numbers are judged in one run, and the first decides.
    fetch_k : int, optional
        From how many nearest candidates they are picked (default: 5 k, at least 50).
    filters : MetadataFilters, optional
        The store's own filter.
    model : str, optional
        Name of the embedding model, for the report; by default the name that the model gives.
    **options
        The other options of :func:`shared_core.evaluation.compare.compare_candidates`.

    Raises
    ------
    VectorSourceError
        There is no embedding model.
    InvalidInputError, InvalidParameterError, ImportError
        See :func:`shared_core.evaluation.compare.compare_candidates`.

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
    # The retriever checks them too, but its messages call k top_n.
    sizes, fetch_k = check_options(k, fetch_k)
    most = max(sizes)
    retriever = SetSelectIndexRetriever(
        index,
        top_n=most,
        fetch_k=fetch_k,
        filters=filters,
        embed_model=embed_model,
        keyword_search=searches_words(options.get("settings")) and can_index(index),
    )
    embedding = retriever._settings._vectors.need_model("the queries")

    searching = retriever._store(retriever._settings, QueryBundle(""))

    def candidates_of(query: Query) -> SearchResult:
        texts = list(query.questions)
        vectors = run_flow(embed_as_queries(embedding, texts))
        queries = [
            EmbeddedQuery(v, None, retriever._check_length(v.tolist()), text)
            for v, text in zip(vectors, texts, strict=True)
        ]
        found = search_with_words(retriever._settings, queries, searching, fetch_k, DEFAULT_EXTRA_K, most)
        pool, candidates, by_words = run_flow(found)
        pool = pool.with_array()
        rows = [
            (
                n.node_id,
                n.get_content(MetadataMode.NONE),
                title,
                {**n.metadata, "source": first_value(n.metadata, ("source",)) or n.node.ref_doc_id or n.node_id},
            )
            for n, title in zip(pool.items, read_titles(pool.items, None, body=pool.body), strict=True)
        ]
        return SearchResult(
            vectors if query.sub_questions else vectors[0],
            found_documents(rows),
            pool.vectors,
            identifiers=read_identifiers(pool.items, None),
            sources=read_sources(pool.items, retriever._settings.source),
            texts=list(map(pool.text, pool.items)),
            bodies=list(map(pool.body, pool.items)),
            candidates=candidates,
            by_words=by_words,
        )

    name = model or embedding.model_name
    return compare_candidates(queries, candidates_of, k=k, fetch_k=fetch_k, model=name, **options)
