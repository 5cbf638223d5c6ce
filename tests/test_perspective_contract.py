"""A language model's answer becomes root and perspective, in LangChain and in LlamaIndex alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.llms.mock import MockFunctionCallingLLM
from pydantic import PrivateAttr

from langchain_setselect import extractor_from_chat_model
from llamaindex_setselect import extractor_from_llm
from shared_core import InvalidParameterError, SetSelectWarning
from shared_core.signals.extraction import PERSPECTIVE_PROMPT, PerspectiveExtractor, QueryParts

QUERY = "Which letters argue against a {lower} speed limit?"
GOOD = {"root": "a {lower} speed limit", "perspective": "argue against"}
PARTS = QueryParts(**GOOD)
NONE = QueryParts(QUERY, None)
DOWN = "down"
Answer = dict[str, Any] | str | None


class ChatModel(BaseChatModel):
    """Calls its one tool with the answer if that is a dict, and writes it if it is a text."""

    answer: Any = None
    _prompts: list[str] = PrivateAttr(default_factory=list)
    _asynchronous: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "chat model"

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> ChatResult:
        if self.answer == DOWN:
            raise ConnectionError("the model is down")
        self._prompts.append(str(messages[-1].content))
        message = AIMessage(str(self.answer))
        if isinstance(self.answer, dict):
            name = kwargs["tools"][0]["function"]["name"]
            message = AIMessage("", tool_calls=[{"name": name, "args": self.answer, "id": "1"}])
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> ChatResult:
        self._asynchronous += 1
        return self._generate(messages, **kwargs)


class Writer(CustomLLM):
    """Has no function calling, so the answer is parsed from its text."""

    answer: Any = None
    _prompts: list[str] = PrivateAttr(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        if self.answer == DOWN:
            raise ConnectionError("the model is down")
        self._prompts.append(prompt)
        text = f"Here you are:\n{json.dumps(self.answer)}" if isinstance(self.answer, dict) else self.answer
        return CompletionResponse(text=text)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class ToolCaller(MockFunctionCallingLLM):
    """Calls its tool if there is an answer, as LlamaIndex's models with function calling do."""

    answer: Any = None

    def get_tool_calls_from_response(self, *_: Any, **kwargs: Any) -> list[ToolSelection]:
        if self.answer is None:
            return []
        return [ToolSelection(tool_id="1", tool_name="SplitQuery", tool_kwargs=self.answer)]


BINDINGS: dict[str, tuple[type[Any], Callable[..., PerspectiveExtractor]]] = {
    "LangChain": (ChatModel, extractor_from_chat_model),
    "LlamaIndex": (Writer, extractor_from_llm),
}


@pytest.fixture(params=BINDINGS)
def make(request: pytest.FixtureRequest) -> Callable[..., tuple[Any, PerspectiveExtractor]]:
    """``make(answer, *arguments)``: a model that gives this answer, and its extractor."""
    model_class, extractor_from = BINDINGS[request.param]

    def made(answer: Answer, *arguments: Any, **settings: Any) -> tuple[Any, PerspectiveExtractor]:
        model = model_class(answer=answer)
        return model, extractor_from(model, *arguments, **settings)

    return made


async def test_an_answer_becomes_query_parts_and_is_cached(make: Any) -> None:
    model, extractor = make(GOOD)
    assert extractor.extract(QUERY) == extractor.extract(QUERY) == await extractor.aextract(QUERY) == PARTS
    (prompt,) = model._prompts
    assert prompt.startswith(PERSPECTIVE_PROMPT.replace("{query}", QUERY))


@pytest.mark.parametrize(
    ("answer", "quoted"),
    [
        ({"root": ["a list"], "perspective": "against"}, "not a pair"),
        ("I would rather talk.", "I would rather talk"),
    ],
)
async def test_an_invalid_or_unparsable_answer_is_quoted(answer: Answer, quoted: str, make: Any) -> None:
    _, extractor = make(answer)
    with pytest.warns(SetSelectWarning, match=quoted):
        assert extractor.extract(QUERY) == NONE
    with pytest.warns(SetSelectWarning, match=quoted):
        assert await extractor.aextract(QUERY) == NONE


async def test_the_error_of_a_failing_call_is_raised_unchanged(make: Any) -> None:
    _, extractor = make(DOWN)
    with pytest.raises(ConnectionError, match="down"):
        extractor.extract(QUERY)
    with pytest.raises(ConnectionError, match="down"):
        await extractor.aextract(QUERY)


def test_a_users_prompt_keeps_its_other_braces(make: Any) -> None:
    model, extractor = make(GOOD, 'As {"root": …}: {query}')
    extractor.extract(QUERY)
    assert model._prompts[0].startswith(f'As {{"root": …}}: {QUERY}')
    with pytest.raises(InvalidParameterError, match=r"\{query\}"):
        make(GOOD, "Split the query")


async def test_the_async_method_of_a_chat_model_is_awaited() -> None:
    model = ChatModel(answer=GOOD)
    assert await extractor_from_chat_model(model).aextract(QUERY) == PARTS
    assert model._asynchronous == 1
    with pytest.raises(NotImplementedError):
        extractor_from_chat_model(FakeListChatModel(responses=["no structured output"]))


async def test_tool_calls_of_llamaindex_are_parsed() -> None:
    extractor = extractor_from_llm(ToolCaller(answer=GOOD), cache_size=0)
    assert extractor.extract(QUERY) == await extractor.aextract(QUERY) == PARTS
    with pytest.warns(SetSelectWarning):
        assert extractor_from_llm(ToolCaller()).extract(QUERY) == NONE
