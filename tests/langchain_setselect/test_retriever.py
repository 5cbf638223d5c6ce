"""What only LangChain's retriever has: settings in ``search_kwargs`` and for one call, arguments of the store, runs."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from langchain_community.vectorstores import FAISS
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests

from langchain_setselect import SetSelectCompressor, SetSelectExampleSelector, SetSelectRetriever
from setselect import (
    MMR,
    NDPP,
    VRSD,
    InvalidParameterError,
    SetSelectWarning,
)
from tests.adapters.bindings import QUERY, expected, name_of, nearest, numbers
from tests.embedding import corpus
from tests.langchain_setselect.conftest import Runs, WordEmbeddings, faiss, faiss_inner_product, in_memory


def as_new(store: VectorStore, **settings: Any) -> list[Document]:
    return SetSelectRetriever(vectorstore=store, **settings).invoke(QUERY)


# In place of as_retriever


@pytest.mark.parametrize("make", [in_memory, faiss, faiss_inner_product])
def test_it_replaces_as_retriever(make: Any, embeddings: WordEmbeddings) -> None:
    store = make(embeddings)
    for search_kwargs in ({}, {"k": 11}, {"k": 5, "fetch_k": 40, "lambda_mult": 0.2}):
        settings = {"fetch_k": max(50, 5 * search_kwargs.get("k", 4)), **search_kwargs}
        theirs = store.as_retriever(search_type="mmr", search_kwargs=settings).invoke(QUERY)
        assert as_new(store, search_type="mmr", search_kwargs=search_kwargs) == theirs, "MMR of the store is right"


def test_its_documents_and_tags_are_those_of_as_retriever(store: VectorStore) -> None:
    ours, theirs = as_new(store, search_type="similarity"), store.as_retriever().invoke(QUERY)
    assert ours == theirs
    same = [a is b for a, b in zip(ours, theirs, strict=True)]
    assert same == [isinstance(store, FAISS)] * 4, "FAISS returns the documents of its docstore"
    for tags in (None, ["ours"]):
        retriever = SetSelectRetriever(vectorstore=store, tags=tags)
        assert retriever.tags == store.as_retriever(tags=tags).tags
        configurable(retriever).invoke(QUERY, config={"callbacks": [runs := Runs()], "configurable": {"k": 3}})
        assert runs.tags == [tags or [type(store).__name__, "WordEmbeddings"]]


# Settings in search_kwargs, and for one call


def test_search_kwargs_hold_settings_and_may_be_changed_in_place(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, search_type="mmr", search_kwargs={"k": 5, "lambda_mult": 0.9})
    assert numbers(retriever.invoke(QUERY)) == expected(nearest(), 5, "mmr", lambda_mult=0.9)
    retriever.search_kwargs.update(k=3, fetch_k=40, lambda_mult=0.1)
    assert numbers(retriever.invoke(QUERY)) == expected(nearest(40), 3, "mmr", lambda_mult=0.1)
    retriever.search_kwargs["shown"] = shown = []
    assert numbers(retriever.invoke(QUERY)) == expected(nearest(40), 3, "mmr", lambda_mult=0.1)
    shown.append(f"doc-{nearest()[0]}")
    assert numbers(retriever.invoke(QUERY)) == expected(nearest(41), 3, "mmr", lambda_mult=0.1, shown=[0])
    retriever.search_kwargs["k"] = 0
    with pytest.raises(InvalidParameterError, match="k"):
        retriever.invoke(QUERY)


async def test_arguments_of_one_call_override_and_do_not_last(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, search_type="mmr", search_kwargs={"k": 2, "lambda_mult": 1.0})
    for settings, wanted in (
        ({"k": 6, "fetch_k": 40, "lambda_mult": 0.1}, expected(nearest(40), 6, "mmr", lambda_mult=0.1)),
        ({"search_type": "vrsd"}, expected(nearest(), 2, "vrsd")),
        ({"selector": MMR(lambda_mult=0.1)}, expected(nearest(), 2, "mmr", lambda_mult=0.1)),
        ({"selector": NDPP(ridge=0.5)}, expected(nearest(), 2, "ndpp", ridge=0.5)),
        ({"relevance": "number"}, expected(nearest(), 2, "mmr", lambda_mult=1.0, relevance=nearest())),
    ):
        assert numbers(retriever.invoke(QUERY, **settings)) == wanted
        assert numbers(await retriever.ainvoke(QUERY, **settings)) == wanted
        assert numbers(retriever.bind(**settings).invoke(QUERY)) == wanted
    assert retriever.invoke(QUERY) == as_new(store, search_type="mmr", k=2, lambda_mult=1.0)
    for given in (MMR(), "mmr"):
        assert numbers(SetSelectRetriever(vectorstore=store, selector=given).invoke(QUERY, search_type="ndpp")) == (
            expected(nearest(), 4, "ndpp")
        )
    scored = as_new(store, scores=True)
    assert SetSelectRetriever(vectorstore=store).invoke(QUERY, scores=True) == scored
    assert SetSelectRetriever(vectorstore=store, scores=True).invoke(QUERY, scores=False) == as_new(store) != scored
    shown = [document.id for document in as_new(store)]
    assert SetSelectRetriever(vectorstore=store).invoke(QUERY, shown=shown) == as_new(store, shown=shown)


@pytest.mark.parametrize("cls", [SetSelectRetriever, SetSelectCompressor, SetSelectExampleSelector])
@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"selector": MMR(), "search_type": "vrsd"}, "search_type"),
        ({"search_type": "mrr"}, "mrr"),
        ({"k": 3, "search_kwargs": {"k": 3}}, "twice"),
        ({"search_kwargs": {"lamda_mult": 0.3}}, "lambda_mult"),
    ],
    ids=name_of,
)
def test_two_places_for_one_setting(cls: Any, embeddings: WordEmbeddings, settings: Any, word: str) -> None:
    with pytest.raises(InvalidParameterError, match=word):
        cls(vectorstore=InMemoryVectorStore(embeddings), **settings)


# Arguments of the store


async def test_the_stores_own_filter_is_used_and_may_be_changed_in_place(embeddings: WordEmbeddings) -> None:
    rows = [i for i, (_, metadata) in enumerate(corpus()) if metadata["topic"] == "harbour"]
    wanted = expected(nearest(8, among=rows))
    cases: list[tuple[VectorStore, Any]] = [
        (in_memory(embeddings), lambda document: document.metadata["topic"] == "harbour"),
        (faiss(embeddings), {"topic": "harbour"}),
    ]
    for store, given in cases:
        retriever = SetSelectRetriever(vectorstore=store, vectorstore_kwargs={"filter": given}, fetch_k=8)
        assert numbers(retriever.invoke(QUERY)) == numbers(await retriever.ainvoke(QUERY)) == wanted
        retriever.vectorstore_kwargs["filter"] = None  # type: ignore[index]
        assert retriever.invoke(QUERY) == as_new(store, fetch_k=8)
        assert numbers(retriever.invoke(QUERY, filter=given)) == wanted
        assert numbers(as_new(store, search_kwargs={"filter": given}, fetch_k=8)) == wanted
    strict = SetSelectRetriever(vectorstore=store, k=2, fetch_k=3, search_kwargs={"filter": {"number": 59}})
    assert numbers(strict.invoke(QUERY)) == [59], "FAISS itself searches among the nearest only"


async def test_arguments_that_the_store_does_not_have_are_refused(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, search_kwargs={"namespace": "a"})
    with pytest.raises(InvalidParameterError, match=rf"{type(store).__name__}.*'namespace'"):
        retriever.invoke(QUERY)
    with pytest.raises(InvalidParameterError, match="namespace"):
        await retriever.ainvoke(QUERY)
    with pytest.raises(InvalidParameterError, match="embeddings"):
        SetSelectRetriever(vectorstore=store).invoke(QUERY, embeddings=WordEmbeddings())


def test_the_default_source_is_the_metadata_key_source(store: VectorStore, embeddings: WordEmbeddings) -> None:
    with pytest.warns(SetSelectWarning, match=r"'source'.*topic"):
        assert as_new(store, max_per_source=1) == as_new(store)
    other = InMemoryVectorStore(embeddings)
    other.add_texts(["red river", "old river", "bread"], [{"source": "a"}, {"source": "a"}, {"source": "b"}])
    found = as_new(other, max_per_source=1)
    assert sorted(document.metadata["source"] for document in found) == ["a", "b"]


# Configured, dumped, copied


def configurable(retriever: SetSelectRetriever) -> Runnable[str, list[Document]]:
    fields = {name: ConfigurableField(id=name) for name in ("k", "search_kwargs", "search_type")}
    return retriever.configurable_fields(**fields)


async def test_fields_can_be_configured(store: VectorStore) -> None:
    retriever = configurable(SetSelectRetriever(vectorstore=store, k=3))
    assert retriever.invoke(QUERY) == as_new(store, k=3)
    settings = {"search_type": "mmr", "k": 6, "search_kwargs": {"lambda_mult": 0.2}}
    wanted = as_new(store, **settings)
    assert numbers(wanted) == expected(nearest(), 6, "mmr", lambda_mult=0.2)
    assert retriever.invoke(QUERY, config={"configurable": settings}) == wanted
    assert await retriever.ainvoke(QUERY, config={"configurable": settings}) == wanted
    assert retriever.with_config(configurable=settings).invoke(QUERY) == wanted
    assert (retriever | RunnableLambda(numbers)).invoke(QUERY, config={"configurable": settings}) == numbers(wanted)
    for bad, word in (({"search_type": "mrr"}, "mrr"), ({"k": 0}, "k"), ({"search_kwargs": {"fetchk": 3}}, "fetch_k")):
        with pytest.raises(InvalidParameterError, match=word):
            retriever.invoke(QUERY, config={"configurable": bad})


def test_fields_that_are_not_configured_stay_unchanged(store: VectorStore) -> None:
    made = SetSelectRetriever(
        vectorstore=store, selector=MMR(lambda_mult=0.2), perspective="northern", quality="quality", scores=False
    )
    for retriever in (made, pickle.loads(pickle.dumps(made)), SetSelectRetriever(**dict(made))):
        for settings in ({"search_kwargs": {"k": 7}}, {"k": 7}):
            assert configurable(retriever).invoke(QUERY, config={"configurable": settings}) == made.invoke(QUERY, k=7)


@pytest.mark.parametrize(
    "settings",
    [
        {"k": np.int64(3), "shown": ["a"], "lambda_mult": np.float32(0.5), "search_type": "mmr"},
        {"shown": {"a"}, "source": lambda d: d.id, "max_per_source": 3, "costs": len, "budget": 10},
        {"selector": VRSD(), "perspective": np.ones(48), "relevance": None},
    ],
    ids=["numpy numbers", "functions", "arrays"],
)
def test_fields_can_be_dumped(store: VectorStore, settings: dict[str, Any]) -> None:
    retriever = SetSelectRetriever(vectorstore=store, **settings)
    # pydantic would warn of a value that does not fit the type of its field.
    assert {*settings} <= retriever.model_dump(exclude={"vectorstore"}).keys()
    assert retriever.model_copy() == retriever


# Runs and events


class AsyncListener(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.told: list[Any] = []

    async def on_custom_event(self, name: str, data: Any, **more: Any) -> None:
        self.told.append(data)


async def test_the_event_reaches_all_handlers_of_the_chain_and_belongs_to_the_retrievers_run(
    store: VectorStore,
) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=2)
    wanted = [document.id for document in retriever.invoke(QUERY)]
    chain = retriever | RunnableLambda(numbers)
    runs, also, in_a_stream = Runs(), AsyncListener(), []
    chain.invoke(QUERY, config={"callbacks": [runs]})
    await chain.ainvoke(QUERY, config={"callbacks": [runs, also]})
    chain.with_config(callbacks=[runs]).batch([QUERY, QUERY])
    async for happening in chain.astream_events(QUERY, version="v2"):
        if happening["event"] == "on_custom_event":
            in_a_stream.append(happening["data"])
    assert [told["ids"] for told in runs.told] == [wanted] * 4
    assert sorted(runs.senders) == sorted(runs.runs)
    assert [told["ids"] for told in also.told] == [told["ids"] for told in in_a_stream] == [wanted]


class TestStandard(RetrieversIntegrationTests):
    retriever_query_example = "old river passage"

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return SetSelectRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": in_memory(WordEmbeddings())}
