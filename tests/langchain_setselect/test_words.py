"""WordRetriever in LangChain: its constructors, call-time arguments, and LangChain's components around it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from langchain_setselect import WordRetriever
from setselect import InvalidInputError, InvalidParameterError

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
