"""Documents and queries, from records in memory and from files."""

from __future__ import annotations

import csv
import difflib
import gzip
import math
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from uuid import UUID

from .._libraries import import_library
from .._parsing import decode_text, is_text, parse_json, parse_object
from .._validation import as_float, as_plain, is_missing, quoted
from ..errors import InvalidInputError, InvalidParameterError
from ..facts import PLACE_KEYS, Facts, Place, find_identifiers, read_place

JSON_SUFFIXES, _TEXT_SUFFIXES = (".jsonl", ".ndjson"), (".txt", ".md")
_TEXT_KEYS = ("text", "query", "question")
# BEIR and most of its followers write "_id"; FreshStack and ir_datasets write "query_id", CoverageBench "topic_id".
_DOCUMENT_IDS = ("id", "_id")
_QUERY_IDS = ("id", "_id", "query_id", "topic_id")
# Columns of a CSV file whose cells hold several values.
_SEVERAL = ("gold", "subtopics", "answers", "sub_questions", "scores")
_BLANK = b" \t\r\n\v\f\xef\xbb\xbf"  # white space, and a byte order mark


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
# Reads a line, a row or a file: the record of it.
_Read = Callable[[], Any]


def read_documents(path: Path | str, *, text_key: str | None = None, id_key: str | None = None) -> list[Document]:
    """Read documents from a file or folder. A bad line is an error that names it; nothing is left out.

    ========================= =======================================================================================
    ``.jsonl``, ``.ndjson``   one object a line: ``text``, optionally ``title`` (put before the text), ``id`` or
                              ``_id`` (by default the line's number), ``subtopics`` (a list of labels), ``source`` (for
                              ``max_per_source``), ``cost`` (for ``budget``), and the number or code of the text by
                              which others cite it: ``section``, ``clause``, ``article``, ``rule``, ``number``,
                              ``key``, ``code``, ``symbol``; other keys are ignored
    ``.csv``, ``.tsv``        the same as columns; several values in a cell are separated by ``;`` or are a JSON array
    ``.parquet``              the same as columns, by pyarrow (``pip install "setselect[batch]"``)
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
        The keys or columns of a file of another shape: of the text, and of the id.

    Returns
    -------
    list of Document
        In the order of the file, one for each line that is not blank.

    Raises
    ------
    InvalidInputError
        The path does not exist, cannot be read, or holds no document; or a line has no text, cannot be parsed, or
        repeats the id of an earlier line.
    InvalidParameterError
        The suffix is none of those above, or a key is given for a folder or file of plain texts.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "docs.jsonl"
    >>> _ = path.write_text('{"id": "a", "text": "One."}')
    >>> [document.id for document in read_documents(path)]
    ['a']
    """
    return _read_items(Path(path), as_document, "document", {"text": text_key, "id": id_key})


def read_queries(
    path: Path | str,
    *,
    query_key: str | None = None,
    query_id_key: str | None = None,
    gold_key: str | None = None,
    scores_key: str | None = None,
) -> list[Query]:
    """Read queries from a file of one of the kinds of :func:`read_documents`. A bad line is an error that names it.

    The text is under ``text``, ``query`` or ``question``, the id under ``id``, ``_id``, ``query_id`` or ``topic_id``
    (by default the line's number). Each of the following is optional and allows more measures: ``gold`` (ids of the
    right documents), ``subtopics`` (labels that the documents carry, or an object from labels to ids), ``root`` (what
    the query is about without its perspective), ``answers`` (strings that the picked texts should contain).
    ``sub_questions`` are searched for too. ``scores`` are those of your own reranker: an object from ids of
    documents to numbers. Other keys are ignored, but a key that is nearly one of these (``golden``) is an error.

    Parameters
    ----------
    path : path
        The file of the queries.
    query_key, query_id_key, gold_key, scores_key : str, optional
        The keys or columns of a file of another shape: of the text, the id, the gold ids and the scores. The last two
        may be missing on some lines, not on all.

    Raises
    ------
    InvalidInputError
        The path does not exist, cannot be read, or holds no query; a line is bad; or no line has ``gold_key`` or
        ``scores_key``.
    InvalidParameterError
        The suffix is none of those that can be read, the path is a folder, or a key is given for a file of plain texts.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "queries.csv"
    >>> _ = path.write_text("query,gold" + chr(10) + "Where is it?,a;b")
    >>> read_queries(path)[0].gold
    ('a', 'b')
    """
    path = Path(path)
    if path.is_dir():
        raise InvalidParameterError(f"{path} is a folder: queries are read from a .jsonl, .csv or .txt file")
    keys = {"text": query_key, "id": query_id_key, "gold": gold_key, "scores": scores_key}
    return _read_items(path, as_query, "query", keys)


