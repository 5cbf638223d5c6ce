"""A framework's items as the core sees them: rows of vectors, names, and an order to hand them back in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidInputError

ItemName = str | Mapping[Any, Hashable] | Callable[[Any], Hashable]
ORDERS = ("selection", "relevance", "nearest_last")


def item_names(items: Sequence[Any], source: ItemName, what: str) -> list[Hashable]:
    """One hashable for each item: its metadata under a key, what a mapping has for its id, or what a function makes.

    Raises
    ------
    InvalidInputError
        An item has no such key; the message names it by its place.

    Examples
    --------
    >>> item_names(["a.md#1", "a.md#2"], lambda item: item.split("#")[0], "source")
    ['a.md', 'a.md']
    """
    if callable(source):
        return [source(item) for item in items]
    if isinstance(source, Mapping):
        for row, item in enumerate(items):
            if item_id(item) not in source:
                raise InvalidInputError(f"{what} has nothing for {called_item(item, row)}")
        return [source[item_id(item)] for item in items]
    for row, item in enumerate(items):
        if source not in item.metadata:
            raise InvalidInputError(
                f"{what} is to come from metadata {source!r}, but {called_item(item, row)} has no such key; it has "
                f"{', '.join(map(repr, item.metadata)) or 'none'}. Pass a key or a function as {what}="
            )
    return [item.metadata[source] for item in items]


def stacked(vectors: Any, ids: Sequence[Hashable]) -> NDArray[Any] | ArrayLike:
    """Rows of one length as they are; rows of several are an error that names the first odd one.

    Raises
    ------
    InvalidInputError
        Two rows differ in length.

    Examples
    --------
    >>> stacked([[1.0, 2.0], [3.0, 4.0]], ["a", "b"])
    [[1.0, 2.0], [3.0, 4.0]]
    """
    if isinstance(vectors, np.ndarray):
        return vectors
    lengths = [len(row) for row in vectors]
    for name, length in zip(ids, lengths, strict=True):
        if length != lengths[0]:
            raise InvalidInputError(
                f"the vector of {name!r} has length {length}, that of {ids[0]!r} has {lengths[0]}: "
                "they most likely come from different embedding models"
            )
    rows: ArrayLike = vectors
    return rows


def ordered(items: Sequence[Any], relevance: Sequence[float], order: str) -> list[Any]:
    """Chosen items as chosen, the most relevant first, or the most relevant last (next to the question, as CEIL does).

    Examples
    --------
    >>> ordered("abc", [0.2, 0.9, 0.5], "nearest_last")
    ['a', 'c', 'b']
    """
    if order == "selection":
        return list(items)
    sign = 1 if order == "nearest_last" else -1
    return [items[row] for row in sorted(range(len(items)), key=lambda row: sign * relevance[row])]


def called_item(item: Any, row: int) -> str:
    """How messages call an item: its place, and its id where it has one.

    Examples
    --------
    >>> called_item("a", 3)
    'item 3'
    """
    name = item_id(item)
    return f"item {row}" if name is None else f"item {row} (id {name!r})"


def item_id(item: Any) -> Hashable | None:
    """What a framework calls the item: LlamaIndex's ``node_id``, LangChain's ``id``; None where it has none."""
    return getattr(item, "node_id", None) or getattr(item, "id", None)


def copy_with(model: Any, changes: dict[str, Any]) -> Any:
    """A copy of a framework's item with other values in some of its fields.

    What pydantic's ``model_copy(update=changes)`` gives, in half the time: that of ten documents was as long as the
    choice among a hundred.

    >>> from langchain_core.documents import Document
    >>> document = Document("text", metadata={"page": 1})
    >>> copy_with(document, {"metadata": {"page": 2}}).metadata, document.metadata
    ({'page': 2}, {'page': 1})
    """
    if model.__pydantic_private__ is not None or model.__pydantic_extra__ is not None:
        return model.model_copy(update=changes)
    copied = object.__new__(type(model))
    put = object.__setattr__
    put(copied, "__dict__", {**model.__dict__, **changes})
    put(copied, "__pydantic_fields_set__", model.__pydantic_fields_set__ | changes.keys())
    put(copied, "__pydantic_extra__", None)
    put(copied, "__pydantic_private__", None)
    return copied
