"""What enters: a question with its sub-questions and embeddings, items of a framework, examples, names of settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from .._values import is_missing
from ..errors import InvalidInputError, InvalidParameterError, PerspectiveError, quoted
from ..errors import nearest_name as nearest_name
from ..perspective import PAP
from ..selection.effects import refuse_unknown as refuse_unknown
from ..selectors.registry import selector_class, selector_names, selector_parameters
from ..signals.extraction import QueryParts, aread_perspective, find_text_to_embed, make_pap, read_perspective
from ..texts.words import split_words
from .flow import Flow, Step

# The attributes in which messages, documents and queries of the frameworks keep their text.
_TEXTS = ("text", "content", "page_content", "query_str")

T = TypeVar("T")
Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EmbeddedQuery:
    """The embedding of a question or sub-question, float64, shape (d,), its projection, its text and its words."""

    vector: Vector
    pap: PAP | None
    # What a store is searched with.
    search_vector: list[float]
    # Empty if only the embedding is known.
    text: str = ""
    # The words that count: not those of a perspective that is removed.
    words: str = ""


@runtime_checkable
class _Runnable(Protocol):
    def invoke(self, input: Any, config: Any = None) -> Any: ...

    async def ainvoke(self, input: Any, config: Any = None) -> Any: ...


Queries = Sequence[str] | Callable[[str], Any] | _Runnable | None


def check_question(question: Any, of_dict: str = "pass the text under {key!r}") -> str:
    """``question``, which has to be a text; ``of_dict`` says how the text under a key of a dict is passed."""
    if isinstance(question, str):
        return question
    remedy = "pass a text"
    if isinstance(question, Mapping):
        keys = [key for key, value in question.items() if isinstance(value, str)]
        remedy = of_dict.format(key=keys[0]) if keys else remedy
    elif isinstance(question, (list, tuple)):
        remedy = "pass one text; further questions for the same set go into queries="
    else:
        texts = [name for name in _TEXTS if isinstance(getattr(question, name, None), str)]
        remedy = f"pass its text, .{texts[0]}" if texts else remedy
    raise InvalidInputError(f"the question must be a text, got {quoted(question)}: {remedy}")


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


def check_queries(value: Any) -> Any:
    """``value`` of the setting ``queries``; sub-questions as a tuple."""
    if callable(value) or isinstance(value, _Runnable):
        return value
    if fault := _find_fault(value):
        raise InvalidParameterError(f"queries is {quoted(value)}: {fault}, or a function that returns one")
    return None if value is None else tuple(value)


def _find_fault(value: Any) -> str:
    """Why ``value`` is neither None nor a list of texts; empty if it is."""
    if isinstance(value, str):
        return "split the text into a list of lines, for example with str.splitlines"
    if value is None or (isinstance(value, (list, tuple)) and all(isinstance(text, str) for text in value)):
        return ""
    return "it must be a list of texts"


def embed_question(
    settings: Any, question: str, embed: Callable[[list[str]], Flow[Sequence[Vector]]], config: Any = None
) -> Flow[list[EmbeddedQuery]]:
    """The question and its sub-questions, projected on the complement of the question's perspective.

    ``settings`` is a ``Call``, whose module imports this one. ``embed`` gives the checked embeddings of texts. A
    Runnable that splits the question gets the ``config``.
    """
    texts, text = [question], None
    removed: Collection[str] = ()
    queries, perspective = settings.queries, settings.perspective
    if queries is not None:
        if not isinstance(queries, tuple):
            # A question of which only the embedding is known has no text to split.
            queries = (yield from _split(queries, question, config)) if question.strip() else None
        # Blank sub-questions, and those that are equal to the question or to each other, are left out.
        stripped = dict.fromkeys(sub_question.strip() for sub_question in queries or ())
        texts += [sub_question for sub_question in stripped if sub_question not in ("", question.strip())]
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
        if isinstance(splitter, _Runnable):
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
    if fault := _find_fault(answer):
        raise InvalidInputError(f"queries={name} returned {quoted(answer)}: {fault}")
    return answer


def check_instance(value: Any, kind: type | tuple[type, ...], what: str, remedy: str = "") -> None:
    """Refuse what is no object of this kind, or of one of these kinds; the ``remedy`` says what to pass."""
    if not isinstance(value, kind):
        names = " or ".join(map(_name_class, kind if isinstance(kind, tuple) else (kind,)))
        is_class = isinstance(value, type)
        got = f"the class {_name_class(value)}" if is_class else f"an object of {_name_class(type(value))}"
        raise InvalidParameterError(f"{what} must be an object of {names}, got {got}{remedy}")


def _name_class(kind: type) -> str:
    """The name of a class, with that of its package: those of LangChain and LlamaIndex are alike."""
    return f"{kind.__name__} ({kind.__module__.partition('.')[0]})"


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


def where_to_pass_parameters() -> dict[str, str]:
    """What to write in place of a setting that is a parameter of a registered selector."""
    ways: dict[str, list[str]] = {}
    for name in selector_names():
        for parameter in selector_parameters(name):
            ways.setdefault(parameter, []).append(f"selector={selector_class(name).__name__}({parameter}=...)")
    ways["selector_kwargs"] = ["selector=VRSD(refine=True), for example"]
    return {parameter: f"pass {' or '.join(found)}" for parameter, found in ways.items()}


def join_values(values: Mapping[str, Any], keys: Sequence[str] | None, what: str = "the input") -> str:
    """The text that is embedded for an example: the values under ``keys`` (None: all), without missing ones."""
    if not isinstance(values, Mapping):
        raise InvalidInputError(f"{what} must be a dict of keys and values, got {quoted(values)}")
    # LangChain's own example selectors make the same text, so their stores can be used.
    names = sorted(keys or values)
    for name in names:
        if name not in values:
            raise InvalidParameterError(
                f"input_keys names {name!r}, but the keys of {what} are {', '.join(map(str, values)) or 'none'}"
            )
    known = [str(values[name]) for name in names if not is_missing(values[name])]
    if not known:
        of_keys = ", ".join(map(repr, names)) or "any key"
        raise InvalidInputError(
            f"{what} has no value under {of_keys}, so there is no text to embed: leave an example out, and name the "
            "variables of a prompt in its input_variables"
        )
    return " ".join(known)
