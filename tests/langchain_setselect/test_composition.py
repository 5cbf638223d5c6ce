"""LangChain's components in front of the selection and behind it; documents that are stored more than once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

import numpy as np
import pytest
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    MultiQueryRetriever,
    MultiVectorRetriever,
    ParentDocumentRetriever,
)
from langchain_classic.retrievers.document_compressors import CohereRerank, DocumentCompressorPipeline
from langchain_classic.retrievers.self_query.base import SelfQueryRetriever
from langchain_classic.storage import InMemoryStore
from langchain_community.query_constructors.chroma import ChromaTranslator
from langchain_community.vectorstores import FAISS
from langchain_core._api import LangChainDeprecationWarning
from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_text_splitters import CharacterTextSplitter
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from langchain_setselect import SetSelectCompressor, SetSelectRetriever, vectors
from shared_core import EmbeddingFallbackWarning, InvalidInputError, InvalidParameterError, select
from tests.embedding import DIMENSION, TOPICS, corpus, embed
from tests.langchain_setselect.conftest import WordEmbeddings, faiss
from tests.langchain_setselect.test_ecosystem import Listener

QUERY = "hidden northern harbour engine"
SEARCH_TYPES = ("similarity", "vrsd", "mmr", "ndpp")
WITH_RELEVANCE = pytest.mark.parametrize("search_type", ["similarity", "mmr", "ndpp"])


@pytest.fixture(autouse=True)
def _nobody_was_warned_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_WARNED", set())


def numbers(documents: Sequence[Document]) -> list[int]:
    return [document.metadata["number"] for document in documents]


# Several queries


@pytest.mark.parametrize("search_type", SEARCH_TYPES)
async def test_multi_query_returns_each_document_once(store: VectorStore, search_type: str) -> None:
    model = FakeListChatModel(responses=["hidden harbour\nnorthern harbour\nhidden northern engine"])

    def found_by(retriever: Any) -> MultiQueryRetriever:
        return MultiQueryRetriever.from_llm(retriever=retriever, llm=model)

    theirs = found_by(store.as_retriever(search_kwargs={"k": 8})).invoke(QUERY)
    retriever = SetSelectRetriever(vectorstore=store, search_type=search_type, k=8)
    ours = found_by(retriever).invoke(QUERY)
    every_query = [number for line in model.responses[0].split("\n") for number in numbers(retriever.invoke(line))]
    assert len(set(every_query)) < len(every_query), "the queries must share documents for this test to test anything"
    assert numbers(ours) == list(dict.fromkeys(every_query))
    assert await found_by(retriever).ainvoke(QUERY) == ours
    if search_type == "similarity":
        assert ours == theirs


# After a reranker


class Reranker(BaseDocumentCompressor):
    """Sorts by a score that it leaves where LangChain's rerankers do."""

    sign: float = 1.0

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        scored = [
            document.model_copy(update={"metadata": {**document.metadata, "relevance_score": self.score(document)}})
            for document in documents
        ]
        return sorted(scored, key=lambda document: -document.metadata["relevance_score"])

    def score(self, document: Document) -> float:
        """Scores such as a cross-encoder's logits, below 0 too, which have nothing to do with the cosine."""
        return self.sign * (document.metadata["number"] * 37 % 60 - 30) / 4


def pipeline(store: VectorStore, reranker: BaseDocumentCompressor, **settings: Any) -> ContextualCompressionRetriever:
    selection = SetSelectCompressor(vectorstore=store, k=5, relevance="relevance_score", **settings)
    return ContextualCompressionRetriever(
        base_retriever=SetSelectRetriever(vectorstore=store, search_type="similarity", k=20),
        base_compressor=DocumentCompressorPipeline(transformers=[reranker, selection]),
    )


def reranked(store: VectorStore, reranker: Reranker) -> list[Document]:
    found = SetSelectRetriever(vectorstore=store, search_type="similarity", k=20).invoke(QUERY)
    return reranker.compress_documents(found, QUERY)


