"""Embedding models, vector readers and nodes that return too few vectors, too many, or none that are vectors."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.vectorstores import VectorStore
from llama_index.core.bridge.pydantic import PrivateAttr

from llamaindex_setselect import vectors
from shared_core import InvalidInputError
from tests.adapters.bindings import ROWS, SUBJECTS, Subject, nearest, over
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.langchain_setselect.test_vectors import Wrapped
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding, embedding

# The texts are embedded in most of these tests. The warning about it has its own tests.
pytestmark = pytest.mark.filterwarnings("ignore::shared_core.errors.EmbeddingFallbackWarning")

NAN = float("nan")
Fault = Callable[[Any], Any]

# Faults in what a model returns for all texts.
FAULTS: dict[str, Fault] = {
    "one too few": lambda rows: rows[:-1],
    "None among them": lambda rows: [*rows[:-1], None],
    "NaN": lambda rows: [*rows[:-1], [NAN] * len(rows[0])],
    "all are short": lambda rows: [row[:-1] for row in rows],
    "a coroutine": lambda rows: _coroutine(rows),
}


async def _coroutine(row: Any) -> Any:
    return row


# The models, and the methods of both frameworks that a message names.
OF_QUERY = r"(OddEmbeddings\.embed_query|OddModel\.get_query_embedding)\b"
OF_TEXTS = r"(OddEmbeddings\.embed_documents|OddModel\.get_text_embedding_batch)\b"
# Faults in what a model returns for a query, and what the message names.
QUERY_FAULTS: dict[str, tuple[Fault, str]] = {
    "None": (lambda row: None, OF_QUERY),
    "a sparse dict": (lambda row: {"indices": [3, 7], "values": [0.5, 1.5]}, OF_QUERY),
    "a list in a list": (lambda row: [row], OF_QUERY),
    "NaN": (lambda row: [NAN] * len(row), OF_QUERY),
    "zero": (lambda row: [0.0] * len(row), "zero"),
    "short": (lambda row: row[:-1], "47.*48|48.*47"),
}


class OddEmbeddings(WordEmbeddings):
    def __init__(self, texts: Fault | None = None, query: Fault | None = None, only: str = "") -> None:
        super().__init__()
        self.texts, self.query, self.only = texts, query, only

    def embed_documents(self, texts: list[str]) -> Any:
        rows = super().embed_documents(texts)
        return rows if self.texts is None else self.texts(rows)

    def embed_query(self, text: str) -> Any:
        row = super().embed_query(text)
        return row if self.query is None or self.only not in text else self.query(row)


class OddModel(CountingEmbedding):
    """Faults in the public methods: LlamaIndex's own code between them and a model's code refuses some of these."""

    _faults: Any = PrivateAttr(default=())

    def __init__(self, texts: Fault | None = None, query: Fault | None = None, only: str = "") -> None:
        super().__init__()
        self._faults = texts, query, only

    def get_text_embedding_batch(self, texts: list[str], show_progress: bool = False, **kwargs: Any) -> Any:
        rows = [embedding(text) for text in texts]
        return rows if self._faults[0] is None else self._faults[0](rows)

    async def aget_text_embedding_batch(self, texts: list[str], show_progress: bool = False, **kwargs: Any) -> Any:
        return self.get_text_embedding_batch(texts)

    def get_query_embedding(self, query: str) -> Any:
        row = embedding(query)
        return row if self._faults[1] is None or self._faults[2] not in query else self._faults[1](row)

    async def aget_query_embedding(self, query: str) -> Any:
        return self.get_query_embedding(query)

    def get_agg_embedding_from_queries(self, queries: list[str], agg_fn: Any = None) -> Any:
        (query,) = queries
        return self.get_query_embedding(query)

    async def aget_agg_embedding_from_queries(self, queries: list[str], agg_fn: Any = None) -> Any:
        return self.get_agg_embedding_from_queries(queries)


class Unread(Wrapped):
    """A store that has no vector reader."""


# Sync and async call.
Calls = tuple[Callable[[], Any], Callable[[], Any]]


def calls_of(subject: Subject, unread: bool, *faults: Any, **settings: Any) -> Calls:
    """Calls of an object with a faulty model; ``unread``: its store has no vector reader."""
    store = subject.open(ROWS, subject.kinds[0])
    if isinstance(store, VectorStore):
        settings["embeddings"] = OddEmbeddings(*faults)
        store = Unread(store) if unread else store
    else:
        settings["embed_model"] = OddModel(*faults)
    made = subject.make(store, **settings, **({"fetch_k": 12} if subject.searches else {}))
    rows = [ROWS[row] for row in nearest(12)]
    return lambda: subject.run(made, rows), lambda: subject.arun(made, rows)


def error_of(calls: Calls, expected: type[Exception] | tuple[type[Exception], ...]) -> str:
    """The message of the error, which must be the same for the sync and the async call."""
    call, acall = calls
    with pytest.raises(expected) as error:
        call()
    with pytest.raises(expected) as aerror:
        asyncio.run(_awaited(acall))
    told, told_too = (re.sub(r"(at 0|\.)x[0-9a-f]+", "", str(raised.value)) for raised in (error, aerror))
    assert told == told_too
    return told


async def _awaited(call: Callable[[], Any]) -> Any:
    return await call()


@pytest.mark.parametrize("fault", FAULTS)
@over(SUBJECTS)
def test_a_model_that_does_not_return_one_vector_for_each_text(
    subject: Subject, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_READERS", {})
    told = error_of(calls_of(subject, True, FAULTS[fault]), InvalidInputError)
    # A shorter vector does not fit the query; else the model is named.
    assert fault == "all are short" or re.search(OF_TEXTS, told)
    if fault == "one too few":
        assert re.search(r"\b12\b.*\b11\b", told)
    if fault == "NaN":
        assert ROWS[nearest(12)[-1]].text in told, "the text is named"


@pytest.mark.parametrize("fault", QUERY_FAULTS)
@over(SUBJECTS)
def test_a_model_that_returns_no_vector_for_the_query_or_the_perspective(subject: Subject, fault: str) -> None:
    odd, word = QUERY_FAULTS[fault]
    # A store in memory says itself that a query is too short.
    assert re.search(word, error_of(calls_of(subject, False, None, odd), ValueError))
    calls = calls_of(subject, False, None, odd, "sideways", perspective="sideways")
    error_of(calls, ValueError)
