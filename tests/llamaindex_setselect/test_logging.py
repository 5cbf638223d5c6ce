"""The logger ``setselect``: one line for each selection, in LlamaIndex; its milliseconds are in the event too."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent
from llama_index.core.schema import NodeWithScore

from llamaindex_setselect import SetSelectExampleSelector, SetSelectIndexRetriever, SetSelectPostprocessor
from shared_core import MMR
from tests.llamaindex_setselect.nodes_and_indexes import ALL, QUERY, CountingEmbedding


class Recorder(BaseEventHandler):
    told: list[dict[str, Any]] = []  # noqa: RUF012

    def handle(self, event: Any, **kwargs: Any) -> None:
        if isinstance(event, ReRankEndEvent):
            self.told.append(event.tags["setselect"])


@pytest.fixture
def events() -> Iterator[list[dict[str, Any]]]:
    recorder, root = Recorder(), get_dispatcher()
    root.add_event_handler(recorder)
    yield recorder.told
    root.event_handlers.remove(recorder)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="setselect")
    return caplog


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    assert (record.name, record.levelname) == ("setselect", "DEBUG")
    assert QUERY not in record.getMessage() + repr(vars(record)), "a log holds no text of a query"
    return dict(vars(record)["setselect"])


def check(lines: list[logging.LogRecord], events: list[dict[str, Any]], wanted: dict[str, Any]) -> None:
    assert len(lines) == len(events) == 2
    for record, told in zip(lines, events, strict=True):
        fields = fields_of(record)
        assert fields["milliseconds"] == told["milliseconds"] > 0
        assert (fields["k"], fields["vector_source"]) == (told["top_n"], told["vector_source"])
        assert {name: fields[name] for name in wanted} == wanted


async def test_the_postprocessor_writes_one_line_for_each_call(
    log: pytest.LogCaptureFixture, events: list[dict[str, Any]], index: VectorStoreIndex, nodes: list[NodeWithScore]
) -> None:
    post = SetSelectPostprocessor(index=index, top_n=3, selector="mmr")
    post.postprocess_nodes(nodes, query_str=QUERY)
    await post.apostprocess_nodes(nodes, query_str=QUERY)
    sizes = {"k": 3, "fetch_k": None, "candidates": len(ALL), "selected": 3}
    check(log.records, events, {"selector": repr(MMR()), "vector_source": "store: SimpleVectorStore", **sizes})


async def test_the_retriever_writes_one_line_for_each_call(
    log: pytest.LogCaptureFixture, events: list[dict[str, Any]], index: VectorStoreIndex
) -> None:
    retriever = SetSelectIndexRetriever(index, top_n=5, selector="mmr")
    retriever.retrieve(QUERY)
    await retriever.aretrieve(QUERY)
    check(log.records, events, {"selector": repr(MMR()), "k": 5, "fetch_k": 25, "candidates": 25, "selected": 5})


async def test_the_example_selector_writes_one_line_for_each_call(
    log: pytest.LogCaptureFixture, events: list[dict[str, Any]]
) -> None:
    examples = [{"question": f"effects of tea {i}", "answer": str(i)} for i in range(9)]
    selector = SetSelectExampleSelector.from_examples(
        examples, CountingEmbedding(), input_keys=["question"], template="{question}", top_n=2
    )
    selector.select_examples(QUERY)
    await selector.aselect_examples(QUERY)
    check(log.records, events, {"k": 2, "candidates": 9, "selected": 2})


async def test_nothing_is_written_above_debug(
    caplog: pytest.LogCaptureFixture, index: VectorStoreIndex, nodes: list[NodeWithScore]
) -> None:
    caplog.set_level(logging.INFO, logger="setselect")
    SetSelectPostprocessor(index=index).postprocess_nodes(nodes, query_str=QUERY)
    await SetSelectIndexRetriever(index).aretrieve(QUERY)
    assert not caplog.records
