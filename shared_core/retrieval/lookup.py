"""Looking names up: the entry of a class in a table, and the setting that a misspelt name means."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, TypeVar

# The adapters use it too.
from .._validation import nearest_name as nearest_name
from ..errors import InvalidParameterError
from ..selectors.registry import Selector, selector_class, selector_names, selector_parameters

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
    """Raise for the first name that ``owner`` does not know; ``remedies`` says what to do about some of them.

    >>> refuse_unknown("Retriever", ["lambda"], ["k", "lambda_mult"])
    Traceback (most recent call last):
    ...
    setselect.InvalidParameterError: Retriever has no argument 'lambda': did you mean 'lambda_mult'?
    """
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
