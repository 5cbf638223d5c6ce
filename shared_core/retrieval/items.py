"""What a selection reads from a framework's items: numbers, names and ids; and the order and text of examples.

An item is a LangChain document or a LlamaIndex node. Only its id and its metadata are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any, Literal, TypeVar, get_args
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from .._validation import as_ranks, is_missing, quoted
from ..candidates import Parts, as_parts
from ..errors import InvalidInputError, InvalidParameterError, warn

# A metadata key, values by the items' ids, or a function of the item.
ItemNumber = str | Mapping[Any, float] | Callable[[Any], float]
T = TypeVar("T")
ItemName = str | Mapping[Any, Hashable] | Callable[[Any], Hashable]
# A date is a date, a datetime or an ISO string.
Ordered = float | date | str | None
ItemOrdered = str | Mapping[Any, Ordered] | Callable[[Any], Ordered]
Order = Literal["selection", "relevance", "nearest_last", "long_context"]
ORDERS: tuple[Order, ...] = get_args(Order)
# The settings that only the bonus for names uses.
OF_NAMES = ("title", "links", "follow")
# The suffix of a file, and what shows that a source is a file or a URL.
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_FILE = re.compile(r"[/\\]|\.[A-Za-z0-9]{1,5}$")


def itself(item: Any) -> Any:
    """The item: what a function that is the value of a setting gets by default."""
    return item


def read_numbers(
    items: Sequence[Any], given: ItemNumber, what: str, view: Callable[[Any], Any] = itself
) -> NDArray[np.float64]:
    """One finite number per item, float64, shape (n,). Messages use ``what`` for the numbers, and name the item.

    >>> read_numbers(["a", "bcd"], len, "costs").tolist()
    [1.0, 3.0]
    """
    numbers = np.empty(len(items))
    for row, value in enumerate(read_values(items, given, what, view)):
        try:
            numbers[row] = math.nan if isinstance(value, str) else value
        except (TypeError, ValueError):
            numbers[row] = math.nan
        if not np.isfinite(numbers[row]):
            raise InvalidInputError(
                f"{what} of {describe_item(items[row], row)} is {quoted(value)}, which is not a finite number"
            )
    return numbers


def read_ranks(
    items: Sequence[Any], given: ItemOrdered, what: str, view: Callable[[Any], Any] = itself, among: Sequence[Any] = ()
) -> NDArray[np.int64]:
    """The ranks of the items by a number or date of each, shape (n,); 0 for an item without one.

    Messages use ``what``, and name the item. ``among``: the items of which one must have a value; by default ``items``.

    >>> read_ranks(["a", "bcd", "ef"], len, "prefer").tolist()
    [1, 3, 2]
    """
    values = _read_some(items, given, what, view, among or items)
    return as_ranks(values, len(items), what, lambda row: describe_item(items[row], row))


def read_parts(
    items: Sequence[Any],
    given: ItemNumber | ItemName,
    what: str,
    view: Callable[[Any], Any] = itself,
    among: Sequence[Any] = (),
) -> Parts:
    """The values of the items as parts to cover; an item without one covers nothing. See :func:`read_ranks`.

    >>> read_parts(["a.md#1", "b.md#1"], lambda item: item[0], "cover").covered.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    values = _read_some(items, given, what, view, among or items)
    return as_parts(values, len(items), what, lambda row: describe_item(items[row], row))


def read_values(
    items: Sequence[Any], given: ItemNumber | ItemName | ItemOrdered, what: str, view: Callable[[Any], Any] = itself
) -> list[Any]:
    """One value per item: from its metadata, from a mapping by id, or from a function, which gets ``view(item)``.

    >>> read_values(["a.md#1", "a.md#2"], lambda item: item.split("#")[0], "source")
    ['a.md', 'a.md']
    """
    if isinstance(given, str):
        return [_from_metadata(item, row, given, what) for row, item in enumerate(items)]
    if isinstance(given, Mapping):
        return [_from_mapping(item, row, given, what) for row, item in enumerate(items)]
    values = []
    for row, item in enumerate(items):
        try:
            values.append(given(view(item)))
        except (TypeError, AttributeError) as error:
            raise InvalidInputError(
                f"{what}={getattr(given, '__name__', given)} fails for {describe_item(item, row)}: {error}. "
                f"The function gets the whole {type(view(item)).__name__}, not its text"
            ) from error
    return values