@WITH_RELEVANCE
@pytest.mark.parametrize("scale", ["minmax", "rank", "sigmoid", None])
async def test_a_rerankers_scores_decide_and_survive(store: VectorStore, search_type: str, scale: Any) -> None:
    found = {}
    for sign in (1, -1):
        reranker = Reranker(sign=sign)
        documents = reranked(store, reranker)
        rows = np.array([embed(document.page_content) for document in documents])
        scores = [reranker.score(document) for document in documents]
        wanted = select(embed(QUERY), rows, 5, search_type, relevance=scores, relevance_scale=scale)
        both = pipeline(store, reranker, search_type=search_type, relevance_scale=scale)
        found[sign] = both.invoke(QUERY)
        assert found[sign] == [documents[i] for i in wanted.indices], "metadata included"
        assert await both.ainvoke(QUERY) == found[sign]
    assert set(numbers(found[1])) != set(numbers(found[-1])), "reversed scores select others"
    plain = SetSelectCompressor(vectorstore=store, k=5, search_type=search_type)
    assert numbers(plain.compress_documents(documents, QUERY)) not in map(numbers, found.values())


def test_scores_on_request_leave_the_rerankers_score(store: VectorStore) -> None:
    listener = Listener()
    found = pipeline(store, Reranker(), search_type="mmr", scores=True).invoke(QUERY, config={"callbacks": [listener]})
    given = [Reranker().score(document) for document in found]
    assert [document.metadata["relevance_score"] for document in found] == given
    told = listener.events[-1]
    assert told["relevance"] == given, "the numbers that the reranker gave, not the scaled ones"
    assert told["gains"] == [document.metadata["selection_score"] for document in found]


def test_a_threshold_is_a_score_of_the_reranker(store: VectorStore) -> None:
    best = reranked(store, Reranker())[:3]
    lowest = Reranker().score(best[-1])
    found = pipeline(store, Reranker(), search_type="mmr", score_threshold=lowest).invoke(QUERY)
    assert lowest > 1, "no cosine"
    assert sorted(numbers(found)) == sorted(numbers(best))


@WITH_RELEVANCE
def test_the_most_relevant_may_stand_at_both_ends(store: VectorStore, search_type: str) -> None:
    found = pipeline(store, Reranker(), search_type=search_type, order="long_context").invoke(QUERY)
    scores = [Reranker().score(document) for document in found]
    best = sorted(scores, reverse=True)
    assert scores == [best[0], best[2], best[4], best[3], best[1]]


def test_vrsd_refuses_given_relevance_when_it_is_made_and_names_the_others(store: VectorStore) -> None:
    for make in (SetSelectCompressor, SetSelectRetriever):
        with pytest.raises(InvalidParameterError, match=r"'mmr', 'ndpp' or 'similarity'"):
            make(vectorstore=store, search_type="vrsd", relevance="relevance_score")


def test_another_method_for_one_call_keeps_the_given_relevance(store: VectorStore) -> None:
    def by_number(document: Document) -> float:
        return float(document.metadata["number"])

    retriever = SetSelectRetriever(vectorstore=store, search_type="mmr", lambda_mult=0.9, relevance=by_number)
    wanted = SetSelectRetriever(vectorstore=store, search_type="ndpp", relevance=by_number).invoke(QUERY)
    assert retriever.invoke(QUERY, search_type="ndpp") == wanted
    assert wanted != SetSelectRetriever(vectorstore=store, search_type="ndpp").invoke(QUERY)
    with pytest.raises(InvalidParameterError, match=r"'mmr', 'ndpp' or 'similarity'"):
        retriever.invoke(QUERY, search_type="vrsd")
    by_cosine = SetSelectRetriever(vectorstore=store, search_type="ndpp", relevance_mapping="exponential")
    by_vrsd = SetSelectRetriever(vectorstore=store, search_type="vrsd")
    assert by_cosine.invoke(QUERY, search_type="vrsd") == by_vrsd.invoke(QUERY)


