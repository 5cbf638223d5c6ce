"""A chat model's tool call becomes root and perspective; LangChain itself parses it."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, FakeListChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from langchain_setselect import extractor_from_chat_model
from shared_core import InvalidParameterError, SetSelectWarning
from shared_core.signals.extraction import PERSPECTIVE_PROMPT, PerspectiveExtractor, QueryParts

QUERY = "Which letters argue against a {lower} speed limit?"
GOOD = {"root": "a {lower} speed limit", "perspective": "argue against"}


class ToolCaller(BaseChatModel):
    """Calls its one tool with ``arguments``; without arguments it answers in text."""

    arguments: dict[str, Any] | None = None
    fails: bool = False
    _prompts: list[str] = PrivateAttr(default_factory=list)
    _asynchronous: list[str] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "tool caller"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if self.fails:
            raise ConnectionError("the model is down")
        self._prompts.append(str(messages[-1].content))
        message = AIMessage("I would rather talk.")
        if self.arguments is not None:
            call = {"name": kwargs["tools"][0]["function"]["name"], "args": self.arguments, "id": "1"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self._asynchronous.append(str(messages[-1].content))
        return self._generate(messages, stop, None, **kwargs)


async def test_a_tool_call_becomes_query_parts_and_is_cached() -> None:
    model = ToolCaller(arguments=GOOD)
    extractor = extractor_from_chat_model(model)
    wanted = QueryParts(GOOD["root"], GOOD["perspective"])
    assert extractor.extract(QUERY) == extractor.extract(QUERY) == await extractor.aextract(QUERY) == wanted
    assert model._prompts == [PERSPECTIVE_PROMPT.replace("{query}", QUERY)]
    assert model._asynchronous == []


async def test_async_extraction_uses_the_models_async_method() -> None:
    model = ToolCaller(arguments=GOOD)
    extractor = extractor_from_chat_model(model, cache_size=0)
    for _ in range(2):
        assert (await extractor.aextract(QUERY)).perspective == "argue against"
    assert len(model._asynchronous) == 2


@pytest.mark.parametrize("arguments", [{"root": QUERY, "perspective": ""}, {"root": QUERY, "perspective": None}, {}])
def test_no_perspective(arguments: dict[str, Any]) -> None:
    assert extractor_from_chat_model(ToolCaller(arguments=arguments)).extract(QUERY) == QueryParts(QUERY, None)


@pytest.mark.parametrize(
    ("arguments", "quoted"),
    [
        ({"root": "speed limit", "perspective": "opposing"}, "opposing"),
        ({"root": "", "perspective": "against"}, "root is empty"),
        ({"root": "speed limit", "perspective": {"stance": "against"}}, "stance"),
        (None, "I would rather talk"),
    ],
)
async def test_an_invalid_or_unparsable_answer_is_quoted(arguments: dict[str, Any] | None, quoted: str) -> None:
    extractor = extractor_from_chat_model(ToolCaller(arguments=arguments))
    with pytest.warns(SetSelectWarning, match=quoted):
        assert extractor.extract(QUERY) == QueryParts(QUERY, None)
    with pytest.warns(SetSelectWarning, match=quoted):
        assert await extractor.aextract(QUERY) == QueryParts(QUERY, None)


async def test_the_error_of_a_failing_call_is_raised_unchanged() -> None:
    extractor = extractor_from_chat_model(ToolCaller(fails=True))
    with pytest.raises(ConnectionError, match="the model is down"):
        extractor.extract(QUERY)
    with pytest.raises(ConnectionError, match="the model is down"):
        await extractor.aextract(QUERY)


def test_a_users_prompt_keeps_its_other_braces() -> None:
    model = ToolCaller(arguments=GOOD)
    extractor_from_chat_model(model, 'As {"root": …}: {query}').extract(QUERY)
    assert model._prompts == [f'As {{"root": …}}: {QUERY}']
    with pytest.raises(InvalidParameterError, match=r"the prompt must contain \{query\}"):
        extractor_from_chat_model(model, "Split the query")


def test_models_without_structured_output_are_refused_at_construction() -> None:
    with pytest.raises(NotImplementedError):
        extractor_from_chat_model(FakeListChatModel(responses=["x"]))


def test_sync_extraction_inside_a_running_loop() -> None:
    async def inside() -> QueryParts:
        return extractor_from_chat_model(ToolCaller(arguments=GOOD)).extract(QUERY)

    assert asyncio.run(inside()).perspective == "argue against"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
async def test_copies_extract_the_same(copied: Callable[[Any], PerspectiveExtractor]) -> None:
    extractor = copied(extractor_from_chat_model(ToolCaller(arguments=GOOD), cache_size=0))
    assert extractor.extract(QUERY).perspective == (await extractor.aextract(QUERY)).perspective == "argue against"
