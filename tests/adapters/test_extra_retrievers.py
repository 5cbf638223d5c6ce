"""Extra retrievers, whose documents join the candidates of the vector search: both adapters over three stores."""

from __future__ import annotations

import asyncio
import copy
import pickle
import time
import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import bm25s
import pytest
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever as LangChainRetriever
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever as LlamaIndexRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from pydantic import Field

from setselect import InvalidParameterError, SetSelectWarning
from tests.adapters.bindings import (
    QUERY,
    RETRIEVERS,
    ROWS,
    Row,
    Subject,
    _node,
    expected,
    metadata,
    nearest,
    numbers,
    over,
    unit,
)
from tests.embedding import embed
from tests.langchain_setselect.conftest import Runs, WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding

LANGCHAIN, LLAMAINDEX = RETRIEVERS
FETCH_K = 8
# The words of a row far from the question, and what it shares with others.
FAR = "violin passage 22"
OVER_STORES = pytest.mark.parametrize("kind", [0, 1, "Chroma"], ids=["in memory", "FAISS", "Chroma"])


class ByWords:
    """BM25 over rows."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows, self.index = [*rows], bm25s.BM25()
        self.index.index(bm25s.tokenize([row.text for row in rows], show_progress=False), show_progress=False)

    def search(self, text: str, k: int) -> list[Row]:
        words = bm25s.tokenize(text, show_progress=False)
        rows, scores = self.index.retrieve(words, k=min(k, len(self.rows)), show_progress=False)
        return [self.rows[row] for row, score in zip(rows[0], scores[0], strict=True) if score > 0]


class LangChainWords(LangChainRetriever):
    """A retriever over any search of rows; ``about`` is asked in place of the question."""

    search: Any
    k: int = 25
    about: str | None = FAR
    item: Any = None
    asked: list[str] = Field(default_factory=list)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.asked.append(query)
        rows = self.search.search(query if self.about is None else self.about, self.k)
        return list(map(self.item or LANGCHAIN.item, rows))


class LlamaIndexWords(LlamaIndexRetriever):
    """The same for LlamaIndex."""

    def __init__(self, search: Any, k: int = 25, about: str | None = FAR, item: Any = None) -> None:
        self.search, self.similarity_top_k, self.about, self.asked = search, k, about, []
        self.item, self.embeddings = item or LLAMAINDEX.item, list[Any]()
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append(query_bundle.query_str)
        self.embeddings.append(query_bundle.embedding)
        rows = self.search.search(query_bundle.query_str if self.about is None else self.about, self.similarity_top_k)
        return list(map(self.item, rows))


def words(subject: Subject, rows: Sequence[Row] = ROWS, **more: Any) -> Any:
    """A search by words in the framework of the subject."""
    search = more.pop("search", None) or ByWords(rows)
    if subject is LANGCHAIN:
        return LangChainWords(search=search, **more)
    return LlamaIndexWords(search, **more)


class Listed:
    """A search that returns the same rows, or raises, whatever is asked."""

    def __init__(self, rows: Sequence[Row] = (), error: BaseException | None = None, seconds: float = 0) -> None:
        self.rows, self.error, self.seconds = rows, error, seconds

    def search(self, text: str, k: int) -> list[Row]:
        time.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return [*self.rows[:k]]


def open_store(subject: Subject, kind: int | str, rows: Sequence[Row] = ROWS) -> Any:
    if kind != "Chroma":
        return subject.open(rows, subject.kinds[int(kind)])
    chromadb = pytest.importorskip("chromadb")
    collection = chromadb.EphemeralClient().create_collection(f"extra-{uuid.uuid4()}")
    if subject is LLAMAINDEX:
        from llama_index.vector_stores.chroma import ChromaVectorStore

        context = StorageContext.from_defaults(vector_store=ChromaVectorStore(chroma_collection=collection))
        return VectorStoreIndex(list(map(_node, rows)), embed_model=CountingEmbedding(), storage_context=context)
    from langchain_chroma import Chroma

    collection.add(
        ids=[row.id for row in rows],
        embeddings=[row.vector.tolist() for row in rows],
        documents=[row.text for row in rows],
        metadatas=[row.metadata for row in rows],
    )
    return Chroma(collection.name, WordEmbeddings(), client=chromadb.EphemeralClient())


def joined(fetch_k: int = FETCH_K, k: int = 25, about: str = FAR) -> list[int]:
    """The rows of the candidates: those that the vectors find, then the others that the words find."""
    by_words = [row.metadata["number"] for row in ByWords(ROWS).search(about, k)]
    return list(dict.fromkeys([*nearest(fetch_k), *by_words]))


def embedded(subject: Subject, store: Any) -> int:
    """How many texts the model of the store has embedded since the last look."""
    count: int = subject.model(store).counts()[1]
    return count


@OVER_STORES
@over(RETRIEVERS)
async def test_the_first_documents_of_a_search_by_words_join_the_candidates(subject: Subject, kind: int | str) -> None:
    store, told = open_store(subject, kind), list[Any]()
    embedded(subject, store)
    for k in (25, 5):
        retriever = words(subject)
        made = subject.make(store, fetch_k=FETCH_K, extra_retrievers=[retriever], extra_k=k)
        found = subject.run(made, told=told)
        assert numbers(found) == expected(joined(k=k)) != expected(nearest(FETCH_K))
        assert numbers(await subject.arun(made, told=told)) == numbers(found)
        assert embedded(subject, store) == 0
        assert retriever.asked == [QUERY] * 2
        # Another index may have another model.
        assert subject is LANGCHAIN or retriever.embeddings == [None] * 2
        event = told[-1]
        (report,) = event["extra_retrievers"]
        name = type(retriever).__name__
        assert report["name"] == name
        by_words = [row.id for row in ByWords(ROWS).search(FAR, k)]
        assert {*report["found"]} == {*by_words}
        assert event["candidates"] == len(joined(k=k))
        of_vectors = {ROWS[row].id for row in nearest(FETCH_K)}
        for pick, names in zip(event["ids"], event["found_by"], strict=True):
            assert names == [*["vector search"] * (pick in of_vectors), *[name] * (pick in by_words)]
        assert (report["error"], report["left_out"]) == (None, [])
        for one in (event, told[-2]):
            one["milliseconds"] = 0
        assert told[-2] == event


@over(RETRIEVERS)
def test_a_retriever_may_be_given_alone_and_set_anew(subject: Subject) -> None:
    store = subject.corpus()
    made = subject.make(store, fetch_k=FETCH_K, extra_retrievers=words(subject))
    assert numbers(subject.run(made)) == expected(joined())
    made.extra_retrievers = []
    assert numbers(subject.run(made)) == expected(nearest(FETCH_K))
    made.extra_retrievers = (words(subject), words(subject, about="bread"))
    two = list(dict.fromkeys([*joined(), *joined(about="bread")]))
    assert numbers(subject.run(made)) == expected(two)
    told: list[Any] = []
    subject.run(made, told=told)
    name = type(words(subject)).__name__
    assert [one["name"] for one in told[0]["extra_retrievers"]] == [name, f"{name} 2"]
    for way in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        assert numbers(subject.run(way(made))) == expected(two)


NEW = [Row(f"new-{i}", f"{QUERY} news {i}", {"number": 100 + i, "topic": "news"}, unit(embed("new"))) for i in range(3)]


@OVER_STORES
@over(RETRIEVERS)
async def test_what_the_store_does_not_have_is_embedded_at_once_and_returned_as_it_came(
    subject: Subject, kind: int | str
) -> None:
    store = open_store(subject, kind)
    items: dict[str, Any] = {}

    def keep(row: Row) -> Any:
        return items.setdefault(row.id, subject.item(row))

    made = subject.make(store, k=3, fetch_k=FETCH_K, extra_retrievers=words(subject, search=Listed(NEW), item=keep))
    embedded(subject, store)
    with pytest.warns(SetSelectWarning, match=r"3 this time.*(Word|Counting)Embedding.*no vectors") as told:
        found = subject.run(made)
    assert len(told) == 1
    assert embedded(subject, store) == 3
    # The texts begin with the words of the question.
    assert max(numbers(found)) >= 100
    for one in found:
        if metadata(one)["number"] >= 100:
            if subject is LANGCHAIN:
                assert one is items[one.id]
            else:
                assert one.node is items[one.node_id].node
    # A second warning would be an error here.
    assert numbers(await subject.arun(made)) == numbers(found)


@OVER_STORES
def test_documents_without_ids_are_known_by_their_text(kind: int | str) -> None:
    store = open_store(LANGCHAIN, kind)
    nameless = words(LANGCHAIN, item=lambda row: Document(row.text, metadata={"number": row.metadata["number"]}))
    made, told = LANGCHAIN.make(store, fetch_k=FETCH_K, extra_retrievers=nameless), list[Any]()
    embedded(LANGCHAIN, store)
    lacking = len(joined()) - FETCH_K
    with pytest.warns(SetSelectWarning, match=rf"{lacking} this time.*no id ") if kind == "Chroma" else nullcontext():
        found = LANGCHAIN.run(made, told=told)
    assert numbers(found) == expected(joined())
    assert told[0]["candidates"] == len(joined())
    # The stores in this process are asked for the ids of texts.
    assert embedded(LANGCHAIN, store) == (lacking if kind == "Chroma" else 0)
    found_ids = told[0]["extra_retrievers"][0]["found"]
    assert found_ids.count(None) == (lacking if kind == "Chroma" else 0)


@over(RETRIEVERS)
def test_sub_questions_go_to_each_retriever(subject: Subject) -> None:
    extra, told = words(subject, about=None), list[Any]()
    made = subject.make(
        subject.corpus(), k=2, fetch_k=9, queries=["loud bread", "red violin"], extra_retrievers=extra, extra_k=9
    )
    subject.run(made, told=told)
    assert extra.asked == [QUERY, "loud bread", "red violin"]
    by_words = [row.id for text in extra.asked for row in ByWords(ROWS).search(text, 25)[:3]]
    assert {*told[0]["extra_retrievers"][0]["found"]} == {*by_words}


# Four rows of topics that the nearest rows may lack; with ids, the store has all of them.
TOPIC = {row.metadata["topic"] for row in (ROWS[i] for i in nearest(1))}.pop()


def filtered(subject: Subject, kind: int | str) -> dict[str, Any]:
    """The argument of a search among the rows of one topic."""
    if subject is LLAMAINDEX:
        return {"filters": MetadataFilters(filters=[MetadataFilter(key="topic", value=TOPIC)])}
    by_function = {"filter": lambda document: document.metadata["topic"] == TOPIC}
    return {"search_kwargs": by_function if kind == 0 else {"filter": {"topic": TOPIC}}}


@over(RETRIEVERS)
def test_a_wider_search_does_not_ask_again(subject: Subject) -> None:
    copies = [ROWS[row]._replace(id=f"doc-{i}", text="one text") for i, row in enumerate(nearest(40))]
    rows = copies + [row._replace(id=f"doc-{40 + i}") for i, row in enumerate(ROWS[:20])]
    rows = [row._replace(metadata={**row.metadata, "number": i}) for i, row in enumerate(rows)]
    extra, told = words(subject, rows), list[Any]()
    made = subject.make(subject.open(rows, subject.kinds[0]), k=5, fetch_k=5, extra_retrievers=extra, extra_k=2)
    found = subject.run(made, told=told)
    assert len(found) == 5
    assert told[0]["fetch_k"] > 5
    assert extra.asked == [QUERY]
    assert len(told[0]["extra_retrievers"][0]["found"]) == 2


@over(RETRIEVERS)
async def test_a_failing_retriever_loses_nothing_and_says_what_happened(
    subject: Subject, caplog: pytest.LogCaptureFixture
) -> None:
    failing, told = words(subject, search=Listed(error=OSError("no connection"))), list[Any]()
    made = subject.make(subject.corpus(), fetch_k=FETCH_K, extra_retrievers=[failing, words(subject)])
    with pytest.warns(SetSelectWarning, match="no connection") as warned:
        assert numbers(subject.run(made, told=told)) == expected(joined())
    assert len(warned) == 1
    assert numbers(await subject.arun(made, told=told)) == expected(joined())
    for event in told:
        assert [one["error"] for one in event["extra_retrievers"]] == ["OSError: no connection", None]
    assert sum(record.name == "setselect" and record.exc_info is not None for record in caplog.records) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError])
@over(RETRIEVERS)
def test_an_interruption_passes_through(subject: Subject, error: type[BaseException]) -> None:
    made = subject.make(subject.corpus(), extra_retrievers=words(subject, search=Listed(error=error())))
    with pytest.raises(error):
        subject.run(made)


@over(RETRIEVERS)
async def test_what_a_retriever_returns_must_be_documents(subject: Subject) -> None:
    extra, told = words(subject, item=lambda row: row.text), list[Any]()
    made = subject.make(subject.corpus(), fetch_k=FETCH_K, extra_retrievers=extra)
    with pytest.warns(SetSelectWarning, match="Words"):
        assert numbers(subject.run(made, told=told)) == expected(nearest(FETCH_K))


@over(RETRIEVERS)
def test_what_is_no_retriever_is_refused_with_what_to_pass(subject: Subject) -> None:
    store, other = subject.corpus(), LLAMAINDEX if subject is LANGCHAIN else LANGCHAIN
    wrong: list[tuple[Any, str]] = [
        (store, "as_retriever"),
        ("words", "'words'"),
        (LangChainWords, "LangChainWords"),
        (7, "7"),
        ([words(subject), None], "None"),
        (words(other), f"retrievers of {'LangChain' if subject is LANGCHAIN else 'LlamaIndex'}"),
    ]
    for value, message in wrong:
        with pytest.raises(InvalidParameterError, match=message):
            subject.make(store, extra_retrievers=value)
    made = subject.make(store)
    with pytest.raises(InvalidParameterError, match="as_retriever"):
        subject.run(_changed(made, store))


def _changed(made: Any, retrievers: Any) -> Any:
    made.extra_retrievers = retrievers
    return made


def test_the_runs_of_langchains_retrievers_are_children_of_ours() -> None:
    class Parents(Runs):
        def __init__(self) -> None:
            super().__init__()
            self.of: list[Any] = []

        def on_retriever_start(self, *arguments: Any, parent_run_id: Any = None, **more: Any) -> None:
            super().on_retriever_start(*arguments, **more)
            self.of.append(parent_run_id)

    made = LANGCHAIN.make(LANGCHAIN.corpus(), queries=["loud bread"], extra_retrievers=words(LANGCHAIN))
    for run in (made.invoke, lambda *a, **m: asyncio.run(made.ainvoke(*a, **m))):
        runs = Parents()
        run(QUERY, config={"callbacks": [runs]})
        assert runs.of == [None, runs.runs[0], runs.runs[0]]


def test_real_retrievers_of_langchain() -> None:
    store, other = LANGCHAIN.corpus(), LANGCHAIN.open(NEW, "in memory")
    second = other.as_retriever(search_kwargs={"k": 25})
    ensemble = EnsembleRetriever(retrievers=[words(LANGCHAIN, about=None), second], id_key=None)
    chain = second | (lambda documents: documents[:1])
    told: list[Any] = []
    made = LANGCHAIN.make(store, fetch_k=FETCH_K, extra_retrievers=[second, ensemble, chain])
    with pytest.warns(SetSelectWarning, match="3 this time"):
        LANGCHAIN.run(made, told=told)
    reports = {one["name"]: one for one in told[0]["extra_retrievers"]}
    assert {*reports["VectorStoreRetriever"]["found"]} == {row.id for row in NEW}
    assert {row.id for row in NEW} < {*reports["EnsembleRetriever"]["found"]}
    assert len(reports["RunnableSequence"]["found"]) == 1