def test_a_document_without_a_score_is_named(store: VectorStore) -> None:
    compressor = SetSelectCompressor(vectorstore=store, k=5, search_type="mmr", relevance="relevance_score")
    documents = reranked(store, Reranker())
    del documents[3].metadata["relevance_score"]
    with pytest.raises(InvalidInputError, match=rf"relevance.*'relevance_score'.*item 3 \(id '{documents[3].id}'\)"):
        compressor.compress_documents(documents, QUERY)


def test_langchains_own_reranker_stands_in_front(embeddings: WordEmbeddings) -> None:
    class Client:
        """Scores here, and not in a network, what Cohere's client sends away."""

        def rerank(self, query: str, documents: list[str], top_n: int, **more: Any) -> list[SimpleNamespace]:
            scores = {row: Reranker().score(document_of[text]) for row, text in enumerate(documents)}
            best = sorted(scores, key=lambda row: -scores[row])[:top_n]
            return [SimpleNamespace(index=row, relevance_score=scores[row]) for row in best]

    store = faiss(embeddings)
    document_of = {text: Document(text, metadata=dict(data)) for text, data in corpus()}
    with pytest.warns(LangChainDeprecationWarning):
        reranker = CohereRerank(client=Client(), top_n=20)
    # CohereRerank drops the documents' ids, so that their vectors cannot be looked up.
    with pytest.warns(EmbeddingFallbackWarning):
        found = pipeline(store, reranker, search_type="mmr").invoke(QUERY)
    assert numbers(found) == numbers(pipeline(store, Reranker(), search_type="mmr").invoke(QUERY))
    assert [document.metadata["relevance_score"] for document in found] == [
        Reranker().score(document) for document in found
    ]


# Repeated texts


def thrice(kind: str, texts: int = 334) -> VectorStore:
    """1,002 documents: each text three times, with ids, metadata and vectors of their own that are nearly the same."""
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.normal(size=(texts, DIMENSION)), 3, axis=0) + rng.normal(scale=1e-3, size=(3 * texts, 1))
    names = [f"id{i}" for i in range(3 * texts)]
    contents = [f"text {i // 3}" for i in range(3 * texts)]
    metadatas = [{"number": i, "copy": i % 3} for i in range(3 * texts)]
    if kind == "FAISS":
        pairs = list(zip(contents, rows.tolist(), strict=True))
        return FAISS.from_embeddings(pairs, WordEmbeddings(), metadatas, names, normalize_L2=True)
    store = InMemoryVectorStore(WordEmbeddings())
    for name, text, vector, metadata in zip(names, contents, rows.tolist(), metadatas, strict=True):
        store.store[name] = {"id": name, "text": text, "vector": vector, "metadata": metadata}
    return store


@pytest.mark.parametrize("kind", ["in memory", "FAISS"])
async def test_no_text_is_returned_twice_and_k_texts_come_whenever_there_are_k(kind: str) -> None:
    store = thrice(kind)
    for search_type in SEARCH_TYPES:
        for k, more in ((10, {}), (10, {"fetch_k": 11}), (10, {"fetch_k": 29}), (40, {"fetch_k": 41}), (334, {})):
            retriever = SetSelectRetriever(vectorstore=store, search_type=search_type, k=k, **more)
            found = retriever.invoke(QUERY)
            assert len({document.page_content for document in found}) == len(found) == k, (search_type, k, more)
        assert await retriever.ainvoke(QUERY) == found
        assert len(SetSelectRetriever(vectorstore=store, search_type=search_type, k=400).invoke(QUERY)) == 334
        first = SetSelectRetriever(vectorstore=store, search_type=search_type, k=10).invoke(QUERY)
        names = [document.id for document in first]
        second = SetSelectRetriever(vectorstore=store, search_type=search_type, k=10).invoke(QUERY, shown=names)
        texts = [document.page_content for document in (*first, *second)]
        assert len(set(texts)) == 20, "what was shown is not shown again under another id"


