"""What enters through the adapters: the question, the order of the arguments, and objects of a framework."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._validation import quoted
from ..errors import InvalidInputError, InvalidParameterError

# The attributes in which messages, documents and queries of the frameworks keep their text.
_TEXTS = ("text", "content", "page_content", "query_str")


def check_question(question: Any, of_dict: str = "pass the text under {key!r}") -> str:
    """``question``, which has to be a text; ``of_dict`` says how the text under a key of a dict is passed.

    >>> check_question({"question": "Who?"})
    Traceback (most recent call last):
    ...
    setselect.InvalidInputError: the question must be a text, got {'question': 'Who?'}: pass the text under 'question'
    """
    if isinstance(question, str):
        return question
    remedy = "pass its text"
    if question is None:
        remedy = "pass a text"
    elif isinstance(question, Mapping):
        key = next((key for key, value in question.items() if isinstance(value, str)), None)
        none = f"pass a text, which none of the keys {quoted([*question])} holds"
        remedy = none if key is None else of_dict.format(key=key)
    elif isinstance(question, (list, tuple)):
        last = _find_text(question[-1]) if question else ""
        remedy = "pass one text; further questions for the same set go into queries="
        if last:
            remedy = f"pass the text of one of them, such as the last one: [-1]{last}"
    elif attribute := _find_text(question):
        remedy = f"pass its text, {attribute}"
    raise InvalidInputError(f"the question must be a text, got {quoted(question)}: {remedy}")


def _find_text(value: Any) -> str:
    """The attribute that holds the text of an object, with its dot; empty if there is none."""
    return next((f".{name}" for name in _TEXTS if isinstance(getattr(value, name, None), str)), "")


def refuse_swapped(items: Any, question: Any, call: str) -> None:
    """Refuse a question in the place of the items; ``call`` shows the order of the arguments."""
    if isinstance(question, (list, tuple)) and not isinstance(items, (list, tuple)):
        raise InvalidInputError(
            f"the documents and the question are swapped, got {quoted(items)} for the documents: call {call}"
        )


def place_of(value: Any, places: Mapping[Any, str]) -> str:
    """A sentence about where an object of a framework goes, by its class; empty for another value."""
    if isinstance(value, type):
        return ". This is a class: pass an object of it"
    return next((f". {sentence}" for cls, sentence in places.items() if isinstance(value, cls)), "")


def check_instance(value: Any, kind: type | tuple[type, ...], what: str, remedy: str = "") -> None:
    """Refuse what is no object of this kind, or of one of these kinds; ``remedy`` is a sentence about the value."""
    if not isinstance(value, kind):
        names = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
        got = f"the class {value.__name__}" if isinstance(value, type) else f"an object of {type(value).__name__}"
        raise InvalidParameterError(f"{what} must be an object of {names}, got {got}{remedy}")