def new_scores(
    metadata: Mapping[str, Any], relevance: float, gain: float, named_by: str | None, serves: str | None = None
) -> dict[str, Any]:
    """What ``scores`` adds to an item's metadata. A key that is there already keeps its value.

    >>> new_scores({"relevance_score": 7.5}, 0.5, 0.25, "Forbidden Ground")
    {'selection_relevance': 0.5, 'selection_score': 0.25, 'selection_named_by': 'Forbidden Ground'}
    """
    name = "selection_relevance" if "relevance_score" in metadata else "relevance_score"
    added: dict[str, Any] = {name: relevance, "selection_score": gain}
    if named_by is not None:
        added["selection_named_by"] = named_by
    if serves is not None:
        added["selection_serves"] = serves
    return {key: value for key, value in added.items() if key not in metadata}


def read_titles(items: Sequence[Any], given: ItemName | None, view: Callable[[Any], Any] = itself) -> list[str]:
    """The title of each item, by the setting ``title`` or else by :func:`read_title`; empty if it has none."""
    values = [None] * len(items) if given is None else _read_some(items, given, "title", view)
    return [
        str(value) if not is_missing(value) and value else read_title(item.metadata)
        for item, value in zip(items, values, strict=True)
    ]


def read_title(metadata: Mapping[str, Any]) -> str:
    """The title in an item's metadata, as loaders and splitters write it; empty if there is none.

    - ``"title"``, ``"Title"``, and the ``"document_title"`` of LlamaIndex's ``TitleExtractor``;
    - the heading of the whole document: ``"Header 1"`` (LangChain's ``MarkdownHeaderTextSplitter``), and the first one
      in ``"header_path"`` (LlamaIndex's ``MarkdownNodeParser``);
    - a file name that reads like a title, without its suffix: ``"file_name"`` (LlamaIndex's
      ``SimpleDirectoryReader``), ``"filename"`` (Unstructured), or the last part of a path or URL in ``"source"``
      (LangChain). Such a name begins with a capital and has lower case letters too, or is of a script without capitals.
      So ``report_final.pdf`` and ``README.md`` are no titles.

    >>> read_title({"title": "Ann Lee"}), read_title({"source": "wiki/Forbidden_Ground.md"})
    ('Ann Lee', 'Forbidden Ground')
    """
    for key in ("title", "Title", "document_title", "Header 1", "header_path"):
        value = metadata.get(key)
        if isinstance(value, str) and value.strip(" /"):
            return value.strip(" /").partition("/")[0] if key == "header_path" else value.strip()
    for key in ("file_name", "filename", "source"):
        value = metadata.get(key)
        # A source without a path or a suffix may be the name of a collection.
        if isinstance(value, str) and (key != "source" or _FILE.search(value)):
            name = _SUFFIX.sub("", unquote(re.split(r"[/\\]", value.partition("?")[0].partition("#")[0])[-1]))
            name = name.replace("_", " ").strip()
            if name[:1].isalpha() and not name[0].islower() and not name.isupper():
                return name
    return ""


def read_links(
    items: Sequence[Any], given: ItemName, view: Callable[[Any], Any] = itself
) -> list[tuple[str, ...] | None]:
    """What each item links to: ids, titles or URLs; None if it has no links. Missing values and blanks are none."""
    links: list[tuple[str, ...] | None] = []
    for row, value in enumerate(_read_some(items, given, "links", view)):
        if isinstance(value, str):
            links.append((value,) if value.strip() else None)
        elif isinstance(value, Iterable):
            links.append(tuple(str(one) for one in value if not is_missing(one) and str(one).strip()))
        elif is_missing(value):
            links.append(None)
        else:
            raise InvalidInputError(
                f"links of {describe_item(items[row], row)} are {quoted(value)}: they must be an id, a title or a URL, "
                "or a list of them"
            )
    return links


def read_keys(item: Any) -> list[str]:
    """What links may call an item, besides its name: its id, the id of LlamaIndex's document, and its URL."""
    keys = item_id(item), getattr(getattr(item, "node", item), "ref_doc_id", None)
    return [str(key) for key in (*keys, *map(item.metadata.get, ("source", "url"))) if key is not None]


