"""Perspectives that a language model or a function finds in the query (PIR paper, section 3.4)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._validation import check_integer, check_one_of
from ..errors import InvalidParameterError, PerspectiveError, quoted, warn
from ..perspective import PAP
from ..texts.fold import normalise

PERSPECTIVE_VECTORS = ("text", "difference")
# A difference of two embeddings below this share of the query's length is only the rounding error of float32.
_NEGLIGIBLE = 1e-6
# Characters of scripts without spaces between words. Each of these characters counts as a word.
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")

PERSPECTIVE_PROMPT = """\
A search query can name two things: what it is about (the root) and the side from which the answer is wanted \
(the perspective), such as a stance, a place, a time, a group of people or a kind of source.

Split the query below into the two. Copy the words of both from the query as they stand there: add none, \
translate none, put none in another form. The root is what is left to search for once the side does not matter; \
it is never empty. If the query takes no side, the root is the whole query and the perspective is empty.

Query: letters that argue against a lower speed limit on country roads
Root: a lower speed limit on country roads
Perspective: letters that argue against

Query: What does a ticket to the airport cost for a child under six?
Root: What does a ticket to the airport cost
Perspective: for a child under six

Query: How do I get limescale out of a kettle?
Root: How do I get limescale out of a kettle?
Perspective:

