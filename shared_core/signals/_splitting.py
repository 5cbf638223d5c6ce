"""What is asked of a model that splits queries, and what of its answer is believed."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from ..errors import InvalidParameterError

# Scripts that put no space between words: each character counts as a word.
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


def checked_prompt(prompt: str) -> str:
    """``prompt`` if the query has a place in it; any other brace is text.

    Raises
    ------
    InvalidParameterError
        There is no ``{query}`` in it.

    Examples
    --------
    >>> checked_prompt("Split: {query}")
    'Split: {query}'
    """
    if "{query}" not in prompt:
        raise InvalidParameterError(f"the prompt needs {{query}} where the query is to go, got {prompt!r}")
    return prompt


def pair_in(answer: Any, query: str) -> tuple[tuple[str, str | None], str]:
    """Root and perspective as the answer has them, and what is wrong with it, else an empty text.

    Without a perspective, and where something is wrong, they are the query and None.

    Examples
    --------
    >>> pair_in(("ferries", "in summer"), "ferries in winter")
    (('ferries in winter', None), 'the perspective has words that are not in the query (summer)')
    """
    none = (query, None)
    if isinstance(answer, (tuple, list)) and len(answer) == 2:
        root, perspective = answer
    elif hasattr(answer, "root") and hasattr(answer, "perspective"):
        root, perspective = answer.root, answer.perspective
    else:
        return none, "the answer is no pair of root and perspective"
    if perspective is None or (isinstance(perspective, str) and not words(perspective)):
        return none, ""
    if not isinstance(root, str) or not isinstance(perspective, str):
        return none, "root and perspective have to be texts"
    foreign = sorted(words(perspective) - words(query))
    if foreign:
        return none, f"the perspective has words that are not in the query ({', '.join(foreign)})"
    if words(query) <= words(perspective):
        return none, "the perspective is the whole query"
    if not root.strip():
        return none, "the root is empty"
    return (root.strip(), perspective.strip()), ""


def words(text: str) -> set[str]:
    """The words of ``text``, whatever their case and the punctuation around them.

    Examples
    --------
    >>> sorted(words("In Winter, in winter!"))
    ['in', 'winter']
    """
    return set(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
