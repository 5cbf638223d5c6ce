"""LangChain's components in front of the selection and behind it."""

from __future__ import annotations

import pytest
from langchain_classic.retrievers import EnsembleRetriever, MultiQueryRetriever
from langchain_core.language_models import FakeListChatModel
from langchain_core.vectorstores import VectorStore

from langchain_setselect import SetSelectCompressor, SetSelectRetriever
from tests.adapters.bindings import QUERY, expected, numbers

# Several queries, several retrievers


@pytest.mark.parametrize("search_type", ["similarity", "coverage"])
async def test_multi_query_returns_each_document_once(store: VectorStore, search_type: str) -> None:
    model = FakeListChatModel(responses=["hidden harbour\nnorthern harbour\nhidden northern engine"])
    retriever = SetSelectRetriever(vectorstore=store, search_type=search_type, k=8)
    both = MultiQueryRetriever.from_llm(retriever=retriever, llm=model)
    every = [number for line in model.responses[0].split("\n") for number in numbers(retriever.invoke(line))]
    assert len(set(every)) < len(every), "the queries must share documents for this test to test anything"
    found = both.invoke(QUERY)
    assert numbers(found) == list(dict.fromkeys(every))
    assert await both.ainvoke(QUERY) == found
    if search_type == "similarity":
        plain = store.as_retriever(search_kwargs={"k": 8})
        assert found == MultiQueryRetriever.from_llm(retriever=plain, llm=model).invoke(QUERY)


async def test_it_works_in_an_ensemble(store: VectorStore) -> None:
    by_set = SetSelectRetriever(vectorstore=store, k=5)
    by_cosine = SetSelectRetriever(vectorstore=store, search_type="similarity", k=5)
    ensemble = EnsembleRetriever(retrievers=[by_set, by_cosine], weights=[0.7, 0.3])
    # Reciprocal rank fusion, with the constant that EnsembleRetriever takes from the paper.
    points: dict[int, float] = {}
    for retriever, weight in ((by_set, 0.7), (by_cosine, 0.3)):
        for rank, number in enumerate(numbers(retriever.invoke(QUERY)), start=1):
            points[number] = points.get(number, 0) + weight / (rank + 60)
    found = ensemble.invoke(QUERY)
    assert numbers(found) == sorted(points, key=lambda number: -points[number])
    assert numbers(await ensemble.ainvoke(QUERY)) == numbers(found)
    chosen = SetSelectCompressor(vectorstore=store, k=3).compress_documents(found, QUERY)
    assert numbers(list(chosen)) == expected(numbers(found), 3)