def as_document(record: str | Mapping[str, Any] | Document, default_id: str) -> Document:
    """A document from its text, or from a record (see :func:`read_documents`)."""
    if isinstance(record, Document):
        return record
    record = _with_title(_as_record(record))
    title, source, cost = (first_value(record, (key,)) for key in ("title", "source", "cost"))
    return Document(
        _read_id(record, _DOCUMENT_IDS, default_id),
        text_of(record, ("text",)),
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


def as_query(record: str | Mapping[str, Any] | Query, default_id: str) -> Query:
    """A query from its text, or from a record (see :func:`read_queries`). PIR's key ``root_query`` means ``root``."""
    if isinstance(record, Query):
        return record
    record = _as_record(record)
    _check_spelling(record)
    subtopics = record.get("subtopics")
    if isinstance(subtopics, Mapping):
        # The rows of an Arrow table have the labels of all rows, with null where a row does not have the label.
        labels = [label for label, ids in subtopics.items() if not is_missing(ids)]
        covered = {_as_text(label, "subtopics"): read_names(subtopics, label) for label in labels}
    else:
        covered = dict.fromkeys(read_names(record, "subtopics"), ())
    root = first_value(record, ("root", "root_query"))
    return Query(
        _read_id(record, _QUERY_IDS, default_id),
        text_of(record, _TEXT_KEYS),
        read_names(record, "gold"),
        covered,
        None if root is None else as_name(root, "root"),
        read_names(record, "answers"),
        read_names(record, "sub_questions"),
        _read_scores(record),
    )


def convert_all(records: Any, convert: Callable[[Any, str], _Item], what: str) -> list[_Item]:
    """Documents or queries from records or a table, by :func:`as_document` or :func:`as_query`.

    An error names the position.
    """
    for method in ("to_pylist", "to_dicts"):  # a table of Arrow, of polars
        if hasattr(records, method):
            records = getattr(records, method)()
    # A Dataset of the package datasets has a to_dict too, but no columns. It gives its records by itself.
    if hasattr(records, "to_dict") and hasattr(records, "columns"):
        records = records.to_dict(orient="records")
    if isinstance(records, (str, bytes, Mapping)) or not isinstance(records, Iterable):
        raise InvalidInputError(f"{what} must be a list or a table of records, got a single {type(records).__name__}")
    places = ((f"{what}, position {i}", str(i + 1), partial(_same, record)) for i, record in enumerate(records))
    items = _collect(places, convert)
    if not items:
        raise InvalidInputError(f"there are no {what}")
    return items


def text_of(record: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """The text under the first of the keys with a value; ``InvalidInputError`` if there is no text."""
    text = as_plain(first_value(record, keys))
    key = next((key for key in keys if key in record), None)
    if key is None:
        raise InvalidInputError(_no_key(keys, record))
    if not isinstance(text, str):
        fault = "is empty" if text is None else f"must be a string, got {type(text).__name__}"
        raise InvalidInputError(f"{quoted(key)} {fault}")
    return _as_text(text, key)


def value_of(record: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The value under the first of the keys that has one; ``InvalidInputError`` if none has."""
    value = first_value(record, keys)
    if value is None:
        raise InvalidInputError(_no_key(keys, record))
    return value


def first_value(record: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """The value under the first of the keys that has one; None if none has."""
    return next((record[key] for key in keys if not is_missing(record.get(key))), None)


def read_names(record: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The names under a key: none, a single one, or several in a list or an array. Missing ones do not count."""
    given = as_plain(record.get(key))
    if isinstance(given, (str, int, float, UUID)) or is_missing(given):
        given = [given]
    if not isinstance(given, (list, tuple)):
        raise InvalidInputError(f"{quoted(key)} must be a list of strings, got {type(given).__name__}")
    return tuple(dict.fromkeys(as_name(item, key) for item in given if not is_missing(item)))


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


def unpacked(path: Path) -> Path:
    """The path without the suffix of gzip."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, unpacked if its name ends in .gz; an InvalidInputError names the file."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if unpacked(path) != path else data
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def parse_lines(path: Path, parse: Callable[[str], Any]) -> Iterator[Any]:
    """What ``parse`` makes of each line that is not blank; an InvalidInputError names the line."""
    for place, _, read in _lines(path, parse):
        try:
            yield read()
        except (InvalidInputError, csv.Error) as error:
            raise InvalidInputError(f"{place}: {error}") from None


def _read_items(
    path: Path, convert: Callable[[Any, str], _Item], what: str, keys: Mapping[str, str | None]
) -> list[_Item]:
    """The items of a file or folder. ``keys`` has the file's own name of a key, if it has one."""
    own: dict[str, str] = {key: name for key, name in keys.items() if name is not None}
    suffix = unpacked(path).suffix.lower()
    if own and (path.is_dir() or suffix in _TEXT_SUFFIXES):
        raise InvalidParameterError(f"{path} holds plain texts without keys: leave out the key {_listed(own.values())}")
    known: set[str] = set()

    def rename(record: Any, default_id: str) -> _Item:
        if own and isinstance(record, Mapping):
            known.update(record)
            for key in ("text", "id"):
                if key in own and is_missing(record.get(own[key])):
                    raise InvalidInputError(_no_key((own[key],), record))
            record = {key: value for key, value in record.items() if key not in own} | {
                key: record[name] for key, name in own.items() if name in record
            }
        return convert(record, default_id)

    places: Iterable[tuple[str, str, _Read]]
    if path.is_dir():
        places = _texts_of(path)
    elif suffix in JSON_SUFFIXES:
        places = _lines(path, parse_object)
    elif suffix in (".csv", ".tsv"):
        several = {*_SEVERAL, *(own.get(key, key) for key in _SEVERAL)}
        places = _rows(path, "\t" if suffix == ".tsv" else ",", several)
    elif suffix == ".parquet":
        places = _parquet_rows(path)
    elif suffix in _TEXT_SUFFIXES:
        places = _lines(path, str.strip)
    else:
        raise InvalidParameterError(
            f"{path}: expected .jsonl, .csv, .tsv, .parquet, .txt, or a folder of .txt and .md files"
        )
    items = _collect(places, rename)
    if not items:
        raise InvalidInputError(f"{path} holds no {what}")
    for name in own.values():
        if name not in known:
            raise InvalidInputError(f"{path}: no line has the key {quoted(name)} (keys: {_listed(known)})")
    return items


def _collect(places: Iterable[tuple[str, str, _Read]], convert: Callable[[Any, str], _Item]) -> list[_Item]:
    """The items of records, each with its place for messages and its default id."""
    items: dict[str, _Item] = {}
    for place, default_id, read in places:
        try:
            item = convert(read(), default_id)
            if item.id in items:
                raise InvalidInputError(f"id {quoted(item.id)} occurs a second time")
        except InvalidInputError as error:
            raise InvalidInputError(f"{place}: {error}") from None
        items[item.id] = item
    return list(items.values())


def _lines(path: Path, parse: Callable[[str], Any]) -> Iterator[tuple[str, str, _Read]]:
    def read(line: bytes) -> Any:
        return parse(decode_text(line))

    for number, line in enumerate(read_bytes(path).split(b"\n"), 1):
        if line.strip(_BLANK):
            yield f"{path}:{number}", str(number), partial(read, line)


def _rows(path: Path, delimiter: str, several: Collection[str]) -> Iterator[tuple[str, str, _Read]]:
    """The rows of a table, each with the number of its last line."""
    # The csv module's own limit, 131,072 characters, is below the length of a book chapter in one cell.
    csv.field_size_limit(2**31 - 1)
    # Bytes that are not UTF-8 become surrogates, so that the row that has them can be named.
    text = read_bytes(path).decode("utf-8-sig", errors="surrogateescape")
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)

    def read(cells: list[str]) -> dict[str, Any]:
        if len(cells) != len(columns):
            raise InvalidInputError(f"{len(cells)} cells under {len(columns)} columns")
        if not is_text("".join(cells)):
            raise InvalidInputError("not UTF-8")
        return {name: _cell(name, cell, several) for name, cell in zip(columns, cells, strict=True)}

    number = 0
    try:
        columns = [name.strip() for name in next(reader, [])]
        if not is_text("".join(columns)):
            raise InvalidInputError(f"{path}:1: not UTF-8: save the file as UTF-8")
        for cells in reader:
            if any(cell.strip() for cell in cells):
                number += 1
                yield f"{path}:{reader.line_num}", str(number), partial(read, cells)
    except csv.Error as error:
        raise InvalidInputError(f"{path}:{reader.line_num}: not a table: {error}") from None


def _cell(name: str, cell: str, several: Collection[str]) -> Any:
    if name not in several:
        return cell if name == "text" else cell.strip()
    if cell.lstrip().startswith(("[", "{")):
        return parse_json(cell)
    return [part.strip() for part in cell.split(";") if part.strip()]


def _parquet_rows(path: Path) -> Iterator[tuple[str, str, _Read]]:
    parquet = import_library("pyarrow.parquet", "batch")
    try:
        rows = parquet.read_table(path).to_pylist()
    # pyarrow raises its own errors, and those of Python for text that is not UTF-8.
    except (ValueError, OSError) as error:
        raise InvalidInputError(f"{path} cannot be read: {quoted(str(error))}") from error
    for number, row in enumerate(rows, 1):
        yield f"{path}: row {number}", str(number), partial(_same, row)


def _texts_of(folder: Path) -> Iterator[tuple[str, str, _Read]]:
    def read(file: Path) -> str:
        text = decode_text(file.read_bytes())
        if not text.strip():
            raise InvalidInputError("the file is empty")
        return text

    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder)
        hidden = any(part.startswith(".") for part in name.parts)
        if file.suffix.lower() in _TEXT_SUFFIXES and not hidden and file.is_file():
            yield str(file), name.as_posix(), partial(read, file)


def _same(record: Any) -> Any:
    return record


def _no_key(keys: tuple[str, ...], record: Mapping[str, Any]) -> str:
    found = f"[{_listed(record)}]" if record else "nothing"
    return f"there is no {' or '.join(map(quoted, keys))}; found {found}"


def _listed(keys: Iterable[str]) -> str:
    return ", ".join(map(quoted, keys))


def _as_record(record: Any) -> Mapping[str, Any]:
    if isinstance(record, str):
        return {"text": record}
    if not isinstance(record, Mapping):
        raise InvalidInputError(f"expected a text or an object with a text, got {type(record).__name__}")
    return record


def _with_title(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record with its title before its text, joined as BEIR joins them."""
    title, text = first_value(record, ("title",)), record.get("text")
    if title is None or "text" not in record or not (is_missing(text) or isinstance(text, str)):
        return record
    title = _as_text(title, "title")
    return {**record, "text": title if is_missing(text) else f"{title} {text}".strip()}


def _check_spelling(record: Mapping[str, Any]) -> None:
    """Refuse a key that is nearly one that counts, if that one is missing; other keys are not read."""
    # "answer" is no misspelt "answers": many data sets have a text for people under this key.
    known: Sequence[str] = ("gold", "subtopics", "sub_questions", "scores", "root")
    for key in record:
        close = difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.8) if isinstance(key, str) else []
        near = "sub_questions" if key == "queries" else close[0] if close else key
        if near != key and near not in record:
            raise InvalidInputError(
                f"{quoted(key)} is nearly {quoted(near)}, which is missing: rename it, or leave it out if it means "
                "something else"
            )


def _read_id(record: Mapping[str, Any], keys: tuple[str, ...], default: str) -> str:
    key = next((key for key in keys if not is_missing(record.get(key))), None)
    return default if key is None else as_name(record[key], key)


def _read_scores(record: Mapping[str, Any]) -> dict[str, float]:
    given = as_plain(record.get("scores"))
    # The empty cell of a table is an empty list.
    if is_missing(given) or given == []:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"'scores' must be an object from ids to numbers, got {type(given).__name__}")
    scored = [(name, value) for name, value in given.items() if not is_missing(value)]
    return {as_name(name, "scores"): as_number(value, f"scores of {name}") for name, value in scored}


def _as_text(value: Any, what: str) -> str:
    try:
        text = str(value)
    # Python writes no integer of more than 4,300 digits.
    except ValueError:
        raise InvalidInputError(f"{quoted(what)} has too many digits, got {quoted(value)}") from None
    if not is_text(text):
        raise InvalidInputError(f"{quoted(what)} holds a lone surrogate, half of a character, got {quoted(text)}")
    return text
