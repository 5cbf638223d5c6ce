"""An agent whose language model follows a script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.schema import NodeWithScore
from typing_extensions import override


class ScriptedModel(MockFunctionCallingLLM):
    """Calls the tool ``passages`` once for each query of a turn, all in one message, and answers after the last turn."""

    turns: Sequence[Sequence[Any]]

    @override
    def _prepare_chat_with_tools(self, *arguments: Any, chat_history: Any = None, **kwargs: Any) -> dict[str, Any]:
        return {"messages": chat_history}

    @override
    def get_tool_calls_from_response(self, response: ChatResponse, **kwargs: Any) -> list[ToolSelection]:
        return [ToolSelection(**call) for call in response.message.additional_kwargs["calls"]]

    @override
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        last = max(i for i, message in enumerate(messages) if message.role == "user")
        turn = sum(message.role == "assistant" for message in messages[last:])
        queries = self.turns[turn] if turn < len(self.turns) else ()
        calls = [
            {"tool_id": f"{turn}-{i}", "tool_name": "passages", "tool_kwargs": {"query": query}}
            for i, query in enumerate(queries)
        ]
        content = "" if calls else "done"
        return ChatResponse(
            message=ChatMessage(role="assistant", content=content, additional_kwargs={"calls": calls})
        )

    @override
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        async def stream() -> AsyncIterator[ChatResponse]:
            yield await self.achat(messages)

        return stream()


def texts(outcome: Any) -> list[str]:
    """All texts that the tool returned in a run."""
    nodes: list[NodeWithScore] = [
        node for call in outcome.tool_calls if not call.tool_output.is_error for node in call.tool_output.raw_output
    ]
    return [node.text for node in nodes]
