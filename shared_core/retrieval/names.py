"""What an item is called, and where its links lead, as its metadata say it."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import numpy as np

from .._parsing import parse_json
from .._validation import as_text, is_missing, quoted
from ..errors import InvalidInputError, warn
from ..texts.keys import as_number, as_several, list_values, write_identifier
from ..texts.references import as_address
from ..texts.titles import as_key, clean_title, is_title, replace_titles_of_many, split_heading
from .values import ItemName, describe_item, item_id, itself, read_some, read_values

# The settings that only the bonus for references uses.
OF_REFERENCES = ("title", "identifier", "links", "follow")
# Where the path of a file stands in metadata.
_PATHS = ("file_path", "path", "source", "file_name", "filename")
# Where the document of an item stands in metadata.
_SOURCES = ("file_path", "file_name", "filename", "source", "url")
# LlamaIndex's word for the id of the document of a node, which its stores keep with the metadata.
DOCUMENT_ID = "ref_doc_id"
# The suffix of a file, and what shows that a source is a file or a URL.
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_FILE = re.compile(r"[/\\]|\.[A-Za-z0-9]{1,5}$")
# The host of a URL, and the parameters and the fragment at its end.
_AROUND_PATH = re.compile(r"\A\w[\w+.-]*://[^/]*|[?#].*", re.DOTALL)
# What stands between links in one string. A URL may hold a comma.
_COMMA, _COMMA_OF_URLS = re.compile(r"\s*,\s*"), re.compile(r"\s*,(?:\s+|(?=\w[\w+.-]*://))")
# Where a link that is a dictionary holds what it leads to. HTML has another "target" beside a URL.
_TARGETS = ("node_id", "url", "target")


def read_titles(
    items: Sequence[Any],
    given: ItemName | None,
    view: Callable[[Any], Any] = itself,
    body: Callable[[Any], str] = str,
) -> list[str]:
    """The title of each item, by the setting ``title`` or else by :func:`read_title`; empty if it has none.

    A title that says nothing ("untitled") is none. In place of one that many sources share, an item has the heading of
    its text, if there is one.
    """
    titles = [read_title(item.metadata) for item in items]
    if given is not None:
        for row, value in enumerate(read_some(items, given, "title", view)):
            if not is_missing(value) and is_title(title := as_text(value)):
                titles[row] = title
    return replace_titles_of_many(
        titles, lambda row: read_source(items[row]), lambda row: split_heading(body(items[row]))[0]
    )


def read_identifiers(
    items: Sequence[Any], given: ItemName | None, view: Callable[[Any], Any] = itself
) -> list[list[str]]:
    """The numbers and codes of each item, by the setting ``identifier`` or else by the usual keys; and its file.

    One warning says that a section is a float with a fraction: 3.10 has become 3.1.
    """
    values = None if given is None else read_some(items, given, "identifier", view)
    identifiers: list[list[str]] = []
    warned = False
    for row, item in enumerate(items):
        metadata = item.metadata
        own = list_values(metadata) if values is None else [("{}", value) for value in as_several(values[row])]
        texts = [as_number(value) for _, value in own]
        if values is not None and None in texts:
            wrong = own[texts.index(None)][1]
            raise InvalidInputError(
                f"identifier of {describe_item(item, row)} is {quoted(wrong)}: a number or code is a string or an "
                "integer, or a list of them"
            )
        fractions = [one for _, one in own if isinstance(one, (float, np.floating)) and not float(one).is_integer()]
        if fractions and not warned:
            warned = True
            warn(
                f"the number of {describe_item(item, row)} is a float, {fractions[0]!r}: 3.10 became 3.1. Store the "
                "numbers of sections as strings"
            )
        path = next(([metadata[key]] for key in _PATHS if isinstance(metadata.get(key), str)), [])
        named = [write_identifier(form, text) for (form, _), text in zip(own, texts, strict=True) if text]
        identifiers.append(named + path)
    return identifiers


def read_sources(items: Sequence[Any], given: ItemName | None, view: Callable[[Any], Any] = itself) -> list[str | None]:
    """The document that each item is a part of, by the setting ``source`` or the usual keys; None if unknown.

    LlamaIndex's ids are the default of the setting, and say less than the keys: a reader makes a document of each page.
    """
    if given is None or isinstance(given, str):
        values = [item.metadata.get(given) for item in items]
    elif isinstance(given, Mapping):
        values = [given.get(item_id(item)) for item in items]
    else:
        values = read_values(items, given, "source", view)
    ids = [(None, item_id(item), getattr(getattr(item, "node", item), "ref_doc_id", None)) for item in items]
    return [
        read_source(item) if is_missing(value) or value in own else as_text(value)
        for item, value, own in zip(items, values, ids, strict=True)
    ]


def read_source(item: Any) -> str | None:
    """The file, page or document that an item is a part of."""
    for key in _SOURCES:
        value = item.metadata.get(key)
        if isinstance(value, str) and value.strip():
            return value.partition("#")[0]
    source = read_key(item, DOCUMENT_ID)
    return None if source is None else str(source)


def read_key(item: Any, key: str) -> Any:
    """What an item has under a key of its metadata, or as the id of LlamaIndex's document; None if it has nothing."""
    value = item.metadata.get(key)
    return getattr(getattr(item, "node", item), key, None) if value is None and key == DOCUMENT_ID else value


