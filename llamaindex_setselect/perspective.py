"""Perspectives found in the query by a LlamaIndex language model."""

from __future__ import annotations

from typing import Any

from llama_index.core.bridge.pydantic import ValidationError
from llama_index.core.llms.llm import LLM
from llama_index.core.prompts import PromptTemplate

from shared_core.signals.extraction import PERSPECTIVE_PROMPT, PerspectiveExtractor, check_prompt
from shared_core.signals.split_query import SplitQuery

# LlamaIndex raises a plain ValueError for an answer without JSON or without a tool call, and for many other reasons.
# Only the beginning of the message tells them apart.
_UNPARSABLE = (
    "Could not extract json string",
    "LLM did not return any tool calls",
    "Structured output extraction failed",
)


def extractor_from_llm(llm: LLM, prompt: str = PERSPECTIVE_PROMPT, *, cache_size: int = 1024) -> PerspectiveExtractor:
    """A ``PerspectiveExtractor`` that asks ``llm`` through ``structured_predict`` (PIR paper, 3.4).

    An answer that cannot be parsed is invalid: there is no projection, and a warning quotes the answer. What the call
    of the model raises is raised unchanged.

    Parameters
    ----------
    llm : LLM
        Any model. One without function calling is asked for JSON in plain text.
    prompt, cache_size
        A text with ``{query}``, where the query is inserted; and see :class:`PerspectiveExtractor`.

    Examples
    --------
    >>> from llama_index.core.llms import MockLLM
    >>> extractor_from_llm(MockLLM()).extract("ferries")
    QueryParts(root='ferries', perspective=None)
    """
    template = PromptTemplate(check_prompt(prompt))

    def split(query: str) -> Any:
        try:
            return llm.structured_predict(SplitQuery, template, query=query)
        except ValueError as error:
            return _read_unparsable(error)

    async def asplit(query: str) -> Any:
        try:
            return await llm.astructured_predict(SplitQuery, template, query=query)
        except ValueError as error:
            return _read_unparsable(error)

    return PerspectiveExtractor(split, asplit, cache_size)


def _read_unparsable(error: ValueError) -> str:
    """The message, which contains the answer that could not be parsed; an error of another kind is raised again."""
    if isinstance(error, ValidationError) or str(error).startswith(_UNPARSABLE):
        return str(error)
    raise error
