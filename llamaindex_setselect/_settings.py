"""Checks of settings, and their plain form for files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from shared_core import InvalidParameterError, Selector, make_selector, selector_names, selector_parameters


def refuse_unknown(owner: str, names: Iterable[str], selector: Any, known: Iterable[str]) -> None:
    """Raise for the first name that is no parameter of the selector; the message lists what is allowed."""
    own = selector_parameters(selector) if isinstance(selector, str) else ()
    for name in names:
        if name not in own:
            raise InvalidParameterError(
                f"{owner} has no argument {name!r}; it has {', '.join(known)}, "
                f"and those of selector {selector!r}: {', '.join(own) or 'none'}"
            )


def name_and_parameters(selector: str | Selector, parameters: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The registered name and the plain parameters that make the selector again."""
    if isinstance(selector, str):
        name: str | None = selector
    else:
        if dataclasses.is_dataclass(selector):
            parameters = {f.name: getattr(selector, f.name) for f in dataclasses.fields(selector) if f.init}
        name = next((n for n in selector_names() if _makes(n, parameters, selector)), None)
    if name is None:
        raise InvalidParameterError(f"to_dict has no name for {selector!r}: register_selector gives it one")
    parameters = {k: v.item() if isinstance(v, np.generic) else v for k, v in parameters.items()}
    for key, value in parameters.items():
        if value is not None and not isinstance(value, (bool, int, float, str)):
            raise InvalidParameterError(
                f"to_dict cannot write {key}={value!r}: save a kernel with its own save() and pass it again"
            )
    return name, dict(parameters)


def _makes(name: str, parameters: dict[str, Any], selector: Selector) -> bool:
    try:
        return make_selector(name, **parameters) == selector
    except (InvalidParameterError, TypeError):
        return False