def find_source_key(item: Any, given: ItemName | None) -> tuple[str, str | int] | None:
    """The key that holds the document of an item, and what it holds; None if no key holds it as it is.

    The part of a page behind "#" belongs to the item, so its address is not that of the document.
    """
    own = given if isinstance(given, str) else None
    source = read_source(item) if own is None or is_missing(item.metadata.get(own)) else as_text(item.metadata[own])
    for key in (*(() if own is None else (own,)), *_SOURCES, DOCUMENT_ID):
        value = read_key(item, key)
        if isinstance(value, (str, int)) and as_text(value) == source:
            return key, value
    return None


def read_title(metadata: Mapping[str, Any]) -> str:
    """The title in an item's metadata, as loaders and splitters write it; empty if there is none.

    - ``"title"``, ``"Title"``, and the ``"document_title"`` of LlamaIndex's ``TitleExtractor``;
    - the heading of the whole document: ``"Header 1"`` (LangChain's ``MarkdownHeaderTextSplitter``), and the first one
      in ``"header_path"`` (LlamaIndex's ``MarkdownNodeParser``);
    - a file name that reads like a title, without its suffix: ``"file_name"`` (LlamaIndex's
      ``SimpleDirectoryReader``), ``"filename"`` (Unstructured), or the last part of a path or URL in ``"source"``
      (LangChain). Such a name begins with a capital and has lower case letters too, or is of a script without capitals.
      So ``report_final.pdf`` and ``README.md`` are no titles.

    A value that says nothing, such as "untitled" or "Document1", is passed over.

    >>> read_title({"title": "Ann Lee"}), read_title({"source": "wiki/Forbidden_Ground.md"})
    ('Ann Lee', 'Forbidden Ground')
    """
    for key in ("title", "Title", "document_title", "Header 1", "header_path"):
        value = metadata.get(key)
        if isinstance(value, str) and value.strip(" /"):
            title = value.strip(" /").partition("/")[0] if key == "header_path" else value.strip()
            if is_title(title):
                return title
    for key in ("file_name", "filename", "source"):
        value = metadata.get(key)
        # A source without a path or a suffix may be the name of a collection.
        if isinstance(value, str) and (key != "source" or _FILE.search(value)):
            name = _SUFFIX.sub("", unquote(re.split(r"[/\\]", _AROUND_PATH.sub("", value).rstrip("/\\"))[-1]))
            name = name.replace("_", " ").strip()
            if name[:1].isalpha() and not name[0].islower() and not name.isupper() and is_title(name):
                return name
    return ""


def read_links(
    items: Sequence[Any], given: ItemName, view: Callable[[Any], Any] = itself, titles: Sequence[str] = ()
) -> list[tuple[str, ...] | None]:
    """What each item links to: ids, titles or URLs; None if it has no links. Missing values and blanks are none.

    A value is a link or a collection of links. A link is an id, a title or a URL, a mapping with one of them under
    ``"url"``, ``"target"`` or ``"node_id"``, or an object with a ``node_id``. For stores that allow only strings, a
    string may be a JSON list of links, or several links with commas between them, if it is not itself the key of an
    item or one of the ``titles``.
    """
    values = read_some(items, given, "links", view)
    known: set[Hashable] = set()
    if any(isinstance(value, str) and "," in value for value in values):
        names = [key for item in items for key in read_keys(item)] + list(titles)
        known = {*names, *map(as_address, names), *map(as_key, map(clean_title, titles))} - {()}
    links: list[tuple[str, ...] | None] = []
    for row, value in enumerate(values):
        try:
            links.append(_read_value(value, known))
        except TypeError as error:
            raise InvalidInputError(
                f"links of {describe_item(items[row], row)} hold {quoted(error.args[0])}: a link is an id, a title "
                "or a URL, a dictionary with one of them as 'node_id', 'url' or 'target', or an object with node_id"
            ) from None
    return links


def _read_value(value: Any, known: set[Hashable]) -> tuple[str, ...] | None:
    """The links of one item, or None; TypeError with the value that is no link."""
    if isinstance(value, str):
        value = _split(value.strip(), known)
    # A collection is not missing, even if it is empty. Nodes are iterable too.
    if isinstance(value, Iterable) and not isinstance(value, (bytes, Mapping)) and not hasattr(value, "node_id"):
        return tuple(target for element in value if (target := _read_target(element)) is not None)
    target = _read_target(value)
    return None if target is None else (target,)


def _split(text: str, known: set[Hashable]) -> list[Any] | None:
    """The links in a string; None if it has none and is no list."""
    if text in known or as_address(text) in known or as_key(text) in known:
        return [text]
    if text.startswith("[") and text.endswith("]"):
        try:
            return [*parse_json(text)]
        # A title may stand in brackets.
        except InvalidInputError:
            return [text]
    separator = _COMMA_OF_URLS if "://" in text else _COMMA
    return [part for part in separator.split(text) if part.strip()] or None


def _read_target(link: Any) -> str | None:
    """What a link leads to; None for a missing one."""
    target = getattr(link, "node_id", link)
    if isinstance(link, Mapping):
        target = next((link[key] for key in _TARGETS if key in link), link)
    if isinstance(target, (str, int, np.integer, UUID)) and not isinstance(target, bool):
        return text if (text := as_text(target)).strip() else None
    if (target is link and isinstance(link, (Mapping, Iterable))) or not is_missing(target):
        raise TypeError(link)
    return None


def read_keys(item: Any) -> list[str]:
    """What links may call an item, besides its name: its id, the id of LlamaIndex's document, and its URL."""
    keys = item_id(item), getattr(getattr(item, "node", item), "ref_doc_id", None)
    return [as_text(key) for key in (*keys, *map(item.metadata.get, ("source", "url"))) if not is_missing(key)]
