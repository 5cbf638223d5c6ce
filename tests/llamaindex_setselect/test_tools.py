"""The set of tools of LlamaIndex agents, with the real ``FunctionAgent`` and a model that follows a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import ChatMessage, MockFunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import BaseTool, FunctionTool, ToolMetadata

from langchain_setselect import select_tools
from llamaindex_setselect import SetSelectToolRetriever
from setselect import InvalidInputError, InvalidParameterError, VectorSourceError
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding

# ``pytest.warns`` repeats what pydantic says of the attributes that LlamaIndex lists.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")

NOUNS = ("weather", "currency", "calendar", "email", "music", "recipe", "train", "hotel", "stock", "photo")
VERBS = ("find", "delete", "share")
REQUEST = "find the weather in Oslo and share the calendar with Ann"
FIVE_STEPS = [["find_weather"], ["share_calendar", "find_weather"], ["find_weather"], ["share_calendar"], []]


def make_tool(name: str, description: str) -> FunctionTool:
    def run(text: str = "") -> str:
        return f"done: {name}"

    return FunctionTool.from_defaults(run, name=name, description=description)


TOOLS = [make_tool(f"{verb}_{noun}", f"{verb} the {noun} of a person") for noun in NOUNS for verb in VERBS]
NAMES = [tool.metadata.name for tool in TOOLS]


class Scripted(MockFunctionCallingLLM):
    """Calls the tools of a script, and records the names of the tools that it gets."""

    def __init__(self, script: Sequence[Sequence[str]]) -> None:
        super().__init__()
        self._seen: list[list[str]] = []
        self._script = script
        self.response_generator = self._answer

    @property
    def seen(self) -> list[list[str]]:
        return self._seen

    def _answer(self, messages: Sequence[ChatMessage], tools: Sequence[BaseTool] = (), **more: Any) -> ChatMessage:
        self._seen.append(names_of(tools))
        names = self._script[len(self._seen) - 1]
        called = [ToolSelection(tool_id=f"call {name}", tool_name=name, tool_kwargs={}) for name in names]
        return ChatMessage(role="assistant", content="Working.", additional_kwargs={"tool_calls": called})


class Handler(BaseEventHandler):
    told: list[Any] = []  # noqa: RUF012

    @classmethod
    def class_name(cls) -> str:
        return "Handler"

    def handle(self, event: Any, **more: Any) -> None:
        if "setselect" in (event.tags or {}):
            self.told.append(event)


@pytest.fixture
def told() -> Any:
    handler = Handler(told=[])
    dispatcher = get_dispatcher()
    dispatcher.add_event_handler(handler)
    yield handler.told
    dispatcher.event_handlers.remove(handler)


def names_of(tools: Sequence[BaseTool]) -> list[str]:
    return [str(tool.metadata.name) for tool in tools]


async def run(retriever: Any, script: Sequence[Sequence[str]], message: Any = REQUEST, streaming: bool = False) -> Any:
    """The sets that the model sees, and the results of the tools that it calls."""
    model = Scripted(script)
    agent = FunctionAgent(tool_retriever=retriever, llm=model, streaming=streaming)
    output = await agent.run(**message) if isinstance(message, dict) else await agent.run(user_msg=message)
    return model.seen, [str(call.tool_output) for call in output.tool_calls]


@pytest.mark.parametrize("streaming", [False, True])
async def test_the_agent_sees_the_same_set_at_each_of_five_steps(streaming: bool, model: CountingEmbedding) -> None:
    retriever = SetSelectToolRetriever(TOOLS, model, similarity_top_k=4)
    chosen = names_of(retriever.retrieve(REQUEST))
    assert len(chosen) == 4
    assert {"find_weather", "share_calendar"} < {*chosen}
    assert chosen == [name for name in NAMES if name in chosen]
    seen, results = await run(retriever, FIVE_STEPS, streaming=streaming)
    assert seen == [chosen] * 5
    assert results == [f"done: {name}" for names in FIVE_STEPS for name in names]
    # The texts, and the request with its two clauses; nothing for the names of the tools that are called.
    assert model.counts()[:2] == (3, len(TOOLS))


async def test_both_frameworks_select_the_same_set(model: CountingEmbedding) -> None:
    retriever = SetSelectToolRetriever(TOOLS, model, similarity_top_k=5)
    others = [
        {
            "name": tool.metadata.name,
            "description": tool.metadata.description,
            "parameters": {"properties": {"text": {}}},
        }
        for tool in TOOLS
    ]
    embeddings = WordEmbeddings()
    for request in (REQUEST, "delete the stock", "Which hotel and which train does Ann find?"):
        chosen = names_of(retriever.retrieve(request))
        assert chosen == [tool["name"] for tool in select_tools(request, others, 5, embeddings=embeddings)]
        assert chosen == names_of(await retriever.aretrieve(QueryBundle(request)))


async def test_a_list_of_tools_that_grows(model: CountingEmbedding) -> None:
    retriever = SetSelectToolRetriever(TOOLS, model, similarity_top_k=4)
    retriever.retrieve(REQUEST)
    retriever.tools.append(make_tool("find_comet", "find the comet of a person"))
    model.counts()
    seen, _ = await run(retriever, [["find_comet"], []], "find the comet")
    assert "find_comet" in seen[0]
    assert model.counts()[1] == 1


def test_the_model_of_settings(model: CountingEmbedding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "_embed_model", None)
    with pytest.raises(VectorSourceError, match="embed_model"):
        SetSelectToolRetriever(TOOLS)
    with pytest.raises(InvalidParameterError, match="embed_model"):
        SetSelectToolRetriever(TOOLS, "local")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameterError, match="similarity_top_k"):
        SetSelectToolRetriever(TOOLS, model, max_tools=2)
    monkeypatch.setattr(Settings, "_embed_model", model)
    assert len(SetSelectToolRetriever(TOOLS, similarity_top_k=2).retrieve(REQUEST)) == 2


# --- bad input -------------------------------------------------------------------------------------


async def test_the_event(told: Any, model: CountingEmbedding) -> None:
    seen, _ = await run(SetSelectToolRetriever(TOOLS, model, 3, always_include=["share_music"]), [["find_weather"], []])
    first, second = (event.tags["setselect"] for event in told)
    assert first["tools"] == second["tools"] == seen[0]
    assert {*first["ids"], "share_music"} == {*seen[0]}
    assert len(seen[0]) == 4
    assert (first["k"], first["all_because"], first["error"], first["candidates"]) == (3, None, None, 30)
    assert 10 < first["tokens"] < first["tokens_of_all"] / 5


def test_functions_and_tools_without_a_name(model: CountingEmbedding) -> None:
    def lights(colour: str, room: str) -> None:
        """Switch the lights."""

    nameless = FunctionTool(lambda: None, ToolMetadata(name=None, description="of the provider"))
    chosen = SetSelectToolRetriever([lights, nameless, *TOOLS], model, 1).retrieve("colour of the lights in the room")
    assert names_of(chosen) == ["lights", "None"]
    wrong: list[tuple[Any, type[Exception]]] = [([3], InvalidInputError), ("find", InvalidInputError)]
    for tools, error in wrong:
        with pytest.raises(error):
            SetSelectToolRetriever(tools, model)
