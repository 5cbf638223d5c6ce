"""Perspectives found in the query by a LangChain chat model."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, Field

from shared_core.signals._splitting import checked_prompt
from shared_core.signals.extraction import PERSPECTIVE_PROMPT, PerspectiveExtractor


class SplitQuery(BaseModel):
    """A search query split into its root and its perspective."""

    root: str = Field(default="", description="The query without its perspective, in the query's own words")
    perspective: str | None = Field(
        default=None, description="The side the query takes, in the query's own words; empty if it takes none"
    )


def extractor_from_chat_model(
    model: BaseChatModel, prompt: str = PERSPECTIVE_PROMPT, *, cache_size: int = 1024
) -> PerspectiveExtractor:
    """A ``PerspectiveExtractor`` that asks ``model`` through ``with_structured_output`` (PIR paper, 3.4).

    An answer that LangChain cannot parse counts as invalid, like one with foreign words: no projection, and a
    warning that quotes it.

    Parameters
    ----------
    model : BaseChatModel
        Any that supports structured output.
    prompt : str
        With ``{query}`` where the query goes, other braces are text; by default ``PERSPECTIVE_PROMPT``.
    cache_size : int
        How many queries' answers to keep; 0 keeps none.

    Raises
    ------
    InvalidParameterError
        The prompt has no ``{query}``, or ``cache_size`` is out of range.
    NotImplementedError
        The model has no structured output.
    Exception
        When asked: what the call of the model raises.

    Examples
    --------
    >>> from langchain_core.language_models import FakeListChatModel
    >>> extractor_from_chat_model(FakeListChatModel(responses=["no tools"]))
    Traceback (most recent call last):
    NotImplementedError: with_structured_output is not implemented for this model.
    """
    ask = _Ask(model, checked_prompt(prompt))
    return PerspectiveExtractor(ask.now, ask.later, cache_size)


class _Ask:
    """The model, bound to the schema, and what it is asked."""

    def __init__(self, model: BaseChatModel, prompt: str) -> None:
        self._made_from = model, prompt
        self._structured = model.with_structured_output(SplitQuery, include_raw=True)
        self._prompt = prompt

    def __reduce__(self) -> tuple[Any, ...]:
        # LangChain's chain for structured output cannot be pickled; the model may be.
        return type(self), self._made_from

    def now(self, query: str) -> Any:
        return _answer(self._structured.invoke(self._prompt.replace("{query}", query)))

    async def later(self, query: str) -> Any:
        return _answer(await self._structured.ainvoke(self._prompt.replace("{query}", query)))


def _answer(output: Any) -> Any:
    # Without a parsed answer the raw message stands in for it, so that the warning can quote it.
    return output["raw"] if output["parsed"] is None else output["parsed"]
