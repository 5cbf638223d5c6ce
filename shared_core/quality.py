"""Where a number for each item comes from: quality for :class:`MMR`, costs for a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidInputError

ItemValue = str | Callable[[Any], float]


def item_values(items: Sequence[Any], source: ItemValue, what: str) -> NDArray[np.float64]:
    """One finite number for each item: its metadata under a key, or what a function makes of it.

    Parameters
    ----------
    items : sequence of n objects
        LangChain documents, LlamaIndex nodes, or whatever the function takes.
    source : str or callable
        A key of ``item.metadata``, or ``function(item) -> float``.
    what : str
        What the numbers are, for messages: ``"quality"``, ``"costs"``.

    Returns
    -------
    ndarray, float64, shape (n,)

    Raises
    ------
    InvalidInputError
        An item has no such key, or its value is not a finite number; the message names the item by its id.

    Examples
    --------
    >>> item_values(["a", "bcd"], len, "costs").tolist()
    [1.0, 3.0]
    """
    values = np.empty(len(items))
    for row, item in enumerate(items):
        value = source(item) if callable(source) else _metadata(item, source, what, row)
        try:
            if isinstance(value, (str, bytes)):
                raise TypeError
            values[row] = float(value)
        except (TypeError, ValueError):
            raise InvalidInputError(f"{what} of {_called(item, row)} is {value!r}, not a number") from None
        if not np.isfinite(values[row]):
            raise InvalidInputError(f"{what} of {_called(item, row)} is {values[row]}; it must be finite")
    return values


def _metadata(item: Any, key: str, what: str, row: int) -> Any:
    try:
        return item.metadata[key]
    except KeyError:
        raise InvalidInputError(
            f"{what} is to come from metadata {key!r}, but {_called(item, row)} has no such key; "
            f"it has {', '.join(map(repr, item.metadata)) or 'none'}. Pass a function to supply a default"
        ) from None


def _called(item: Any, row: int) -> str:
    name = getattr(item, "node_id", None) or getattr(item, "id", None)
    return f"item {row}" if name is None else f"item {row} (id {name!r})"
