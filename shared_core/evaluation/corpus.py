"""Documents and queries, from records in memory and from files.

A line of a file that cannot be read is reported as a :class:`Problem`, and the rest is read.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from .._argument_names import argument_name
from .._parsing import is_text
from .._validation import as_float, as_plain, is_missing, quoted
from ..errors import InvalidInputError, InvalidParameterError
from ..facts import PLACE_KEYS, Facts, Place, find_identifiers, read_place
from .reading import TEXT_SUFFIXES, RawRecord, as_records, read_records, unpacked

TEXT_KEYS = ("text", "query", "question")
# BEIR and most of its followers write "_id"; FreshStack and ir_datasets write "query_id", CoverageBench "topic_id".
_DOCUMENT_IDS = ("id", "_id")
_QUERY_IDS = ("id", "_id", "query_id", "topic_id")
# Columns of a CSV file whose cells hold several values.
_SEVERAL = ("gold", "subtopics", "answers", "sub_questions", "scores")
# Keys that mean a key that is spelt otherwise.
_OTHER_NAMES = {"queries": "sub_questions"}


@dataclass(frozen=True)
class Document:
    """A text that can be picked.

    ``subtopics`` are the labels of what it covers, and ``title`` is its name in other texts. ``source`` says where it
    comes from, for ``max_per_source`` and for what other texts cite by number. ``cost`` is what it takes from a
    ``budget``; None stands for the number of its characters. ``identifiers`` are its numbers or codes, by which other
    texts cite it. ``place`` is its number in its source: the next text has the next number.

    >>> Document("a", "A text.").subtopics
    ()
    """

    id: str
    text: str
    subtopics: tuple[str, ...] = ()
    title: str = ""
    source: str | None = None
    cost: float | None = None
    identifiers: tuple[str, ...] = ()
    place: int | None = None

    @property
    def facts(self) -> Facts:
        """What is known of the text besides its words."""
        source = None if is_missing(self.source) else self.source
        place = None if self.place is None or source is None else Place(source, "", self.place)
        return Facts(self.id, (self.title,), self.identifiers, source, place=place)


@dataclass(frozen=True)
class Query:
    """A question, and what is known about the right answer to it, if anything.

    Attributes
    ----------
    id, text : str
        The name of the query in reports, and its words.
    gold : tuple of str
        Ids of the documents that should be picked.
    subtopics : mapping
        Labels of what the query asks for, each with the ids of the documents that cover it. Without ids, the documents
        that carry the label cover it.
    root : str or None
        What the query is about without its perspective: queries of one root count as one (PIR paper, p-recall).
    answers : tuple of str
        Strings that the picked texts should contain.
    sub_questions : tuple of str
        Parts of the question that are searched for too.
    scores : mapping
        What your own reranker says, from ids of documents to numbers; higher is better.
    """

    id: str
    text: str
    gold: tuple[str, ...] = ()
    subtopics: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    root: str | None = None
    answers: tuple[str, ...] = ()
    sub_questions: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def questions(self) -> tuple[str, ...]:
        """The question, and its sub-questions: what is searched for."""
        return self.text, *self.sub_questions


_Item = TypeVar("_Item", Document, Query)


@dataclass(frozen=True)
class Problem:
    """A place that could not be read: the file, its line (from 1; None for a whole file), and what is wrong.

    >>> str(Problem("docs.jsonl", 3, "there is no 'text'"))
    "docs.jsonl:3: there is no 'text'"
    """

    file: str
    line: int | None
    what: str

    def __str__(self) -> str:
        return f"{self.file}{'' if self.line is None else f':{self.line}'}: {self.what}"


class ReadResult(NamedTuple, Generic[_Item]):
    """The items of a file in its order, the problems of what could not be read, and the place of each item in the file.

    ``places`` maps the id of an item to the number of its record (line, row, or file of a folder), from 0. Blank lines
    do not count. Records with a problem do: there are ``len(items) + len(problems)`` records.
    """

    items: list[_Item]
    problems: list[Problem]
    places: Mapping[str, int] = MappingProxyType({})


def read_documents(path: Path | str, *, text_key: str | None = None, id_key: str | None = None) -> ReadResult[Document]:
    """Read documents from a file or folder.

    ========================= =======================================================================================
    ``.jsonl``, ``.ndjson``   one object a line: ``text``, optionally ``title`` (put before the text), ``id`` or
                              ``_id`` (by default the line's number), ``subtopics`` (a list of labels), ``source`` (for
                              ``max_per_source``), ``cost`` (for ``budget``), and the number or code of the text by
                              which others cite it: ``section``, ``clause``, ``article``, ``rule``, ``number``,
                              ``key``, ``code``, ``symbol``; other keys are ignored
    ``.csv``, ``.tsv``        the same as columns; several values in a cell are separated by ``;`` or are a JSON array
    ``.txt``, ``.md``         one document a line
    a folder                  each ``.txt`` and ``.md`` file in it, at any depth; the id is its path in the folder.
                              Hidden files and folders, whose names begin with a dot, are left out
    ========================= =======================================================================================

    A file may be packed with gzip: ``.jsonl.gz``. A value that is null, NaN or blank counts as missing.

    Parameters
    ----------
    path : path
        The file of the documents.
    text_key, id_key : str, optional
        The keys or columns of a file of another shape: of the text, and of the id. A line without one of them is a
        problem.

    Returns
    -------
    ReadResult of Document
        Its ``problems`` name the lines that have no text, cannot be parsed, or repeat the id of an earlier line.

    Raises
    ------
    InvalidInputError
        The path does not exist, cannot be read, or holds no document.
    InvalidParameterError
        The suffix is none of those above, or a key is given for a folder or file of plain texts.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "docs.jsonl"
    >>> _ = path.write_text('{"id": "a", "text": "One."}' + chr(10) + "oops")
    >>> result = read_documents(path)
    >>> [document.id for document in result.items], [problem.line for problem in result.problems]
    (['a'], [2])
    """
    path = Path(path)
    _check_keys(path, text_key=text_key, id_key=id_key)
    convert = partial(as_document, text_key=text_key, id_key=id_key)
    return _collect(path, read_records(path, _SEVERAL), convert, "document")


def read_queries(
    path: Path | str,
    *,
    query_key: str | None = None,
    query_id_key: str | None = None,
    gold_key: str | None = None,
    scores_key: str | None = None,
) -> ReadResult[Query]:
    """Read queries from a file: ``.jsonl`` or ``.csv`` as in :func:`read_documents`, or ``.txt`` with one query a line.

    The text is under ``text``, ``query`` or ``question``, the id under ``id``, ``_id``, ``query_id`` or ``topic_id``
    (by default the line's number). Each of the following is optional and allows more measures: ``gold`` (ids of the
    right documents), ``subtopics`` (labels that the documents carry, or an object from labels to ids), ``root`` (what
    the query is about without its perspective), ``answers`` (strings that the picked texts should contain).
    ``sub_questions`` are searched for too. ``scores`` are those of your own reranker: an object from ids of
    documents to numbers. Other keys are ignored. A line is a problem if it has a key that is nearly one of these
    (``golden``), and not that one.

    Parameters
    ----------
    path : path
        The file of the queries.
    query_key, query_id_key, gold_key, scores_key : str, optional
        The keys or columns of a file of another shape: of the text, the id, the gold ids and the scores. A line without
        one of the first two is a problem. The others may be missing on some lines, not on all.

    Raises
    ------
    InvalidInputError
        The path does not exist, cannot be read, or holds no query; or no line has ``gold_key`` or ``scores_key``.
    InvalidParameterError
        The suffix is none of those above, the path is a folder, or a key is given for a file of plain texts.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "queries.csv"
    >>> _ = path.write_text("query,gold" + chr(10) + "Where is it?,a;b")
    >>> read_queries(path).items[0].gold
    ('a', 'b')
    """
    path = Path(path)
    if path.is_dir():
        raise InvalidParameterError(f"{path} is a folder: queries are read from a .jsonl, .csv or .txt file")
    keys = {"query_key": query_key, "query_id_key": query_id_key, "gold_key": gold_key, "scores_key": scores_key}
    _check_keys(path, **keys)
    found: dict[str, None] = {}

    def convert(record: Any, default_id: str) -> Query:
        if isinstance(record, Mapping):
            found.update(dict.fromkeys(record))
        return as_query(record, default_id, **keys)

    read = _collect(path, read_records(path, {*_SEVERAL, gold_key or "gold", scores_key or "scores"}), convert, "query")
    for key in (gold_key, scores_key):
        if key is not None and key not in found:
            raise InvalidInputError(f"{path}: no line has the key {quoted(key)} (keys: {_listed(found)})")
    return read


def as_document(
    record: str | Mapping[str, Any] | Document,
    default_id: str,
    *,
    text_key: str | None = None,
    id_key: str | None = None,
) -> Document:
    """A document from its text, or from a record (see :func:`read_documents`)."""
    if isinstance(record, Document):
        return record
    record = _with_title(_as_record(record), text_key or "text")
    title, source, cost = (first_value(record, (key,)) for key in ("title", "source", "cost"))
    return Document(
        _read_id(record, _DOCUMENT_IDS, default_id, id_key),
        text_of(record, (text_key or "text",)),
        read_names(record, "subtopics"),
        "" if title is None else _as_text(title, "title"),
        None if source is None else as_name(source, "source"),
        None if cost is None else as_number(cost, "cost", least=0),
        tuple(find_identifiers(record)),
        find_place(record),
    )


def find_place(record: Mapping[str, Any]) -> int | None:
    """The number of a text in its source, under one of the usual keys; None if there is none."""
    return next((place for key in PLACE_KEYS if (place := read_place(record.get(key))) is not None), None)


def as_query(
    record: str | Mapping[str, Any] | Query,
    default_id: str,
    *,
    query_key: str | None = None,
    query_id_key: str | None = None,
    gold_key: str | None = None,
    scores_key: str | None = None,
) -> Query:
    """A query from its text, or from a record (see :func:`read_queries`). PIR's key ``root_query`` means ``root``."""
    if isinstance(record, Query):
        return record
    record = _as_record(record)
    # "answer" is no misspelt "answers": many data sets have a text for people under this key.
    _check_spelling(record, (gold_key or "gold", "subtopics", "sub_questions", scores_key or "scores", "root"))
    subtopics = record.get("subtopics")
    if isinstance(subtopics, Mapping):
        # The rows of an Arrow table have the labels of all rows, with null where a row does not have the label.
        labels = [label for label, ids in subtopics.items() if not is_missing(ids)]
        covered = {_as_text(label, "subtopics"): read_names(subtopics, label) for label in labels}
    else:
        covered = dict.fromkeys(read_names(record, "subtopics"), ())
    root = first_value(record, ("root", "root_query"))
    return Query(
        _read_id(record, _QUERY_IDS, default_id, query_id_key),
        text_of(record, TEXT_KEYS if query_key is None else (query_key,)),
        read_names(record, gold_key or "gold"),
        covered,
        None if root is None else as_name(root, "root"),
        read_names(record, "answers"),
        read_names(record, "sub_questions"),
        _read_scores(record, scores_key or "scores"),
    )


