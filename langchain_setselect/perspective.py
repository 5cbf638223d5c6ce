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
    check_prompt(prompt)
    structured = model.with_structured_output(SplitQuery, include_raw=True)

    async def asplit(query: str) -> Any:
        return _answer(await structured.ainvoke(prompt.replace("{query}", query)))

    return PerspectiveExtractor(
        lambda query: _answer(structured.invoke(prompt.replace("{query}", query))), asplit, cache_size
    )


def _answer(output: Any) -> Any:
    if output["parsed"] is not None:
        return output["parsed"]
    # What the model wrote replaces an answer that cannot be parsed, so that the warning quotes it.
    calls = output["raw"].tool_calls
    return calls[0]["args"] if calls else output["raw"].content
