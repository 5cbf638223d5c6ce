"""From a question to what a store is searched with: its sub-questions, its perspective, and their embeddings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._validation import quoted
from ..errors import InvalidInputError, PerspectiveError
from ..perspective import PAP
from ..signals.extraction import QueryParts, aread_perspective, find_text_to_embed, make_pap, read_perspective
from ..texts.words import split_words
from .flow import Flow, Step
from .inputs import asplit, distinct_queries, is_splitter, split

if TYPE_CHECKING:
    from .settings import Call


@dataclass(frozen=True, eq=False)
class EmbeddedQuery:
    """The embedding of a question or sub-question, float64, shape (d,), its projection, its text and its words."""

    vector: NDArray[np.float64]
    pap: PAP | None
    # What a store is searched with.
    search_vector: list[float]
    # Empty if only the embedding is known.
    text: str = ""
    # The words that count: not those of a perspective that is removed.
    words: str = ""


Vector = NDArray[np.float64]
# Gives the embeddings of texts as queries, the question first. They are checked.
Embed = Callable[[list[str]], Flow[Sequence[Vector]]]


def embed_question(settings: Call, question: str, embed: Embed, config: Any = None) -> Flow[list[EmbeddedQuery]]:
    """The question and its sub-questions, projected on the complement of the question's perspective.

    A Runnable that splits the question gets the ``config``.
    """
    texts: list[str] = [question]
    text: str | None = None
    removed: Collection[str] = ()
    if settings.queries is not None:
        texts = yield from _read_queries(settings, question, config)
    if settings.perspective is not None:
        text, removed = yield from _read_perspective(settings, question)
    first, *vectors = yield from embed(texts if text is None else [*texts, text])
    of_text = None if text is None else vectors.pop()
    if not first.any():
        raise InvalidInputError(
            "the query's embedding is the zero vector, which has no direction: check the model that embedded it"
        )
    pap = None
    if settings.perspective is not None:
        pap = make_pap(
            settings.perspective,
            first,
            of_text,
            perspective_vector=settings.perspective_vector,
            corpus=settings.corpus,
            direction=settings.direction,
        )
    queries = [_as_query(texts[0], first, pap, removed)]
    for sub_question, vector in zip(texts[1:], vectors, strict=True):
        name = f"sub-question {quoted(sub_question)}"
        if len(vector) != len(first):
            raise InvalidInputError(
                f"the embedding of the {name} has length {len(vector)}, the question's {len(first)}: embed both with "
                "the same model"
            )
        # A model of words gives a vector of zeros for words that it does not know.
        if not vector.any():
            continue
        try:
            queries.append(_as_query(sub_question, vector, pap, removed))
        except PerspectiveError as error:
            raise PerspectiveError(f"{name}: {error}") from None
    return queries


def _read_queries(settings: Call, question: str, config: Any) -> Flow[list[str]]:
    """The question and its sub-questions. A question of which only the embedding is known has no text to split."""
    queries: Any = settings.queries
    if is_splitter(queries):
        arguments = queries, question, config
        queries = None
        if question.strip():
            queries = yield Step(functools.partial(split, *arguments), functools.partial(asplit, *arguments))
    return distinct_queries(question, queries)


def _read_perspective(settings: Call, question: str) -> Flow[tuple[str | None, Collection[str]]]:
    """The text to embed for the projection besides the question, or None; and the words that do not count.

    They are the words of a perspective that is removed.
    """
    arguments = settings.perspective, question
    parts: QueryParts | None = yield Step(
        functools.partial(read_perspective, *arguments), functools.partial(aread_perspective, *arguments)
    )
    text = find_text_to_embed(parts, question, settings.perspective_vector)
    if text is None or parts is None or settings.direction != "remove":
        return text, ()
    return text, {*split_words(parts.perspective or "")}


def _as_query(text: str, vector: Vector, pap: PAP | None, removed: Collection[str]) -> EmbeddedQuery:
    words = " ".join(word for word in split_words(text) if word not in removed) if removed else text
    return EmbeddedQuery(vector, pap, (vector if pap is None else pap.project(vector)).tolist(), text, words)
