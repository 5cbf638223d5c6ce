"""LangChain: an agent whose retriever tool returns no document twice, beside one with LangChain's own tool."""

from __future__ import annotations

from typing import Any

from _minilm import faiss_store, numpy_docs
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import create_retriever_tool

from langchain_setselect import SetSelectRetriever, create_setselect_tool


class ScriptedModel(GenericFakeChatModel):
    """Takes the place of a chat model: it answers with messages that are written here."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def call(*queries: str) -> AIMessage:
    """A message that calls the tool once for each query; an agent runs these calls at the same time."""
    calls = [{"name": "numpy_docs", "args": {"query": query}, "id": query} for query in queries]
    return AIMessage("", tool_calls=calls)


SCRIPT = [
    call("sort an array and count its unique values"),
    call("count unique values", "unique elements of a sorted array", "sort an array"),
    call("how often each value of an array occurs"),
]
retriever = SetSelectRetriever(vectorstore=faiss_store(numpy_docs()), k=4, fetch_k=50)

for make in (create_retriever_tool, create_setselect_tool):
    tool = make(retriever, "numpy_docs", "Finds NumPy functions.", response_format="content_and_artifact")
    model = ScriptedModel(messages=iter([*SCRIPT, AIMessage("numpy.unique_counts")]))
    agent = create_agent(model, tools=[tool])
    state = agent.invoke({"messages": [("user", "How do I count the values of an array?")]})
    results = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    names = [document.id for message in results for document in message.artifact]
    print(f"{make.__name__}: {len(results)} calls, {len(names)} documents, {len(set(names))} of them different")
    print(f"  The last call returned {', '.join(names[-4:])}\n")
