"""LangChain: each selection in the trace, as metadata of the retriever's run. Offline; the same class serves LangSmith.

LangSmith's tracer records runs, and no custom events. This tracer adds setselect's event to the run that sent it. For
LangSmith derive the class from langchain_core.tracers.LangChainTracer, and leave _persist_run out.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from _minilm import faiss_store, numpy_docs
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers import BaseTracer, Run

from langchain_setselect import SetSelectRetriever


class TraceSelections(BaseTracer):
    """Keeps the selector, the sizes, the vectors' source, the time, the ids and the gains with the run."""

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **more: Any) -> None:
        if name == "setselect":
            self.run_map[str(run_id)].add_metadata({"setselect": data})

    def _persist_run(self, run: Run) -> None:
        """Called once for each call of the chain, with all runs inside of it."""
        print_run(run)


def print_run(run: Run, indent: str = "") -> None:
    print(f"{indent}{run.run_type}: {run.name}")
    told = (run.extra or {}).get("metadata", {}).get("setselect")
    if told is not None:
        print(f"{indent}  {len(told['ids'])} of {told['candidates']} candidates, vectors from {told['vector_source']}")
        print(f"{indent}  {', '.join(told['ids'])}")
    for child in run.child_runs:
        print_run(child, indent + "  ")


retriever = SetSelectRetriever(vectorstore=faiss_store(numpy_docs()), k=3, fetch_k=50)
chain = retriever | RunnableLambda(lambda documents: "\n".join(document.page_content for document in documents))
chain.invoke("read numbers from a text file", config={"callbacks": [TraceSelections()]})
