"""A retriever as a tool of an agent, which returns no text twice within one run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Annotated, Any, NamedTuple

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.messages import ToolMessage
from langchain_core.prompts import BasePromptTemplate, PromptTemplate, format_document
from langchain_core.tools import InjectedToolArg, StructuredTool, ToolException
from langchain_core.tools.retriever import RetrieverInput

from shared_core.retrieval.inputs import check_instance
from shared_core.retrieval.pool import name_items
from shared_core.retrieval.result import JOINED
from shared_core.retrieval.tools import EMPTY_QUERY, NOTHING_NEW, ParallelCalls, RecentSteps, as_storable

from .retriever import SetSelectRetriever, read_ids


def create_setselect_tool(
    retriever: SetSelectRetriever,
    name: str,
    description: str,
    *,
    document_prompt: BasePromptTemplate[str] | None = None,
    document_separator: str = "\n\n",
) -> StructuredTool:
    """A tool with which an agent searches, and which returns no text twice within one run. See the page on agents.

    It takes the place of LangChain's ``create_retriever_tool``. The messages in the state of the graph hold what the
    earlier calls returned, so with a checkpointer the tool remembers for the whole thread. Outside of a ``ToolNode`` it
    remembers nothing.

    Parameters
    ----------
    retriever : SetSelectRetriever
        The retriever that searches. Its settings apply to each call.
    name, description : str
        What the model reads about the tool. Tools with different names have separate memories.
    document_prompt : BasePromptTemplate, optional
        How the model sees a document, by default its text. ``PromptTemplate.from_template("[{id}] {page_content}")``
        lets it cite.
    document_separator : str
        The text between two documents.

    Returns
    -------
    StructuredTool
        The tool, for ``create_agent(model, tools=[tool])`` or a ``ToolNode``. The artifact of a message is the list of
        its documents, from which the next calls know what was returned.

    Examples
    --------
    >>> from langchain_core import embeddings, vectorstores
    >>> store = vectorstores.InMemoryVectorStore(embeddings.DeterministicFakeEmbedding(size=8))
    >>> _ = store.add_texts(["one", "two"])
    >>> tool = create_setselect_tool(SetSelectRetriever(vectorstore=store, k=1, fetch_k=2), "numbers", "Finds numbers.")
    >>> tool.invoke({"query": "one"})
    'one'
    """
    check_instance(retriever, SetSelectRetriever, "retriever")
    prompt = document_prompt or PromptTemplate.from_template("{page_content}")
    steps = RecentSteps()

    def start(query: str, runtime: Any) -> _Call:
        if not query.strip():
            raise ToolException(EMPTY_QUERY)
        return _Call.of(retriever, name, steps, runtime)

    def answer(call: _Call, documents: list[Document]) -> tuple[str, list[Document]]:
        ids, call.parallel.names[call.id] = _name(retriever, documents)
        # The prompt reads the metadata. A checkpointer has to store the artifact.
        cited = [
            document.model_copy(update={"metadata": {"id": item_id, **document.metadata}})
            for document, item_id in zip(documents, ids, strict=True)
        ]
        texts = [format_document(document, prompt) for document in cited]
        artifact = [document.model_copy(update={"metadata": as_storable(document.metadata)}) for document in documents]
        return document_separator.join(texts) if texts else NOTHING_NEW, artifact

    def func(
        query: str, runtime: Annotated[Any, InjectedToolArg] = None, callbacks: Callbacks = None
    ) -> tuple[str, list[Document]]:
        call = start(query, runtime)
        with call.parallel.alone:
            return answer(call, retriever.invoke(query, {"callbacks": callbacks}, shown=call.shown))

    async def afunc(
        query: str, runtime: Annotated[Any, InjectedToolArg] = None, callbacks: Callbacks = None
    ) -> tuple[str, list[Document]]:
        call = start(query, runtime)
        async with call.parallel.alone_async:
            return answer(call, await retriever.ainvoke(query, {"callbacks": callbacks}, shown=call.shown))

    return StructuredTool(
        name=name,
        description=description,
        func=func,
        coroutine=afunc,
        args_schema=RetrieverInput,
        response_format="content_and_artifact",
        # An empty query is a mistake of the model, which it can mend.
        handle_tool_error=True,
    )


class _Call(NamedTuple):
    """A call of the tool: its id, the names of what earlier messages hold, and the calls of the same message."""

    id: Hashable
    before: list[Hashable]
    parallel: ParallelCalls

    @classmethod
    def of(cls, retriever: SetSelectRetriever, tool: str, steps: RecentSteps, runtime: Any) -> _Call:
        """The call that LangGraph's ``ToolRuntime`` describes; None stands for a call outside of a graph."""
        before = [*retriever._configured[0].shown]
        if runtime is None:
            return cls(None, before, ParallelCalls())
        for message in _read_messages(runtime.state):
            if message.name == tool:
                before += _name(retriever, _read_documents(message.artifact))[1]
        # The ids of the current step of the graph and of those that contain it, which no other run has.
        step = runtime.config.get("configurable", {}).get("checkpoint_map")
        return cls(runtime.tool_call_id, before, steps.calls_of(str(step)) if step else ParallelCalls())

    @property
    def shown(self) -> list[Hashable]:
        """What the retriever must not return; to be read while the call holds the lock of ``parallel``."""
        return [*self.before, *self.parallel.names_of_others(self.id)]


def _read_messages(state: Any) -> list[ToolMessage]:
    """The messages of tools in a graph's state: a list, or a dict or object that has a list under any key."""
    values = [state] if isinstance(state, list) else (state if isinstance(state, Mapping) else vars(state)).values()
    lists = (value for value in values if isinstance(value, list))
    return [message for value in lists for message in value if isinstance(message, ToolMessage)]


def _read_documents(artifact: Any) -> list[Document]:
    """The documents of an artifact. Checkpoints, and clients that keep messages as JSON, make dicts of them."""
    documents = []
    for item in artifact if isinstance(artifact, list) else []:
        if isinstance(item, Mapping) and "page_content" in item:
            documents.append(Document(item["page_content"], id=item.get("id"), metadata=item.get("metadata") or {}))
        elif isinstance(item, Document):
            documents.append(item)
    return documents


def _name(retriever: SetSelectRetriever, documents: list[Document]) -> tuple[list[str | None], list[str]]:
    """The ids of documents, and the names by which ``shown`` recognises them."""
    ids = read_ids(retriever.vectorstore, documents)
    texts = [document.page_content for document in documents]
    joined = [document.metadata.get(JOINED) for document in documents]
    return ids, name_items(ids, texts, by_id=not retriever._configured[0].settings.drop_duplicates, joined=joined)
