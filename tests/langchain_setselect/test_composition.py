"""LangChain's components in front of the selection and behind it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MultiQueryRetriever,
    MultiVectorRetriever,
    ParentDocumentRetriever,
)
from langchain_classic.storage import InMemoryStore
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_text_splitters import CharacterTextSplitter

from langchain_setselect import SetSelectCompressor, SetSelectRetriever
from setselect import EmbeddingFallbackWarning
from shared_core.retrieval import events
from tests.adapters.bindings import QUERY, expected, numbers
from tests.embedding import TOPICS
from tests.langchain_setselect.conftest import WordEmbeddings


@pytest.fixture(autouse=True)
def _nobody_was_warned_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "FALLBACKS", set())


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


# Components that call the store


PARENTS = [Document("\n\n".join(f"{trait} {TOPICS[i % 6]} {i}" for trait in ("old", "loud", "red"))) for i in range(12)]


@pytest.mark.parametrize("cls", [ParentDocumentRetriever, MultiVectorRetriever])
async def test_parents_of_the_best_set_of_chunks(cls: Any, embeddings: WordEmbeddings) -> None:
    store = InMemoryVectorStore(embeddings)
    splitter = CharacterTextSplitter(chunk_size=18, chunk_overlap=0)
    filled = ParentDocumentRetriever(vectorstore=store, docstore=InMemoryStore(), child_splitter=splitter)
    filled.add_documents(PARENTS, ids=[f"parent {i}" for i in range(12)])
    parents = filled if cls is ParentDocumentRetriever else cls(vectorstore=store, docstore=filled.docstore)
    chunks = SetSelectRetriever(vectorstore=store, k=4, source=parents.id_key, max_per_source=1)

    def as_parents(found: list[Document]) -> list[Document]:
        return parents.docstore.mget([chunk.metadata[parents.id_key] for chunk in found])

    both = chunks | RunnableLambda(as_parents)
    found = both.invoke("river")
    assert len({document.page_content for document in found}) == len(found) == 4
    assert all(document in PARENTS for document in found)
    assert await both.ainvoke("river") == found
    assert len(parents.invoke("river")) < 4, "LangChain returns fewer parents, because chunks share them"
    # The chain is a retriever for other components.
    compressor = SetSelectCompressor(embeddings=embeddings, k=2)
    with pytest.warns(EmbeddingFallbackWarning):
        again = ContextualCompressionRetriever(base_retriever=both, base_compressor=compressor).invoke("river")
    assert len(again) == 2
