"""A retriever as a tool of an agent, which returns no text that its model reads already."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextvars import ContextVar
from itertools import chain
from typing import Annotated, Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, Callbacks
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import LLMResult
from langchain_core.prompts import BasePromptTemplate, PromptTemplate, format_document
from langchain_core.tools import InjectedToolArg, StructuredTool, ToolException
from langchain_core.tools.retriever import RetrieverInput
from langchain_core.tracers.context import register_configure_hook

from shared_core.retrieval.extra import check_integer
from shared_core.retrieval.inputs import check_instance
from shared_core.retrieval.pool import name_items, name_of_text
from shared_core.retrieval.result import JOINED
from shared_core.retrieval.tools import EMPTY_QUERY, NOTHING_NEW, ParallelCalls, as_storable, remember_steps

from .retriever import SetSelectRetriever, read_ids
from .vectors import reader_of


def create_setselect_tool(
    retriever: SetSelectRetriever,
    name: str,
    description: str,
    *,
    document_prompt: BasePromptTemplate[str] | None = None,
    document_separator: str = "\n\n",
    recent_calls: int | None = 1,
) -> StructuredTool:
    """A tool with which an agent searches, and which returns no text that its model reads already.

    It takes the place of LangChain's ``create_retriever_tool``. A handler of all runs in this process notes in each
    message that calls the tool which results the chat model got, after all middleware. What was cut, cleared or
    summarised comes again. Outside of a ``ToolNode`` the tool remembers nothing. See the page on agents.

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
    recent_calls : int, optional
        Where it is not known what the model got, because it is no chat model of LangChain: so many of the last results
        since the message of the human count as read. None: all results in the state count as read in any case.

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
    recent = None if recent_calls is None else check_integer(recent_calls, "recent_calls", 0)
    _READER.tools.add(name)
    prompt = document_prompt or PromptTemplate.from_template("{page_content}")
    calls_of = remember_steps()

    def start(query: str, runtime: Any) -> tuple[Hashable, list[Hashable], ParallelCalls]:
        """The call's id, the names of what earlier messages hold, and the calls of the same message."""
        if not query.strip():
            raise ToolException(EMPTY_QUERY)
        before: list[Hashable] = [*retriever._configured[0].shown]
        # A call outside of a graph.
        if runtime is None:
            return None, before, ParallelCalls()
        for message in _find_read(_read_messages(runtime.state), runtime.tool_call_id, recent):
            if message.name == name:
                # A middleware may have cut the result.
                whole = [one for one in _read_documents(message.artifact) if one.page_content in str(message.text)]
                before += _name(retriever, whole)[1]
        # The ids of the current step of the graph and of those that contain it, which no other run has.
        step = runtime.config.get("configurable", {}).get("checkpoint_map")
        return runtime.tool_call_id, before, calls_of(str(step)) if step else ParallelCalls()

    def answer(documents: list[Document], call_id: Hashable, parallel: ParallelCalls) -> tuple[str, list[Document]]:
        ids, parallel.names[call_id] = _name(retriever, documents)
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
        call_id, before, parallel = start(query, runtime)
        with parallel.alone:
            shown = [*before, *parallel.names_of_others(call_id)]
            return answer(retriever.invoke(query, {"callbacks": callbacks}, shown=shown), call_id, parallel)

    async def afunc(
        query: str, runtime: Annotated[Any, InjectedToolArg] = None, callbacks: Callbacks = None
    ) -> tuple[str, list[Document]]:
        call_id, before, parallel = start(query, runtime)
        async with parallel.alone_async:
            shown = [*before, *parallel.names_of_others(call_id)]
            return answer(await retriever.ainvoke(query, {"callbacks": callbacks}, shown=shown), call_id, parallel)

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


class _Reader(BaseCallbackHandler):
    """Notes in each message that calls one of the ``tools`` which results of tools the chat model got."""

    run_inline = True

    def __init__(self) -> None:
        self.tools: set[str] = set()
        self._got: dict[UUID, list[str]] = {}

    @property
    def ignore_custom_event(self) -> bool:
        """Our own events are not made for this handler."""
        return True

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **more: Any
    ) -> None:
        results = (message for one in messages for message in one if isinstance(message, ToolMessage))
        self._got[run_id] = [name_of_text(str(message.content)) for message in results]

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **more: Any) -> None:
        got = self._got.pop(run_id, None)
        for generation in chain.from_iterable(response.generations):
            message: Any = getattr(generation, "message", None)
            if got is not None and any(call["name"] in self.tools for call in getattr(message, "tool_calls", ())):
                message.response_metadata[_GOT] = got

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        self._got.pop(run_id, None)


# The key under which a message has what the model got, and the handler of all runs in this process.
_GOT, _READER = "setselect_got", _Reader()
register_configure_hook(ContextVar("setselect_reader", default=_READER), inheritable=True)


def _find_read(messages: Sequence[BaseMessage], call_id: str, recent: int | None) -> list[ToolMessage]:
    """The results that the model could read as it made this call; if that is not known, the ``recent`` last ones."""
    results = [message for message in messages if isinstance(message, ToolMessage)]
    if recent is None:
        return results
    for message in reversed(messages):
        if isinstance(message, AIMessage) and any(call["id"] == call_id for call in message.tool_calls):
            got = message.response_metadata.get(_GOT)
            if got is not None:
                return [result for result in results if name_of_text(str(result.content)) in got]
            break
    asked = max((row for row, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    since = [message for message in messages[asked + 1 :] if isinstance(message, ToolMessage)]
    return since[max(len(since) - recent, 0) :]


def _read_messages(state: Any) -> list[BaseMessage]:
    """The messages in a graph's state: a list, or a dict or object that has a list under any key."""
    values = [state] if isinstance(state, list) else (state if isinstance(state, Mapping) else vars(state)).values()
    lists = (value for value in values if isinstance(value, list))
    return [message for value in lists for message in value if isinstance(message, BaseMessage)]


def _read_documents(artifact: Any) -> list[Document]:
    """The documents of an artifact. Checkpoints, and clients that keep messages as JSON, make dicts of them."""
    items = artifact if isinstance(artifact, list) else []
    held = [dict(item) for item in items if isinstance(item, (Document, Mapping))]
    return [
        Document(one["page_content"], id=one.get("id"), metadata=one.get("metadata") or {})
        for one in held
        if "page_content" in one
    ]


def _name(retriever: SetSelectRetriever, documents: list[Document]) -> tuple[list[str | None], list[str]]:
    """The ids of documents, and the names by which ``shown`` recognises them."""
    ids = read_ids(retriever.vectorstore, reader_of(retriever.vectorstore), documents)
    texts = [document.page_content for document in documents]
    joined = [document.metadata.get(JOINED) for document in documents]
    return ids, name_items(ids, texts, joined)
