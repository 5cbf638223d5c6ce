"""Embedding models, vector readers and nodes that return too few vectors, too many, or none that are vectors."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import QueryBundle

from langchain_setselect import SetSelectCompressor, SetSelectRetriever, register_vector_source
from langchain_setselect import SetSelectExampleSelector as LangChainExamples
from llamaindex_setselect import SetSelectExampleSelector as LlamaIndexExamples
from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor, vectors
from llamaindex_setselect.stores.reader import VectorReader
from shared_core import InvalidInputError, PerspectiveError, VectorSourceError
from tests.embedding import corpus
from tests.langchain_setselect.conftest import WordEmbeddings, in_memory
from tests.langchain_setselect.test_vectors import Wrapped
from tests.llamaindex_setselect.nodes_and_indexes import (
    QUERY,
    TEXTS,
    CountingEmbedding,
    PlainStore,
    bundle,
    embedding,
    make_index,
    make_nodes,
    scored,
)

# The texts are embedded in most of these tests. The warning about it has its own tests.
pytestmark = pytest.mark.filterwarnings("ignore::shared_core.errors.EmbeddingFallbackWarning")

NAN = float("nan")
Fault = Callable[[Any], Any]

# Faults in what a model returns for all texts.
FAULTS: dict[str, Fault] = {
    "one too few": lambda rows: rows[:-1],
    "None among them": lambda rows: [*rows[:-1], None],
    "NaN": lambda rows: [*rows[:-1], [NAN] * len(rows[0])],
    "one is short": lambda rows: [*rows[:-1], rows[-1][:-1]],
    "all are short": lambda rows: [row[:-1] for row in rows],
}
# Faults in what a model returns for a query.
QUERY_FAULTS: dict[str, Fault] = {
    "None": lambda row: None,
    "NaN": lambda row: [NAN] * len(row),
    "zero": lambda row: [0.0] * len(row),
    "short": lambda row: row[:-1],
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

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        return self.inner.similarity_search_by_vector(embedding, k, **kwargs)


DOCUMENTS = [Document(text, id=f"doc-{row}") for row, (text, _) in enumerate(corpus(12))]
LC_QUERY = "old river passage"
# Sync and async call.
Calls = tuple[Callable[[], Any], Callable[[], Any]]


def langchain_retriever(unread: bool, model: OddEmbeddings, **settings: Any) -> Calls:
    store = in_memory(WordEmbeddings())
    made = SetSelectRetriever(vectorstore=Unread(store) if unread else store, embeddings=model, fetch_k=12, **settings)
    return lambda: made.invoke(LC_QUERY), lambda: made.ainvoke(LC_QUERY)


def langchain_compressor(unread: bool, model: OddEmbeddings, **settings: Any) -> Calls:
    made = SetSelectCompressor(
        embeddings=model, vectorstore=None if unread else in_memory(WordEmbeddings()), **settings
    )
    return lambda: made.compress_documents(DOCUMENTS, LC_QUERY), lambda: made.acompress_documents(DOCUMENTS, LC_QUERY)


def langchain_examples(unread: bool, model: OddEmbeddings, **settings: Any) -> Calls:
    texts = [document.page_content for document in DOCUMENTS]
    store = InMemoryVectorStore.from_texts(texts, WordEmbeddings(), [{"question": text} for text in texts])
    made = LangChainExamples(
        vectorstore=Unread(store) if unread else store, embeddings=model, input_keys=["question"], **settings
    )
    question = {"question": LC_QUERY}
    return lambda: made.select_examples(question), lambda: made.aselect_examples(question)


def llamaindex_postprocessor(unread: bool, model: OddModel, **settings: Any) -> Calls:
    nodes = scored(make_nodes()[:12])
    store = None if unread else make_index("simple", CountingEmbedding()).vector_store
    made, query = SetSelectPostprocessor(embed_model=model, vector_store=store, **settings), QueryBundle(QUERY)
    return lambda: made.postprocess_nodes(nodes, query), lambda: made.apostprocess_nodes(nodes, query)


def llamaindex_retriever(unread: bool, model: OddModel, **settings: Any) -> Calls:
    made = SetSelectIndexRetriever(make_index("simple", CountingEmbedding()), embed_model=model, fetch_k=12, **settings)
    return lambda: made.retrieve(QUERY), lambda: made.aretrieve(QUERY)


def llamaindex_examples(unread: bool, model: OddModel, **settings: Any) -> Calls:
    examples = [{"question": text} for text in TEXTS[:12]]
    index = LlamaIndexExamples.from_examples(examples, CountingEmbedding(), input_keys=["question"], template="")._index
    made = LlamaIndexExamples(index, template="{question}", embed_model=model, fetch_k=12, **settings)
    return lambda: made.select_examples(QUERY), lambda: made.aselect_examples(QUERY)


LANGCHAIN = (langchain_retriever, langchain_compressor, langchain_examples)
LLAMAINDEX = (llamaindex_postprocessor, llamaindex_retriever, llamaindex_examples)
PLACES = [(place, OddEmbeddings) for place in LANGCHAIN] + [(place, OddModel) for place in LLAMAINDEX]


def error_of(calls: Calls, expected: type[Exception] | tuple[type[Exception], ...]) -> str:
    """The message of the error, which must be the same for the sync and the async call."""
    call, acall = calls
    with pytest.raises(expected) as error:
        call()
    with pytest.raises(expected) as aerror:
        asyncio.run(_awaited(acall))
    told, told_too = (re.sub(r" at 0x[0-9a-f]+", "", str(raised.value)) for raised in (error, aerror))
    assert told == told_too
    return told


async def _awaited(call: Callable[[], Any]) -> Any:
    return await call()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("place", "model"), PLACES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_model_that_does_not_return_one_vector_for_each_text(
    place: Callable[..., Calls], model: type[Any], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_READERS", {})
    told = error_of(place(True, model(texts=FAULTS[fault])), InvalidInputError)
    if fault == "one too few":
        assert re.search(r"\b12\b.*\b11\b", told)
        assert model.__name__ in told


@pytest.mark.parametrize("fault", QUERY_FAULTS)
@pytest.mark.parametrize(("place", "model"), PLACES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_model_that_returns_no_vector_for_the_query_or_the_perspective(
    place: Callable[..., Calls], model: type[Any], fault: str
) -> None:
    error_of(place(False, model(query=QUERY_FAULTS[fault])), InvalidInputError)
    odd = model(query=QUERY_FAULTS[fault], only="sideways")
    error_of(place(False, odd, perspective="sideways"), (InvalidInputError, PerspectiveError))


@pytest.mark.parametrize("found", [None, {"doc-3": None}, {"doc-3": [NAN] * 48}])
def test_a_langchain_look_up_that_returns_no_vectors(found: Any) -> None:
    class Lying(Unread):
        pass

    register_vector_source(Lying, lambda *a, **k: ([], []), fetch=lambda store, ids: found)
    made = SetSelectCompressor(vectorstore=Lying(in_memory(WordEmbeddings())))
    calls = lambda: made.compress_documents(DOCUMENTS, LC_QUERY), lambda: made.acompress_documents(DOCUMENTS, LC_QUERY)
    told = error_of(calls, (InvalidInputError, VectorSourceError))
    assert "doc-3" in told or not isinstance(found, dict)


@pytest.mark.parametrize("found", [None, {"n3": None}, {"n3": [NAN] * 48}])
def test_a_llamaindex_look_up_that_returns_no_vectors(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_READERS", {PlainStore: VectorReader(lambda store, ids, index: found)})
    nodes = scored(make_nodes()[:12])
    made, query = SetSelectPostprocessor(vector_store=PlainStore(), embed_model=CountingEmbedding()), bundle()
    calls = lambda: made.postprocess_nodes(nodes, query), lambda: made.apostprocess_nodes(nodes, query)
    told = error_of(calls, (InvalidInputError, VectorSourceError))
    assert "n3" in told or not isinstance(found, dict)
