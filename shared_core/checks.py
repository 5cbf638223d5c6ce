"""Checks of single parameters, with one wording for all."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from .errors import InvalidParameterError


def integer(value: Any, what: str) -> int:
    """``value`` as an int; floats and bools are none.

    Raises
    ------
    InvalidParameterError
        ``value`` is not an integer.

    Examples
    --------
    >>> integer(3, "k")
    3
    """
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise InvalidParameterError(f"{what} must be an integer, got {value!r}") from None


def number(value: Any, what: str, low: float = -math.inf, high: float = math.inf) -> float:
    """``value`` as a finite float in [low, high]; strings and bools are none.

    Raises
    ------
    InvalidParameterError
        ``value`` is not a finite number, or is out of range.

    Examples
    --------
    >>> number(1, "lambda_d", 0, 1)
    1.0
    """
    numeric = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not numeric or not math.isfinite(value) or not low <= value <= high:
        bounds = "" if low == -math.inf and high == math.inf else f" in [{low:g}, {high:g}]"
        raise InvalidParameterError(f"{what} must be a finite number{bounds}, got {value!r}")
    return float(value)
