"""The setting ``queries``: sub-questions, or what splits a question into them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

from .._validation import quoted
from ..errors import InvalidInputError, InvalidParameterError


@runtime_checkable
class Splitter(Protocol):
    """A LangChain Runnable from a question to its sub-questions."""

    def invoke(self, input: Any, config: Any = None) -> Any:
        """The sub-questions; the config names the callbacks of the caller."""
        ...

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        """The async version."""
        ...


Queries = Sequence[str] | Callable[[str], Any] | Splitter | None


def check_queries(value: Any) -> Any:
    """``value`` of the setting; sub-questions as a tuple."""
    if is_splitter(value):
        return value
    fault = _find_fault(value)
    if fault:
        raise InvalidParameterError(f"queries is {quoted(value)}: {fault}, or a function that returns one")
    return None if value is None else tuple(value)


def is_splitter(value: Any) -> bool:
    """Whether the setting is a function or a Runnable, and not a list of sub-questions."""
    return callable(value) or isinstance(value, Splitter)


def split(splitter: Any, question: str, config: Any) -> Sequence[str] | None:
    """The sub-questions that ``splitter`` gives. A Runnable gets the ``config``."""
    with _named(splitter):
        answer = splitter.invoke(question, config) if isinstance(splitter, Splitter) else splitter(question)
    if inspect.iscoroutine(answer):
        answer.close()
        raise InvalidInputError(
            f"queries={_name(splitter)} is an async function: call an async method such as ainvoke or aretrieve, or "
            "pass a function that is not async"
        )
    return _check_answer(splitter, answer)


async def asplit(splitter: Any, question: str, config: Any) -> Sequence[str] | None:
    """The async version of :func:`split`: a function that is not async runs in a thread."""
    with _named(splitter):
        if isinstance(splitter, Splitter):
            answer = await splitter.ainvoke(question, config)
        else:
            answer = await asyncio.to_thread(splitter, question)
            if inspect.isawaitable(answer):
                answer = await answer
    return _check_answer(splitter, answer)


def distinct_queries(question: str, sub_questions: Sequence[str] | None) -> list[str]:
    """The question, and the sub-questions that differ from it and from each other. Blank ones are left out.

    >>> distinct_queries("Who?", ["Where?", " ", "Who?", "Where? "])
    ['Who?', 'Where?']
    """
    texts = dict.fromkeys(text.strip() for text in sub_questions or ())
    return [question, *(text for text in texts if text and text != question.strip())]


@contextmanager
def _named(splitter: Any) -> Iterator[None]:
    """Errors say that the setting ``queries`` raised them."""
    try:
        yield
    # A model behind the function may raise anything.
    except Exception as error:
        message = f"queries={_name(splitter)} failed to split the question: {type(error).__name__}: {error}"
        raise InvalidInputError(message) from error


def _check_answer(splitter: Any, answer: Any) -> Sequence[str] | None:
    fault = _find_fault(answer)
    if fault:
        raise InvalidInputError(f"queries={_name(splitter)} returned {quoted(answer)}: {fault}")
    sub_questions: Sequence[str] | None = answer
    return sub_questions


def _find_fault(value: Any) -> str:
    """Why ``value`` is neither None nor a list of texts; empty if it is."""
    if isinstance(value, str):
        return "split the text into a list of lines, for example with str.splitlines"
    if value is None or (isinstance(value, (list, tuple)) and all(isinstance(text, str) for text in value)):
        return ""
    return "it must be a list of texts"


def _name(splitter: Any) -> str:
    return getattr(splitter, "__name__", None) or getattr(splitter, "name", None) or type(splitter).__name__
