"""LangChain's components in front of the selection and behind it."""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

import pytest
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MultiQueryRetriever,
    MultiVectorRetriever,
    ParentDocumentRetriever,
)
from langchain_classic.retrievers.document_compressors import CohereRerank, DocumentCompressorPipeline
from langchain_classic.retrievers.self_query.base import SelfQueryRetriever
from langchain_classic.storage import InMemoryStore
from langchain_community.query_constructors.chroma import ChromaTranslator
from langchain_core._api import LangChainDeprecationWarning
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_text_splitters import CharacterTextSplitter
from langgraph.graph import END, START, StateGraph

from langchain_setselect import SetSelectCompressor, SetSelectRetriever
from setselect import EmbeddingFallbackWarning
from shared_core.retrieval import events
from tests.adapters.bindings import QUERY, expected, nearest, numbers
from tests.embedding import TOPICS, corpus
from tests.langchain_setselect.conftest import WordEmbeddings, faiss


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


class KeywordRetriever(BaseRetriever):
    """Counts shared words, similar to BM25. It uses no vectors."""

    documents: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        words = set(query.split())
        return sorted(self.documents, key=lambda document: -len(words & set(document.page_content.split())))[:25]


async def test_it_compresses_what_a_keyword_retriever_found(store: VectorStore, embeddings: WordEmbeddings) -> None:
    rows = [Document(text, metadata=dict(data), id=f"doc-{i}") for i, (text, data) in enumerate(corpus())]
    keyword, made = KeywordRetriever(documents=rows), SetSelectCompressor(vectorstore=store, k=5)
    both = ContextualCompressionRetriever(base_retriever=keyword, base_compressor=made)
    found = both.invoke(QUERY)
    assert numbers(found) == expected(numbers(keyword.invoke(QUERY)), 5)
    assert await both.ainvoke(QUERY) == both.batch([QUERY, "old red river"])[0] == found
    assert embeddings.documents == 0
    nothing = ContextualCompressionRetriever(base_retriever=KeywordRetriever(documents=[]), base_compressor=made)
    assert nothing.invoke(QUERY) == []

    async def acompress(given: dict[str, Any]) -> list[Document]:
        return list(await made.acompress_documents(given["documents"], given["query"]))

    compress = RunnableLambda(lambda given: made.compress_documents(given["documents"], given["query"]), acompress)
    chain = {"documents": keyword, "query": RunnablePassthrough()} | compress
    assert chain.invoke(QUERY) == await chain.ainvoke(QUERY) == (await chain.abatch([QUERY]))[0] == found


# After a reranker


def test_langchains_own_reranker_stands_in_front(embeddings: WordEmbeddings) -> None:
    number_of = {text: data["number"] for text, data in corpus()}

    class Client:
        """Scores here, and not in a network, what Cohere's client sends away."""

        def rerank(self, query: str, documents: list[str], top_n: int, **more: Any) -> list[SimpleNamespace]:
            scores = {row: number_of[text] * 37 % 60 / 60 for row, text in enumerate(documents)}
            best = sorted(scores, key=lambda row: -scores[row])[:top_n]
            return [SimpleNamespace(index=row, relevance_score=scores[row]) for row in best]

    store = faiss(embeddings)
    with pytest.warns(LangChainDeprecationWarning):
        reranker = CohereRerank(client=Client(), top_n=20)
    selection = SetSelectCompressor(vectorstore=store, k=5, search_type="mmr", relevance="relevance_score")
    front = SetSelectRetriever(vectorstore=store, search_type="similarity", k=20)
    both = ContextualCompressionRetriever(
        base_retriever=front, base_compressor=DocumentCompressorPipeline(transformers=[reranker, selection])
    )
    embeddings.counts()
    # CohereRerank drops the documents' ids. The store knows their texts.
    found = both.invoke(QUERY)
    assert embeddings.counts()[1] == 0
    rows = sorted(nearest(20), key=lambda row: -(row * 37 % 60))
    scores = [row * 37 % 60 / 60 for row in rows]
    assert numbers(found) == expected(rows, 5, "mmr", relevance=scores)
    assert [d.metadata["relevance_score"] for d in found] == [row * 37 % 60 / 60 for row in numbers(found)]


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


class SetSelectSelfQuery(SelfQueryRetriever):
    def _get_docs_with_query(self, query: str, search_kwargs: dict[str, Any]) -> list[Document]:
        return SetSelectRetriever(vectorstore=self.vectorstore, search_kwargs=search_kwargs).invoke(query)

    async def _aget_docs_with_query(self, query: str, search_kwargs: dict[str, Any]) -> list[Document]:
        return await SetSelectRetriever(vectorstore=self.vectorstore, search_kwargs=search_kwargs).ainvoke(query)


async def test_a_self_query_filters_and_selects(embeddings: WordEmbeddings) -> None:
    store = faiss(embeddings)
    answer = '```json\n{"query": "northern", "filter": "eq(\\"topic\\", \\"harbour\\")", "limit": 3}\n```'
    retriever = SetSelectSelfQuery.from_llm(
        FakeListChatModel(responses=[answer]),
        store,
        "Passages",
        [{"name": "topic", "description": "What the passage is about", "type": "string"}],
        structured_query_translator=ChromaTranslator(),
        enable_limit=True,
    )
    found = retriever.invoke("three northern passages about harbours")
    wanted = SetSelectRetriever(vectorstore=store, k=3).invoke("northern", filter={"topic": "harbour"})
    assert found == await retriever.ainvoke("three northern passages about harbours") == wanted
    assert {document.metadata["topic"] for document in found} == {"harbour"}


# Tools and graphs


class State(TypedDict):
    question: str
    documents: Annotated[list[Document], operator.add]


async def test_a_node_of_a_graph_continues_from_what_it_found(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=3)

    def retrieve(state: State) -> dict[str, Any]:
        return {"documents": retriever.invoke(state["question"], shown=[d.id for d in state["documents"]])}

    async def aretrieve(state: State) -> dict[str, Any]:
        return {"documents": await retriever.ainvoke(state["question"], shown=[d.id for d in state["documents"]])}

    graph = StateGraph(State)
    graph.add_node("retrieve", RunnableLambda(retrieve, aretrieve))
    graph.add_edge(START, "retrieve")
    again = ["retrieve", END]
    graph.add_conditional_edges("retrieve", lambda state: again[len(state["documents"]) == 9], again)
    end = graph.compile().invoke({"question": QUERY, "documents": []})
    picked = numbers(end["documents"])
    assert picked[:3] == expected(nearest(), 3)
    assert len(set(picked)) == 9
    assert await graph.compile().ainvoke({"question": QUERY, "documents": []}) == end
