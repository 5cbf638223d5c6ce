"""What enters: the text of a question, its sub-questions, items of a framework, examples, and names of settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from .._validation import is_missing, quoted
from .._validation import nearest_name as nearest_name
from ..errors import InvalidInputError, InvalidParameterError
from ..selectors.registry import selector_class, selector_names, selector_parameters

# The attributes in which messages, documents and queries of the frameworks keep their text.
_TEXTS = ("text", "content", "page_content", "query_str")

T = TypeVar("T")


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


def is_splitter(value: Any) -> bool:
    """Whether the setting ``queries`` is a function or a Runnable, and not a list of sub-questions."""
    return callable(value) or isinstance(value, Splitter)


def check_queries(value: Any) -> Any:
    """``value`` of the setting; sub-questions as a tuple."""
    if is_splitter(value):
        return value
    if fault := find_fault(value):
        raise InvalidParameterError(f"queries is {quoted(value)}: {fault}, or a function that returns one")
    return None if value is None else tuple(value)


def find_fault(value: Any) -> str:
    """Why ``value`` is neither None nor a list of texts; empty if it is."""
    if isinstance(value, str):
        return "split the text into a list of lines, for example with str.splitlines"
    if value is None or (isinstance(value, (list, tuple)) and all(isinstance(text, str) for text in value)):
        return ""
    return "it must be a list of texts"


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
