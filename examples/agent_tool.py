"""LangChain: the retriever as a tool of an agent, and a callback handler that prints what was selected and why."""

from __future__ import annotations

from typing import Any

from _minilm import faiss_store, numpy_docs
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.tools import create_retriever_tool

from langchain_setselect import SetSelectRetriever


class PrintSelection(BaseCallbackHandler):
    """Prints each selection; a logger or a tracer receives the same event."""

    def on_custom_event(self, name: str, data: Any, **more: Any) -> None:
        if name != "setselect":
            return
        print(f"{data['selector']} selected {len(data['ids'])} of {data['candidates']} ({data['vector_source']})")
        # A gain is high for a document that is relevant and brings words of the question that no earlier pick has. It
        # is negative for one that is far less relevant, or repeats an earlier pick.
        for document, cosine, gain in zip(data["ids"], data["relevance"], data["gains"], strict=True):
            print(f"  {document:28} cosine {cosine:.2f}, gain {gain:.3f}")


retriever = SetSelectRetriever(vectorstore=faiss_store(numpy_docs()), search_kwargs={"k": 4, "fetch_k": 50})
tool = create_retriever_tool(retriever, "numpy_docs", "Finds the NumPy functions for a task.")

# create_agent(model, tools=[tool]) gives an agent the tool. The model of the agent would answer with this message.
answer = AIMessage(
    "",
    tool_calls=[{"name": "numpy_docs", "args": {"query": "sort an array and count its unique values"}, "id": "call-1"}],
)
for call in answer.tool_calls:
    print(f"The model calls {call['name']}({call['args']['query']!r})")
    message = tool.invoke(call, config={"callbacks": [PrintSelection()]})
    print(f"and reads {len(message.content)} characters, beginning: {message.content[:60]}...")
