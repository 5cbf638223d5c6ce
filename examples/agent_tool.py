"""LangChain: an agent that gets the best set of many tools, and whose retriever tool returns no document twice."""

from __future__ import annotations

from typing import Any

from _minilm import faiss_store, numpy_docs
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool, create_retriever_tool
from pydantic import Field

from langchain_setselect import SetSelectRetriever, SetSelectTools, create_setselect_tool


class ScriptedModel(GenericFakeChatModel):
    """Takes the place of a chat model: it answers with messages that are written here."""

    got: list[str] = Field(default_factory=list)

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        self.got[:] = [tool.name for tool in tools]
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
docs = numpy_docs()
store = faiss_store(docs)
retriever = SetSelectRetriever(vectorstore=store, k=4, fetch_k=50)

about = "numpy_docs", "Finds NumPy functions."
tools = {
    "create_retriever_tool": create_retriever_tool(retriever, *about, response_format="content_and_artifact"),
    "create_setselect_tool": create_setselect_tool(retriever, *about),
}
for made_by, tool in tools.items():
    model = ScriptedModel(messages=iter([*SCRIPT, AIMessage("numpy.unique_counts")]))
    agent = create_agent(model, tools=[tool])
    state = agent.invoke({"messages": [("user", "How do I count the values of an array?")]})
    results = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    names = [document.id for message in results for document in message.artifact]
    print(f"{made_by}: {len(results)} calls, {len(names)} documents, {len(set(names))} of them different")
    print(f"  The last call returned {', '.join(names[-4:])}\n")

functions = [
    StructuredTool.from_function(len, name=name.replace(".", "_"), description=text)
    for name, text in zip(docs.names, docs.texts, strict=True)
    if name.startswith(("numpy.fft.", "numpy.linalg.", "numpy.strings."))
]
model = ScriptedModel(messages=iter([AIMessage("done")]))
agent = create_agent(model, tools=functions, middleware=[SetSelectTools(store.embeddings, max_tools=6)])
agent.invoke({"messages": [("user", "Transform a real signal, solve a linear system, and strip a string")]})
print(f"{len(functions)} tools, of which the model got {len(model.got)}: {', '.join(model.got)}")
