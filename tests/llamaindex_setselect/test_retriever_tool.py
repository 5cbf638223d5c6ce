"""A retriever tool that returns no text twice within one run, in a ``FunctionAgent``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.schema import IndexNode, MetadataMode, TextNode
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context

from llamaindex_setselect import SetSelectIndexRetriever, create_setselect_tool
from setselect import InvalidParameterError
from shared_core.retrieval.tools import EMPTY_QUERY, NOTHING_NEW
from tests.llamaindex_setselect.agents import scripted, texts
from tests.llamaindex_setselect.nodes_and_indexes import QUERY, STORES, TEXTS, CountingEmbedding, embedding, make_index

# Three messages with six calls.
SIX = [[QUERY], [QUERY], [QUERY, "tea and mood", QUERY, QUERY]]
TWO = [[QUERY], [QUERY, QUERY]]


def make_tool(index: VectorStoreIndex, **settings: Any) -> FunctionTool:
    retriever = SetSelectIndexRetriever(index, **{"similarity_top_k": 4, **settings})
    return create_setselect_tool(retriever, "passages", "Finds passages.")


def make_agent(tool: FunctionTool, turns: Any = SIX, **arguments: Any) -> FunctionAgent:
    return FunctionAgent(tools=[tool], llm=scripted(turns), **arguments)


# No text twice


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("kind", STORES)
async def test_six_calls_return_no_text_twice(kind: str, streaming: bool, model: CountingEmbedding) -> None:
    found = texts(await make_agent(make_tool(make_index(kind, model)), streaming=streaming).run("hello"))
    assert len({*found}) == len(found) == 24


async def test_parallel_calls_return_what_calls_one_after_another_return(index: VectorStoreIndex) -> None:
    at_once = await make_agent(make_tool(index), [[QUERY] * 4]).run("hello")
    in_turn = await make_agent(make_tool(index), [[QUERY]] * 4).run("hello")
    assert sorted(texts(at_once)) == sorted(texts(in_turn))
    retriever = SetSelectIndexRetriever(index, similarity_top_k=4)
    assert texts(in_turn)[:4] == [node.text for node in retriever.retrieve(QUERY)]


async def test_further_runs_repeat_nothing_that_the_chat_remembers(
    index: VectorStoreIndex, model: CountingEmbedding
) -> None:
    agent, memory = make_agent(make_tool(index), TWO), ChatMemoryBuffer.from_defaults(token_limit=100_000)
    context = Context(agent)
    found = texts(await agent.run("hello", ctx=context, memory=memory))
    found += texts(await agent.run("more", ctx=context, memory=memory))
    # After a restart.
    kept = json.loads(json.dumps(context.to_dict()))
    again = make_agent(make_tool(make_index("simple", model)), TWO)
    found += texts(await again.run("more", ctx=Context.from_dict(again, kept), memory=memory))
    assert len({*found}) == len(found) == 36
    # The memory of the chat is lost, or another chat begins.
    for new in (Context.from_dict(again, kept), Context(again)):
        assert sorted(texts(await again.run("hello", ctx=new))) == sorted(found[:12])


async def test_copies_under_other_ids_and_objects_behind_nodes(model: CountingEmbedding) -> None:
    nodes = [TextNode(text=text) for text in TEXTS[:20] for _ in range(3)]
    tool = make_tool(VectorStoreIndex(nodes, embed_model=model), fetch_k=8)
    found = texts(await make_agent(tool, [[QUERY]] * 6).run("hello"))
    assert sorted(found) == sorted(TEXTS[:20])
    whole = [
        IndexNode(text=text, index_id=text, obj=TextNode(text=f"all about {text}"), embedding=embedding(text))
        for text in TEXTS[:10]
    ]
    tool = make_tool(VectorStoreIndex(nodes=[], objects=whole, embed_model=model), fetch_k=8)
    found = texts(await make_agent(tool, [[QUERY]] * 3).run("hello"))
    assert sorted(found) == sorted(f"all about {text}" for text in TEXTS[:10])


# Nothing new


async def test_a_call_that_finds_nothing_new_says_so(model: CountingEmbedding) -> None:
    few = VectorStoreIndex([TextNode(text=text) for text in TEXTS[:6]], embed_model=model)
    outcome = await make_agent(make_tool(few, fetch_k=5), [[QUERY], [QUERY, QUERY]]).run("hello")
    assert [len(call.tool_output.raw_output) for call in outcome.tool_calls] == [4, 2, 0]
    assert outcome.tool_calls[-1].tool_output.content == NOTHING_NEW
    near = make_tool(few, score_threshold=0.99, fetch_k=5)
    outcome = await make_agent(near, [[TEXTS[0]], [TEXTS[0]]]).run("hello")
    assert [len(call.tool_output.raw_output) for call in outcome.tool_calls] == [1, 0]


# Several agents and tools, and what the model sees


async def test_two_tools_have_a_memory_each(index: VectorStoreIndex) -> None:
    agent = make_agent(make_tool(index), [[QUERY, QUERY]])
    context = Context(agent)
    other = create_setselect_tool(SetSelectIndexRetriever(index, similarity_top_k=3), "other.name", "Finds more.")
    answers = [await other.acall(ctx=context, query=QUERY) for _ in range(2)]
    assert len({node.node_id for answer in answers for node in answer.raw_output}) == 6
    assert answers[0].raw_output == SetSelectIndexRetriever(index, similarity_top_k=3).retrieve(QUERY)
    await agent.run("hello", ctx=context)
    kept = await context.store.get("setselect_shown")
    sizes = {name: [len(names) for _, names in of_tool] for name, of_tool in kept.items()}
    assert sizes == {"passages": [4, 4], "other.name": [3, 3]}


async def test_the_model_sees_texts_with_metadata_and_may_cite(index: VectorStoreIndex) -> None:
    retriever = SetSelectIndexRetriever(index, similarity_top_k=2)
    tool = create_setselect_tool(
        retriever, "passages", "Finds passages.", node_template="[{id}] {text}", node_separator="\n"
    )
    (call,) = (await make_agent(tool, [[QUERY]]).run("hello")).tool_calls
    nodes = retriever.retrieve(QUERY)
    expected = [f"[{node.node_id}] {node.node.get_content(MetadataMode.LLM)}" for node in nodes]
    assert call.tool_output.content == "\n".join(expected)
    assert call.tool_output.raw_output == nodes
    assert tool.metadata.get_parameters_dict()["required"] == ["query"]
    assert (tool.metadata.name, tool.metadata.description) == ("passages", "Finds passages.")


# Bad input


@pytest.mark.parametrize("query", ["", " \n", ["parts"], None])
async def test_the_model_is_told_of_a_wrong_query_and_may_go_on(index: VectorStoreIndex, query: Any) -> None:
    wrong, right = (await make_agent(make_tool(index), [[query], [QUERY]]).run("hello")).tool_calls
    assert (wrong.tool_output.is_error, wrong.tool_output.content) == (True, EMPTY_QUERY)
    assert len(right.tool_output.raw_output) == 4


def test_a_wrong_retriever_or_template_is_refused(index: VectorStoreIndex) -> None:
    wrong: Any = index.as_retriever()
    with pytest.raises(InvalidParameterError, match=r"SetSelectIndexRetriever.*VectorIndexRetriever"):
        create_setselect_tool(wrong, "passages", "Finds passages.")
    with pytest.raises(KeyError, match="score"):
        create_setselect_tool(SetSelectIndexRetriever(index), "passages", "Finds.", node_template="{score} {text}")
