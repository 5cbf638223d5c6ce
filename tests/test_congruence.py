"""Every class of both adapters selects what the core selects, for the same corpus, query and options."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from langchain_setselect import SetSelectCompressor, SetSelectExampleSelector, SetSelectRetriever
from llamaindex_setselect import SetSelectExampleSelector as LlamaIndexExampleSelector
from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from shared_core import MMR, NDPP, PAP, VRSD, Candidates, TopK
from shared_core.selectors.choose import choose
from tests.embedding import corpus, embed
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding

QUERY = "hidden northern harbour engine"
FETCH_K = 30
ROWS = [{"text": text, **metadata} for text, metadata in corpus()]
PERSPECTIVE = "northern"

SELECTORS = {
    "similarity": TopK(),
    "vrsd": VRSD(),
    "vrsd refined": VRSD(refine=True),
    "mmr": MMR(lambda_mult=0.4, lambda_b=0.7),
    "ndpp": NDPP(),
    "ndpp exponential": NDPP(relevance_mapping="exponential", temperature=0.2),
}
# The options of the adapters. ``expected`` translates them for the core.
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "quality": {"quality": "quality"},
    "budget": {"budget": 30, "costs": "tokens"},
    "threshold": {"score_threshold": 0.25},
    "shown": {"shown": ["doc-23", "doc-5", "doc-59"]},
    "one of each topic": {"max_per_source": 1, "source": "topic"},
    "no near-duplicates": {"drop_near_duplicates": 0.6},
    "perspective removed": {"perspective": PERSPECTIVE},
    "perspective emphasized, PAP+": {"perspective": PERSPECTIVE, "direction": "emphasize", "corpus": True},
    "all together": {
        "quality": "quality",
        "budget": 26,
        "costs": "tokens",
        "shown": ["doc-23"],
        "max_per_source": 2,
        "source": "topic",
        "perspective": PERSPECTIVE,
    },
}


@functools.cache
def embedded_rows() -> np.ndarray:
    return np.array([embed(row["text"]) for row in ROWS])


def expected(selector: Any, k: int, options: dict[str, Any]) -> list[int]:
    query = embed(QUERY)
    vectors = embedded_rows()
    pap = None
    if "perspective" in options:
        pap = PAP(embed(PERSPECTIVE), options.get("corpus", False), options.get("direction", "remove"))
    searched = query if pap is None else pap.project(query)
    cosines = vectors @ searched / np.linalg.norm(vectors, axis=1)
    nearest = np.argsort(-cosines, kind="stable")[: FETCH_K + len(options.get("shown", ()))]
    rows = [ROWS[i] for i in nearest]
    candidates = Candidates(
        query,
        vectors[nearest],
        quality=[row["quality"] for row in rows] if "quality" in options else None,
        costs=[row["tokens"] for row in rows] if "costs" in options else None,
        sources=[row["topic"] for row in rows] if "max_per_source" in options else None,
        max_per_source=options.get("max_per_source"),
        drop_near_duplicates=options.get("drop_near_duplicates"),
    )
    shown = [position for position, row in enumerate(rows) if f"doc-{row['number']}" in options.get("shown", ())]
    selection = choose(
        candidates if pap is None else pap.apply(candidates),
        selector,
        k,
        budget=options.get("budget"),
        shown=shown,
        score_threshold=options.get("score_threshold"),
    )
    return [rows[i]["number"] for i in selection.indices]


# The stores are only read, so all tests share them.
@functools.cache
def langchain_store() -> InMemoryVectorStore:
    store = InMemoryVectorStore(WordEmbeddings())
    metadatas = [{k: v for k, v in row.items() if k != "text"} for row in ROWS]
    store.add_texts([row["text"] for row in ROWS], metadatas, ids=[f"doc-{row['number']}" for row in ROWS])
    return store


@functools.cache
def llamaindex_index() -> VectorStoreIndex:
    nodes = [
        TextNode(
            id_=f"doc-{row['number']}",
            text=row["text"],
            metadata={k: v for k, v in row.items() if k != "text"},
            excluded_embed_metadata_keys=list(row),
        )
        for row in ROWS
    ]
    return VectorStoreIndex(nodes, embed_model=CountingEmbedding())


def search_vector(options: dict[str, Any]) -> np.ndarray:
    """The vector with which a retriever before a compressor or a postprocessor finds the same candidates."""
    if "perspective" not in options:
        return embed(QUERY)
    return PAP(embed(PERSPECTIVE), direction=options.get("direction", "remove")).project(embed(QUERY))


def select_with_retriever(selector: Any, k: int, options: dict[str, Any]) -> list[int]:
    retriever = SetSelectRetriever(vectorstore=langchain_store(), selector=selector, k=k, fetch_k=FETCH_K, **options)
    return [document.metadata["number"] for document in retriever.invoke(QUERY)]


def select_with_compressor(selector: Any, k: int, options: dict[str, Any]) -> list[int]:
    store = langchain_store()
    fetched = FETCH_K + len(options.get("shown", ()))
    documents: list[Document] = store.similarity_search_by_vector(search_vector(options).tolist(), k=fetched)
    compressor = SetSelectCompressor(vectorstore=store, selector=selector, k=k, **options)
    return [document.metadata["number"] for document in compressor.compress_documents(documents, QUERY)]


def select_with_example_selector(selector: Any, k: int, options: dict[str, Any]) -> list[int]:
    examples = SetSelectExampleSelector(
        vectorstore=langchain_store(), selector=selector, k=k, fetch_k=FETCH_K, input_keys=["question"], **options
    )
    return [example["number"] for example in examples.select_examples({"question": QUERY})]


def select_with_postprocessor(selector: Any, k: int, options: dict[str, Any]) -> list[int]:
    index = llamaindex_index()
    fetched = FETCH_K + len(options.get("shown", ()))
    nodes: list[NodeWithScore] = index.as_retriever(similarity_top_k=fetched).retrieve(
        QueryBundle(QUERY, embedding=search_vector(options).tolist())
    )
    postprocessor = SetSelectPostprocessor(index=index, selector=selector, top_n=k, **options)
    return [node.metadata["number"] for node in postprocessor.postprocess_nodes(nodes, query_str=QUERY)]


def select_with_index_retriever(selector: Any, k: int, options: dict[str, Any]) -> list[int]:
    retriever = SetSelectIndexRetriever(llamaindex_index(), selector=selector, top_n=k, fetch_k=FETCH_K, **options)
    return [node.metadata["number"] for node in retriever.retrieve(QUERY)]


def select_with_llamaindex_example_selector(selector: Any, k: int, options: dict[str, Any]) -> list[int]:
    examples = LlamaIndexExampleSelector(
        llamaindex_index(), template="{number}", selector=selector, top_n=k, fetch_k=FETCH_K, **options
    )
    return [example["number"] for example in examples.select_examples(QUERY)]


CLASSES: list[Callable[[Any, int, dict[str, Any]], list[int]]] = [
    select_with_retriever,
    select_with_compressor,
    select_with_example_selector,
    select_with_postprocessor,
    select_with_index_retriever,
    select_with_llamaindex_example_selector,
]


# The conditions are the same for every method, and quality has an effect with MMR alone.
@pytest.mark.filterwarnings("ignore:quality has no effect:shared_core.errors.SetSelectWarning")
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS.keys())
@pytest.mark.parametrize("select_with", CLASSES, ids=[f.__name__.removeprefix("select_with_") for f in CLASSES])
def test_every_class_selects_what_the_core_selects(
    select_with: Callable[[Any, int, dict[str, Any]], list[int]], selector: Any, options: dict[str, Any]
) -> None:
    wanted = expected(selector, 5, options)
    assert select_with(selector, 5, options) == wanted
    assert wanted


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "plain"])
def test_every_option_changes_a_selection(name: str) -> None:
    assert any(expected(s, 5, OPTIONS[name]) != expected(s, 5, {}) for s in SELECTORS.values())


@pytest.mark.parametrize("name", [name for name, options in OPTIONS.items() if "quality" not in options])
@pytest.mark.parametrize("select_with", CLASSES, ids=[f.__name__.removeprefix("select_with_") for f in CLASSES])
def test_without_a_selector_the_picks_are_those_of_ndpp(
    select_with: Callable[[Any, int, dict[str, Any]], list[int]], name: str
) -> None:
    assert select_with(None, 5, OPTIONS[name]) == expected(NDPP(), 5, OPTIONS[name])


def test_the_default_differs_from_every_other_method() -> None:
    others = [selector for name, selector in SELECTORS.items() if name != "ndpp"]
    assert all(any(expected(NDPP(), 5, o) != expected(other, 5, o) for o in OPTIONS.values()) for other in others)
