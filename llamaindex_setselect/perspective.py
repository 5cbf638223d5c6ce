"""Perspectives found in the query by a LlamaIndex language model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llama_index.core.bridge.pydantic import BaseModel, Field, ValidationError
from llama_index.core.llms.llm import LLM
from llama_index.core.prompts import PromptTemplate

from shared_core.signals._splitting import checked_prompt
from shared_core.signals.extraction import PERSPECTIVE_PROMPT, PerspectiveExtractor

# LlamaIndex raises plain ValueErrors for answers without JSON and without a tool call, and for much else.
_UNPARSABLE = (
    "Could not extract json string",
    "LLM did not return any tool calls",
    "Structured output extraction failed",
)


class SplitQuery(BaseModel):
    """A search query split into its root and its perspective."""

    root: str = Field(default="", description="The query without its perspective, in the query's own words")
    perspective: str | None = Field(
        default=None, description="The side the query takes, in the query's own words; empty if it takes none"
    )


def extractor_from_llm(llm: LLM, prompt: str = PERSPECTIVE_PROMPT, *, cache_size: int = 1024) -> PerspectiveExtractor:
    """A ``PerspectiveExtractor`` that asks ``llm`` through ``structured_predict`` (PIR paper, 3.4).

    Parameters
    ----------
    llm : LLM
        Any: models without function calling are asked for JSON in plain text.
    prompt : str
        With ``{query}`` where the query goes, other braces are text; by default ``PERSPECTIVE_PROMPT``.
    cache_size : int
        How many queries' answers to keep; 0 keeps none.

    Raises
    ------
    InvalidParameterError
        The prompt has no ``{query}``, or ``cache_size`` is out of range.
    Exception
        When asked: what the model raises. An answer that cannot be parsed is an invalid one, and gives a warning.

    Examples
    --------
    >>> from llama_index.core.llms import MockLLM
    >>> extractor_from_llm(MockLLM()).extract("ferries")
    QueryParts(root='ferries', perspective=None)
    """
    ask = _Ask(llm, PromptTemplate(checked_prompt(prompt)))
    return PerspectiveExtractor(ask.now, ask.later, cache_size)


@dataclass(frozen=True)
class _Ask:
    """A class and no closure, so that an extractor can be pickled if its model can."""

    llm: LLM
    prompt: PromptTemplate

    def now(self, query: str) -> Any:
        try:
            return self.llm.structured_predict(SplitQuery, self.prompt, query=query)
        except ValueError as error:
            return _answer_in(error)

    async def later(self, query: str) -> Any:
        try:
            return await self.llm.astructured_predict(SplitQuery, self.prompt, query=query)
        except ValueError as error:
            return _answer_in(error)


def _answer_in(error: ValueError) -> str:
    """What the model said, where that and not the call is what failed: an invalid answer, as any other."""
    if isinstance(error, ValidationError) or str(error).startswith(_UNPARSABLE):
        return str(error)
    raise error
