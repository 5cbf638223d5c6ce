"""Perspectives found in the query by a LangChain chat model."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel

from shared_core.signals.extraction import PERSPECTIVE_PROMPT, PerspectiveExtractor, check_prompt
from shared_core.signals.split_query import SplitQuery


def extractor_from_chat_model(
    model: BaseChatModel, prompt: str = PERSPECTIVE_PROMPT, *, cache_size: int = 1024
) -> PerspectiveExtractor:
    """A ``PerspectiveExtractor`` that asks ``model`` through ``with_structured_output`` (PIR paper, 3.4).

    An answer that LangChain cannot parse is invalid, like one with words that are not in the query: there is no
    projection, and a warning quotes the answer. What the call of the model raises is raised unchanged.

    Parameters
    ----------
    model : BaseChatModel
        Any model that supports structured output.
    prompt : str
        A text with ``{query}``, where the query is inserted.
    cache_size : int
        See :class:`PerspectiveExtractor`.

    Examples
    --------
    >>> from langchain_core.language_models import FakeListChatModel
    >>> extractor_from_chat_model(FakeListChatModel(responses=["no tools"]))
    Traceback (most recent call last):
    NotImplementedError: with_structured_output is not implemented for this model.
    """
    splitter = _Splitter(model, check_prompt(prompt))
    return PerspectiveExtractor(splitter.split, splitter.asplit, cache_size)


class _Splitter:
    """A model that splits queries, and the prompt it is given."""

    def __init__(self, model: BaseChatModel, prompt: str) -> None:
        self._arguments = model, prompt
        self._structured = model.with_structured_output(SplitQuery, include_raw=True)
        self._prompt = prompt

    def __reduce__(self) -> tuple[Any, ...]:
        # LangChain's chain for structured output cannot be pickled, so it is made again from the model.
        return type(self), self._arguments

    def split(self, query: str) -> Any:
        return _answer(self._structured.invoke(self._prompt.replace("{query}", query)))

    async def asplit(self, query: str) -> Any:
        return _answer(await self._structured.ainvoke(self._prompt.replace("{query}", query)))


def _answer(output: Any) -> Any:
    if output["parsed"] is not None:
        return output["parsed"]
    # What the model wrote replaces an answer that cannot be parsed, so that the warning quotes it.
    calls = output["raw"].tool_calls
    return calls[0]["args"] if calls else output["raw"].content
