"""What a document, node or tool says of itself: its title, number, document, place and links, as loaders write them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote
from uuid import UUID

import numpy as np

from ._parsing import parse_json
from ._validation import as_float
from ._values import as_optional, as_plain, as_text, is_missing
from .errors import InvalidInputError, quoted, warn

# The keys of metadata. Of the titles the first one counts that says something; a name of a file may be one.
TITLE_KEYS = ("title", "Title", "document_title", "Header 1", "header_path")
HEADING_KEYS = tuple(f"Header {level}" for level in range(1, 7))
FILE_TITLE_KEYS = ("file_name", "filename", "source")
# A number or code, each with the form of what it says.
IDENTIFIER_KEYS = {
    **dict.fromkeys(("section", "number", "key", "code"), "{}"),
    **{key: f"{key.title()} {{}}" for key in ("clause", "article", "rule")},
}
# The document of which an item is a part, and LlamaIndex's word for its id; what else links may call an item.
SOURCE_KEYS = ("file_path", "file_name", "filename", "source", "url")
DOCUMENT_ID = "ref_doc_id"
ADDRESS_KEYS = ("source", "url")
# The number of an item in its document; else the character with which it begins, on its page if there is one.
PLACE_KEYS = ("chunk_index", "chunk", "seq_num")
START = "start_index"
PAGE_KEYS = ("page", "page_number", "page_label")

_PLACES = (*PLACE_KEYS, START)
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,5}$")
# A source without a path or a suffix may be the name of a collection.
FILE = re.compile(r"[/\\]|\.[A-Za-z0-9]{1,5}$")
# The host of a URL, and the parameters and the fragment at its end.
_AROUND_PATH = re.compile(r"\A\w[\w+.-]*://[^/]*|[?#].*", re.DOTALL)
# Keys of metadata, each with a value; and the ids of the previous and the next item.
KeyValues = tuple[tuple[str, Any], ...]
Beside = tuple[str | None, str | None]


class Place(NamedTuple):
    """The number of a text in its document, which may be None, or under ``START`` where it begins in it.

    ``key`` and ``where`` find the texts of the document by their metadata; they are empty if nothing does.
    """

    document: Hashable
    key: str
    number: int
    where: KeyValues = ()


class Facts(NamedTuple):
    """What one item says of itself.

    ``titles`` are what may be the title of its document, the best first, and ``heading`` the last one of the headings
    that a splitter wrote. ``source`` is the document to which its numbers belong, ``where`` the metadata that find it,
    and ``file`` the document that the metadata alone name. ``keys`` are what links may call the item besides its
    titles, and ``links`` its own, None if it has no list. ``start`` is where its text begins, in characters.
    """

    id: Hashable = None
    titles: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    source: Hashable = None
    file: str | None = None
    where: KeyValues = ()
    links: tuple[Hashable, ...] | None = None
    keys: tuple[Hashable, ...] = ()
    beside: Beside = (None, None)
    place: Place | None = None
    start: int | None = None
    heading: str = ""


def read_facts(
    items: Sequence[Any],
    ids: Sequence[Hashable],
    given: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    named: Mapping[str, str] = MappingProxyType({}),
) -> list[Facts]:
    """The facts of items of one framework, which have these ids.

    ``given`` has the values of the settings ``title``, ``identifier``, ``source``, ``links`` and ``neighbours``, None
    for a missing one, which count before the usual keys. ``named`` has the keys that these settings name.
    """
    # LangChain's documents and tools are no nodes.
    has_node = bool(items) and hasattr(items[0], "node")
    is_node = bool(items) and hasattr(items[0].node if has_node else items[0], DOCUMENT_ID)
    facts, values = [], zip(*given.values(), strict=True) if given else repeat(())
    for row, (item, name, own) in enumerate(zip(items, ids, values, strict=bool(given))):
        node = item.node if has_node else item if is_node else None
        try:
            facts.append(_read(item, node, name, dict(zip(given, own, strict=True)), named))
        except InvalidInputError as error:
            raise InvalidInputError(f"{describe_item(item, row)}: {error}") from None
    places = [fact.place.document for fact in facts if fact.place is not None] if "neighbours" in given else []
    if places and not any(places):
        warn("neighbours gives numbers, but no candidate has a source: set source=")
    return facts


def _read(item: Any, node: Any, name: Hashable, says: Mapping[str, Any], named: Mapping[str, str]) -> Facts:
    metadata, document_id = item.metadata, None if node is None else node.ref_doc_id
    source, where = file, _ = _read_file(metadata, document_id)
    value = says.get("source")
    # LlamaIndex's ids are the default of the setting, and say less than the file: each page may be a document.
    if value is not None and (node is None or value not in (document_id, node.node_id)):
        source = as_text(value)
        if key := named.get("source"):
            where = ((key, value),) if isinstance(value, (str, int)) else ()
    titles = _read_titles(metadata)
    if says.get("title") is not None:
        titles = (as_text(says["title"]), *titles)
    identifiers = []
    if "identifier" in says or not metadata.keys().isdisjoint(IDENTIFIER_KEYS):
        identifiers = find_identifiers(metadata, *[says[key] for key in says if key == "identifier"])
    links = _read_links(says["links"]) if "links" in says else None
    called = item_id(item), document_id, *map(metadata.get, ADDRESS_KEYS)
    keys = tuple(key if isinstance(key, str) else as_text(key) for key in as_optional(called) if key is not None)
    document, place = source if file is None else file, None
    beside: Beside = (None, None)
    if "neighbours" in says:
        number = read_place(says["neighbours"])
        if number is None and not is_missing(says["neighbours"]):
            raise InvalidInputError(
                f"neighbours is {quoted(as_plain(says['neighbours']))}: it must be the number of the text in its "
                "document, at least 0"
            )
        place = None if number is None else Place(document, named.get("neighbours", ""), number, where)
    elif node is None or not any(beside := _read_relations(node)):
        place = _read_place(metadata, document, where)
    start = metadata.get(START, getattr(node, "start_char_idx", None))
    start = None if start is None else read_place(start)
    heading = metadata.get(next(filter(metadata.__contains__, HEADING_KEYS[::-1]), "header_path"), "")
    is_heading = isinstance(heading, str) and says.get("title") is None
    heading = heading.strip(" /").rpartition("/")[2] if is_heading else ""
    return Facts(name, titles, tuple(identifiers), source, file, where, links, keys, beside, place, start, heading)


def _read_file(metadata: Mapping[str, Any], document_id: str | None) -> tuple[str | None, KeyValues]:
    """The file, page or document that the metadata name, and the key that has it as it is."""
    named = [key for key in SOURCE_KEYS if isinstance(value := metadata.get(key), str) and value.strip()]
    if named:
        # A source that is no file may be the collection from which the item comes.
        key = next((key for key in named if key != "source" or FILE.search(metadata[key])), named[0])
        # The part of a page behind "#" belongs to the item.
        file, mark, _ = metadata[key].partition("#")
        return file, () if mark else ((key, metadata[key]),)
    value = metadata.get(DOCUMENT_ID, document_id)
    if value is None:
        return None, ()
    return as_text(value), ((DOCUMENT_ID, value),) if isinstance(value, (str, int)) else ()


def _read_titles(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    titles = []
    for key in TITLE_KEYS:
        value = metadata.get(key)
        if isinstance(value, str) and (text := value.strip(" /")):
            # The first heading of a path is that of the whole document.
            titles.append(text.partition("/")[0] if key == "header_path" else value.strip())
    for key in FILE_TITLE_KEYS:
        value = metadata.get(key)
        if isinstance(value, str) and (key != "source" or FILE.search(value)) and (name := _read_file_name(value)):
            titles.append(name)
    return tuple(titles)


# The files of a corpus come back with each question.
@lru_cache(maxsize=2**12)
def _read_file_name(path: str) -> str:
    """The name of a file or page if it reads like a title: it has capitals and other letters, or a script has none.

    >>> [*map(_read_file_name, ["wiki/Forbidden_Ground.md", "report_final.pdf", "README.md"])]
    ['Forbidden Ground', '', '']
    """
    name = _SUFFIX.sub("", unquote(re.split(r"[/\\]", _AROUND_PATH.sub("", path).rstrip("/\\"))[-1]))
    name = name.replace("_", " ").strip()
    return name if name[:1].isalpha() and not name[0].islower() and not name.isupper() else ""


def find_identifiers(record: Mapping[str, Any], *given: Any) -> list[str]:
    """The numbers and codes under the usual keys of a record, or those that are given.

    >>> find_identifiers({"section": 12.0, "clause": "4.5", "code": ["E10", None], "rule": {}})
    ['12', 'E10', 'Clause 4.5']
    """
    written = []
    for form, values in [("{}", one) for one in given] or [
        (IDENTIFIER_KEYS[key], record[key]) for key in IDENTIFIER_KEYS if key in record
    ]:
        for value in values if isinstance(values, (list, tuple, set, frozenset)) else [values]:
            text = write_identifier(form, value)
            if text is None and given and not is_missing(value):
                raise InvalidInputError(f"identifier is {quoted(value)}: it is a string, an integer, or a list of them")
            if isinstance(value, (float, np.floating)) and value % 1 > 0:
                warn(f"the number {value!r} is a float: 3.10 became 3.1. Store numbers of sections as strings")
            written += [text] if text else []
    return written


def write_identifier(form: str, value: Any) -> str | None:
    """A number or code as it is written: "Clause 7" for 7.0 under "clause"; None for what is none.

    A column with a missing value has floats in place of integers. A text that begins with a word stays as it is.
    """
    if is_missing(value) or isinstance(value, bool) or not isinstance(value, (str, int, float, np.number)):
        return None
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    text = as_text(int(value) if whole else value).strip()
    return form.format(text) if text[:1].isdigit() or "(" in form else text


def _read_links(value: Any) -> tuple[str, ...] | None:
    """What an item links to. A string is one link, or a JSON list."""
    if isinstance(value, str):
        text = value = value.strip()
        if text.startswith("[") and text.endswith("]"):
            # But a title may stand in brackets too.
            with suppress(InvalidInputError):
                value = [*parse_json(text)]
    # Nodes are iterable too.
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)) and not hasattr(value, "node_id"):
        return tuple(target for element in value if (target := _read_target(element)) is not None)
    target = _read_target(value)
    return None if target is None else (target,)


def _read_target(link: Any) -> str | None:
    """What a link leads to; None for a missing one."""
    target = getattr(link, "node_id", link)
    if isinstance(link, Mapping):
        # HTML has another "target" beside a URL.
        target = next((link[key] for key in ("node_id", "url", "target") if key in link), link)
    if isinstance(target, (str, int, np.integer, UUID)) and not isinstance(target, bool):
        return text if (text := as_text(target)).strip() else None
    if (target is link and isinstance(link, (Mapping, Iterable))) or not is_missing(target):
        raise InvalidInputError(
            f"links hold {quoted(link)}: a link is an id, a title or a URL, a dictionary with one of them as "
            "'node_id', 'url' or 'target', or an object with node_id"
        )
    return None


def _read_place(metadata: Mapping[str, Any], document: Hashable, where: KeyValues) -> Place | None:
    for key in filter(metadata.__contains__, _PLACES):
        # LangChain's splitters write -1 for a chunk that they do not find in the document again.
        if (number := read_place(metadata[key])) is None:
            continue
        if key == START and document is not None:
            pages = tuple((key, metadata[key]) for key in PAGE_KEYS if not is_missing(metadata.get(key)))[:1]
            return Place((document, *map(str, pages)), START, number, where and where + pages)
        return Place(document, key, number, where)
    return None


def read_place(value: Any) -> int | None:
    """A whole number of at least 0, also as a float or in a string; None for any other value."""
    number = as_float(as_plain(value))
    return int(number) if number >= 0 and number.is_integer() else None


def _read_relations(node: Any) -> Beside:
    """The ids of the previous and the next node."""
    ids: list[str | None] = [None, None]
    for place, name in enumerate(("prev_node", "next_node")):
        # A list of nodes in the place of one, or none.
        with suppress(ValueError, AttributeError):
            ids[place] = str(getattr(node, name).node_id)
    return ids[0], ids[1]


def describe_item(item: Any, row: int) -> str:
    """The name of an item in messages: its position, and its id if it has one."""
    name = item_id(item)
    return f"item {row}" if name is None else f"item {row} (id {name!r})"


def item_id(item: Any) -> Hashable | None:
    """LlamaIndex's ``node_id`` or LangChain's ``id``; None if the item has neither."""
    return getattr(item, "node_id", None) or getattr(item, "id", None)
