"""The logger ``setselect``: one line for each selection, in LangChain; its milliseconds are in the event too."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_setselect import SetSelectCompressor, SetSelectExampleSelector, SetSelectRetriever
from shared_core import MMR
from tests.langchain_setselect.conftest import WordEmbeddings, in_memory

QUERY = "hidden northern harbour engine"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="setselect")
    return caplog


class Listener(BaseCallbackHandler):
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def on_custom_event(self, name: str, data: Any, **more: Any) -> None:
        self.events.append(data)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    assert (record.name, record.levelname) == ("setselect", "DEBUG")
    assert QUERY not in record.getMessage() + repr(vars(record)), "a log holds no text of a query"
    return dict(vars(record)["setselect"])


async def test_the_retriever_writes_one_line_for_each_call(log: pytest.LogCaptureFixture) -> None:
    store = in_memory(WordEmbeddings())
    retriever = SetSelectRetriever(vectorstore=store, search_type="mmr", k=3, fetch_k=12, lambda_mult=0.25)
    listener = Listener()
    retriever.invoke(QUERY, config={"callbacks": [listener]})
    await retriever.ainvoke(QUERY, config={"callbacks": [listener]})
    assert len(log.records) == len(listener.events) == 2
    for record, told in zip(log.records, listener.events, strict=True):
        fields = fields_of(record)
        assert fields.pop("selected") == len(told["ids"]) == 3
        assert fields == {name: told[name] for name in fields}, "the event has the same fields"
        assert fields.pop("milliseconds") > 0
        assert fields == {
            "selector": repr(MMR(lambda_mult=0.25)),
            "k": 3,
            "fetch_k": 12,
            "candidates": 12,
            "vector_source": "store: InMemoryVectorStore",
        }
        assert f"{MMR(lambda_mult=0.25)!r} selected 3 of 12 candidates (k=3, fetch_k=12, " in record.getMessage()
        assert "vectors from store: InMemoryVectorStore) in " in record.getMessage()


async def test_the_compressor_writes_one_line_for_each_call(log: pytest.LogCaptureFixture) -> None:
    compressor = SetSelectCompressor(vectorstore=in_memory(WordEmbeddings()), k=2)
    documents = [Document(f"passage {i}", id=f"doc-{i}") for i in range(3)]
    compressor.compress_documents(documents, QUERY)
    await compressor.acompress_documents(documents, QUERY)
    assert len(log.records) == 2
    for record in log.records:
        fields = fields_of(record)
        assert (fields["k"], fields["fetch_k"], fields["candidates"], fields["selected"]) == (2, None, 3, 2)
        assert fields["vector_source"].startswith("store: InMemoryVectorStore, else embedding the texts")


async def test_the_example_selector_writes_one_line_for_each_call(log: pytest.LogCaptureFixture) -> None:
    examples = [{"question": f"question {i} of the harbour", "answer": str(i)} for i in range(9)]
    selector = SetSelectExampleSelector.from_examples(
        examples, WordEmbeddings(), InMemoryVectorStore, k=2, input_keys=["question"]
    )
    selector.select_examples({"question": QUERY})
    await selector.aselect_examples({"question": QUERY})
    assert [fields_of(record)["candidates"] for record in log.records] == [9, 9]


async def test_nothing_is_written_above_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="setselect")
    retriever = SetSelectRetriever(vectorstore=in_memory(WordEmbeddings()))
    retriever.invoke(QUERY)
    await retriever.ainvoke(QUERY)
    assert not caplog.records


def test_the_logger_has_a_handler_that_writes_nothing() -> None:
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("setselect").handlers)
