"""WordRetriever in LangChain: its constructors, call-time arguments, and LangChain's components around it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_classic.retrievers import EnsembleRetriever, MultiQueryRetriever
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests

from langchain_setselect import SetSelectCompressor, WordRetriever
from setselect import InvalidInputError, InvalidParameterError
from tests.adapters.bindings import QUERY, numbers

TEXTS = ["red lamp", "blue lamp", "red fuse", "Error KB5034441"]


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


class TestStandard(RetrieversIntegrationTests):
    retriever_query_example = "lamp"

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return WordRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"words": WordRetriever.from_texts(["lamp"] * 30, ids=[str(i) for i in range(30)]).words}


def test_from_texts_takes_the_arguments_of_bm25_retriever() -> None:
    arguments = {"metadatas": [{"n": i} for i in range(4)], "ids": [f"id{i}" for i in range(4)], "k": 1}
    [document] = WordRetriever.from_texts(TEXTS, **arguments).invoke("fuse")
    assert document == Document("red fuse", id="id2", metadata={"n": 2})
    assert ids(WordRetriever.from_texts(iter(TEXTS)).invoke("fuse")) == [None]
    assert len(WordRetriever.from_texts(["lamp"] * 3).invoke("lamp")) == 3, "texts without ids are all kept"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"texts": "lamp"}, "'lamp'"),
        ({"texts": ["lamp", None]}, "row 1 "),
        ({"texts": ["lamp", float("nan")]}, "row 1 "),
        ({"texts": ["lamp"], "ids": ["a", "b"]}, "ids has length 2, texts 1"),
        ({"texts": ["lamp"], "metadatas": []}, "metadatas has length 0, texts 1"),
        ({"texts": ["lamp"], "preprocess_func": str.split}, "preprocess_func"),
        ({"texts": ["lamp"], "filter": "n"}, "filter must be"),
    ],
)
def test_mistakes_of_from_texts(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((InvalidInputError, InvalidParameterError), match=words):
        WordRetriever.from_texts(**arguments)


def test_the_class_itself_names_its_constructors() -> None:
    for arguments in ({}, {"k": 3}):
        with pytest.raises(InvalidParameterError, match="from_documents"):
            WordRetriever(**arguments)


async def test_call_time_arguments() -> None:
    retriever = WordRetriever.from_texts(TEXTS, [{"n": i, "even": i % 2 == 0} for i in range(4)], k=1, filter={"n": 0})
    assert [d.metadata["n"] for d in retriever.invoke("red lamp")] == [0]
    assert [d.metadata["n"] for d in retriever.invoke("red lamp", filter=None, k=9)] == [0, 1, 2]
    assert [d.metadata["n"] for d in await retriever.ainvoke("red", k=2, filter=lambda d: d.metadata["even"])] == [0, 2]
    assert retriever.invoke("red", filter={"n": 0, "even": False}) == []
    retriever.k, retriever.filter = 2, None
    assert len(retriever.invoke("red lamp")) == 2
    for wrong, words in (({"K": 3}, "'k'"), ({"k": 0}, "at least 1"), ({"filter": {"n": {"$gt": 1}}}, "operators")):
        with pytest.raises(InvalidParameterError, match=words):
            retriever.invoke("red", **wrong)
    for question in (None, {"question": "red"}, 3, ["red"]):
        with pytest.raises(InvalidInputError, match="must be a text"):
            retriever.invoke(question)  # type: ignore[arg-type]


def test_tags_callbacks_and_configurable_fields() -> None:
    seen: list[Any] = []

    class Listener(BaseCallbackHandler):
        def on_retriever_start(self, serialized: Any, query: str, **more: Any) -> None:
            seen.append((query, more["tags"]))

        def on_retriever_end(self, documents: Any, **more: Any) -> None:
            seen.append(ids(documents))

    retriever = WordRetriever.from_texts(TEXTS, ids=list("abcd"), tags=["words"])
    assert ids(retriever.invoke("kb5034441", {"callbacks": [Listener()]})) == ["d"]
    assert seen == [("kb5034441", ["words"]), ["d"]]
    configurable = retriever.configurable_fields(k=ConfigurableField(id="k"))
    assert len(configurable.invoke("red lamp", {"configurable": {"k": 1}})) == 1
    assert len(configurable.invoke("red lamp")) == 3
    assert (retriever | len).invoke("lamp") == 2
    assert [len(found) for found in retriever.batch(["lamp", "fuse"])] == [2, 1]


async def test_ensemble_and_multi_query_retrievers(store: VectorStore) -> None:
    by_words, by_vector = WordRetriever.from_store(store, k=10), store.as_retriever(search_kwargs={"k": 10})
    found = EnsembleRetriever(retrievers=[by_vector, by_words], weights=[0.5, 0.5]).invoke(QUERY)
    every = [*numbers(by_vector.invoke(QUERY)), *numbers(by_words.invoke(QUERY))]
    assert {*numbers(found)} == {*every}
    assert len(found) == len({*every}) < len(every), "documents that both find are united"
    assert all(document.id for document in found)
    selected = SetSelectCompressor(vectorstore=store, k=4).compress_documents(found, QUERY)
    assert len(selected) == 4
    model = FakeListChatModel(responses=["hidden harbour\nnorthern engine"])
    several = await MultiQueryRetriever.from_llm(retriever=by_words, llm=model).ainvoke(QUERY)
    wanted = [*numbers(by_words.invoke("hidden harbour")), *numbers(by_words.invoke("northern engine"))]
    assert numbers(several) == list(dict.fromkeys(wanted))
