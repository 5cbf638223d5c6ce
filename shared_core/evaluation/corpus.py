"""Documents and queries out of files: JSON lines, CSV, folders of texts. What cannot be read is reported, not fatal."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from ..errors import InvalidInputError, InvalidParameterError
from .records import Document, Query, as_document, as_query

TEXT_SUFFIXES = (".txt", ".md")
# Cells of a CSV file that hold several values: parted by this, or a JSON array or object.
SEPARATOR = ";"
_SEVERAL = ("gold", "subtopics", "answers")

_Item = TypeVar("_Item", Document, Query)


@dataclass(frozen=True)
class Problem:
    """A place that could not be read: the file, its line (from 1; None for a file as a whole), and what is wrong.

    >>> str(Problem("docs.jsonl", 3, "there is no 'text'"))
    "docs.jsonl:3: there is no 'text'"
    """

    file: str
    line: int | None
    what: str

    def __str__(self) -> str:
        return f"{self.file}{'' if self.line is None else f':{self.line}'}: {self.what}"


class Read(NamedTuple, Generic[_Item]):
    """What was read, in the order of the file, and what could not be."""

    items: list[_Item]
    problems: list[Problem]


class Found(NamedTuple):
    """One record with its place; what is wrong with it, where it is no record."""

    file: str
    line: int | None
    default_id: str
    record: Any
    wrong: str | None = None


def read_documents(path: Path | str) -> Read[Document]:
    """Read documents from a file or folder.

    ========================= =======================================================================================
    ``.jsonl``, ``.ndjson``   one object a line: ``text``, optionally ``id`` (by default the line's number) and
                              ``subtopics`` (a list of labels); other keys are ignored
    ``.csv``, ``.tsv``        the same as columns; several values in a cell are parted by ``;`` or are a JSON array
    ``.txt``, ``.md``         one document a line
    a folder                  each ``.txt`` and ``.md`` file in it, at any depth; the id is its path in the folder
    ========================= =======================================================================================

    Parameters
    ----------
    path : path

    Returns
    -------
    Read of Document
        Lines without a text, that cannot be parsed, or with the id of an earlier one are among its ``problems``.

    Raises
    ------
    InvalidInputError
        The path does not exist, cannot be opened, or holds not one document.
    InvalidParameterError
        The suffix is none of those above.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "docs.jsonl"
    >>> _ = path.write_text('{"id": "a", "text": "One."}' + chr(10) + "oops")
    >>> read = read_documents(path)
    >>> [document.id for document in read.items], [problem.line for problem in read.problems]
    (['a'], [2])
    """
    path = Path(path)
    return _collect(path, _folder(path) if path.is_dir() else _records(path), as_document, "document")


def read_queries(path: Path | str) -> Read[Query]:
    """Read queries from a file: ``.jsonl``, ``.csv`` as in :func:`read_documents`, or one a line in ``.txt``.

    The text stands under ``text``, ``query`` or ``question``. Optional, each allows more measures: ``gold`` (ids of
    the right documents), ``subtopics`` (labels that the documents carry, or an object from labels to ids), ``root``
    (what the query is about without its perspective), ``answers`` (strings that the picked texts should contain).

    Raises
    ------
    InvalidInputError, InvalidParameterError
        As :func:`read_documents`.

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
    return _collect(path, _records(path), as_query, "query")


def _collect(path: Path, found: Iterator[Found], make: Callable[[Any, str], _Item], what: str) -> Read[_Item]:
    items: dict[str, _Item] = {}
    problems = []
    try:
        for file, line, default_id, record, wrong in found:
            try:
                if wrong is not None:
                    raise InvalidInputError(wrong)
                item = make(record, default_id)
                if item.id in items:
                    raise InvalidInputError(f"id {item.id!r} occurs a second time")
                items[item.id] = item
            except InvalidInputError as error:
                problems.append(Problem(file, line, str(error)))
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}") from error
    if not items:
        first = f"; the first problem: {problems[0]}" if problems else ""
        raise InvalidInputError(f"{path} holds not one {what}{first}")
    return Read(list(items.values()), problems)


def _records(path: Path) -> Iterator[Found]:
    suffix = path.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        return json_lines(path)
    if suffix in (".csv", ".tsv"):
        return _table(path, "\t" if suffix == ".tsv" else ",")
    if suffix in TEXT_SUFFIXES:
        return _text_lines(path)
    raise InvalidParameterError(f"{path}: expected .jsonl, .csv, .tsv, .txt, or a folder of .txt and .md files")


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            bare = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if bare.strip():
                yield number, bare


def json_lines(path: Path) -> Iterator[Found]:
    """What stands on each line that is not blank; a line that is no JSON object has what is wrong with it."""
    for number, line in _lines(path):
        record, wrong = None, None
        try:
            record = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError:
            wrong = "not UTF-8"
        except json.JSONDecodeError as error:
            # Its own text names a line as well, which is always the first.
            wrong = f"not JSON: {error.msg} at column {error.colno}"
        except (ValueError, RecursionError) as error:
            wrong = f"not JSON: {error}"
        else:
            if not isinstance(record, dict):
                wrong = f"expected a JSON object, got {type(record).__name__}"
        yield Found(str(path), number, str(number), record, wrong)


def _text_lines(path: Path) -> Iterator[Found]:
    for number, line in _lines(path):
        try:
            yield Found(str(path), number, str(number), line.decode("utf-8").strip())
        except UnicodeDecodeError:
            yield Found(str(path), number, str(number), None, "not UTF-8")


def _table(path: Path, delimiter: str) -> Iterator[Found]:
    # Bytes that are no UTF-8 survive as surrogates, so that they spoil their own row only.
    text = path.read_bytes().decode("utf-8-sig", errors="surrogateescape")
    # The module's own limit of 128 kB a cell would have it read on from the middle of a longer one.
    csv.field_size_limit(max(len(text), csv.field_size_limit()))
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        columns = [name.strip() for name in next(rows, [])]
    except csv.Error as error:
        raise InvalidInputError(f"{path}: the head is not CSV: {error}") from error
    row_number = 0
    while True:
        line = rows.line_num + 1
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield Found(str(path), line, "", None, f"not CSV: {error}")
            continue
        if not any(cell.strip() for cell in cells):
            continue
        row_number += 1
        record, wrong = None, None
        if len(cells) != len(columns):
            wrong = f"{len(cells)} cells under {len(columns)} columns"
        elif any("\udc80" <= character <= "\udcff" for cell in cells for character in cell):
            wrong = "not UTF-8"
        else:
            try:
                record = {name: _cell(name, cell) for name, cell in zip(columns, cells, strict=True)}
            except ValueError as error:
                wrong = f"not JSON: {error}"
        yield Found(str(path), line, str(row_number), record, wrong)


def _cell(name: str, cell: str) -> Any:
    if name not in _SEVERAL:
        return cell if name == "text" else cell.strip()
    if cell.lstrip().startswith(("[", "{")):
        return json.loads(cell)
    return [part.strip() for part in cell.split(SEPARATOR) if part.strip()]


def _folder(path: Path) -> Iterator[Found]:
    for file in sorted(path.rglob("*")):
        if file.suffix.lower() not in TEXT_SUFFIXES or not file.is_file():
            continue
        record, wrong = None, None
        try:
            record = file.read_bytes().decode("utf-8-sig")
            if not record.strip():
                wrong = "the file is empty"
        except UnicodeDecodeError:
            wrong = "not UTF-8"
        except OSError as error:
            wrong = f"cannot be read: {error.strerror or error}"
        yield Found(str(file), None, file.relative_to(path).as_posix(), record, wrong)
