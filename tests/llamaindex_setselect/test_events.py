"""The events of a reranker, with the gains, in the thread of the caller."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.schema import NodeWithScore

from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from shared_core import NDPP
from tests.llamaindex_setselect.nodes_and_indexes import (
    ALL,
    QUERY,
    bundle,
    expected_selection,
    ids_of,
    scores_of,
)


class Recorder(BaseEventHandler):
    seen: list[Any] = []  # noqa: RUF012
    threads: list[threading.Thread] = []  # noqa: RUF012

    def handle(self, event: Any, **kwargs: Any) -> None:
        if isinstance(event, (ReRankStartEvent, ReRankEndEvent)):
            self.seen.append(event)
            self.threads.append(threading.current_thread())


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder, root = Recorder(), get_dispatcher()
    root.add_event_handler(recorder)
    yield recorder
    root.event_handlers.remove(recorder)


@pytest.fixture
def events(recorder: Recorder) -> list[Any]:
    return recorder.seen


async def test_events(events: list[Any], index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index, top_n=3)
    chosen = post.postprocess_nodes(nodes, bundle())
    await post.apostprocess_nodes(nodes, bundle())
    post.postprocess_nodes([], bundle())
    assert [type(event) for event in events] == [ReRankStartEvent, ReRankEndEvent] * 3
    assert (events[0].top_n, events[0].model_name, events[0].query) == (3, repr(NDPP()), bundle())
    assert ids_of(events[0].nodes) == ALL
    assert ids_of(events[1].nodes) == ids_of(events[3].nodes) == ids_of(chosen)
    assert events[5].nodes == []


@pytest.mark.parametrize("settings", [{}, {"selector": "mmr", "order": "nearest_last"}, {"selector": "ndpp"}], ids=str)
def test_the_end_event_holds_the_gains(
    settings: dict[str, Any], events: list[Any], index: VectorStoreIndex, nodes: list[NodeWithScore]
) -> None:
    chosen = SetSelectPostprocessor(index=index, top_n=5, **settings).postprocess_nodes(nodes, bundle())
    assert not any("selection_score" in node.metadata for node in chosen)
    told = events[-1].tags["setselect"]
    wanted = expected_selection(ALL, 5, settings.get("selector", "ndpp"))
    assert told["ids"] == [ALL[row] for row in wanted.indices]
    assert told["gains"] == pytest.approx(wanted.gains.tolist())
    assert told["relevance"] == pytest.approx(wanted.relevance.tolist())
    assert told["objective"] == pytest.approx(wanted.objective)
    assert told["filled_from"] == wanted.filled_from
    assert (told["top_n"], told["fetch_k"], told["candidates"]) == (5, None, len(ALL))
    assert told["vector_source"] == "store: SimpleVectorStore"
    assert ids_of(events[-1].nodes) == ids_of(chosen), "the event's nodes are in the order asked for"


async def test_the_retriever_sends_the_end_event_too(events: list[Any], index: VectorStoreIndex) -> None:
    retriever = SetSelectIndexRetriever(index, top_n=5, selector="mmr")
    chosen = retriever.retrieve(QUERY)
    await retriever.aretrieve(QUERY)
    assert [type(event) for event in events] == [ReRankEndEvent] * 2
    for event in events:
        assert event.tags["setselect"]["ids"] == ids_of(event.nodes) == ids_of(chosen)
        assert event.tags["setselect"]["relevance"] == scores_of(chosen)
        assert len(event.tags["setselect"]["gains"]) == 5
        assert event.tags["setselect"]["fetch_k"] == 25


async def test_events_are_sent_in_the_event_loops_thread(
    recorder: Recorder, index: VectorStoreIndex, nodes: list[NodeWithScore]
) -> None:
    await SetSelectPostprocessor(index=index).apostprocess_nodes(nodes, query_str=QUERY)
    await SetSelectIndexRetriever(index).aretrieve(QUERY)
    assert recorder.threads == [threading.current_thread()] * 3
