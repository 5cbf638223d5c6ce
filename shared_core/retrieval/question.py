"""From a question to what a store is searched with: its sub-questions, its perspective, and their embeddings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._validation import quoted
from ..errors import InvalidInputError, PerspectiveError
from ..perspective import PAP
from ..signals.extraction import QueryParts, aread_perspective, find_text_to_embed, make_pap, read_perspective
from ..texts.words import split_words
from .flow import Flow, Step
from .inputs import Splitter, find_fault, is_splitter

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
    texts, text = [question], None
    removed: Collection[str] = ()
    queries, perspective = settings.queries, settings.perspective
    if queries is not None:
        if is_splitter(queries):
            # A question of which only the embedding is known has no text to split.
            queries = (yield from _split(queries, question, config)) if question.strip() else None
        texts = distinct_queries(question, queries or ())  # type: ignore[arg-type]
    if perspective is not None:
        parts: QueryParts | None = yield Step(
            partial(read_perspective, perspective, question), partial(aread_perspective, perspective, question)
        )
        text = find_text_to_embed(parts, question, settings.perspective_vector)
        if text is not None and parts is not None and settings.direction == "remove":
            removed = {*split_words(parts.perspective or "")}
    vectors = [*(yield from embed(texts if text is None else [*texts, text]))]
    first, of_text = vectors[0], None if text is None else vectors.pop()
    if not first.any():
        raise InvalidInputError(
            "the query's embedding is the zero vector, which has no direction: check the model that embedded it"
        )
    pap = None
    if perspective is not None:
        pap = make_pap(
            perspective,
            first,
            of_text,
            perspective_vector=settings.perspective_vector,
            corpus=settings.corpus,
            direction=settings.direction,
        )
    embedded = []
    for number, (asked, vector) in enumerate(zip(texts, vectors, strict=True)):
        if len(vector) != len(first):
            raise InvalidInputError(
                f"the embedding of the sub-question {quoted(asked)} has length {len(vector)}, the question's "
                f"{len(first)}: embed both with the same model"
            )
        # A model of words gives a vector of zeros for words that it does not know.
        if not vector.any():
            continue
        words = " ".join(word for word in split_words(asked) if word not in removed) if removed else asked
        try:
            search_vector = (vector if pap is None else pap.project(vector)).tolist()
        except PerspectiveError as error:
            if not number:
                raise
            raise PerspectiveError(f"sub-question {quoted(asked)}: {error}") from None
        embedded.append(EmbeddedQuery(vector, pap, search_vector, asked, words))
    return embedded


def _split(splitter: Any, question: str, config: Any) -> Flow[Any]:
    """The sub-questions that a function or Runnable gives. A function that is not async runs in a thread."""
    name = getattr(splitter, "__name__", None) or getattr(splitter, "name", None) or type(splitter).__name__
    try:
        if isinstance(splitter, Splitter):
            arguments = question, config
            answer = yield Step(partial(splitter.invoke, *arguments), partial(splitter.ainvoke, *arguments))
        else:
            answer = yield Step(partial(splitter, question))
        if inspect.isawaitable(answer):
            waiting = answer
            answer = yield Step(lambda: waiting, lambda: waiting)
    # A model behind the function may raise anything.
    except Exception as error:
        raise InvalidInputError(
            f"queries={name} failed to split the question: {type(error).__name__}: {error}"
        ) from error
    if inspect.iscoroutine(answer):
        answer.close()
        raise InvalidInputError(
            f"queries={name} is an async function: call an async method such as ainvoke or aretrieve, or pass a "
            "function that is not async"
        )
    if fault := find_fault(answer):
        raise InvalidInputError(f"queries={name} returned {quoted(answer)}: {fault}")
    return answer


def distinct_queries(question: str, sub_questions: Sequence[str]) -> list[str]:
    """The question, and the sub-questions that differ from it and from each other. Blank ones are left out.

    >>> distinct_queries("Who?", ["Where?", " ", "Who?", "Where? "])
    ['Who?', 'Where?']
    """
    texts = dict.fromkeys(text.strip() for text in sub_questions)
    return [question, *(text for text in texts if text and text != question.strip())]
