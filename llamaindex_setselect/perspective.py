"""Perspectives found in the query by a LlamaIndex language model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llama_index.core.bridge.pydantic import BaseModel, Field
from llama_index.core.llms.llm import LLM
from llama_index.core.prompts import PromptTemplate

from shared_core.extraction import PERSPECTIVE_PROMPT, PerspectiveExtractor
from shared_core.splitting import checked_prompt


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
        When asked: what ``structured_predict`` raises, also for an answer that it cannot parse.

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
        return self.llm.structured_predict(SplitQuery, self.prompt, query=query)

    async def later(self, query: str) -> Any:
        return await self.llm.astructured_predict(SplitQuery, self.prompt, query=query)
