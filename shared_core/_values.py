"""Values of tables and metadata: which are missing, what they are as text, as ids, and in order."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Iterable
from datetime import UTC, date, datetime, time
from email.utils import parsedate_to_datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._validation import read_only
from .errors import InvalidInputError, InvalidParameterError, quoted

# Versions ("v1.10.0"), and forms of dates beside those of ISO and mail: "D:20250131120000+01'00'", "2025", "2025/1/31".
_VERSION = re.compile(r"[vV]?(\d+(?:\.\d+)*?)(?:\.0+)*")
_PDF_DATE = re.compile(r"D:(\d{4,14})(Z|[+-]\d\d'?\d{0,2}|)")
_YEAR_FIRST = re.compile(r"(\d{4})(?:/(\d\d?)/(\d\d?))?((?:[T ].*)?)")


def as_identifiers(values: Iterable[Hashable] | None, what: str) -> tuple[Hashable, ...]:
    """``values`` as a tuple of ids, empty for None. A string is refused, because its characters would become ids."""
    try:
        ids = () if values is None else tuple(values)
        hash(ids)
    except TypeError:
        # Documents and nodes cannot be hashed.
        ids = (None,)
    if isinstance(values, str) or None in ids:
        raise InvalidParameterError(
            f"{what} takes a collection of ids, got {quoted(values)}: a list of [item.id for item in ...] (nodes have "
            "node_id), without None, which cannot be told apart"
        )
    return ids


def id_of_text(text: str) -> str:
    """The id of a text whose store gave it none."""
    return f"text {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def as_names(values: Iterable[Hashable], n: int, what: str) -> tuple[Hashable, ...]:
    """``values`` as a tuple of n hashables."""
    try:
        # The elements of a tensor are objects of their own, of which no two are equal.
        names = tuple(as_plain(values))
        hash(names)
    except TypeError:
        raise InvalidInputError(
            f"{what} must be a collection of values that can be hashed, one for each candidate, got {quoted(values)}"
        ) from None
    if len(names) != n:
        raise InvalidInputError(f"{what} must be {n}, one for each candidate, got {len(names)}")
    return names


def as_ranks(
    values: Iterable[Any], n: int, what: str, name: Callable[[int], str] = "row {}".format
) -> NDArray[np.int64]:
    """The ranks of n numbers, dates or versions: 0 for a missing one, and from 1 for the lowest.

    Messages name a value's row. A date is a date, a datetime, or a string as ISO, mail or PDF write it. One without a
    time zone is in UTC.

    >>> as_ranks(["2026-01-31", None, "Mon, 1 Dec 2025 10:00:00 +0100", "D:20260131000000Z"], 4, "prefer").tolist()
    [2, 0, 1, 2]
    >>> as_ranks(["1.9", "v1.10.0", "2"], 3, "prefer").tolist()
    [1, 2, 3]
    """
    objects = as_names(values, n, what)
    strings = [value.strip() for value in objects if isinstance(value, str) and not is_missing(value)]
    order = _as_version if strings and all(map(_VERSION.fullmatch, strings)) else _as_ordered
    ordered = {}
    for row, value in enumerate(objects):
        try:
            if not is_missing(value):
                ordered[row] = order(value)
                # A number and a date raise TypeError.
                min(next(iter(ordered.values())), ordered[row])
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"{what} of {name(row)} is {quoted(value)}: the values must be all numbers, all versions ('1.10.0'), "
                "or all dates (datetimes, or ISO strings as '2026-01-31'), or None where one is missing"
            ) from None
    rank = {value: number for number, value in enumerate(sorted({*ordered.values()}), 1)}
    return read_only(np.array([rank[ordered[row]] if row in ordered else 0 for row in range(n)], np.int64))


def _as_version(value: Any) -> Any:
    """A version, or a number beside versions, as a tuple of its numbers, without zeros at its end."""
    match = _VERSION.fullmatch(value.strip()) if isinstance(value, str) else None
    return tuple(map(int, match[1].split("."))) if match else (value + 0,)


def _as_ordered(value: Any) -> Any:
    """A date as a datetime with a time zone; other values as they are."""
    if isinstance(value, str):
        value = _read_date(value.strip())
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def _read_date(text: str) -> datetime:
    """The date of a string; ValueError for another string, and for a week."""
    if match := _PDF_DATE.match(text):
        # What is left out is the first month, the first day, and midnight.
        digits, zone = match[1] + "00000101000000"[len(match[1]) :], match[2].replace("'", "")
        return datetime.fromisoformat(f"{digits[:8]}T{digits[8:]}{zone}")
    if match := _YEAR_FIRST.fullmatch(text):
        text = f"{match[1]}-{match[2] or 1:0>2}-{match[3] or 1:0>2}{match[4]}"
    if "W" in text.upper()[4:6]:
        raise ValueError
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return parsedate_to_datetime(text)


def as_plain(value: Any) -> Any:
    """A scalar or array of numpy, PyTorch, pandas or Arrow as a Python value or list; any other value as it is."""
    to_python = getattr(value, "as_py", None) or getattr(value, "tolist", None)
    return to_python() if callable(to_python) else value


def as_text(value: object) -> str:
    """A value as text. Python writes no integer of more than 4,300 digits."""
    try:
        return str(value)
    except ValueError:
        return quoted(value)


def is_missing(value: Any) -> bool:
    """Whether a value stands for none, as tables write it: None, NaN, NaT, NA, a null, a masked value, blank text.

    >>> [is_missing(value) for value in (None, float("nan"), " ", 0, [])]
    [True, True, True, False, False]
    """
    if value is not None and not isinstance(value, str):
        value = as_plain(value)
    if value is None or isinstance(value, str):
        return not (value and value.strip())
    try:
        return bool(value != value)
    # NA of pandas is neither equal to itself nor different, and a signalling NaN refuses to be compared.
    except (TypeError, ArithmeticError):
        return True


def as_optional(values: Iterable[Any]) -> list[Any]:
    """The values, with None in place of those that are missing, and a list in place of an array."""
    return [
        None if is_missing(value) else value.tolist() if isinstance(value, np.ndarray) else value for value in values
    ]
