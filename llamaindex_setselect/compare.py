"""Compare every method on your own LlamaIndex index (extra ``eval``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import BaseNode, MetadataMode, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters
from numpy.typing import ArrayLike, NDArray

from shared_core.errors import VectorSourceError
from shared_core.evaluation.compare import check_options, compare_candidates, searches_words
from shared_core.evaluation.corpus import Query, first_value
from shared_core.evaluation.diagnosis import Found, diagnose
from shared_core.evaluation.judging import SearchResult, found_documents
from shared_core.evaluation.results import Comparison, Diagnosis
from shared_core.retrieval.flow import run_flow
from shared_core.retrieval.question import EmbeddedQuery
from shared_core.retrieval.search import search_with_words
from shared_core.selection.route import DEFAULT_EXTRA_K
from shared_core.signals.embedding_models import Track, without_progress
from shared_core.texts import Texts

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
    model: str | None = None,
    **options: Any,
) -> Comparison:
    """Compare all methods on the candidates that an index finds, with the vectors that its store keeps.

    If the nodes of the index can be listed, a setting with ``keyword_search`` selects from those, too, that a search by
    words finds: see :meth:`WordRetriever.from_store`.

    If no query says what is right, ``Comparison.diagnosis`` says what the index gives the settings to act on: see
    :func:`diagnose_index`.

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
        keyword_search=searches_words(options.get("settings")) and NODES.can_index(index),
    )
    embedding = retriever._settings._vectors.need_model("the queries")

    searching = retriever._store(retriever._settings, QueryBundle(""))

    asked: dict[str, tuple[str, NDArray[Any]]] = {}

    def candidates_of(query: Query) -> SearchResult:
        texts = list(query.questions)
        vectors = run_flow(embed_as_queries(embedding, texts))
        asked[query.id] = query.text, vectors[0]
        queries = [
            EmbeddedQuery(v, None, retriever._check_length(v.tolist()), text)
            for v, text in zip(vectors, texts, strict=True)
        ]
        found = search_with_words(retriever._settings, queries, searching, fetch_k, DEFAULT_EXTRA_K, most)
        pool, candidates, by_words = run_flow(found)
        pool = pool.with_array()
        facts, bodies = retriever._settings._request.read_facts(pool), list(map(pool.body, pool.items))
        rows = [
            (
                n.node_id,
                n.get_content(MetadataMode.NONE),
                title,
                {**n.metadata, "source": first_value(n.metadata, ("source",)) or n.node.ref_doc_id or n.node_id},
            )
            for n, title in zip(pool.items, Texts(bodies, facts).titles, strict=True)
        ]
        return SearchResult(
            vectors if query.sub_questions else vectors[0],
            found_documents(rows),
            pool.vectors,
            facts=facts,
            texts=list(map(pool.text, pool.items)),
            bodies=bodies,
            candidates=candidates,
            by_words=by_words,
            weigh=None if searching.extras is None else searching.extras.weigh,
        )

    name = model or embedding.model_name
    found = compare_candidates(queries, candidates_of, k=k, fetch_k=fetch_k, model=name, **options)
    # Without a vector reader, the texts of all that is found would be embedded.
    if found.recommendation.measure is not None or found.partial or searching.widest is None:
        return found
    shown = {name: value for name, value in options.items() if name in ("title", "track")}
    length = len(next(iter(asked.values()))[1])
    return replace(found, diagnosis=_diagnose(index, [*asked.values()], length, sizes[0], fetch_k, filters, **shown))


def diagnose_index(
    index: VectorStoreIndex,
    *,
    embed_model: BaseEmbedding | None = None,
    k: int = 5,
    fetch_k: int | None = None,
    filters: MetadataFilters | None = None,
    title: str | None = None,
    track: Track = without_progress,
) -> Diagnosis:
    """What the nodes of an index give the settings to act on. No question is needed, and no node is embedded.

    Typical nodes are drawn from the index, and each is searched for with the vector that the store keeps.

    Parameters
    ----------
    index : VectorStoreIndex
        An index over a store with a vector reader; nothing is written to it.
    embed_model : BaseEmbedding, optional
        To learn the length of the vectors; by default the index's.
    k, fetch_k : int, optional
        How many nodes you return, and how many candidates they are selected from; by default max(50, 5k).
    filters : MetadataFilters, optional
        The store's own filter.
    title : str, optional
        A name for the report; by default that of the store's class.
    track : callable
        ``track(items, description)`` returns the items, and may show a progress bar.

    Raises
    ------
    VectorSourceError
        The store has no vector reader, or there is no embedding model.
    InvalidInputError
        The index holds no texts.

    Examples
    --------
    >>> from llama_index.core import MockEmbedding
    >>> from llama_index.core.schema import TextNode
    >>> vectors = {"a": [1.0, 0.0], "b": [1.0, 0.02], "c": [0.0, 1.0]}
    >>> nodes = [TextNode(id_=i, text="A port.", embedding=v) for i, v in vectors.items()]
    >>> index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=2))
    >>> found = diagnose_index(index, k=2)
    >>> found.findings[0].name, found.findings[0].share
    ('Texts that are stored more than once', 1.0)
    """
    (k,), fetch_k = check_options(k, fetch_k)
    vectors = SetSelectIndexRetriever(index, top_n=k, fetch_k=fetch_k, embed_model=embed_model)._settings._vectors
    store = type(index.vector_store).__name__
    if vectors.reader is None:
        raise VectorSourceError(f"setselect has no vector reader for {store}: call register_vector_source")
    [vector] = run_flow(embed_as_queries(vectors.need_model("a text"), ["text"]))
    return _diagnose(index, [], len(vector), k, fetch_k, filters, title=title or store, track=track)


def _diagnose(
    index: VectorStoreIndex,
    questions: Sequence[tuple[str, ArrayLike]],
    dimension: int,
    k: int,
    fetch_k: int,
    filters: MetadataFilters | None,
    *,
    title: str = "Diagnosis of an index",
    track: Track = without_progress,
) -> Diagnosis:
    # Links are read where the metadata have them. No node is embedded.
    retriever = SetSelectIndexRetriever(index, top_n=k, fetch_k=fetch_k, filters=filters, links=_read_links)
    settings = retriever._settings
    searching = retriever._store(settings, QueryBundle(""))

    def search(vector: NDArray[np.float64], number: int) -> Found:
        pool = run_flow(searching.search(EmbeddedQuery(vector, None, vector.tolist()), number))
        return Found(
            list(map(pool.body, pool.items)),
            pool.with_array().vectors,
            [first_value(node.metadata, ("source",)) or node.node.ref_doc_id for node in pool.items],
            lambda: settings._request.read_texts(pool) or Texts([]),
        )

    return diagnose(
        search,
        dimension,
        questions,
        title=title,
        documents=None,
        k=k,
        fetch_k=fetch_k,
        widest=searching.widest or fetch_k,
        track=track,
    )


def _read_links(node: BaseNode) -> Any:
    return node.metadata.get("links")
