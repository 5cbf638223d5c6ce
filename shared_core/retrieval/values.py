"""What a selection reads from a framework's items: numbers, dates, and values to cover; the text of an example.

An item is a LangChain document or a LlamaIndex node. Only its id and its metadata are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from .._validation import as_float, as_optional, as_plain, as_ranks, is_missing, quoted
from ..candidates import Parts, as_parts
from ..errors import InvalidInputError, InvalidParameterError, warn
from ..facts import describe_item, item_id

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
        numbers[row] = math.nan if isinstance(value, str) else as_float(value)
        if not np.isfinite(numbers[row]):
            fault = "missing" if value is None else f"{quoted(value)}, which is not a finite number"
            raise InvalidInputError(f"{what} of {describe_item(items[row], row)} is {fault}")
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

    Warns if no item has a value in its metadata or in the mapping by id, unless it ``tells`` nothing; raises in place
    of it if one is ``required``.
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
