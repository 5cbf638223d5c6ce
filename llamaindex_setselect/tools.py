"""An object retriever for LlamaIndex's agents: the best set of tools for a request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent
from llama_index.core.objects import ObjectRetriever
from llama_index.core.schema import QueryBundle, QueryType
from llama_index.core.tools import BaseTool, FunctionTool
from typing_extensions import override

from shared_core.retrieval.flow import run_flow, run_flow_async
from shared_core.retrieval.inputs import check_instance, check_question
from shared_core.retrieval.settings import Call
from shared_core.retrieval.tools import (
    DEFAULT_MAX_TOOLS,
    EmbeddingModel,
    Tool,
    ToolKind,
    ToolSelector,
    Turn,
    check_tools,
    refuse_tool,
)

from ._settings import EVENT, dispatcher, is_heard
from .vectors import NodeVectors, embed_as_queries


class _Call(Call):
    size_name = "similarity_top_k"


class SetSelectToolRetriever(ObjectRetriever[BaseTool]):
    """Retrieves the best set of tools for a request; replaces ``object_index.as_retriever(similarity_top_k=10)``.

    Give it to an agent with ``FunctionAgent(tool_retriever=SetSelectToolRetriever(tools, embed_model))``. The page on
    agents says how tools are selected. LlamaIndex asks with the user's message at each step, and gets a tool alone if
    it asks with its name. If the embedding model fails, or the request has no text, you get all tools. The tags of the
    ``ReRankEndEvent`` hold under ``"setselect"`` what was selected.

    Parameters
    ----------
    tools : sequence of BaseTool or callable
        The tools, in place of an ``ObjectIndex`` of them. The list ``tools`` of the object may be changed later.
    embed_model : BaseEmbedding, optional
        By default the one set in LlamaIndex's ``Settings``.
    similarity_top_k : int, optional
        The most tools to select. None with a ``budget``: as many as fit.
    always_include : sequence of str
        Names of tools that you get in any case, besides the ``similarity_top_k``.
    **settings
        Settings of :class:`Settings`. A ``budget`` is in tokens of the tools' schemas. ``queries`` takes the place of
        the clauses of the request.

    Examples
    --------
    >>> from llama_index.core import MockEmbedding
    >>> from llamaindex_setselect import SetSelectToolRetriever
    >>> def weather(city: str) -> str:
    ...     "The weather in a city."
    >>> def convert(amount: float, currency: str) -> str:
    ...     "Convert an amount of money."
    >>> retriever = SetSelectToolRetriever([convert, weather], MockEmbedding(embed_dim=8), similarity_top_k=1)
    >>> [tool.metadata.name for tool in retriever.retrieve("What is the weather in Oslo?")]
    ['weather']
    """

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., Any]],
        embed_model: BaseEmbedding | None = None,
        similarity_top_k: int | None = DEFAULT_MAX_TOOLS,
        always_include: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        # The parent keeps the retriever and the mapping of an index, which a list of tools does not have.
        self._node_postprocessors = []
        self.tools: list[BaseTool] = [*map(_as_tool, check_tools(tools))]
        self._selector = ToolSelector(
            type(self).__name__, TOOLS, _as_model(embed_model), similarity_top_k, always_include, settings, _Call
        )

    @override
    def retrieve(self, str_or_query_bundle: QueryType) -> list[BaseTool]:
        text = _read_text(str_or_query_bundle)
        return _with_name(self.tools, text) or _tell(*run_flow(self._selector.select(self.tools, Turn([text]))))

    @override
    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[BaseTool]:
        text = _read_text(str_or_query_bundle)
        found = _with_name(self.tools, text)
        return found or _tell(*await run_flow_async(self._selector.select(self.tools, Turn([text]))))


def _as_tool(tool: Any) -> BaseTool:
    if isinstance(tool, BaseTool):
        return tool
    if not callable(tool):
        raise refuse_tool(tool, "pass tools of LlamaIndex, or functions")
    return FunctionTool.from_defaults(tool)


def _as_model(embed_model: BaseEmbedding | None) -> EmbeddingModel:
    vectors = NodeVectors.of(None, embed_model)
    model = vectors.need_model()
    check_instance(model, BaseEmbedding, "embed_model")
    return EmbeddingModel(
        model,
        vectors.embed,
        partial(embed_as_queries, model),
        f"embedding the texts with {type(model).__name__}",
    )


def _read_text(query: QueryType) -> str:
    text: str = query.query_str if isinstance(query, QueryBundle) else query
    return check_question(text)


def _with_name(tools: Sequence[BaseTool], text: str) -> list[BaseTool]:
    """The tool of which the text is the name; LlamaIndex asks for it when it calls the tool."""
    return [tool for tool in tools if tool.metadata.name == text][-1:]


def _tell(tools: list[BaseTool], make_event: Callable[[], dict[str, Any]]) -> list[BaseTool]:
    """The tools; sends the event."""
    if is_heard():
        dispatcher.event(ReRankEndEvent(nodes=[], tags={EVENT: make_event()}))
    return tools


def _read_tool(tool: Any) -> Tool | None:
    """What the selection reads of a tool; None for one without a name, which stays as it is."""
    about = _as_tool(tool).metadata
    if not about.name:
        return None
    arguments = () if about.fn_schema is None else about.fn_schema.model_fields
    return Tool.of(tool, about.name, about.description, arguments)


TOOLS = ToolKind(_read_tool, lambda tool: tool.metadata.to_openai_tool(skip_length_check=True))
