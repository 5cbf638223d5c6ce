"""A language model that follows a script, and what an agent's tool returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.schema import NodeWithScore


def scripted(turns: Sequence[Sequence[Any]]) -> MockFunctionCallingLLM:
    """Calls the tool ``passages`` for each query of a turn, all in one message, and answers after the last turn."""

    def respond(messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
        last = max(i for i, message in enumerate(messages) if message.role == MessageRole.USER)
        turn = sum(message.role == MessageRole.ASSISTANT for message in messages[last:])
        if turn == len(turns):
            return ChatMessage("done", role=MessageRole.ASSISTANT)
        calls = [
            ToolCallBlock(tool_call_id=f"{turn}-{i}", tool_name="passages", tool_kwargs={"query": query})
            for i, query in enumerate(turns[turn])
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, blocks=[*calls])

    return MockFunctionCallingLLM(response_generator=respond)


def texts(outcome: Any) -> list[str]:
    """All texts that the tool returned in a run."""
    nodes: list[NodeWithScore] = [
        node for call in outcome.tool_calls if not call.tool_output.is_error for node in call.tool_output.raw_output
    ]
    return [node.text for node in nodes]
