"""An agent middleware for LangChain: each model call gets the best set of tools for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

try:
    from langchain.agents.middleware.types import AgentMiddleware, ModelCallResult, ModelRequest, ModelResponse
except ImportError as error:
    raise ImportError('SetSelectTools needs the package langchain: pip install "setselect[langchain]"') from error
from langchain_core.embeddings import Embeddings
from typing_extensions import override

from shared_core.retrieval.flow import Flow, run_flow, run_flow_async
from shared_core.retrieval.tools import DEFAULT_MAX_TOOLS, ToolSelector

from .tools import TOOLS, as_model, read_messages, select_and_tell


class SetSelectTools(AgentMiddleware):
    """Gives each model call of an agent the best set of its tools; replaces ``LLMToolSelectorMiddleware``.

    :func:`select_tools` selects the tools for the messages of the call, without a language model. Tools that the agent
    has called stay until the next message of the human. Handlers of the run get the custom event ``"setselect"``, which
    the page on agents describes.

    Parameters
    ----------
    embeddings, max_tools, always_include, **settings
        As for :func:`select_tools`.

    Examples
    --------
    >>> from langchain.agents import create_agent
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from langchain_core.language_models import GenericFakeChatModel
    >>> from langchain_setselect import SetSelectTools
    >>> middleware = SetSelectTools(DeterministicFakeEmbedding(size=8), max_tools=5)
    >>> agent = create_agent(GenericFakeChatModel(messages=iter(["Hello"])), tools=[], middleware=[middleware])
    >>> agent.invoke({"messages": "Hi"})["messages"][-1].text
    'Hello'
    """

    def __init__(
        self,
        embeddings: Embeddings,
        max_tools: int | None = DEFAULT_MAX_TOOLS,
        always_include: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        super().__init__()
        self._selector = ToolSelector(
            type(self).__name__, TOOLS, as_model(embeddings), max_tools, always_include, settings
        )

    @override
    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelCallResult[Any]:
        return handler(request.override(tools=run_flow(self._select(request))))

    @override
    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelCallResult[Any]:
        return await handler(request.override(tools=await run_flow_async(self._select(request))))

    def _select(self, request: ModelRequest[Any]) -> Flow[list[Any]]:
        system = [] if request.system_message is None else [request.system_message]
        turn = read_messages([*system, *request.messages])
        # A tool that the model has to call stays too, and one that another middleware brings.
        brought = {tool.name for tool in request.tools if not isinstance(tool, dict) and _is_of_middleware(tool)}
        turn = turn._replace(called={*turn.called, *brought, *_names_in(request.tool_choice)})
        return select_and_tell(self._selector, request.tools, turn)


def _is_of_middleware(tool: Any) -> bool:
    """Whether the code of a tool stands in a package called ``middleware``."""
    code = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    return ".middleware." in f".{getattr(code, '__module__', '')}."


def _names_in(tool_choice: Any) -> list[str]:
    """The name of the tool that ``tool_choice`` demands: a name, or a dict as OpenAI or Anthropic have it."""
    if isinstance(tool_choice, Mapping):
        tool_choice = (tool_choice.get("function") or tool_choice).get("name")
    return [tool_choice] if isinstance(tool_choice, str) else []
