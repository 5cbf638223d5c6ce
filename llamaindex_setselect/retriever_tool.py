"""A retriever as a tool of an agent, which returns no text that its model reads already."""

# Without postponed annotations: LlamaIndex finds the argument that takes the context by its class.
from collections.abc import Iterable, Sequence
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from typing_extensions import override

from shared_core import InvalidInputError
from shared_core.retrieval.extra import check_integer
from shared_core.retrieval.flow import run_flow_async
from shared_core.retrieval.inputs import check_instance
from shared_core.retrieval.pool import name_items, name_of_text
from shared_core.retrieval.result import JOINED
from shared_core.retrieval.tools import EMPTY_QUERY, NOTHING_NEW, ParallelCalls

from ._settings import body_of, finish, read_ids
from .retriever import SetSelectIndexRetriever

# The key of the context's store under which the results of each tool are: the name of the text, and those of the nodes.
SHOWN = "setselect_shown"

# The calls of each run, by its store, and the names that each tool returned for the last message of the model.
# Two tools write under one key.
_RUNS: WeakKeyDictionary[Any, ParallelCalls] = WeakKeyDictionary()


def create_setselect_tool(
    retriever: SetSelectIndexRetriever,
    name: str,
    description: str,
    *,
    node_template: str = "{text}",
    node_separator: str = "\n\n",
    recent_calls: int | None = 1,
) -> FunctionTool:
    """A tool with which an agent searches, and which returns no text that its model reads already.

    It takes the place of ``RetrieverTool``. The store of the workflow's ``Context`` holds what the earlier calls
    returned, and the memory of the chat says which of it the model gets; what a token limit cuts off comes again. For
    several runs pass both: ``agent.run(..., ctx=ctx, memory=memory)``. See the page on agents.

    Parameters
    ----------
    retriever : SetSelectIndexRetriever
        The retriever that searches. Its settings apply to each call.
    name, description : str
        What the model reads about the tool. Tools with different names have separate memories.
    node_template : str
        How the model sees a node: ``"[{id}] {text}"`` lets it cite.
    node_separator : str
        The text between two nodes.
    recent_calls : int, optional
        In a workflow of your own, without the memory of an agent: so many of the last results count as read. None: all
        results in the context count as read in any case.

    Returns
    -------
    FunctionTool
        The tool, for ``FunctionAgent(tools=[tool], ...)``. The ``raw_output`` of a call is the list of its nodes.

    Examples
    --------
    >>> from llama_index.core import MockEmbedding, VectorStoreIndex
    >>> from llama_index.core.schema import TextNode
    >>> index = VectorStoreIndex([TextNode(text="one")], embed_model=MockEmbedding(embed_dim=2))
    >>> tool = create_setselect_tool(SetSelectIndexRetriever(index), "numbers", "Finds numbers.")
    >>> tool.metadata.name, tool.requires_context
    ('numbers', True)
    """
    check_instance(retriever, SetSelectIndexRetriever, "retriever")
    node_template.format(id="", text="")  # raises for other names
    recent = None if recent_calls is None else check_integer(recent_calls, "recent_calls", 0)

    async def search(ctx: Context, query: Annotated[str, "query to look up in retriever"]) -> list[NodeWithScore]:
        if not isinstance(query, str) or not query.strip():
            raise InvalidInputError(EMPTY_QUERY)
        run = _RUNS.setdefault(ctx.store, ParallelCalls())
        async with run.alone_async:
            read, message = await _find_read(ctx)
            if message is None or run.message is not message:
                run.names, run.message = {}, message
            every: dict[str, list[tuple[str, list[str]]]] = await ctx.store.get(SHOWN, default={})
            results = every.get(name, [])
            known = results if recent is None else results[max(len(results) - recent, 0) :]
            if recent is not None and read is not None:
                known = [(text, names) for text, names in results if text in read]
            at_once = run.names.get(name, [])
            reading = _Unseen(retriever, [*at_once, *(one for _, names in known for one in names)])
            nodes = await reading.aretrieve(query)
            run.names[name] = [*at_once, *reading._names]
            await ctx.store.set(SHOWN, {**every, name: [*results, (name_of_text(write(nodes)), reading._names)]})
        return nodes

    def write(nodes: Sequence[NodeWithScore]) -> str:
        texts = [node_template.format(id=node.node_id, text=node.node.get_content(MetadataMode.LLM)) for node in nodes]
        return node_separator.join(texts) if texts else NOTHING_NEW

    return FunctionTool.from_defaults(async_fn=search, name=name, description=description, callback=write)


async def _find_read(ctx: Context) -> tuple[set[str] | None, Any]:
    """The names of the texts that the model of an agent got with the last request, and its last message.

    The names are None if the context is not that of an agent.
    """
    memory = await ctx.store.get("memory", default=None)
    if memory is None:
        return None, None
    steps = [*await ctx.store.get("scratchpad", default=[]), *await ctx.store.get("current_reasoning", default=[])]
    messages = [*await memory.aget(input=await ctx.store.get("user_msg_str", default=None)), *steps]
    texts = [getattr(one, "content", None) or getattr(one, "observation", None) for one in messages]
    return {name_of_text(text) for text in texts if text}, steps[-1] if steps else None


class _Unseen(SetSelectIndexRetriever):
    """The retriever of one call: it leaves out what was shown, and keeps the names of what it selects.

    The nodes of an index may stand for other objects, which the base class returns in their place.
    """

    def __init__(self, retriever: SetSelectIndexRetriever, shown: Iterable[str]) -> None:
        vars(self).update(vars(retriever))
        self._shown, self._names = shown, list[str]()

    @override
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        settings, request = self._settings, self._settings._request.with_shown(self._shown)
        nodes = finish(settings, request, await run_flow_async(self._flow(settings, request, query_bundle)))
        joined = [node.metadata.get(JOINED) for node in nodes]
        self._names = name_items(read_ids(nodes), map(body_of, nodes), joined)
        return nodes
