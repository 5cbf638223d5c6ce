"""The search tool beside a chat memory that forgets, with real agents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.workflow import Context

from llamaindex_setselect import SetSelectIndexRetriever, create_setselect_tool
from setselect import InvalidParameterError
from shared_core.retrieval.pool import name_of_text
from tests.llamaindex_setselect.nodes_and_indexes import QUERY, TEXTS, CountingEmbedding, make_index

INDEX = make_index("simple", CountingEmbedding())
# Two texts, and what is around them.
SMALL = 40


def search_tool(**more: Any) -> Any:
    return create_setselect_tool(SetSelectIndexRetriever(INDEX, similarity_top_k=2), "passages", "Finds.", **more)


def reading(queries: Sequence[str | None], read: list[set[str]], *, react: bool = False) -> Any:
    """A model that calls the tool, or answers for each None; it adds to ``read`` the texts that it can read."""

    def respond(messages: Sequence[ChatMessage], **more: Any) -> ChatMessage:
        pieces = re.split("\n+|Observation: ", "\n".join(str(message.content) for message in messages))
        read.append({*TEXTS} & {*pieces})
        query = queries[len(read) - 1]
        if react:
            action = f'Action: passages\nAction Input: {{"query": "{query}"}}'
            return ChatMessage(f"Thought: so.\n{action if query else 'Answer: done'}", role=MessageRole.ASSISTANT)
        call = ToolCallBlock(tool_call_id=f"{len(read)}", tool_name="passages", tool_kwargs={"query": query})
        blocks = [call] if query else [TextBlock(text="done")]
        return ChatMessage(role=MessageRole.ASSISTANT, blocks=blocks)

    return MockFunctionCallingLLM(response_generator=respond)


@pytest.mark.filterwarnings("ignore:is_running:DeprecationWarning")
@pytest.mark.parametrize("turns", [[QUERY, None] * 4, [QUERY, QUERY, QUERY, None]], ids=["turns", "one turn"])
@pytest.mark.parametrize("kind", ["large", "small", "memory", "react"])
async def test_only_what_the_model_reads_is_withheld(kind: str, turns: list[str | None]) -> None:
    read: list[set[str]] = []
    cls: Any = ReActAgent if kind == "react" else FunctionAgent
    agent = cls(tools=[search_tool()], llm=reading(turns, read, react=kind == "react"), streaming=False)
    memory: Any = ChatMemoryBuffer.from_defaults(token_limit=SMALL if kind == "small" else 100_000)
    if kind == "memory":
        memory = Memory.from_defaults(token_limit=2 * SMALL, chat_history_token_ratio=0.5)
    context = Context(agent)
    for _ in range(turns.count(None)):
        await agent.run("hello", ctx=context, memory=memory)
    retriever = SetSelectIndexRetriever(INDEX, similarity_top_k=2)
    for before, after, query in zip(read, read[1:], turns, strict=False):
        if query is not None and not (kind == "react" and len(turns) > 4 and before):
            retriever.shown = [*map(name_of_text, before)]
            assert {node.text for node in retriever.retrieve(query)} == after - before
    if kind == "memory":
        await memory.sql_store._async_engine.dispose()
    forgets = kind in ("small", "memory") and len(turns) > 4
    assert any(before - after for before, after in pairwise(read)) == forgets


@pytest.mark.parametrize(("recent", "distinct"), [(0, 2), (1, 4), (2, 6), (None, 8)])
async def test_in_a_workflow_of_ones_own_the_last_results_count(recent: int | None, distinct: int) -> None:
    tool, context = search_tool(recent_calls=recent), Context(FunctionAgent(llm=reading([], [])))
    answers = [await tool.acall(ctx=context, query=QUERY) for _ in range(4)]
    assert len({node.text for answer in answers for node in answer.raw_output}) == distinct
    with pytest.raises(InvalidParameterError, match="recent_calls"):
        search_tool(recent_calls=-1)