@pytest.mark.parametrize("kind", ["in memory", "FAISS"])
def test_repeated_texts_are_kept_if_asked_for(kind: str) -> None:
    retriever = SetSelectRetriever(vectorstore=thrice(kind), search_type="similarity", k=9, drop_duplicates=False)
    found = retriever.invoke(QUERY)
    assert len({document.page_content for document in found}) == 3
    assert len({document.id for document in found}) == 9
    assert len({document.page_content for document in retriever.invoke(QUERY, drop_duplicates=True)}) == 9


def test_a_compressor_returns_each_text_once() -> None:
    store = thrice("in memory", 12)
    documents = store.get_by_ids([f"id{i}" for i in range(36)])
    for search_type in SEARCH_TYPES:
        made = SetSelectCompressor(vectorstore=store, search_type=search_type, k=12)
        found = made.compress_documents(documents, QUERY)
        assert len({document.page_content for document in found}) == len(found) == 12


# Components that call the store


PARENTS = [Document("\n\n".join(f"{trait} {TOPICS[i % 6]} {i}" for trait in ("old", "loud", "red"))) for i in range(12)]


@pytest.mark.parametrize("cls", [ParentDocumentRetriever, MultiVectorRetriever])
async def test_parents_of_the_best_set_of_chunks(cls: Any, embeddings: WordEmbeddings) -> None:
    store = InMemoryVectorStore(embeddings)
    filled = ParentDocumentRetriever(
        vectorstore=store,
        docstore=InMemoryStore(),
        child_splitter=CharacterTextSplitter(chunk_size=18, chunk_overlap=0),
    )
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
    theirs = parents.invoke("river")
    assert len(theirs) < 4, "the retriever of LangChain returns fewer parents, because chunks share them"
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
    assert found == wanted
    assert {document.metadata["topic"] for document in found} == {"harbour"}
    assert await retriever.ainvoke("three northern passages about harbours") == found


class State(TypedDict):
    question: str
    documents: Annotated[list[Document], operator.add]


async def test_a_node_of_a_graph_continues_from_what_it_found(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=3)

    def retrieve(state: State) -> dict[str, Any]:
        return {"documents": retriever.invoke(state["question"], shown=[d.id for d in state["documents"]])}

    async def aretrieve(state: State) -> dict[str, Any]:
        return {"documents": await retriever.ainvoke(state["question"], shown=[d.id for d in state["documents"]])}

    def built(node: Callable[..., Any], more: Any = None) -> Any:
        graph = StateGraph(State)
        graph.add_node("retrieve", RunnableLambda(node, more))
        graph.add_edge(START, "retrieve")
        graph.add_conditional_edges(
            "retrieve", lambda state: "retrieve" if len(state["documents"]) < 9 else END, ["retrieve", END]
        )
        return graph.compile()

    end = built(retrieve).invoke({"question": QUERY, "documents": []})
    assert len(set(numbers(end["documents"]))) == 9
    first = retriever.invoke(QUERY)
    assert end["documents"][:3] == first
    assert end["documents"][3:6] == retriever.invoke(QUERY, shown=[d.id for d in first])
    assert await built(retrieve, aretrieve).ainvoke({"question": QUERY, "documents": []}) == end


def test_an_agents_tool_runs_in_a_graph(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=3)
    tool = create_retriever_tool(retriever, "passages", "Finds passages.")
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([tool]))
    graph.add_edge(START, "tools")
    call = {"name": "passages", "args": {"query": QUERY}, "id": "call-1", "type": "tool_call"}
    end = graph.compile().invoke({"messages": [HumanMessage(QUERY), AIMessage("", tool_calls=[call])]})
    assert end["messages"][-1].content == "\n\n".join(d.page_content for d in retriever.invoke(QUERY))
