"""An agent whose chat model follows a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from typing_extensions import override


class ScriptedModel(BaseChatModel):
    """Calls the tool ``passages`` for each query of a turn, all in one message, and answers after the last turn."""

    turns: Sequence[Sequence[Any]]

    @property
    @override
    def _llm_type(self) -> str:
        return "scripted"

    @override
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    @override
    def _generate(self, messages: list[BaseMessage], *arguments: Any, **kwargs: Any) -> ChatResult:
        last = max(i for i, message in enumerate(messages) if isinstance(message, HumanMessage))
        turn = sum(isinstance(message, AIMessage) for message in messages[last:])
        queries = self.turns[turn] if turn < len(self.turns) else ()
        # Equal ids in all runs: nothing but the run tells two of them apart.
        calls = [{"name": "passages", "args": {"query": query}, "id": f"{turn}-{i}"} for i, query in enumerate(queries)]
        message = AIMessage("" if calls else "done", tool_calls=calls, id=f"turn {len(messages)}")
        return ChatResult(generations=[ChatGeneration(message=message)])


def asked(text: str = "hello") -> Any:
    """The input of an agent."""
    return {"messages": [HumanMessage(text)]}


def results(state: Any) -> list[ToolMessage]:
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


def texts(state: Any) -> list[str]:
    """All texts that the tool returned in a run."""
    return [document.page_content for message in results(state) for document in documents(message)]


def documents(message: ToolMessage) -> list[Document]:
    """The artifact; LangGraph's checkpoints make dicts of its documents."""
    return [Document.model_validate(document) for document in message.artifact or ()]
