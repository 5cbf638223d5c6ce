"""What enters: questions and what splits them, names of settings, items, and what settings say of each item."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from importlib import import_module
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from .._validation import as_float, as_optional, as_plain, as_ranks, is_missing, quoted
from .._validation import nearest_name as nearest_name
from ..candidates import Parts, as_parts
from ..errors import InvalidInputError, InvalidParameterError, warn
from ..facts import describe_item, item_id
from ..selectors.registry import Selector, selector_class, selector_names, selector_parameters

# The attributes in which messages, documents and queries of the frameworks keep their text.
_TEXTS = ("text", "content", "page_content", "query_str")


def check_question(question: Any, of_dict: str = "pass the text under {key!r}") -> str:
    """``question``, which has to be a text; ``of_dict`` says how the text under a key of a dict is passed."""
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


T = TypeVar("T")


def import_at_first_use(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose names are imported from these modules of it when they are first used."""

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f".{modules[name]}", package), name)

    return find


def find_registered(table: Mapping[type | str, T], cls: type) -> T | None:
    """The entry of ``cls`` or of the nearest of its base classes, by the class or by its full name."""
    for base in cls.__mro__:
        entry = table.get(base) or table.get(f"{base.__module__}.{base.__qualname__}")
        if entry is not None:
            return entry
    return None


