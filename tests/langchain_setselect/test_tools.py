"""The set of tools of LangChain agents, with the real ``create_agent`` and a model that follows a script."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import PrivateAttr

from langchain_setselect import SetSelectTools, aselect_tools, select_tools
from setselect import InvalidInputError, InvalidParameterError, SetSelectWarning
from shared_core.retrieval.tools import MOST_CANDIDATES
from tests.langchain_setselect.conftest import Runs, WordEmbeddings

NOUNS = ("weather", "currency", "calendar", "email", "music", "recipe", "train", "hotel", "stock", "photo")
VERBS = ("find", "delete", "share")
REQUEST = "find the weather in Oslo and share the calendar with Ann"


def make_tool(name: str, description: str, **more: Any) -> BaseTool:
    return StructuredTool.from_function(lambda text="": f"done: {name}", name=name, description=description, **more)


TOOLS = [make_tool(f"{verb}_{noun}", f"{verb} the {noun} of a person") for noun in NOUNS for verb in VERBS]
NAMES = [tool.name for tool in TOOLS]
WEB = {"type": "web_search", "name": "web_search"}


class Scripted(BaseChatModel):
    """Answers with the messages of a script, and records the names of the tools that it gets."""

    script: list[AIMessage]
    _seen: list[list[Any]] = PrivateAttr(default_factory=list)

    @property
    def seen(self) -> list[list[Any]]:
        return self._seen

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        self._seen.append([getattr(tool, "name", tool) for tool in tools])
        return self

    def _generate(self, messages: list[BaseMessage], *arguments: Any, **kwargs: Any) -> ChatResult:
        answered = sum(isinstance(message, AIMessage) for message in messages)
        message = self.script[answered % len(self.script)].model_copy(update={"id": None})
        return ChatResult(generations=[ChatGeneration(message=message)])


def calls(*names: str, text: str = "") -> AIMessage:
    return AIMessage(text, tool_calls=[{"name": name, "args": {}, "id": f"call {name}"} for name in names])


FIVE_STEPS = [
    calls("find_weather"), calls("share_calendar", "find_weather"), calls("find_weather"), calls("share_calendar"),
    AIMessage("Done."),
]  # fmt: skip


def run_invoke(agent: Any, inputs: Any) -> None:
    agent.invoke(inputs)


async def run_ainvoke(agent: Any, inputs: Any) -> None:
    await agent.ainvoke(inputs)


async def finish(running: Any) -> None:
    """Wait for the end of an async run; a sync one has ended."""
    if running is not None:
        await running


def names_of(tools: Sequence[Any]) -> list[str]:
    return [tool.name for tool in tools]


@pytest.mark.parametrize("run", [run_invoke, run_ainvoke])
async def test_the_agent_sees_the_set_of_select_tools_at_each_of_five_steps(
    run: Callable[[Any, Any], Any], embeddings: WordEmbeddings
) -> None:
    chosen = names_of(select_tools(REQUEST, TOOLS, 4, embeddings=embeddings))
    assert len(chosen) == 4
    assert {"find_weather", "share_calendar"} < {*chosen}
    assert chosen == [name for name in NAMES if name in chosen]
    model = Scripted(script=FIVE_STEPS)
    agent = create_agent(model, tools=TOOLS, middleware=[SetSelectTools(embeddings, max_tools=4)])
    await finish(run(agent, {"messages": [HumanMessage(REQUEST)]}))
    assert model.seen == [chosen] * 5
    # Everything was embedded for select_tools.
    assert embeddings.documents == len(TOOLS)
    assert embeddings.queries == 3


async def test_messages_async_and_a_changed_tool(embeddings: WordEmbeddings) -> None:
    messages = [{"role": "user", "content": REQUEST}]
    chosen = select_tools(REQUEST, TOOLS, 4, embeddings=embeddings)
    assert await aselect_tools(messages, TOOLS, 4, embeddings=embeddings) == chosen
    embeddings.counts()
    changed = make_tool("find_music", "find the weather in Oslo")
    tools = [changed if tool.name == "find_music" else tool for tool in TOOLS]
    assert "find_music" in names_of(select_tools(REQUEST, tools, 4, embeddings=embeddings))
    assert embeddings.counts() == (0, 1, 0)


def test_what_the_model_writes_and_what_it_has_called(embeddings: WordEmbeddings) -> None:
    script = [
        calls("delete_hotel"),
        calls("find_weather", text="Now I have to delete the hotel of a person"),
        AIMessage("Done."),
    ]
    model = Scripted(script=script)
    agent = create_agent(
        model, tools=TOOLS, middleware=[SetSelectTools(embeddings, max_tools=2)], checkpointer=InMemorySaver()
    )
    config: Any = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [HumanMessage("find the weather of a person")]}, config)
    first, second, third = map(set, model.seen)
    assert "delete_hotel" not in first
    assert second == first | {"delete_hotel"}
    assert {"delete_hotel", "find_weather"} <= third
    assert len(third) <= 3
    # A new turn forgets the calls, and a short message is read with those before it.
    model.seen.clear()
    agent.invoke({"messages": [HumanMessage("share the photo of a person now")]}, config)
    assert "share_photo" in model.seen[0]
    assert "delete_hotel" not in model.seen[0]
    model.seen.clear()
    agent.invoke({"messages": [HumanMessage("Yes, please!")]}, config)
    assert "share_photo" in model.seen[0]


def test_always_further_tools_and_the_tools_of_the_provider(embeddings: WordEmbeddings) -> None:
    @tool
    def finish() -> str:
        """End the work."""
        return ""

    model = Scripted(script=[AIMessage("Hello")])
    middleware = SetSelectTools(embeddings, 3, always_include=["share_music"])
    create_agent(model, tools=[*TOOLS, finish, WEB], middleware=[middleware]).invoke(
        {"messages": [HumanMessage(REQUEST)]}
    )
    (seen,) = model.seen
    assert WEB in seen
    assert {"find_weather", "share_calendar", "share_music"} < {*seen[:-1]}
    assert len(seen) == 3 + 1 + 1


@pytest.mark.parametrize(
    "choice", ["delete_stock", {"type": "function", "function": {"name": "delete_stock"}}, {"name": "delete_stock"}]
)
def test_a_tool_that_has_to_be_called_stays(choice: Any, embeddings: WordEmbeddings) -> None:
    request: ModelRequest[Any] = ModelRequest(
        model=Scripted(script=[]), messages=[HumanMessage(REQUEST)], tools=[*TOOLS], tool_choice=choice
    )
    seen: list[Any] = []
    SetSelectTools(embeddings, 2).wrap_model_call(request, lambda request: seen.extend(request.tools))  # type: ignore[arg-type,func-returns-value]
    assert len(seen) == 3
    assert "delete_stock" in names_of(seen)
    assert len(request.tools) == len(TOOLS)


FUNCTION = {"name": "currency", "description": "convert the currency", "parameters": {"properties": {"amount": {}}}}


@pytest.mark.parametrize(
    ("described", "is_function"),
    [
        ({"type": "function", "function": FUNCTION}, True),
        ({"name": "currency", "description": "convert the currency", "input_schema": {}}, True),
        ({"title": "currency", "type": "object", "description": "convert the currency", "properties": {}}, True),
        (WEB, False),
        ({"google_search": {}}, False),
        ({"type": "computer_20250124", "name": "computer", "display_width_px": 1024}, False),
    ],
)
def test_dicts(described: dict[str, Any], is_function: bool, embeddings: WordEmbeddings) -> None:
    chosen = select_tools("find the weather", [*TOOLS, described], 2, embeddings=embeddings)
    assert (described in chosen) is not is_function
    chosen = select_tools("convert the currency", [*TOOLS, described], 3, embeddings=embeddings)
    assert described in chosen


def test_functions(embeddings: WordEmbeddings) -> None:
    def lights(colour: str, room: str) -> None: ...

    def doors() -> None:
        """Open the doors."""

    chosen = select_tools("colour of the room", [doors, lights, *TOOLS], 1, embeddings=embeddings)
    assert chosen == [lights]
    for wrong in ("text", None, 3):
        with pytest.raises(InvalidInputError, match="no tool" if wrong != "text" else "list of tools|no tool"):
            select_tools("x", [wrong], embeddings=embeddings)  # type: ignore[list-item]
    with pytest.raises(InvalidInputError, match="list of tools"):
        select_tools("x", "find_weather", embeddings=embeddings)  # type: ignore[arg-type]


# --- bad input: the messages, the tools, and what the agent sees -----------------------------------


PARTS = [{"type": "text", "text": "find the weather in Oslo"}, {"type": "text", "text": "share the calendar"}]
IMAGE = [{"type": "image", "base64": "", "mime_type": "image/png"}]
LONG = make_tool("long", "find the weather " + "x y " * 7500)
NAMELESS = [make_tool(f"nameless_{i}", "") for i in range(12)]


@pytest.mark.parametrize(
    ("messages", "tools", "max_tools", "number", "holds"),
    [
        ([HumanMessage(REQUEST)], [], 3, None, set()),
        ([HumanMessage("call nameless_7")], NAMELESS, 3, 3, {"nameless_7"}),
        ([HumanMessage("x y x y")], [*TOOLS, LONG], 3, 3, {"long"}),
        ([HumanMessage(PARTS)], TOOLS, 3, 3, {"find_weather", "share_calendar"}),
        ([HumanMessage(IMAGE)], TOOLS, 3, 30, set()),
        ([], TOOLS, 3, 30, set()),
        ([HumanMessage(" \n")], TOOLS, 3, 30, set()),
        ([HumanMessage(REQUEST)], TOOLS, 1000, 30, set()),
        ([HumanMessage(REQUEST + " x" * 50_000)], TOOLS, 3, 3, {"find_weather"}),
    ],
)
def test_bad_input(
    messages: list[BaseMessage],
    tools: list[BaseTool],
    max_tools: int,
    number: int | None,
    holds: set[str],
    embeddings: WordEmbeddings,
) -> None:
    model = Scripted(script=[AIMessage("Done.")])
    agent = create_agent(model, tools=tools, middleware=[SetSelectTools(embeddings, max_tools)])
    assert agent.invoke({"messages": messages})["messages"][-1].text == "Done."
    if number is None:
        assert model.seen == []
        return
    (seen,) = model.seen
    assert len(seen) == number
    assert holds <= {*seen}
    assert seen == names_of(select_tools(messages, tools, max_tools, embeddings=embeddings))
    if number == 30:
        assert embeddings.counts() == (0, 0, 0)


class Failing(WordEmbeddings):
    def embed_query(self, text: str) -> list[float]:
        raise ConnectionError("no route to the model")


@pytest.mark.parametrize("run", [run_invoke, run_ainvoke])
async def test_a_model_that_fails_costs_no_request(
    run: Callable[[Any, Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    model, runs = Scripted(script=FIVE_STEPS), Runs()
    agent = create_agent(model, tools=[*TOOLS, WEB], middleware=[SetSelectTools(Failing(), 3)])
    with (
        pytest.warns(SetSelectWarning, match="ConnectionError") as caught,
        caplog.at_level(logging.WARNING, "setselect"),
    ):
        await finish(run(agent.with_config(callbacks=[runs]), {"messages": [HumanMessage(REQUEST)]}))
    assert len(caught) == 1
    # An event loop has no line of the caller.
    assert caught[0].filename == __file__ or run is run_ainvoke
    assert len(caplog.records) == 5
    assert model.seen == [[*NAMES, WEB]] * 5
    assert [(data["error"].split(":")[0], len(data["tools"])) for data in runs.told] == [("ConnectionError", 30)] * 5


# --- settings, events, sizes -----------------------------------------------------------------------


async def test_the_event(embeddings: WordEmbeddings) -> None:
    runs = Runs()
    for run in (run_invoke, run_ainvoke):
        model = Scripted(script=[calls("find_weather"), AIMessage("Done.")])
        agent = create_agent(model, tools=[*TOOLS, WEB], middleware=[SetSelectTools(embeddings, 2)])
        await finish(run(agent.with_config(callbacks=[runs]), {"messages": [HumanMessage(REQUEST)]}))
    first, second, third, _ = runs.told
    assert first["tools"] == model.seen[0][:-1] == third["tools"]
    assert {*first["ids"]} == {*first["tools"]}
    assert first["queries"] == [REQUEST, "find the weather in Oslo", "share the calendar with Ann"]
    assert (first["k"], first["all_because"], first["error"], first["candidates"]) == (2, None, None, 30)
    assert (first["called"], second["called"]) == ([], ["find_weather"])
    assert 10 < first["tokens"] < first["tokens_of_all"] / 8
    assert len(first["gains"]) == len(first["relevance"]) == 2


def test_a_budget_of_tokens(embeddings: WordEmbeddings) -> None:
    runs = Runs()
    budget = 150
    model = Scripted(script=[AIMessage("Done.")])
    middleware = SetSelectTools(embeddings, None, budget=budget)
    create_agent(model, tools=TOOLS, middleware=[middleware]).invoke({"messages": REQUEST}, {"callbacks": [runs]})
    assert 0.5 * budget < runs.told[0]["tokens"] <= budget
    chosen = select_tools(REQUEST, TOOLS, None, embeddings=embeddings, budget=5, costs=lambda tool: len(tool.name) / 6)
    assert names_of(chosen)[:1] == ["find_weather"]
    assert sum(len(tool.name) / 6 for tool in chosen) <= 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_tools": 0}, "max_tools"),
        ({"max_tools": None}, "budget"),
        ({"budget": -5}, "budget"),
        ({"k": 3}, "max_tools"),
        ({"shown": ["a"]}, "always_include"),
        ({"keyword_search": True}, "candidates"),
        ({"word_weight": 0}, "Coverage.word_weight"),
        ({"always_include": "find_weather"}, "always_include"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str, embeddings: WordEmbeddings) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        SetSelectTools(embeddings, **settings)


def test_many_tools(embeddings: WordEmbeddings) -> None:
    many = [make_tool(f"tool_{i}", f"does the work number w{i} of the kind k{i % 7}") for i in range(220)]
    rare = make_tool("rare", "reads the error E1234")
    tools = [*many, rare]
    chosen = names_of(select_tools("E1234", tools, 5, embeddings=embeddings, always_include=["tool_7"]))
    assert len(chosen) == 6
    assert {"tool_7", "rare"} <= {*chosen}
    assert len(select_tools("E1234", tools, 105, embeddings=embeddings)) == 105
    runs, model = Runs(), Scripted(script=[AIMessage("Done.")])
    agent = create_agent(model, tools=tools, middleware=[SetSelectTools(embeddings, 5)])
    agent.invoke({"messages": "E1234 of the kind k3"}, {"callbacks": [runs]})
    assert MOST_CANDIDATES < runs.told[0]["candidates"] <= MOST_CANDIDATES + 25
