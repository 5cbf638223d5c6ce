"""The set of LangChain tools for a request, and what is read of tools and of messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, convert_to_messages
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.utils.pydantic import get_fields

from shared_core.errors import warn
from shared_core.retrieval.flow import Flow, run_flow, run_flow_async
from shared_core.retrieval.inputs import check_instance, check_question
from shared_core.retrieval.tools import (
    DEFAULT_MAX_TOOLS,
    EmbeddingModel,
    Tool,
    ToolKind,
    ToolSelector,
    Turn,
    check_tools,
    read_turn,
    refuse_tool,
)

from .retriever import tell
from .vectors import describe_embedding, embed_questions, embed_texts

AnyTool = BaseTool | Callable[..., Any] | dict[str, Any]
# The types of dicts that describe a function. A dict with another type is a tool of the provider.
_FUNCTION_TYPES = (None, "function", "custom")


def select_tools(
    query: str | Sequence[Any],
    tools: Sequence[AnyTool],
    max_tools: int | None = DEFAULT_MAX_TOOLS,
    *,
    embeddings: Embeddings,
    always_include: Sequence[str] = (),
    **settings: Any,
) -> list[Any]:
    """The best set of ``max_tools`` tools for a request, in the order of ``tools``; they cover all of its parts.

    :class:`SetSelectTools` does this before each model call of an agent. This function is for loops of your own. The
    page on agents says how tools are selected. If the embedding model fails, or the request has no text, you get all.

    Parameters
    ----------
    query : str or sequence of messages
        The request, or the messages of an agent, of which the last human message is the request.
    tools : sequence of BaseTool, callable or dict
        The tools. A dict that describes no function, such as ``{"type": "web_search"}``, is a tool of the provider, and
        you always get it back.
    max_tools : int, optional
        The most tools to select. None with a ``budget``: as many as fit.
    embeddings : Embeddings
        The embedding model.
    always_include : sequence of str
        Names of tools that you get in any case, besides the ``max_tools``.
    **settings
        Settings of :class:`Settings`. A ``budget`` is in tokens of the tools' schemas. ``queries`` takes the place of
        the clauses of the request.

    Examples
    --------
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from langchain_setselect import select_tools
    >>> def weather(city: str) -> str:
    ...     "The weather in a city."
    >>> def convert(amount: float, currency: str) -> str:
    ...     "Convert an amount of money."
    >>> chosen = select_tools(
    ...     "What is the weather in Oslo?", [convert, weather], 1, embeddings=DeterministicFakeEmbedding(size=8)
    ... )
    >>> [tool.__name__ for tool in chosen]
    ['weather']
    """
    return run_flow(_select(query, tools, max_tools, embeddings, always_include, **settings))


async def aselect_tools(
    query: str | Sequence[Any], tools: Sequence[AnyTool], max_tools: int | None = DEFAULT_MAX_TOOLS, **settings: Any
) -> list[Any]:
    """The async version of :func:`select_tools`."""
    return await run_flow_async(_select(query, tools, max_tools, **settings))


def _select(
    query: Any, tools: Any, max_tools: int | None, embeddings: Any = None, always_include: Any = (), **settings: Any
) -> Flow[list[Any]]:
    selector = ToolSelector("select_tools", TOOLS, as_model(embeddings), max_tools, always_include, settings)
    return select_and_tell(selector, check_tools(tools), _read_query(query))


def _read_query(query: Any) -> Turn:
    """What a text, a list of messages or a prompt asks."""
    if isinstance(query, (list, tuple, PromptValue)):
        return read_messages(convert_to_messages(query))
    if not check_question(query).strip():
        warn("the request is empty, so all tools come back: pass what the user asks")
    return Turn([query])


def as_model(embeddings: Any) -> EmbeddingModel:
    """The embedding model for the selection."""
    check_instance(embeddings, Embeddings, "embeddings")
    return EmbeddingModel(
        embeddings,
        partial(embed_texts, embeddings),
        partial(embed_questions, embeddings),
        describe_embedding(embeddings),
    )


def select_and_tell(selector: ToolSelector, tools: Sequence[Any], turn: Turn) -> Flow[list[Any]]:
    """The tools for what the messages ask; handlers of the run, if there is one, get the event."""
    callbacks = ensure_config().get("callbacks")
    selected, make_event = yield from selector.select(tools, turn, {"callbacks": callbacks})
    yield from tell(callbacks, make_event)
    return selected


def read_messages(messages: Sequence[AnyMessage | BaseMessage]) -> Turn:
    """What the messages of an agent ask."""
    said = [(isinstance(m, HumanMessage), _text_of(m)) for m in messages if isinstance(m, (HumanMessage, AIMessage))]
    last = max((row for row, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    called = {
        call["name"]
        for message in messages[last + 1 :]
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
    system = "\n".join(_text_of(message) for message in messages if isinstance(message, SystemMessage))
    return read_turn(said, called)._replace(system=system)


def _text_of(message: BaseMessage) -> str:
    """The texts of the parts of a message. LangChain's own ``text`` puts nothing between them."""
    parts = [message.content] if isinstance(message.content, str) else message.content
    texts = (part if isinstance(part, str) else part.get("text") for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str))


def read_tool(tool: Any) -> Tool | None:
    """What the selection reads of a tool; None for a tool of the provider."""
    if isinstance(tool, BaseTool):
        schema: Any = tool.tool_call_schema
        arguments = schema.get("properties", ()) if isinstance(schema, dict) else get_fields(schema)
        return Tool.of(tool, tool.name, tool.description, arguments, tool.metadata)
    if isinstance(tool, Mapping):
        return _read_dict(tool)
    name = getattr(tool, "__name__", None)
    if not callable(tool) or not name:
        raise refuse_tool(tool, "pass a tool of LangChain, a function with a name, or a dict")
    return Tool.of(tool, name, inspect.cleandoc(tool.__doc__ or ""), inspect.signature(tool).parameters)


def _read_dict(tool: Mapping[str, Any]) -> Tool | None:
    """A function as OpenAI, Anthropic or Bedrock describe it, or a JSON schema with a title."""
    function = tool.get("function") or tool.get("toolSpec") or tool
    if tool.get("type") not in (*_FUNCTION_TYPES, "object") or not isinstance(function, Mapping):
        return None
    name = function.get("name") or function.get("title")
    schema = next(
        (function[key] for key in ("parameters", "input_schema", "inputSchema") if function.get(key)), function
    )
    schema = schema.get("json", schema)
    properties = schema.get("properties")
    if not isinstance(name, str) or not (function.get("description") or properties):
        return None
    return Tool.of(tool, name, function.get("description"), properties or ())


TOOLS = ToolKind(read_tool, lambda tool: tool if isinstance(tool, dict) else convert_to_openai_tool(tool))
