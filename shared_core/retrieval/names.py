"""What an item is called, and where its links lead, as its metadata say it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from .._validation import is_missing, quoted
from ..errors import InvalidInputError
from .values import ItemName, describe_item, item_id, itself, read_some

# The settings that only the bonus for references uses.
OF_REFERENCES = ("title", "links", "follow")
# The suffix of a file, and what shows that a source is a file or a URL.
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_FILE = re.compile(r"[/\\]|\.[A-Za-z0-9]{1,5}$")


def read_titles(items: Sequence[Any], given: ItemName | None, view: Callable[[Any], Any] = itself) -> list[str]:
    """The title of each item, by the setting ``title`` or else by :func:`read_title`; empty if it has none."""
    if given is None:
        return [read_title(item.metadata) for item in items]
    values = read_some(items, given, "title", view)
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
    for row, value in enumerate(read_some(items, given, "links", view)):
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
    return [str(key) for key in (*keys, *map(item.metadata.get, ("source", "url"))) if not is_missing(key)]
