"""The postprocessor sends the events of a reranker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.schema import NodeWithScore

from llamaindex_setselect import SetSelectPostprocessor
from tests.llamaindex_setselect.nodes_and_indexes import (
    ALL,
    bundle,
    ids_of,
)


class Recorder(BaseEventHandler):
    seen: list[Any] = []  # noqa: RUF012

    def handle(self, event: Any, **kwargs: Any) -> None:
        if isinstance(event, (ReRankStartEvent, ReRankEndEvent)):
            self.seen.append(event)


@pytest.fixture
def events() -> Iterator[list[Any]]:
    recorder = Recorder()
    root = get_dispatcher()
    root.add_event_handler(recorder)
    yield recorder.seen
    root.event_handlers.remove(recorder)


async def test_events(events: list[Any], index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index, top_n=3)
    chosen = post.postprocess_nodes(nodes, bundle())
    await post.apostprocess_nodes(nodes, bundle())
    post.postprocess_nodes([], bundle())
    assert [type(event) for event in events] == [ReRankStartEvent, ReRankEndEvent] * 3
    assert (events[0].top_n, events[0].model_name, events[0].query) == (3, "VRSD(refine=False)", bundle())
    assert ids_of(events[0].nodes) == ALL
    assert ids_of(events[1].nodes) == ids_of(events[3].nodes) == ids_of(chosen)
    assert events[5].nodes == []