def _read_some(
    items: Sequence[Any],
    given: ItemNumber | ItemName | ItemOrdered,
    what: str,
    view: Callable[[Any], Any],
    among: Sequence[Any] = (),
) -> list[Any]:
    """One value per item; None for one without.

    Warns if no item has the metadata key. With ``among``, raises if none of these has it, or an id of the mapping.
    """
    if isinstance(given, Mapping):
        if among and not any(item_id(item) in given for item in among):
            raise InvalidInputError(
                f"{what} is read from a mapping by id, but it has the ids of none of the {len(among)} candidates. "
                f"Check the ids, or pass a metadata key or a function as {what}="
            )
        return [given.get(item_id(item)) for item in items]
    if not isinstance(given, str):
        return read_values(items, given, what, view)
    every = among or items
    if not any(given in item.metadata for item in every):
        keys = dict.fromkeys(key for item in every for key in item.metadata)
        message = (
            f"{what} is read from metadata {given!r}, but none of the {len(every)} candidates has this key; their keys "
            f"are {', '.join(map(repr, keys)) or 'none'}"
        )
        if among:
            raise InvalidInputError(f"{message}. Name another key, or pass a function as {what}=")
        warn(message)
    return [item.metadata.get(given) for item in items]


def _from_metadata(item: Any, row: int, key: str, what: str) -> Any:
    if key not in item.metadata:
        raise InvalidInputError(
            f"{what} is read from metadata {key!r}, but {describe_item(item, row)} has no such key; its keys are "
            f"{', '.join(map(repr, item.metadata)) or 'none'}. Add the key, or pass a function as {what}="
        )
    return item.metadata[key]


def _from_mapping(item: Any, row: int, values: Mapping[Any, Any], what: str) -> Any:
    name = item_id(item)
    if name is None:
        raise InvalidInputError(
            f"{what} is read from a mapping by id, but item {row} has no id: give the items ids, or pass a metadata "
            "key or a function"
        )
    if name not in values:
        raise InvalidInputError(
            f"{what} is read from a mapping by id, but the mapping has no {name!r} (item {row}); it has {len(values)} "
            "other ids. Add the id, or pass a function that supplies a default"
        )
    return values[name]


def sort_items(items: Sequence[T], relevance: Sequence[float], order: str) -> list[T]:
    """Selected items in one of the ``ORDERS``.

    As selected; the most relevant first; the most relevant last; or the most relevant at both ends, because language
    models use the middle of a long prompt least.

    >>> sort_items("abc", [0.2, 0.9, 0.5], "nearest_last")
    ['a', 'c', 'b']
    >>> sort_items("12345", [0.5, 0.4, 0.3, 0.2, 0.1], "long_context")
    ['1', '3', '5', '4', '2']
    """
    if order == "selection":
        return list(items)
    sign = 1 if order == "nearest_last" else -1
    ordered = [items[row] for row in sorted(range(len(items)), key=lambda row: sign * relevance[row])]
    return ordered[::2] + ordered[1::2][::-1] if order == "long_context" else ordered


def join_values(example: Mapping[str, Any], keys: Sequence[str] | None) -> str:
    """The text that is embedded for an example: its values under ``keys`` (None: all), in the order of the keys' names.

    >>> join_values({"question": "1 + 1", "answer": 2}, None)
    '2 1 + 1'
    """
    # LangChain's own example selectors make the same text, so their stores can be used.
    try:
        return " ".join(str(example[key]) for key in sorted(keys or example))
    except KeyError as error:
        raise InvalidParameterError(
            f"input_keys names {error.args[0]!r}, but the keys are {', '.join(example)}"
        ) from None


def describe_item(item: Any, row: int) -> str:
    """The name of an item in messages: its position, and its id if it has one.

    >>> describe_item("a", 3)
    'item 3'
    """
    name = item_id(item)
    return f"item {row}" if name is None else f"item {row} (id {name!r})"


def item_id(item: Any) -> Hashable | None:
    """LlamaIndex's ``node_id`` or LangChain's ``id``; None if the item has neither."""
    return getattr(item, "node_id", None) or getattr(item, "id", None)
