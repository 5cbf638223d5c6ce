"""Repeated calls: changed settings count, nothing shows what a call kept, and tracing sees every call."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.span import SimpleSpan
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode

from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from llamaindex_setselect.stores.faiss import takes_node_ids
from shared_core import SetSelectWarning
from shared_core.retrieval import run_flow
from tests.llamaindex_setselect.nodes_and_indexes import (
    ALL,
    QUERY,
    STORES,
    CountingEmbedding,
    bundle,
    embedding,
    expected,
    ids_of,
    make_index,
    make_nodes,
    make_store,
    scored,
)


def test_fields_set_anew_count_at_the_next_call(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index, top_n=3, selector="mmr", lambda_mult=0.9)
    assert ids_of(post.postprocess_nodes(nodes, bundle())) == expected(ALL, 3, "mmr", lambda_mult=0.9)
    post.top_n = 5
    post.lambda_mult = 0.1
    assert ids_of(post.postprocess_nodes(nodes, bundle())) == expected(ALL, 5, "mmr", lambda_mult=0.1)
    post.selector, post.lambda_mult = "similarity", None
    assert ids_of(post.postprocess_nodes(nodes, bundle())) == expected(ALL, 5, "similarity")


@pytest.mark.parametrize("cls", [SetSelectPostprocessor, SetSelectIndexRetriever])
def test_a_setting_without_effect_is_warned_of_once(
    cls: Any, index: VectorStoreIndex, nodes: list[NodeWithScore]
) -> None:
    with pytest.warns(SetSelectWarning, match="quality has no effect with NDPP.*'mmr' uses it") as caught:
        made = cls(index=index, quality="stars")
    assert len(caught) == 1
    # Any warning of a call would be an error.
    for _ in range(2):
        made.retrieve(bundle()) if cls is SetSelectIndexRetriever else made.postprocess_nodes(nodes, bundle())


def test_a_perspective_without_effect_is_warned_of_once(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    settings: dict[str, Any] = {"index": index, "selector": "mmr", "relevance": "stars", "perspective": "northern"}
    with pytest.warns(SetSelectWarning, match="perspective has no effect"):
        post = SetSelectPostprocessor(**settings)
    post.postprocess_nodes(nodes, bundle())
    # It projects the nodes, or the search.
    SetSelectPostprocessor(**settings, corpus=True)
    SetSelectIndexRetriever(**settings)


def test_shown_ids_may_be_integers() -> None:
    nodes = scored([TextNode(id_=str(i), text=str(i), embedding=[1.0, i]) for i in range(6)])
    rest = SetSelectPostprocessor(top_n=2, shown=[0, 1, 2]).postprocess_nodes(nodes, QueryBundle("q", embedding=[1, 0]))
    assert not {"0", "1", "2"} & set(ids_of(rest))


@pytest.mark.parametrize(
    "way",
    [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p)), lambda p: p.model_copy()],
    ids=["copy", "deepcopy", "pickle", "model_copy"],
)
def test_a_call_changes_neither_copies_nor_comparisons(way: Any, nodes: list[NodeWithScore]) -> None:
    for given in nodes:
        given.node.embedding = CountingEmbedding()._get_query_embedding(given.node.get_content())
    post, same = SetSelectPostprocessor(top_n=3), SetSelectPostprocessor(top_n=3)
    same.callback_manager = post.callback_manager
    before = post.to_dict()
    usual = ids_of(post.postprocess_nodes(nodes, bundle()))
    assert post == same
    assert post.to_dict() == before
    other = way(post)
    other.top_n = 5
    assert ids_of(other.postprocess_nodes(nodes, bundle())) == expected(ALL, 5)
    assert ids_of(post.postprocess_nodes(nodes, bundle())) == usual == expected(ALL, 3)


def test_with_scores_the_returned_nodes_share_nothing_with_those_given(
    index: VectorStoreIndex, nodes: list[NodeWithScore]
) -> None:
    kept = [given.model_dump() for given in nodes]
    for node in SetSelectPostprocessor(index=index, top_n=5, scores=True).postprocess_nodes(nodes, bundle()):
        node.node.metadata.clear()
        node.score = -2.0
        node.node.id_ = "changed"
    assert [given.model_dump() for given in nodes] == kept


class Spans(SimpleSpanHandler):
    """Records the names of the spans."""

    names: list[str] = []  # noqa: RUF012

    def new_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any = None,
        parent_span_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> SimpleSpan | None:
        self.names.append(id_.partition("-")[0])
        return super().new_span(id_, bound_args, instance, parent_span_id, tags, **kwargs)


@pytest.fixture
def spans() -> Iterator[list[str]]:
    handler, root = Spans(), get_dispatcher()
    root.add_span_handler(handler)
    yield handler.names
    root.span_handlers.remove(handler)


async def test_a_span_handler_sees_the_search_within_the_retriever(spans: list[str], index: VectorStoreIndex) -> None:
    retriever = SetSelectIndexRetriever(index, top_n=3)
    retriever.retrieve(bundle())
    assert [name for name in spans if name.endswith("retrieve")] == [
        "SetSelectIndexRetriever.retrieve",
        "SetSelectIndexRetriever._retrieve",
        "VectorIndexRetriever._retrieve",
    ]
    spans.clear()
    await retriever.aretrieve(bundle())
    assert [name for name in spans if name.endswith("retrieve")] == [
        "SetSelectIndexRetriever.aretrieve",
        "VectorIndexRetriever._aretrieve",
    ]


async def test_the_selection_is_the_same_with_a_span_handler(index: VectorStoreIndex) -> None:
    retriever, root = SetSelectIndexRetriever(index, top_n=3), get_dispatcher()
    alone = ids_of(retriever.retrieve(bundle())), ids_of(await retriever.aretrieve(bundle()))
    root.add_span_handler(handler := Spans())
    try:
        heard = ids_of(retriever.retrieve(bundle())), ids_of(await retriever.aretrieve(bundle()))
    finally:
        root.span_handlers.remove(handler)
    assert alone == heard


@pytest.mark.parametrize("kind", STORES)
def test_which_searches_are_restricted_to_the_indexs_nodes(kind: str) -> None:
    assert takes_node_ids(make_store(kind)) is (kind == "simple")


@pytest.mark.parametrize("kind", [kind for kind in STORES if kind != "simple"])
def test_faiss_returns_vectors_by_node_id_and_ignores_unknown_nodes(kind: str, model: CountingEmbedding) -> None:
    nodes = make_nodes()[::-1]
    vectors = SetSelectPostprocessor(index=make_index(kind, model))._vectors
    _, ids, rows = run_flow(vectors.fetch(scored(nodes)))
    assert ids == ALL[::-1]
    assert isinstance(rows, np.ndarray), "a list of rows would be copied into an array"
    for node, row in zip(nodes, rows, strict=True):
        np.testing.assert_array_equal(row, np.array(embedding(node.text), np.float32))
    unknown = TextNode(id_="unknown", text="unknown", embedding=embedding("unknown"))
    _, ids, mixed = run_flow(vectors.fetch(scored([nodes[5], unknown, nodes[2]])))
    assert ids == [nodes[5].node_id, "unknown", nodes[2].node_id]
    for given, row in zip((nodes[5], unknown, nodes[2]), mixed, strict=True):
        np.testing.assert_allclose(row, embedding(given.text), rtol=1e-6)


@pytest.mark.parametrize("kind", STORES)
def test_node_ids_given_reach_the_search(kind: str, model: CountingEmbedding) -> None:
    retriever = SetSelectIndexRetriever(make_index(kind, model), node_ids=["n1", "n2"])
    assert retriever._search(20)._node_ids == ["n1", "n2"]


async def test_async_selections_leave_the_event_loops_thread(
    index: VectorStoreIndex, nodes: list[NodeWithScore]
) -> None:
    threads: list[threading.Thread] = []

    def quality(node: BaseNode) -> float:
        threads.append(threading.current_thread())
        return float(node.metadata["stars"])

    post = SetSelectPostprocessor(index=index, selector="mmr", quality=quality, top_n=3)
    await post.apostprocess_nodes(nodes, query_str=QUERY)
    assert threads
    assert threading.current_thread() not in threads
