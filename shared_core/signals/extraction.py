"""Perspectives found in the query itself, by a language model or a function (PIR paper, 3.4)."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._validation import check_integer, check_one_of
from ..errors import InvalidParameterError, PerspectiveError, SetSelectWarning
from ..perspective import PAP
from ._splitting import pair_in, words

PERSPECTIVE_VECTORS = ("text", "difference")
# Two texts that a model takes for one differ by the rounding of float32; its direction means nothing.
_NEGLIGIBLE = 1e-6
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
"""What the adapters ask a language model, with ``{query}`` where the query goes; its examples are our own."""


class QueryParts(NamedTuple):
    """A query split into what is asked (``root``) and the side it is asked from (``perspective``, or None).

    ``root`` is empty where only the perspective is known.
    """

    root: str
    perspective: str | None


class PerspectiveExtractor:
    """Splits queries into root and perspective with a language model, and believes no answer unseen.

    The perspective has to consist of words of the query, though not of all of them, and the root must not be
    empty. An answer that fails gives ``QueryParts(query, None)``, so no projection, with a warning that quotes
    it; it is not kept, so that the next time the model is asked again. An answer without a perspective is no
    failure. A query of fewer than two words has no perspective, and the model is not asked.

    Parameters
    ----------
    split : callable
        Takes the query, returns ``(root, perspective)`` or an object with these two attributes.
        ``extractor_from_chat_model`` and ``extractor_from_llm`` of the adapters make it from a model.
    asplit : async callable, optional
        The same for :meth:`aextract`; without it ``split`` runs in a thread.
    cache_size : int
        How many queries' answers to keep, the least recently asked for goes first; 0 keeps none. Threads may
        share an extractor; two that ask one query at the same time may both ask the model. Copies and pickles
        start with nothing kept.

    Raises
    ------
    InvalidParameterError
        ``split`` or ``asplit`` cannot be called, or ``cache_size`` is no integer of at least 0.

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
        if not callable(split):
            raise InvalidParameterError(f"split must be a function of the query, got {split!r}")
        if asplit is not None and not callable(asplit):
            raise InvalidParameterError(f"asplit must be an async function of the query, got {asplit!r}")
        self._split = split
        self._asplit = asplit
        self._cache_size = check_integer(cache_size, "cache_size", 0)
        # functools.lru_cache would keep coroutines, and cachetools is no dependency of a core that needs numpy only.
        self._kept: OrderedDict[str, QueryParts] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._split, self._asplit, self._cache_size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._split!r})"

    def extract(self, query: str) -> QueryParts:
        """The parts of ``query``; ``perspective`` is None where it has none, or where the answer is invalid.

        Raises
        ------
        Exception
            Whatever ``split`` raises, as it is.
        """
        known = self._known(query)
        return self._checked(query, self._split(query)) if known is None else known

    def __call__(self, query: str) -> QueryParts:
        """As :meth:`extract`: an extractor is a function of the query."""
        return self.extract(query)

    async def aextract(self, query: str) -> QueryParts:
        """As :meth:`extract`, by ``asplit``."""
        known = self._known(query)
        if known is not None:
            return known
        if self._asplit is None:
            return self._checked(query, await asyncio.to_thread(self._split, query))
        return self._checked(query, await self._asplit(query))

    def _known(self, query: str) -> QueryParts | None:
        if len(words(query)) < 2:
            return QueryParts(query, None)
        with self._lock:
            if query in self._kept:
                self._kept.move_to_end(query)
            return self._kept.get(query)

    def _checked(self, query: str, answer: Any) -> QueryParts:
        (root, perspective), fault = pair_in(answer, query)
        parts = QueryParts(root, perspective)
        if fault:
            warnings.warn(
                f"no perspective for the query {query!r}: {fault}. The answer was {answer!r}; "
                "try another prompt or model if this happens often",
                SetSelectWarning,
                stacklevel=3,
            )
            return parts
        with self._lock:
            self._kept[query] = parts
            self._kept.move_to_end(query)
            while len(self._kept) > self._cache_size:
                self._kept.popitem(last=False)
        return parts


def checked_perspective_vector(value: str, perspective: Any) -> str:
    """``value`` if it is a way to the perspective's vector that is open to ``perspective``.

    Raises
    ------
    InvalidParameterError
        It is neither ``"text"`` nor ``"difference"``, or it is ``"difference"`` and ``perspective`` is a text or
        a vector, with which there is no root query.

    Examples
    --------
    >>> checked_perspective_vector("text", "in Mississippi")
    'text'
    """
    check_one_of(value, "perspective_vector", PERSPECTIVE_VECTORS)
    if value == "difference" and perspective is not None and not callable(perspective):
        raise InvalidParameterError(
            "perspective_vector='difference' needs the root query: pass as perspective= a PerspectiveExtractor or a "
            f"function that returns QueryParts, not a {type(perspective).__name__}"
        )
    return value


