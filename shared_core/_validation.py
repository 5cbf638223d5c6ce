"""Checks of single parameters, with one wording for all."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from .errors import InvalidParameterError


def check_integer(value: Any, what: str, least: int | None = None) -> int:
    """``value`` as an int of at least ``least``; floats and bools are no ints.

    Raises
    ------
    InvalidParameterError
        ``value`` is not an integer, or is too small.

    Examples
    --------
    >>> check_integer(3, "k")
    3
    """
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        whole = operator.index(value)
    except TypeError:
        raise InvalidParameterError(f"{what} must be an integer, got {value!r}") from None
    if least is not None and whole < least:
        raise InvalidParameterError(f"{what} must be at least {least}, got {whole}")
    return whole


def as_identifiers(values: Iterable[Hashable] | None, what: str) -> tuple[Hashable, ...]:
    """``values`` as a tuple, empty for None; a single string is refused, not taken apart.

    Raises
    ------
    InvalidParameterError
        ``values`` is a string or no collection, or holds None or something that cannot be hashed.

    Examples
    --------
    >>> as_identifiers(["a", "b"], "shown")
    ('a', 'b')
    """
    if isinstance(values, str):
        raise InvalidParameterError(f"{what} takes a collection of ids, not one string: [{values!r}]")
    try:
        names = () if values is None else tuple(values)
        hash(names)
    except TypeError:
        raise InvalidParameterError(f"{what} takes a collection of ids, got {values!r}") from None
    if None in names:
        raise InvalidParameterError(f"{what} holds None: items without an id cannot be told apart; store them with ids")
    return names


def check_number(value: Any, what: str, low: float = -math.inf, high: float = math.inf) -> float:
    """``value`` as a finite float in [low, high]; strings and bools are none.

    Raises
    ------
    InvalidParameterError
        ``value`` is not a finite number, or is out of range.

    Examples
    --------
    >>> check_number(1, "lambda_d", 0, 1)
    1.0
    """
    numeric = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not numeric or not math.isfinite(value) or not low <= value <= high:
        bounds = "" if low == -math.inf and high == math.inf else f" in [{low:g}, {high:g}]"
        raise InvalidParameterError(f"{what} must be a finite number{bounds}, got {value!r}")
    return float(value)


def check_one_of(value: Any, what: str, allowed: Sequence[str]) -> str:
    """``value`` if it is allowed.

    Raises
    ------
    InvalidParameterError
        It is not; the message lists what is.

    Examples
    --------
    >>> check_one_of("remove", "direction", ("remove", "emphasize"))
    'remove'
    """
    if value not in allowed:
        raise InvalidParameterError(f"{what} must be one of {', '.join(allowed)}, got {value!r}")
    name: str = value
    return name
