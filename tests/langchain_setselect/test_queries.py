"""Sub-questions in LangChain: for one call, configured, from a chain, and in several stores."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.multi_query import DEFAULT_QUERY_PROMPT, LineListOutputParser
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, Runnable, RunnablePassthrough
from langchain_core.vectorstores import VectorStore

from langchain_setselect import SetSelectCompressor, SetSelectRetriever
from setselect import InvalidParameterError
from tests.adapters.bindings import QUERY, numbers
from tests.embedding import embed
from tests.langchain_setselect.conftest import Runs

PARTS = ["old violin passage 4", "red bread passage 20"]
# The texts that the parts quote.
PARTS_ROWS = {4, 20}


def splitting(parts: list[str] = PARTS) -> Runnable[Any, list[str]]:
    """What MultiQueryRetriever.from_llm makes of a model."""
    return DEFAULT_QUERY_PROMPT | FakeListChatModel(responses=["\n".join(parts)]) | LineListOutputParser()


# For one call, and configured


async def test_sub_questions_of_one_call(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=4)
    alone, found = retriever.invoke(QUERY), retriever.invoke(QUERY, queries=PARTS)
    assert {*numbers(found)} > PARTS_ROWS
    assert not PARTS_ROWS & {*numbers(alone)}
    assert await retriever.ainvoke(QUERY, queries=PARTS) == found
    assert retriever.batch([QUERY, QUERY], queries=PARTS) == [found, found]
    assert await retriever.abatch([QUERY, QUERY], queries=lambda question: PARTS) == [found, found]
    assert retriever.bind(queries=PARTS).invoke(QUERY) == found
    assert retriever.invoke(QUERY, queries=[]) == alone
    always = SetSelectRetriever(vectorstore=store, search_kwargs={"k": 4, "queries": PARTS})
    assert always.invoke(QUERY) == found
    assert always.invoke(QUERY, queries=None) == alone
    with pytest.raises(InvalidParameterError, match="VRSD"):
        retriever.invoke(QUERY, queries=PARTS, search_type="vrsd")


async def test_sub_questions_in_the_config_reach_the_retriever_of_a_chain(store: VectorStore) -> None:
    made = SetSelectRetriever(vectorstore=store, k=4)
    found = made.invoke(QUERY, queries=PARTS)
    configured = made.configurable_fields(queries=ConfigurableField(id="queries"))
    passed: Runnable[Any, Any] = RunnablePassthrough()
    chain = passed | {"documents": configured}
    for queries in (PARTS, splitting()):
        config: Any = {"configurable": {"queries": queries}}
        assert chain.invoke(QUERY, config)["documents"] == found
        assert (await chain.ainvoke(QUERY, config))["documents"] == found
        assert chain.with_config(config).batch([QUERY])[0]["documents"] == found
    assert chain.invoke(QUERY)["documents"] == made.invoke(QUERY)
    kept = SetSelectRetriever(vectorstore=store, k=4, queries=PARTS).configurable_fields(k=ConfigurableField(id="k"))
    assert kept.invoke(QUERY, {"configurable": {"k": 4}}) == found


# A chain that splits


@pytest.mark.parametrize("compress", [False, True])
async def test_the_prompt_of_multi_query_splits_and_its_run_belongs_to_the_retrievers(
    compress: bool, store: VectorStore
) -> None:
    settings: dict[str, Any] = {"vectorstore": store, "k": 4, "queries": splitting()}
    retriever: BaseRetriever = SetSelectRetriever(**settings)
    if compress:
        front = store.as_retriever(search_kwargs={"k": 60})
        retriever = ContextualCompressionRetriever(
            base_compressor=SetSelectCompressor(**settings), base_retriever=front
        )
    found = retriever.invoke(QUERY, config={"callbacks": [runs := Runs()]})
    assert {*numbers(found)} > PARTS_ROWS
    assert runs.runs[0] in runs.parents
    assert runs.told[0]["queries"] == [QUERY, *PARTS]
    assert {*PARTS} < {*runs.told[0]["serves"]}
    assert await retriever.ainvoke(QUERY, config={"callbacks": [runs := Runs()]}) == found
    assert runs.runs[0] in runs.parents


# Stores and models


class Local(Embeddings):
    """A model without async methods, which is not safe for threads."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.threads.append(threading.get_ident())
        return self.embed_documents([text])[0]


async def test_a_model_without_async_methods_is_called_in_one_thread(store: VectorStore) -> None:
    model = Local()
    retriever = SetSelectRetriever(vectorstore=store, embeddings=model, k=4, queries=PARTS)
    assert {*numbers(await retriever.ainvoke(QUERY))} > PARTS_ROWS
    assert len(model.threads) == 3
    assert len({*model.threads}) == 1
    assert model.threads[0] != threading.get_ident()
