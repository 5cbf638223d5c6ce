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
DOCUMENTS = [Document(text, metadata={"n": i, "even": i % 2 == 0}) for i, text in enumerate(TEXTS)]


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


class TestStandard(RetrieversIntegrationTests):
    retriever_query_example = "lamp"

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return WordRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"words": WordRetriever.from_documents([Document("lamp", id=str(i)) for i in range(30)]).words}


def test_documents_without_ids_are_all_kept() -> None:
    assert ids(WordRetriever.from_documents([Document("lamp")] * 3).invoke("lamp")) == [None] * 3


@pytest.mark.parametrize(
    ("documents", "settings", "words"),
    [
        (["lamp"], {}, r"'lamp'.*Document\(text\)"),
        (DOCUMENTS, {"preprocess_func": str.split}, "preprocess_func"),
        (DOCUMENTS, {"filter": "n"}, "filter must be"),
    ],
)
def test_mistakes_of_from_documents(documents: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises((InvalidInputError, InvalidParameterError), match=words):
        WordRetriever.from_documents(documents, **settings)


def test_the_class_itself_names_its_constructors() -> None:
    for arguments in ({}, {"k": 3}):
        with pytest.raises(InvalidParameterError, match="from_documents"):
            WordRetriever(**arguments)


async def test_call_time_arguments() -> None:
    retriever = WordRetriever.from_documents(DOCUMENTS, k=1, filter={"n": 0})
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