def convert_all(records: Iterable[Any], convert: Callable[[Any, str], _Item], what: str) -> list[_Item]:
    """Documents or queries from records or a table, by :func:`as_document` or :func:`as_query`.

    An error names the position.
    """
    records = as_records(records)
    if isinstance(records, (str, bytes, Mapping)) or not isinstance(records, Iterable):
        raise InvalidInputError(f"{what} must be a list or a table of records, got a single {type(records).__name__}")
    items: dict[str, _Item] = {}
    for position, record in enumerate(records):
        try:
            _add(items, convert(record, str(position + 1)))
        except InvalidInputError as error:
            raise InvalidInputError(f"{what}, position {position}: {error}") from None
    if not items:
        raise InvalidInputError(f"there are no {what}")
    return list(items.values())


def text_of(record: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """The text under the first of the keys with a value; ``InvalidInputError`` if there is no text."""
    text = as_plain(first_value(record, keys))
    if isinstance(text, str):
        return _as_text(text, next(key for key in keys if key in record))
    key = next((key for key in keys if key in record), None)
    if key is None:
        raise InvalidInputError(_no_key(keys, record))
    raise InvalidInputError(
        f"{quoted(key)} is empty" if text is None else f"{quoted(key)} must be a string, got {type(text).__name__}"
    )


def value_of(record: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The value under the first of the keys that has one; ``InvalidInputError`` if none has."""
    value = first_value(record, keys)
    if value is None:
        raise InvalidInputError(_no_key(keys, record))
    return value


def first_value(record: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """The value under the first of the keys that has one; None if none has."""
    return next((record[key] for key in keys if not is_missing(record.get(key))), None)


def _no_key(keys: tuple[str, ...], record: Mapping[str, Any]) -> str:
    found = f"[{_listed(record)}]" if record else "nothing"
    return f"there is no {' or '.join(map(quoted, keys))}; found {found}"


def _listed(keys: Iterable[str]) -> str:
    return ", ".join(map(quoted, keys))


def _check_keys(path: Path, **keys: str | None) -> None:
    """Refuse a key for plain texts, which have none."""
    plain = unpacked(path).suffix.lower() in TEXT_SUFFIXES or path.is_dir()
    for name, key in keys.items():
        if plain and key is not None:
            raise InvalidParameterError(
                f"{argument_name(name)} = {quoted(key)}, but {path} holds plain texts without keys: leave it out"
            )


def _as_record(record: Any) -> Mapping[str, Any]:
    if isinstance(record, str):
        return {"text": record}
    if not isinstance(record, Mapping):
        raise InvalidInputError(f"expected a text or an object with a text, got {type(record).__name__}")
    return record


def _with_title(record: Mapping[str, Any], text_key: str) -> Mapping[str, Any]:
    """The record with its title before its text, joined as BEIR joins them."""
    title, text = first_value(record, ("title",)), record.get(text_key)
    if title is None or text_key == "title" or text_key not in record:
        return record
    if is_missing(text):
        return {**record, text_key: _as_text(title, "title")}
    return {**record, text_key: f"{_as_text(title, 'title')} {text}".strip()} if isinstance(text, str) else record


def _check_spelling(record: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a key that is nearly one of the ``known`` keys, if that one is missing; other keys are not read."""
    for key in record:
        if not isinstance(key, str):
            continue
        close = difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.8)
        near = _OTHER_NAMES.get(key, close[0] if close else key)
        if near != key and near not in record:
            raise InvalidInputError(
                f"{quoted(key)} is nearly {quoted(near)}, which is missing: rename it, or leave it out if it means "
                "something else"
            )


def _read_id(record: Mapping[str, Any], keys: tuple[str, ...], default: str, own: str | None = None) -> str:
    """The id under the first of the keys that has one, else the default; it must be under ``own`` if that is given."""
    if own is not None:
        if own not in record:
            raise InvalidInputError(_no_key((own,), record))
        return as_name(record[own], own)
    key = next((key for key in keys if not is_missing(record.get(key))), None)
    return default if key is None else as_name(record[key], key)


def read_names(record: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The names under a key: none, a single one, or several in a list or an array. Missing ones do not count."""
    given = as_plain(record.get(key))
    if isinstance(given, (str, int, float, UUID)) or is_missing(given):
        given = [given]
    if not isinstance(given, (list, tuple)):
        raise InvalidInputError(f"{quoted(key)} must be a list of strings, got {type(given).__name__}")
    return tuple(dict.fromkeys(as_name(item, key) for item in given if not is_missing(item)))


def _read_scores(record: Mapping[str, Any], key: str) -> dict[str, float]:
    given = as_plain(record.get(key))
    # The empty cell of a table is an empty list.
    if is_missing(given) or given == []:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"{quoted(key)} must be an object from ids to numbers, got {type(given).__name__}")
    scored = [(name, value) for name, value in given.items() if not is_missing(value)]
    return {as_name(name, key): as_number(value, f"{key} of {name}") for name, value in scored}


def as_number(value: Any, what: str, least: float = -math.inf) -> float:
    """A finite number; the cell of a table holds it as a string."""
    number = as_float(as_plain(value))
    if not math.isfinite(number) or number < least:
        bound = "" if least == -math.inf else f" of at least {least:g}"
        raise InvalidInputError(f"{quoted(what)} must be a finite number{bound}, got {quoted(value)}")
    return number


def as_name(value: Any, what: str) -> str:
    """An id or a label as text: of a string, a UUID, or a whole number, for which a table may have a float."""
    plain = as_plain(value)
    # Above 2 ** 53 a float stands for several whole numbers.
    if isinstance(plain, float) and plain.is_integer() and abs(plain) < 2**53:
        plain = int(plain)
    if isinstance(plain, bool) or not isinstance(plain, (str, int, UUID)) or is_missing(plain):
        raise InvalidInputError(f"{quoted(what)} must be a string or a whole number, got {quoted(value)}")
    return _as_text(plain, what)


def _as_text(value: Any, what: str) -> str:
    try:
        text = str(value)
    # Python writes no integer of more than 4,300 digits.
    except ValueError:
        raise InvalidInputError(f"{quoted(what)} has too many digits, got {quoted(value)}") from None
    if not is_text(text):
        raise InvalidInputError(f"{quoted(what)} holds a lone surrogate, half of a character, got {quoted(text)}")
    return text


def _add(items: dict[str, _Item], item: _Item) -> None:
    if item.id in items:
        raise InvalidInputError(f"id {quoted(item.id)} occurs a second time")
    items[item.id] = item


def _collect(
    path: Path, records: Iterator[RawRecord], convert: Callable[[Any, str], _Item], what: str
) -> ReadResult[_Item]:
    items: dict[str, _Item] = {}
    places: dict[str, int] = {}
    problems = []
    try:
        for place, (file, line, default_id, record, problem) in enumerate(records):
            try:
                if problem is not None:
                    raise InvalidInputError(problem)
                item = convert(record, default_id)
                _add(items, item)
                places[item.id] = place
            except InvalidInputError as error:
                problems.append(Problem(file, line, str(error)))
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}") from error
    if not items:
        first = f"; the first problem: {problems[0]}" if problems else ""
        raise InvalidInputError(f"{path} holds no {what}{first}")
    return ReadResult(list(items.values()), problems, places)
