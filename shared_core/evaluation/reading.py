"""Records of files and tables. What cannot be read of JSON lines, CSV, lines or folders of text has a problem."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from io import BufferedIOBase, StringIO
from pathlib import Path
from typing import Any, NamedTuple

from .._parsing import decode_text, is_text, parse_json, parse_object
from ..errors import InvalidInputError, InvalidParameterError

TEXT_SUFFIXES = (".txt", ".md")
JSON_SUFFIXES = (".jsonl", ".ndjson")
_BLANK = b" \t\r\n\v\f\xef\xbb\xbf"  # white space, and a byte order mark
# The csv module's own limit, 131,072 characters, is below the length of a book chapter in one cell.
_LONGEST_CELL = 2**31 - 1


class RawRecord(NamedTuple):
    """One record of a file, before it becomes a document or a query; or the problem with it."""

    file: str
    line: int | None
    default_id: str
    record: Any
    problem: str | None = None


def read_records(path: Path, several: Collection[str]) -> Iterator[RawRecord]:
    """The records of a file or folder; the cells of a table under ``several`` hold several values each."""
    suffix = unpacked(path).suffix.lower()
    if path.is_dir():
        return _text_files(path)
    if suffix in JSON_SUFFIXES:
        return json_lines(path)
    if suffix in (".csv", ".tsv"):
        return _table_rows(path, "\t" if suffix == ".tsv" else ",", several)
    if suffix in TEXT_SUFFIXES:
        return parse_lines(path, str.strip)
    raise InvalidParameterError(f"{path}: expected .jsonl, .csv, .tsv, .txt, or a folder of .txt and .md files")


def as_records(table: Any) -> Any:
    """The rows of a table of Arrow, polars or pandas as a list of records; anything else as it is."""
    for method in ("to_pylist", "to_dicts"):
        if hasattr(table, method):
            return getattr(table, method)()
    # A Dataset of the package datasets has a to_dict too, but no columns. It gives its records by itself.
    return table.to_dict(orient="records") if hasattr(table, "to_dict") and hasattr(table, "columns") else table


def unpacked(path: Path) -> Path:
    """The path without the suffix of gzip."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def json_lines(path: Path) -> Iterator[RawRecord]:
    """A record for each line that is not blank; a line that is not a JSON object has a problem instead."""
    return parse_lines(path, parse_object)


def parse_lines(path: Path, parse: Callable[[str], Any]) -> Iterator[RawRecord]:
    """What ``parse`` makes of each line that is not blank; one that it refuses (InvalidInputError) has a problem."""

    def read(line: bytes) -> Any:
        return parse(decode_text(line))

    with _open(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip(_BLANK):
                yield _record(str(path), number, str(number), read, line)


@contextmanager
def _open(path: Path) -> Iterator[BufferedIOBase]:
    """The bytes of a file, which is unpacked if its name ends in .gz."""
    with gzip.open(path) if unpacked(path) != path else path.open("rb") as file:
        try:
            yield file
        except (EOFError, zlib.error) as error:
            raise OSError(f"it is damaged: {error}") from error


def _table_rows(path: Path, delimiter: str, several: Collection[str]) -> Iterator[RawRecord]:
    # Bytes that are not UTF-8 become surrogates, so that only their own row is lost.
    with _open(path) as file:
        text = file.read().decode("utf-8-sig", errors="surrogateescape")
    rows = _split_rows(list(StringIO(text, newline="")), delimiter)
    columns = [name.strip() for name in next(rows, (1, []))[1]]
    if not is_text("".join(columns)):
        raise InvalidInputError(f"{path}:1: not UTF-8: save the file as UTF-8")

    def read(cells: list[str]) -> dict[str, Any]:
        if len(cells) != len(columns):
            raise InvalidInputError(f"{len(cells)} cells under {len(columns)} columns")
        if not is_text("".join(cells)):
            raise InvalidInputError("not UTF-8")
        return {name: _cell(name, cell, name in several) for name, cell in zip(columns, cells, strict=True)}

    number = 0
    for line, cells in rows:
        if any(cell.strip() for cell in cells):
            number += 1
            yield _record(str(path), line, str(number), read, cells)


def _split_rows(lines: list[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row of a table, with the number of its first line.

    A quotation mark that opens a cell and is not closed at the end of a cell is a character like others. The cells of
    its line end at the end of the line, so that it does not swallow the lines that follow.
    """
    csv.field_size_limit(_LONGEST_CELL)
    form: dict[str, Any] = {"delimiter": delimiter, "skipinitialspace": True, "strict": True}
    row = 0
    while row < len(lines):
        start = row
        reader = csv.reader(map(lines.__getitem__, range(start, len(lines))), **form)
        try:
            for cells in reader:
                yield row + 1, cells
                row = start + reader.line_num
        except csv.Error:
            yield row + 1, next(csv.reader([lines[row]], quoting=csv.QUOTE_NONE, **form))
            row += 1


def _cell(name: str, cell: str, several: bool) -> Any:
    if not several:
        return cell if name == "text" else cell.strip()
    if cell.lstrip().startswith(("[", "{")):
        return parse_json(cell)
    return [part.strip() for part in cell.split(";") if part.strip()]


def _text_files(folder: Path) -> Iterator[RawRecord]:
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder)
        hidden = any(part.startswith(".") for part in name.parts)
        if file.suffix.lower() in TEXT_SUFFIXES and not hidden and file.is_file():
            yield _record(str(file), None, name.as_posix(), _whole_text, file)


def _whole_text(file: Path) -> str:
    text = decode_text(file.read_bytes())
    if not text.strip():
        raise InvalidInputError("the file is empty")
    return text


def _record(file: str, line: int | None, default_id: str, read: Callable[[Any], Any], data: Any) -> RawRecord:
    try:
        return RawRecord(file, line, default_id, read(data))
    except (InvalidInputError, OSError) as error:
        return RawRecord(file, line, default_id, None, str(error))
