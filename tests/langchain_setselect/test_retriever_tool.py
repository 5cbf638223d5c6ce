"""A retriever tool that returns no text twice within one run, in agents that ``create_agent`` makes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import RemoveMessage, ToolMessage, messages_from_dict, messages_to_dict
from langchain_core.prompts import PromptTemplate
from langchain_core.tools import BaseTool, create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langgraph.checkpoint.memory import InMemorySaver

from langchain_setselect import SetSelectRetriever, create_setselect_tool
from setselect import InvalidParameterError
from shared_core.retrieval.tools import NOTHING_NEW
from tests.langchain_setselect.agents import ScriptedModel, asked, documents, results, texts
from tests.langchain_setselect.conftest import IDS, TEXTS, WordEmbeddings, in_memory

QUERY = "old violin passage"
# Three messages with six calls.
SIX = [[QUERY], [QUERY], [QUERY, "red bread", QUERY, QUERY]]
THREAD: Any = {"configurable": {"thread_id": "one"}}


def make_tool(store: VectorStore, **settings: Any) -> BaseTool:
    return create_setselect_tool(
        SetSelectRetriever(vectorstore=store, **{"k": 4, **settings}), "passages", "Finds passages."
    )


def make_agent(tool: BaseTool, turns: Any = SIX, **arguments: Any) -> Any:
    return create_agent(ScriptedModel(turns=turns), tools=[tool], **arguments)


def run(agent: Any, how: str, given: Any, config: Any = None) -> Any:
    match how:
        case "sync":
            return agent.invoke(given, config)
        case "async":
            return asyncio.run(agent.ainvoke(given, config))
        case _:
            return [*agent.stream(given, config, stream_mode="values")][-1]


# No text twice


@pytest.mark.parametrize("how", ["sync", "async", "streamed"])
@pytest.mark.parametrize("keeps", [False, True])
def test_six_calls_return_no_text_twice(store: VectorStore, how: str, keeps: bool) -> None:
    agent = make_agent(make_tool(store), checkpointer=InMemorySaver() if keeps else None)
    found = texts(run(agent, how, asked(), THREAD))
    assert len({*found}) == len(found) == 24


async def test_parallel_calls_return_what_calls_one_after_another_return(store: VectorStore) -> None:
    at_once = make_agent(make_tool(store), [[QUERY] * 4])
    in_turn = results(make_agent(make_tool(store), [[QUERY]] * 4).invoke(asked()))
    assert in_turn[0].artifact == SetSelectRetriever(vectorstore=store, k=4).invoke(QUERY)
    for state in (at_once.invoke(asked()), await at_once.ainvoke(asked())):
        assert sorted(str(message.content) for message in results(state)) == sorted(str(m.content) for m in in_turn)


def test_a_thread_resumes_with_other_objects() -> None:
    saver = InMemorySaver()
    first = texts(make_agent(make_tool(in_memory(WordEmbeddings())), checkpointer=saver).invoke(asked(), THREAD))
    again = make_agent(make_tool(in_memory(WordEmbeddings())), checkpointer=saver)
    found = texts(again.invoke(asked(), THREAD))
    assert found[:24] == first
    assert len({*found}) == len(found) == 48
    other: Any = {"configurable": {"thread_id": "two"}}
    assert texts(again.invoke(asked(), other))[:4] == first[:4]


async def test_runs_at_the_same_time_do_not_mix(store: VectorStore) -> None:
    tool, turns = make_tool(store), [[QUERY, QUERY], [QUERY]]
    agent = make_agent(tool, turns, checkpointer=InMemorySaver())
    alone = sorted(texts(agent.invoke(asked(), THREAD)))
    configs: list[Any] = [{"configurable": {"thread_id": f"at once {i}"}} for i in range(10)]
    states = [
        *await asyncio.gather(*(agent.ainvoke(asked(), config) for config in configs[:5])),
        *agent.batch([asked()] * 5, configs[5:]),
        *make_agent(tool, turns).batch([asked()] * 5),
    ]
    assert [sorted(texts(state)) for state in states] == [alone] * 15


@pytest.mark.parametrize("ids", [True, False])
def test_copies_and_documents_without_ids(ids: bool) -> None:
    store = InMemoryVectorStore(WordEmbeddings())
    thrice = [Document(text, id=f"{text} {i}" if ids else None) for text in TEXTS[:30] for i in range(3)]
    for document in thrice:
        store.add_documents([document])
    tool = make_tool(store, fetch_k=8)
    state = make_agent(tool, [[QUERY]] * 3 + [[QUERY] * 5]).invoke(asked())
    assert sorted(texts(state)) == sorted(TEXTS[:30])
    assert sorted(len(message.artifact) for message in results(state)) == [2, *[4] * 7]


@pytest.mark.filterwarnings("ignore:.*all of them are selected:setselect.SetSelectWarning")
@pytest.mark.parametrize("settings", [{}, {"drop_duplicates": False}, {"join_neighbours": True}], ids=str)
def test_a_document_whose_text_was_replaced_is_new(settings: dict[str, Any]) -> None:
    store, places = InMemoryVectorStore(WordEmbeddings()), [{"source": "a.md", "chunk": row} for row in (0, 1)]
    store.add_texts(["The price is 10 euro.", "It includes the tax."], places, ids=["a", "b"])
    tool = make_tool(store, k=2, fetch_k=2, **settings)
    agent = make_agent(tool, [["price"]], checkpointer=InMemorySaver())
    agent.invoke(asked(), THREAD)
    store.add_texts(["The price is 99 euro."], places[:1], ids=["a"])
    assert results(agent.invoke(asked(), THREAD))[-1].content == "The price is 99 euro."


# Nothing new


async def test_a_call_that_finds_nothing_new_says_so(embeddings: WordEmbeddings) -> None:
    few = InMemoryVectorStore.from_texts(TEXTS[:6], embeddings)
    agent = make_agent(make_tool(few, fetch_k=5), [[QUERY], [QUERY, QUERY], [QUERY]])
    for state in (agent.invoke(asked()), await agent.ainvoke(asked())):
        # Either of the two calls at the same time may be the first.
        assert sorted(len(message.artifact) for message in results(state)) == [0, 0, 2, 4]
        assert {message.content for message in results(state) if not message.artifact} == {NOTHING_NEW}
    for setting in ({"score_threshold": 0.9}, {"min_gain": 0.9, "min_k": 0}):
        near = make_agent(make_tool(in_memory(embeddings), **setting), [["old violin passage 4"]] * 2)
        assert [len(message.artifact) for message in results(near.invoke(asked()))] == [1, 0]


# What is remembered


def test_the_memory_is_that_of_the_messages() -> None:
    store = in_memory(WordEmbeddings())
    agent = make_agent(make_tool(store), [[QUERY]], checkpointer=InMemorySaver())
    agent.invoke(asked(), THREAD)
    first, second = results(agent.invoke(asked(), THREAD))
    agent.update_state(THREAD, {"messages": [RemoveMessage(id=str(first.id))]})
    third = results(agent.invoke(asked(), THREAD))[-1]
    shown = [document.id for document in documents(second)]
    assert third.artifact == SetSelectRetriever(vectorstore=store, k=4).invoke(QUERY, shown=shown)
    assert documents(first)[0] in third.artifact


def test_a_client_may_keep_the_messages_as_json(store: VectorStore) -> None:
    agent = make_agent(make_tool(store))
    state = agent.invoke(asked())
    kept = json.loads(json.dumps(messages_to_dict(state["messages"]), default=lambda document: document.model_dump()))
    again = agent.invoke({"messages": [*messages_from_dict(kept), *asked()["messages"]]})
    found = texts(state) + texts({"messages": again["messages"][len(kept) :]})
    assert len({*found}) == len(found) == 48


async def test_without_a_graph_each_call_is_on_its_own(store: VectorStore) -> None:
    tool, expected = make_tool(store), SetSelectRetriever(vectorstore=store, k=4).invoke(QUERY)
    call: Any = {"type": "tool_call", "name": "passages", "args": {"query": QUERY}, "id": "call"}
    for _ in range(2):
        message = tool.invoke(call)
        assert isinstance(message, ToolMessage)
        assert message.artifact == expected
        assert tool.invoke({"query": QUERY}) == message.content == "\n\n".join(d.page_content for d in expected)
        assert await tool.ainvoke({"query": QUERY}) == message.content


# What the model sees


def test_it_takes_the_place_of_the_tool_of_langchain(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=4)
    arguments: dict[str, Any] = {
        "name": "passages",
        "description": "Finds passages.",
        "document_prompt": PromptTemplate.from_template("{number}: {page_content}"),
        "document_separator": "\n",
    }
    ours, theirs = create_setselect_tool(retriever, **arguments), create_retriever_tool(retriever, **arguments)
    assert ours.tool_call_schema.model_json_schema() == theirs.tool_call_schema.model_json_schema()
    assert ours.invoke({"query": QUERY}) == theirs.invoke({"query": QUERY})


def test_the_model_may_cite(store: VectorStore) -> None:
    cited = create_setselect_tool(
        SetSelectRetriever(vectorstore=store, k=2),
        "passages",
        "Finds passages.",
        document_prompt=PromptTemplate.from_template("[{id}] {page_content}"),
    )
    (message,) = results(make_agent(cited, [[QUERY]]).invoke(asked()))
    assert message.content == "\n\n".join(f"[{document.id}] {document.page_content}" for document in message.artifact)
    assert {document.id for document in message.artifact} < {*IDS}
    assert all("id" not in document.metadata for document in message.artifact)


# Bad input


@pytest.mark.parametrize("query", ["", " \n", ["parts"], [{"type": "text", "text": QUERY}], None])
@pytest.mark.parametrize("how", ["sync", "async"])
def test_the_model_is_told_of_a_wrong_query_and_may_go_on(store: VectorStore, query: Any, how: str) -> None:
    state = run(make_agent(make_tool(store), [[query], [QUERY]]), how, asked())
    wrong, right = results(state)
    assert (wrong.status, right.status) == ("error", "success")
    assert "query" in str(wrong.content)
    assert len(right.artifact) == 4


def test_a_wrong_retriever_is_refused(store: VectorStore) -> None:
    wrong: Any = store.as_retriever()
    with pytest.raises(InvalidParameterError, match=r"SetSelectRetriever.*VectorStoreRetriever"):
        create_setselect_tool(wrong, "passages", "Finds passages.")