Query: {query}"""
"""What the adapters send to a language model, with the query in place of ``{query}``."""


class QueryParts(NamedTuple):
    """A query split into its topic (``root``) and the side from which it asks (``perspective``, None if it has none).

    ``root`` is empty when only the perspective is known.

    Examples
    --------
    >>> QueryParts("legal age of marriage", "in Mississippi").perspective
    'in Mississippi'
    """

    root: str
    perspective: str | None


class PerspectiveExtractor:
    """Splits queries into root and perspective with a language model, and checks each answer.

    An answer is valid if the perspective consists of words of the query, but not of all of them, and the root is not
    empty. An invalid answer gives ``QueryParts(query, None)``, which means no projection, and a warning that quotes
    the answer. An answer without a perspective is valid. A query of fewer than two words has no perspective and is
    not sent to the model.

    Parameters
    ----------
    split : callable
        Takes the query; returns ``(root, perspective)`` or an object with these two attributes.
        ``extractor_from_chat_model`` and ``extractor_from_llm`` of the adapters make it from a model.
    asplit : async callable, optional
        The same for :meth:`aextract`. Without it :meth:`aextract` runs ``split`` in a thread.
    cache_size : int
        How many valid answers to keep; the oldest one is dropped first, and 0 keeps none. Threads may share an
        extractor. Copies and pickles start with an empty cache.

    Raises
    ------
    InvalidParameterError
        ``cache_size`` is not an integer of at least 0.

    Examples
    --------
    >>> extractor = PerspectiveExtractor(lambda query: query.split(", "))
    >>> extractor.extract("legal age of marriage, in Mississippi")
    QueryParts(root='legal age of marriage', perspective='in Mississippi')
    """

    def __init__(
        self,
        split: Callable[[str], Any],
        asplit: Callable[[str], Awaitable[Any]] | None = None,
        cache_size: int = 1024,
    ) -> None:
        self._split = split
        self._asplit = asplit
        self._cache_size = check_integer(cache_size, "cache_size", 0)
        # functools.lru_cache would keep invalid answers, and coroutines in place of answers.
        self._cache: dict[str, QueryParts] = {}
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._split, self._asplit, self._cache_size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._split!r})"

    def extract(self, query: str) -> QueryParts:
        """The parts of ``query``; ``perspective`` is None if the query has none or the answer is invalid.

        What ``split`` raises is raised unchanged.
        """
        parts = self._look_up(query)
        return self._check(query, self._split(query)) if parts is None else parts

    def __call__(self, query: str) -> QueryParts:
        """Same as :meth:`extract`, so that an extractor can be passed as a function of the query."""
        return self.extract(query)

    async def aextract(self, query: str) -> QueryParts:
        """The async version of :meth:`extract`: awaits ``asplit``, or runs ``split`` in a thread."""
        parts = self._look_up(query)
        if parts is not None:
            return parts
        answer = asyncio.to_thread(self._split, query) if self._asplit is None else self._asplit(query)
        return self._check(query, await answer)

    def _look_up(self, query: str) -> QueryParts | None:
        if len(_words(query)) < 2:
            return QueryParts(query, None)
        return self._cache.get(query)

    def _check(self, query: str, answer: Any) -> QueryParts:
        parts, fault = _read_answer(answer, query)
        if fault:
            warn(
                f"no perspective is used for the query {quoted(query)}: {fault}. The answer was {quoted(answer)}. "
                "If this happens often, try another prompt or model"
            )
            return parts
        with self._lock:
            self._cache[query] = parts
            while len(self._cache) > self._cache_size:
                del self._cache[next(iter(self._cache))]
        return parts


def check_prompt(prompt: str) -> str:
    """``prompt`` if it contains ``{query}``; other braces are plain text."""
    if "{query}" not in prompt:
        raise InvalidParameterError(
            f"the prompt must contain {{query}} where the query is inserted, got {quoted(prompt)}"
        )
    return prompt


def check_perspective_vector(value: str, perspective: Any) -> str:
    """``value`` if it is "text", or "difference" with a ``perspective`` that can give a root query."""
    check_one_of(value, "perspective_vector", PERSPECTIVE_VECTORS)
    if value == "difference" and perspective is not None and not callable(perspective):
        raise InvalidParameterError(
            "perspective_vector='difference' needs the root query: pass as perspective= a PerspectiveExtractor or a "
            f"function that returns QueryParts, not a {type(perspective).__name__}"
        )
    return value


def read_perspective(perspective: Any, query: str) -> QueryParts | None:
    """What the setting ``perspective=`` gives for ``query``; None if that is no text (blank, or a vector)."""
    return _as_parts(perspective(query) if callable(perspective) else perspective, perspective)


async def aread_perspective(perspective: Any, query: str) -> QueryParts | None:
    """The async version of :func:`read_perspective`: awaits an extractor, and runs a function in a thread."""
    if isinstance(perspective, PerspectiveExtractor):
        return _as_parts(await perspective.aextract(query), perspective)
    answer = await asyncio.to_thread(perspective, query) if callable(perspective) else perspective
    return _as_parts(answer, perspective)


def find_text_to_embed(parts: QueryParts | None, query: str, perspective_vector: str) -> str | None:
    """The text to embed besides the query: the perspective, or for "difference" the root; None for no projection."""
    if parts is None or parts.perspective is None or perspective_vector == "text":
        return None if parts is None else parts.perspective
    if not parts.root.strip():
        raise PerspectiveError(
            f"perspective_vector='difference' needs the root query, and there is none for {quoted(query)}: let the "
            "function return QueryParts(root, perspective)"
        )
    return None if parts.root.strip() == query.strip() else parts.root


def make_pap(
    perspective: Any,
    query: ArrayLike,
    embedded: ArrayLike | None,
    *,
    perspective_vector: str = "text",
    corpus: bool = False,
    direction: str = "remove",
) -> PAP | None:
    """The projection that the setting ``perspective=`` stands for, or None.

    ``embedded`` is the embedding of what :func:`find_text_to_embed` returned; with "difference" p = query − embedded.
    """
    if embedded is None:
        if perspective is None or isinstance(perspective, str) or callable(perspective):
            return None
        return PAP(perspective, corpus=corpus, direction=direction)
    if perspective_vector == "text":
        return PAP(embedded, corpus=corpus, direction=direction)
    q, root = np.asarray(query, dtype=np.float64), np.asarray(embedded, dtype=np.float64)
    if q.shape != root.shape:
        raise PerspectiveError(
            f"the query's embedding has shape {q.shape}, the root's {root.shape}: embed both with the same model"
        )
    p = q - root
    if np.linalg.norm(p) <= _NEGLIGIBLE * np.linalg.norm(q):
        return None
    return PAP(p, corpus=corpus, direction=direction)


def _as_parts(answer: Any, perspective: Any) -> QueryParts | None:
    """``answer`` of the setting ``perspective`` as parts with a perspective, or None."""
    if isinstance(answer, str):
        answer = QueryParts("", answer)
    if isinstance(answer, QueryParts):
        return answer if answer.perspective and answer.perspective.strip() else None
    if answer is None or not callable(perspective):
        return None
    raise PerspectiveError(
        f"the function given as perspective= must return a text, QueryParts or None, got {quoted(answer)}"
    )


def _read_answer(answer: Any, query: str) -> tuple[QueryParts, str]:
    """The parts in a model's answer, and why the answer is invalid ("" if it is valid)."""
    no_perspective = QueryParts(query, None)
    if isinstance(answer, (tuple, list)) and len(answer) == 2:
        root, perspective = answer
    elif hasattr(answer, "root") and hasattr(answer, "perspective"):
        root, perspective = answer.root, answer.perspective
    else:
        return no_perspective, "the answer is not a pair of root and perspective"
    if perspective is None or (isinstance(perspective, str) and not _words(perspective)):
        return no_perspective, ""
    if not isinstance(root, str) or not isinstance(perspective, str):
        return no_perspective, "root and perspective must be texts"
    foreign = sorted(_words(perspective) - _words(query))
    if foreign:
        return no_perspective, f"the perspective has words that are not in the query ({', '.join(foreign)})"
    if _words(query) <= _words(perspective):
        return no_perspective, "the perspective is the whole query"
    if not root.strip():
        return no_perspective, "the root is empty"
    return QueryParts(root.strip(), perspective.strip()), ""


def _words(text: str) -> set[str]:
    """The words of ``text`` without case and punctuation."""
    return set(_WORD.findall(normalise(text).casefold()))
