"""What a document and a query are, and how they are made from records as people keep them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from ..errors import InvalidInputError

TEXT_KEYS = ("text", "query", "question")


@dataclass(frozen=True)
class Document:
    """A text that can be picked; ``subtopics`` are the labels of what it covers.

    >>> Document("a", "A text.").subtopics
    ()
    """

    id: str
    text: str
    subtopics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Query:
    """A question, and what is known about the right answer to it, if anything.

    Attributes
    ----------
    id, text : str
    gold : tuple of str
        Ids of the documents that should be picked.
    subtopics : mapping
        From each label of what the query asks for to the ids of the documents that cover it; where these are empty,
        the documents that carry the label cover it.
    root : str or None
        What the query is about without its perspective: queries of one root count as one (PIR paper, p-recall).
    answers : tuple of str
        Strings that the picked texts should contain.
    """

    id: str
    text: str
    gold: tuple[str, ...] = ()
    subtopics: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    root: str | None = None
    answers: tuple[str, ...] = ()


def as_document(record: str | Mapping[str, Any] | Document, default_id: str) -> Document:
    """A document from its text or from a record with ``text`` and, optionally, ``id`` and ``subtopics``.

    Raises
    ------
    InvalidInputError
        There is no text, or a value is not what it should be.

    Examples
    --------
    >>> as_document({"id": 7, "text": "A text.", "subtopics": ["x"]}, "1")
    Document(id='7', text='A text.', subtopics=('x',))
    """
    if isinstance(record, Document):
        return record
    if isinstance(record, str):
        record = {"text": record}
    return Document(_id(record, default_id), text_of(record, ("text",)), _names(record, "subtopics"))


def as_query(record: str | Mapping[str, Any] | Query, default_id: str) -> Query:
    """A query from its text or from a record with ``text`` (or ``query``, ``question``) and what is known besides.

    ``gold``, ``answers``: a list, or a single one. ``subtopics``: labels, or a mapping from labels to ids of documents.
    ``root``, or PIR's ``root_query``: a string.

    Raises
    ------
    InvalidInputError
        There is no text, or a value is not what it should be.

    Examples
    --------
    >>> as_query({"question": "Where?", "gold": "a", "subtopics": {"x": ["a", "b"]}}, "1").subtopics
    {'x': ('a', 'b')}
    """
    if isinstance(record, Query):
        return record
    if isinstance(record, str):
        record = {"text": record}
    subtopics = record.get("subtopics")
    if isinstance(subtopics, Mapping):
        covered = {str(label): _names(subtopics, label) for label in subtopics}
    else:
        covered = dict.fromkeys(_names(record, "subtopics"), ())
    root = next((record[key] for key in ("root", "root_query") if record.get(key) not in (None, "")), None)
    return Query(
        _id(record, default_id),
        text_of(record, TEXT_KEYS),
        _names(record, "gold"),
        covered,
        None if root is None else _name(root, "root"),
        _names(record, "answers"),
    )


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


_Item = TypeVar("_Item", bound=_HasId)


def all_of(things: Iterable[Any], make: Callable[[Any, str], _Item], what: str) -> list[_Item]:
    """Documents or queries from whatever :func:`as_document` or :func:`as_query` takes; ids are 1, 2, ... by default.

    Raises
    ------
    InvalidInputError
        There are none, an id occurs twice, or one of them is wrong (the message says which).

    Examples
    --------
    >>> [document.id for document in all_of(["one", "two"], as_document, "documents")]
    ['1', '2']
    """
    if isinstance(things, (str, bytes, Mapping)):
        raise InvalidInputError(f"{what} must be several, in a list, got a single {type(things).__name__}")
    made: dict[str, _Item] = {}
    for position, thing in enumerate(things):
        try:
            item = make(thing, str(position + 1))
        except InvalidInputError as error:
            raise InvalidInputError(f"{what}, position {position}: {error}") from None
        if item.id in made:
            raise InvalidInputError(f"{what}, position {position}: id {item.id!r} occurs a second time")
        made[item.id] = item
    if not made:
        raise InvalidInputError(f"there are no {what}")
    return list(made.values())


def _id(record: Mapping[str, Any], default: str) -> str:
    if not isinstance(record, Mapping):
        raise InvalidInputError(f"expected a text or an object with a text, got {type(record).__name__}")
    given = record.get("id")
    return default if given is None or given == "" else _name(given, "id")


def text_of(record: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """The text under the first of the keys that is there; ``InvalidInputError`` where it is none.

    >>> text_of({"question": "Where?"}, ("query", "question"))
    'Where?'
    """
    for key in keys:
        if key in record:
            text = record[key]
            if not isinstance(text, str):
                raise InvalidInputError(f"{key!r} must be a string, got {type(text).__name__}")
            if not text.strip():
                raise InvalidInputError(f"{key!r} is empty")
            return _whole(text, key)
    raise InvalidInputError(
        f"there is no {' or '.join(map(repr, keys))}; found {', '.join(map(repr, record)) or 'nothing'}"
    )


def _names(record: Mapping[str, Any], key: str) -> tuple[str, ...]:
    given = record.get(key)
    if given is None or given == "":
        return ()
    if isinstance(given, (str, int)):
        given = [given]
    if not isinstance(given, (list, tuple, set, frozenset)):
        raise InvalidInputError(f"{key!r} must be a list of strings, got {type(given).__name__}")
    items = sorted(given, key=str) if isinstance(given, (set, frozenset)) else given
    return tuple(dict.fromkeys(_name(item, key) for item in items))


def _name(value: Any, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
        raise InvalidInputError(f"{what!r} must be a string or a whole number, got {value!r}")
    return _whole(str(value), what)


def _whole(text: str, what: str) -> str:
    # JSON may hold half of a surrogate pair, where a text was cut; neither a model nor a file takes it.
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInputError(f"{what!r} holds half a character (a lone surrogate): it was cut somewhere") from None
    return text


def found_documents(found: Iterable[tuple[str | None, str, object]]) -> list[Document]:
    """Documents out of a store: id (or None), text, and what its metadata holds under ``subtopics``.

    A document without an id goes by a hash of its text; one that occurs again gets a number behind its id.

    >>> [document.id for document in found_documents([("a", "A", ["x"]), ("a", "A", None), (None, "B", None)])]
    ['a', 'a (2)', 'text df7e70e5']
    """
    seen: dict[str, int] = {}
    documents = []
    for given, text, labels in found:
        name = given or f"text {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
        seen[name] = seen.get(name, 0) + 1
        one = (labels,) if isinstance(labels, str) and labels else ()
        several = tuple(map(str, labels)) if isinstance(labels, (list, tuple)) else one
        documents.append(Document(name if seen[name] == 1 else f"{name} ({seen[name]})", text, several))
    return documents