def refuse_unknown(
    owner: str, names: Iterable[str], known: Iterable[str], remedies: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Raise for the first name that ``owner`` does not know; ``remedies`` says what to do about some of them."""
    allowed = sorted({*known})
    for name in names:
        if name not in allowed:
            near = nearest_name(name, allowed)
            hint = f"it has {', '.join(allowed) or 'none'}" if near is None else f"did you mean {near!r}?"
            raise InvalidParameterError(f"{owner} has no argument {name!r}: {remedies.get(name, hint)}")


def where_to_pass_parameters() -> dict[str, str]:
    """What to write in place of a setting that is a parameter of a registered selector."""
    ways: dict[str, list[str]] = {}
    for name in selector_names():
        for parameter in selector_parameters(name):
            ways.setdefault(parameter, []).append(f"selector={selector_class(name).__name__}({parameter}=...)")
    ways["selector_kwargs"] = ["selector=VRSD(refine=True), for example"]
    return {parameter: f"pass {' or '.join(found)}" for parameter, found in ways.items()}


def name_and_parameters(selector: Selector) -> tuple[str | None, dict[str, Any]]:
    """The name under which a selector's class is registered, and its parameters that are not the default."""
    name = next((name for name in selector_names() if type(selector) is selector_class(name)), None)
    fields: tuple[Any, ...] = dataclasses.fields(selector) if dataclasses.is_dataclass(selector) else ()
    values = [(field, getattr(selector, field.name)) for field in fields if field.init]
    return name, {field.name: value for field, value in values if value != field.default}


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


# A metadata key, values by the items' ids, or a function of the item.
ItemNumber = str | Mapping[Any, float] | Callable[[Any], float]
ItemName = str | Mapping[Any, Hashable] | Callable[[Any], Hashable]
# A date is a date, a datetime or an ISO string.
Ordered = float | date | str | None
ItemOrdered = str | Mapping[Any, Ordered] | Callable[[Any], Ordered]


def itself(item: Any) -> Any:
    """The item: what a function that is the value of a setting gets by default."""
    return item


def read_numbers(
    items: Sequence[Any], given: ItemNumber, what: str, view: Callable[[Any], Any] = itself
) -> NDArray[np.float64]:
    """One finite number per item, float64, shape (n,). Messages use ``what`` for the numbers, and name the item."""
    numbers = np.empty(len(items))
    for row, value in enumerate(map(as_plain, read_some(items, given, what, view, required=True))):
        if value is None:
            key = f" under {given!r}" if isinstance(given, str) else ""
            raise InvalidInputError(
                f"{what}{key} of {describe_item(items[row], row)} is missing: add it, or pass a function as {what}= "
                "that has a default"
            )
        try:
            numbers[row] = math.nan if isinstance(value, str) else value
        except (TypeError, ValueError, OverflowError):
            numbers[row] = math.nan
        if not np.isfinite(numbers[row]):
            raise InvalidInputError(
                f"{what} of {describe_item(items[row], row)} is {quoted(value)}, which is not a finite number"
            )
    return numbers


def read_scores(values: Iterable[Any]) -> list[float | None]:
    """The scores that items came with; None for a missing one, and for what is no number that a float can hold."""
    numbers = (as_float(as_plain(value)) for value in values)
    return [None if math.isnan(number) else number for number in numbers]


def read_ranks(
    items: Sequence[Any], given: ItemOrdered, what: str, view: Callable[[Any], Any] = itself
) -> NDArray[np.int64]:
    """The ranks of the items by a number or date of each, shape (n,); 0 for an item without one.

    Messages use ``what``, and name the item. At least one item must have a value.
    """
    values = read_some(items, given, what, view, required=True)
    return as_ranks(values, len(items), what, lambda row: describe_item(items[row], row))


def read_parts(
    items: Sequence[Any],
    given: ItemNumber | ItemName,
    what: str,
    view: Callable[[Any], Any] = itself,
) -> Parts:
    """The values of the items as parts to cover; an item without one covers nothing. See :func:`read_ranks`."""
    values = read_some(items, given, what, view, required=True)
    return as_parts(values, len(items), what, lambda row: describe_item(items[row], row))


def read_some(
    items: Sequence[Any],
    given: ItemNumber | ItemName | ItemOrdered,
    what: str,
    view: Callable[[Any], Any] = itself,
    *,
    required: bool = False,
    tells: bool = True,
) -> list[Any]:
    """One value per item; None for one without.

    It warns if no item has a value in its metadata or in the mapping by id. If a value is ``required``, it raises an
    error in place of the warning. With ``tells=False`` it does neither.
    """
    if isinstance(given, str):
        values = [item.metadata.get(given) for item in items]
    elif isinstance(given, Mapping):
        values = [given.get(item_id(item)) for item in items]
    else:
        values = [_call(given, item, row, what, view) for row, item in enumerate(items)]
    values = as_optional(values)
    if tells and isinstance(given, (str, Mapping)) and all(value is None for value in values):
        if isinstance(given, str):
            keys = dict.fromkeys(key for item in items for key in item.metadata)
            message = (
                f"{what} is read from metadata {given!r}, but none of the {len(items)} candidates has a value under "
                f"this key; their keys are {', '.join(map(repr, keys)) or 'none'}. Name another key"
            )
        else:
            message = (
                f"{what} is read from a mapping by id, but it has values for none of the {len(items)} candidates. "
                "Check the ids, or pass a metadata key"
            )
        message += f", or pass a function as {what}="
        if required:
            raise InvalidInputError(message)
        warn(message)
    return values


def _call(function: Callable[[Any], Any], item: Any, row: int, what: str, view: Callable[[Any], Any]) -> Any:
    try:
        return function(view(item))
    except (TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"{what}={getattr(function, '__name__', function)} fails for {describe_item(item, row)}: {error}. The "
            f"function gets the whole {type(view(item)).__name__}, not its text"
        ) from error


def check_items(items: Any, kind: type, remedy: str) -> list[Any]:
    """``items`` as a list; InvalidInputError with the ``remedy`` unless it holds objects of this kind only."""
    # A document or node by itself is iterable: it gives its fields.
    if isinstance(items, (str, Mapping, BaseModel)) or not isinstance(items, Iterable):
        raise InvalidInputError(f"a list of {kind.__name__} is needed, got {quoted(items)}. {remedy}")
    listed = list(items)
    for row, item in enumerate(listed):
        if not isinstance(item, kind):
            raise InvalidInputError(f"a list of {kind.__name__} is needed, but item {row} is {quoted(item)}. {remedy}")
    return listed


def join_examples(examples: Iterable[Mapping[str, Any]], keys: Sequence[str] | None) -> list[str]:
    """The texts that are embedded for examples; see :func:`join_values`. An error names the example by its position."""
    texts = [join_values(example, keys, f"example {row}") for row, example in enumerate(examples)]
    for row, text in enumerate(texts):
        if not text.strip():
            raise InvalidInputError(
                f"example {row} has no value under {', '.join(map(repr, keys)) if keys else 'any key'}, so there is no "
                "text to embed: give it one, or leave it out"
            )
    return texts


def join_values(values: Mapping[str, Any], keys: Sequence[str] | None, what: str = "the input") -> str:
    """The values under ``keys`` (None: all) as one text, in the order of the names; missing values are left out."""
    if not isinstance(values, Mapping):
        hint = f": pass {{{(keys or ['question'])[0]!r}: text}}" if isinstance(values, str) else ""
        raise InvalidInputError(f"{what} must be a dict of keys and values, got {quoted(values)}{hint}")
    # LangChain's own example selectors make the same text, so their stores can be used.
    names = sorted(keys or values)
    for name in names:
        if name not in values:
            raise InvalidParameterError(
                f"input_keys names {name!r}, but the keys of {what} are {', '.join(map(str, values)) or 'none'}: add "
                "the key (None where there is no value), or name other keys"
            )
    return " ".join(str(values[name]) for name in names if not is_missing(values[name]))
