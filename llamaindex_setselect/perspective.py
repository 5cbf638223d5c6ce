"""Perspectives found in the query by a LlamaIndex language model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from llama_index.core.bridge.pydantic import BaseModel, Field, ValidationError
from llama_index.core.llms.llm import LLM
from llama_index.core.prompts import PromptTemplate

from shared_core.retrieval import Flow, Step, run_flow, run_flow_async
from shared_core.signals.extraction import PERSPECTIVE_PROMPT, PerspectiveExtractor, check_prompt

# LlamaIndex raises a plain ValueError for an answer without JSON or without a tool call, and for many other reasons.
# Only the beginning of the message tells them apart.
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

    An answer that cannot be parsed is invalid: there is no projection, and a warning quotes the answer.

    Parameters
    ----------
    llm : LLM
        Any model. One without function calling is asked for JSON in plain text.
    prompt : str
        Contains ``{query}`` where the query is inserted; other braces are plain text. Default: ``PERSPECTIVE_PROMPT``.
    cache_size : int
        How many queries' answers are kept; 0 keeps none.

    Raises
    ------
    InvalidParameterError
        The prompt has no ``{query}``, or ``cache_size`` is out of range.
    Exception
        The extractor raises what the call of the model raises.

    Examples
    --------
    >>> from llama_index.core.llms import MockLLM
    >>> extractor_from_llm(MockLLM()).extract("ferries")
    QueryParts(root='ferries', perspective=None)
    """
    splitter = _Splitter(llm, PromptTemplate(check_prompt(prompt)))
    return PerspectiveExtractor(splitter.split, splitter.asplit, cache_size)


@dataclass(frozen=True)
class _Splitter:
    """A model that splits queries, and its prompt. Unlike a closure it can be pickled if the model can."""

    llm: LLM
    prompt: PromptTemplate

    def split(self, query: str) -> Any:
        return run_flow(self._split(query))

    async def asplit(self, query: str) -> Any:
        return await run_flow_async(self._split(query))

    def _split(self, query: str) -> Flow[Any]:
        try:
            return (
                yield Step(
                    partial(self.llm.structured_predict, SplitQuery, self.prompt, query=query),
                    partial(self.llm.astructured_predict, SplitQuery, self.prompt, query=query),
                )
            )
        except ValueError as error:
            # The text of the error contains the answer that could not be parsed.
            if isinstance(error, ValidationError) or str(error).startswith(_UNPARSABLE):
                return str(error)
            raise
