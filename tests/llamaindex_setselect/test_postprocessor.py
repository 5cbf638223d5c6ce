"""What only LlamaIndex's postprocessor has: queries with and without an embedding, scores hidden from prompts, events
at both ends, pickles. tests/adapters has what it shares with the other classes."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from llamaindex_setselect import SetSelectPostprocessor
from setselect import (
    Coverage,
    InvalidInputError,
)
from tests.adapters.bindings import recording
from tests.llamaindex_setselect.nodes_and_indexes import (
    ALL,
    QUERY,
    CountingEmbedding,
    bundle,
    embedding,
    expected,
    ids_of,
    scores_of,
)


def selected(nodes: list[NodeWithScore], query: Any = None, **settings: Any) -> list[str]:
    return ids_of(SetSelectPostprocessor(**settings).postprocess_nodes(nodes, query or bundle()))


# The query


def test_queries_with_and_without_an_embedding(
    index: VectorStoreIndex, model: CountingEmbedding, nodes: list[NodeWithScore]
) -> None:
    query = bundle()
    assert selected(nodes, query, index=index) == expected(ALL, 4)
    assert (query, model.queries) == (bundle(), []), "the query is not changed"
    assert selected(nodes, QueryBundle(QUERY), index=index) == expected(ALL, 4)
    assert model.queries == [QUERY]
    custom = QueryBundle("juice and digestion", custom_embedding_strs=["tea and sleep", "coffee and mood"])
    mean = np.mean([embedding("tea and sleep"), embedding("coffee and mood")], axis=0)
    assert selected(nodes, custom, index=index) == expected(ALL, 4, query=mean, question="juice and digestion")
    post = SetSelectPostprocessor(index=index)
    for given in ({}, {"query_str": ""}):
        with pytest.raises(InvalidInputError, match="query"):
            post.postprocess_nodes(nodes, **given)


# Scores


def test_scores_change_neither_prompt_nor_embedded_text(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    by_id = {n.node_id: n.node for n in nodes}
    first = SetSelectPostprocessor(index=index, top_n=8, scores=True).postprocess_nodes(nodes, bundle())
    second = SetSelectPostprocessor(index=index, scores=True, selector="mmr").postprocess_nodes(first, bundle())
    gains = {node.node_id: node.metadata["selection_score"] for node in first}
    assert scores_of(second) == pytest.approx([node.metadata["relevance_score"] for node in second])
    for node in second:
        assert node.metadata["selection_score"] == gains[node.node_id], "a key that is there keeps its value"
        assert node.node.excluded_llm_metadata_keys.count("selection_score") == 1
        for mode in (MetadataMode.LLM, MetadataMode.EMBED):
            assert node.node.get_content(metadata_mode=mode) == by_id[node.node_id].get_content(metadata_mode=mode)


# Events


async def test_events_at_both_ends_in_the_callers_thread(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index, top_n=3, order="nearest_last")
    with recording() as recorder:
        chosen = post.postprocess_nodes(nodes, bundle())
        await post.apostprocess_nodes(nodes, bundle())
        post.postprocess_nodes([], bundle())
    events: list[Any] = recorder.seen
    assert [type(event) for event in events] == [ReRankStartEvent, ReRankEndEvent] * 3
    assert (events[0].top_n, events[0].model_name, events[0].query) == (3, repr(Coverage()), bundle())
    assert ids_of(events[0].nodes) == ALL
    assert ids_of(events[1].nodes) == ids_of(events[3].nodes) == ids_of(chosen)
    assert events[5].nodes == []
    # Handlers find the current span in the thread of the caller.
    assert {*recorder.threads} == {threading.current_thread()}


# Pickles


class Handler(LlamaDebugHandler):
    """A handler like those of tracing tools: it holds an object that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__(print_trace_on_end=False)
        self.sink = lambda event: None


def test_pickles_contain_no_callbacks_and_drop_no_function(index: VectorStoreIndex) -> None:
    manager = CallbackManager([Handler()])
    post = SetSelectPostprocessor(index=index)
    post.callback_manager = manager
    assert pickle.loads(pickle.dumps(post)).callback_manager.handlers == []
    assert post.callback_manager is manager
    post = SetSelectPostprocessor(index=index, selector="mmr", quality=lambda node: 1.0)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(post)
    assert post.quality is not None