def parts_of(perspective: Any, query: str) -> QueryParts | None:
    """What a setting ``perspective=`` means for ``query``; None where there is no text of a perspective.

    A text stands for itself, a function and an extractor are asked, a vector and None have no text. What a
    function returns is taken as it is; a blank text or None is no perspective.

    Raises
    ------
    PerspectiveError
        A function returned something else than a text, QueryParts or None.
    Exception
        What the function or the model raises.

    Examples
    --------
    >>> parts_of(lambda query: "in winter", "ferries in winter")
    QueryParts(root='', perspective='in winter')
    """
    return _given(perspective(query) if callable(perspective) else perspective, perspective)


async def aparts_of(perspective: Any, query: str) -> QueryParts | None:
    """As :func:`parts_of`; an extractor is awaited, a function runs in a thread."""
    if isinstance(perspective, PerspectiveExtractor):
        return _with_perspective(await perspective.aextract(query))
    answer = await asyncio.to_thread(perspective, query) if callable(perspective) else perspective
    return _given(answer, perspective)


def text_to_embed(parts: QueryParts | None, query: str, perspective_vector: str) -> str | None:
    """What to embed for the projection, besides the query: the perspective, or the root for ``"difference"``.

    None means that there is nothing to project on: no perspective, or a root that is the query itself.

    Raises
    ------
    PerspectiveError
        ``"difference"``, and the root is not known.

    Examples
    --------
    >>> text_to_embed(QueryParts("ferries", "in winter"), "ferries in winter", "difference")
    'ferries'
    """
    if parts is None or parts.perspective is None or perspective_vector == "text":
        return None if parts is None else parts.perspective
    if not parts.root.strip():
        raise PerspectiveError(
            f"perspective_vector='difference' needs the root query, and for {query!r} there is none: let the "
            "function return QueryParts(root, perspective)"
        )
    return None if parts.root.strip() == query.strip() else parts.root


def pap_for(
    perspective: Any,
    query: ArrayLike,
    embedded: Sequence[float] | None,
    *,
    perspective_vector: str = "text",
    corpus: bool = False,
    direction: str = "remove",
) -> PAP | None:
    """The projection that a setting ``perspective=`` asks for; None for none.

    ``embedded`` is the embedding of what :func:`text_to_embed` named; without it only a ``perspective`` that is a
    vector counts. With ``"difference"`` p = ``query`` − ``embedded``, and p = 0 is no projection.

    Raises
    ------
    PerspectiveError, InvalidParameterError
        As :class:`PAP`; query and root are embedded in different lengths.

    Examples
    --------
    >>> pap_for(len, [1.0, 1.0], [1.0, 0.0], perspective_vector="difference").perspective.tolist()
    [0.0, 1.0]
    """
    if embedded is None:
        if perspective is None or isinstance(perspective, str) or callable(perspective):
            return None
        return PAP(perspective, corpus=corpus, direction=direction)
    if perspective_vector == "text":
        return PAP(embedded, corpus=corpus, direction=direction)
    q, root = np.asarray(query, dtype=np.float64), np.asarray(embedded, dtype=np.float64)
    if q.shape != root.shape:
        raise PerspectiveError(f"the query's embedding has shape {q.shape}, the root's {root.shape}: use one model")
    p = q - root
    if np.linalg.norm(p) <= _NEGLIGIBLE * np.linalg.norm(q):
        return None
    return PAP(p, corpus=corpus, direction=direction)


def _given(answer: Any, perspective: Any) -> QueryParts | None:
    if isinstance(answer, QueryParts):
        return _with_perspective(answer)
    if isinstance(answer, str):
        return _with_perspective(QueryParts("", answer))
    if answer is None or not callable(perspective):
        return None
    if inspect.iscoroutine(answer):
        answer.close()
        raise PerspectiveError(
            "perspective= is an async function: pass PerspectiveExtractor(split, asplit=...), which has a place for it"
        )
    raise PerspectiveError(f"the function given as perspective= must return a text, QueryParts or None, got {answer!r}")


def _with_perspective(parts: QueryParts) -> QueryParts | None:
    return parts if parts.perspective and parts.perspective.strip() else None
