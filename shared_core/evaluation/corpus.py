"""Documents, queries and judgements, from records in memory and from files, as benchmarks and people write them."""

from __future__ import annotations

import csv
import difflib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from .._parsing import decode_text, is_text, parse_json, parse_object
from .._validation import as_float, import_library
from .._values import as_plain, as_text, is_missing
from ..errors import InvalidInputError, InvalidParameterError, quoted
from ..facts import PLACE_KEYS, Facts, Place, find_identifiers, read_place

JSON_SUFFIXES, _TEXT_SUFFIXES = (".jsonl", ".ndjson"), (".txt", ".md")
_TEXT_KEYS = ("text", "query", "question")
# BEIR and most of its followers write "_id"; FreshStack and ir_datasets write "query_id", CoverageBench "topic_id".
_DOCUMENT_IDS = ("id", "_id")
_QUERY_IDS = ("id", "_id", "query_id", "topic_id")
# Columns of a CSV file whose cells hold several values.
_SEVERAL = ("gold", "subtopics")
# A first line whose last column has one of these names is a head.
_HEADS = ("score", "relevance", "rel", "grade", "judgement", "judgment", "label")
_BLANK = b" \t\r\n\v\f\xef\xbb\xbf"  # white space, and a byte order mark


@dataclass(frozen=True)
class Document:
    """A text that can be picked.

    ``title`` is its name in other texts. ``source`` says where it comes from, for ``max_per_source`` and for what other
    texts cite by number. ``cost`` is what it takes from a ``budget``; None stands for the number of its characters.
    ``facts`` are what else is known of it, by which other texts cite it and stand next to it.
    """

    id: str
    text: str
    title: str = ""
    source: str | None = None
    cost: float | None = None
    facts: Facts | None = field(default=None, compare=False, repr=False)

    def read_facts(self) -> Facts:
        """What is known of the text besides its words; the title is the only one."""
        facts = self.facts or Facts(self.id, source=self.source)
        return facts._replace(titles=(self.title,), file=None)


@dataclass(frozen=True)
class Query:
    """A question, and what is known about the right answer to it, if anything.

    ``gold`` holds the ids of the documents that should be picked. ``subtopics`` maps labels of what the query asks for
    to the ids of the documents that cover it.
    """

    id: str
    text: str
    gold: tuple[str, ...] = ()
    subtopics: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))


class JudgedCorpus(NamedTuple):
    """Documents, judged queries, notes, and the rows of these queries among the ``lines`` of their file."""

    documents: list[Document]
    queries: list[Query]
    notes: Sequence[str] = ()
    rows: list[int] | None = None
    lines: int | None = None


_Item = TypeVar("_Item", Document, Query)
# A record, before it: its place for messages, and its default id.
_Records = Iterator[tuple[str, str, Any]]


def read_documents(path: Path | str) -> list[Document]:
    """Read documents from a file or folder. A bad line is an error that names it; nothing is left out.

    ========================= =======================================================================================
    ``.jsonl``, ``.ndjson``   one object a line: ``text``, optionally ``title`` (put before the text), ``id`` or
                              ``_id`` (by default the line's number), ``source`` (for ``max_per_source``), ``cost``
                              (for ``budget``), and the number or code by which other texts cite it: ``section``,
                              ``clause``, ``article``, ``rule``, ``number``, ``key``, ``code``
    ``.csv``, ``.tsv``        the same as columns; several values in a cell are separated by ``;`` or are a JSON array
    ``.parquet``              the same as columns, by pyarrow (``pip install "setselect[batch]"``)
    ``.txt``, ``.md``         one document a line
    a folder                  each ``.txt`` and ``.md`` file in it, at any depth; the id is its path in the folder.
                              Hidden files and folders, whose names begin with a dot, are left out
    ========================= =======================================================================================

    A value that is null, NaN or blank counts as missing. An InvalidInputError if the path cannot be read or holds no
    document, or if a line has no text, cannot be parsed, or repeats an id.
    """
    return _collect(_read_records(Path(path)), as_document, f"{path} holds no document")


def read_queries(path: Path | str) -> list[Query]:
    """Read queries from a file of one of the kinds of :func:`read_documents`. A bad line is an error that names it.

    The text is under ``text``, ``query`` or ``question``, the id under ``id``, ``_id``, ``query_id`` or ``topic_id``
    (by default the line's number). Optional are ``gold`` (ids of the right documents) and ``subtopics`` (an object from
    labels of what the query asks for to ids; a label without ids does not count). Other keys are ignored, but a key
    that is nearly one of these (``golden``) is an error, and so is a folder.
    """
    if Path(path).is_dir():
        raise InvalidParameterError(f"{path} is a folder: queries are read from a .jsonl, .csv or .txt file")
    return _collect(_read_records(Path(path)), as_query, f"{path} holds no query")


def beir_files(folder: Path | str, qrels: Path | str | None = None) -> tuple[Path, Path, Path]:
    """The documents, queries and judgements of a BEIR folder: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``.

    A single ``.tsv`` file in ``qrels/`` may have any name. ``qrels`` is a file in place of it.
    """
    documents, queries = Path(folder, "corpus.jsonl"), Path(folder, "queries.jsonl")
    for path in (documents, queries):
        if not path.is_file():
            raise InvalidInputError(f"{folder} is not a BEIR folder: it holds no {path.name}")
    if qrels is None:
        splits = {path.stem: path for path in sorted(Path(folder, "qrels").glob("[!.]*.tsv"))}
        qrels = splits.get("test") or (next(iter(splits.values())) if len(splits) == 1 else None)
        if qrels is None:
            raise InvalidInputError(
                f"{folder}/qrels holds {', '.join(splits) or 'nothing'}, and no test: name the file of the judgements"
            )
    return documents, queries, Path(qrels)


def read_judged(documents: Path | str, queries: Path | str, qrels: Path | str) -> JudgedCorpus:
    """Documents, queries and the judgements of these queries, from files; :func:`beir_files` finds those of a folder.

    ``gold`` and ``subtopics`` of the queries come from the judgements alone. Queries without a relevant document are
    left out, and a note counts them.
    """
    # The smallest file comes first: a mistake in it is found before millions of documents are read.
    relevant, name = read_qrels(qrels), Path(qrels).name
    asked = read_queries(queries)
    unknown = relevant.keys() - {query.id for query in asked}
    if len(unknown) == len(relevant):
        raise InvalidInputError(
            f"none of the query ids of {name} is the id of a query: it has {quoted(next(iter(relevant)))}, and the "
            f"first query has the id {quoted(asked[0].id)}"
        )
    rows = [row for row, query in enumerate(asked) if relevant.get(query.id)]
    if not rows:
        raise InvalidInputError(f"{name} names no relevant document for any query: no score is above 0")
    judged = []
    for query in (asked[row] for row in rows):
        topics = {label: tuple(ids) for label, ids in relevant[query.id].items()}
        gold = tuple(dict.fromkeys(name for ids in topics.values() for name in ids))
        judged.append(replace(query, gold=gold, subtopics={} if "" in topics else topics))
    notes = []
    if unknown:
        example = quoted(min(unknown))
        notes.append(f"No query has {len(unknown)} of the {len(relevant)} query ids of {name}, such as {example}.")
    if left := len(asked) - len(judged):
        notes.append(f"Left out: {left} of {len(asked)} queries, without a relevant document in {name}.")
    return JudgedCorpus(read_documents(documents), judged, notes, rows, len(asked))


def read_qrels(path: Path | str) -> dict[str, dict[str, list[str]]]:
    """For each query its subtopics, each with the ids of the relevant documents; "" if the file has no subtopics.

    A line has three columns (query, document, score; BEIR) or four (query, subtopic, document, score; TREC), separated
    by tabs or spaces. A head is skipped. A document is relevant if its score is above 0. A second of four columns with
    nothing but 0 or Q0 has no subtopics.
    """
    relevant: dict[str, dict[str, list[str]]] = {}

    def add(line: str) -> None:
        # BEIR writes its files with the csv module: an id that holds a quotation mark is in quotation marks.
        [cells] = csv.reader([line.strip()], delimiter="\t")
        # TREC files separate their columns by any white space.
        cells = [cell.strip() for cell in cells] if len(cells) in (3, 4) else line.split()
        if len(cells) not in (3, 4) or not all(cells):
            raise InvalidInputError(
                f"{len(cells)} columns, expected 3 (query, document, score) or 4 (query, subtopic, document, score), "
                "separated by tabs or spaces, and none empty"
            )
        if not relevant and cells[-1].lower() in _HEADS:
            return
        score = as_float(cells[-1])
        if not math.isfinite(score):
            raise InvalidInputError(f"the score, in the last column, must be a number, got {quoted(cells[-1])}")
        topics = relevant.setdefault(cells[0], {})
        if score > 0:
            ids = topics.setdefault(cells[1] if len(cells) == 4 else "0", [])
            ids += [cells[-2]] * (cells[-2] not in ids)

    for _ in parse_lines(Path(path), add):
        pass
    if not relevant:
        raise InvalidInputError(f"{path} holds no judgement")
    if {topic for topics in relevant.values() for topic in topics} <= {"0", "Q0"}:
        all_of = {query: [name for ids in topics.values() for name in ids] for query, topics in relevant.items()}
        return {query: {"": ids} if ids else {} for query, ids in all_of.items()}
    return relevant


def as_document(record: str | Mapping[str, Any] | Document, default_id: str) -> Document:
    """A document from its text, or from a record (see :func:`read_documents`)."""
    if isinstance(record, Document):
        return record
    record = _as_record(record)
    title, source, cost = (first_value(record, (key,)) for key in ("title", "source", "cost"))
    title = "" if title is None else _as_text(title, "title")
    if title and "text" in record and (is_missing(record["text"]) or isinstance(record["text"], str)):
        # The title stands before the text, as BEIR joins them.
        text = title if is_missing(record["text"]) else f"{title} {record['text']}".strip()
        record = {**record, "text": text}
    name, source = _read_id(record, _DOCUMENT_IDS, default_id), None if source is None else as_name(source, "source")
    numbers = [number for key in PLACE_KEYS if (number := read_place(record.get(key))) is not None]
    place = Place(source, "", numbers[0]) if numbers and source is not None else None
    return Document(
        name,
        text_of(record, ("text",)),
        title,
        source,
        None if cost is None else as_cost(cost, "cost"),
        Facts(name, (title,), tuple(find_identifiers(record)), source, place=place),
    )


def as_query(record: str | Mapping[str, Any] | Query, default_id: str) -> Query:
    """A query from its text, or from a record (see :func:`read_queries`)."""
    if isinstance(record, Query):
        return record
    record = _as_record(record)
    for key in record:
        for near in difflib.get_close_matches(str(key).lower(), _SEVERAL, n=1, cutoff=0.8):
            if near not in record:
                raise InvalidInputError(
                    f"{quoted(key)} is nearly {quoted(near)}, which is missing: rename it, or leave it out if it means "
                    "something else"
                )
    subtopics = as_plain(record.get("subtopics"))
    # The empty cell of a table is an empty list.
    if subtopics == [] or is_missing(subtopics):
        subtopics = {}
    if not isinstance(subtopics, Mapping):
        raise InvalidInputError(
            'the subtopics must be an object from labels to ids of documents, such as {"reset": ["a", "b"]}, got '
            f"{type(subtopics).__name__}"
        )
    # The rows of an Arrow table have the labels of all rows, with null where a row does not have the label.
    named = ((_as_text(label, "subtopics"), read_names(subtopics, label)) for label in subtopics)
    covered = {label: ids for label, ids in named if ids}
    name = _read_id(record, _QUERY_IDS, default_id)
    return Query(name, text_of(record, _TEXT_KEYS), read_names(record, "gold"), covered)


def convert_all(records: Any, convert: Callable[[Any, str], _Item], what: str) -> list[_Item]:
    """Documents or queries from records or a table, by ``convert``; an error names the position."""
    for method in ("to_pylist", "to_dicts"):  # a table of Arrow, of polars
        if hasattr(records, method):
            records = getattr(records, method)()
    # A Dataset of the package datasets has a to_dict too, but no columns. It gives its records by itself.
    if hasattr(records, "to_dict") and hasattr(records, "columns"):
        records = records.to_dict(orient="records")
    if isinstance(records, (str, bytes, Mapping)) or not isinstance(records, Iterable):
        raise InvalidInputError(f"{what} must be a list or a table of records, got a single {type(records).__name__}")
    places = ((f"{what}, position {i}", str(i + 1), record) for i, record in enumerate(records))
    return _collect(places, convert, f"there are no {what}")


def text_of(record: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """The text under the first of the keys with a value; ``InvalidInputError`` if there is no text."""
    text = as_plain(first_value(record, keys))
    key = next((key for key in keys if key in record), None)
    if key is None:
        found = ", ".join(map(quoted, record)) or "nothing"
        raise InvalidInputError(f"there is no {' or '.join(map(quoted, keys))}; found [{found}]")
    if not isinstance(text, str):
        fault = "is empty" if text is None else f"must be a string, got {type(text).__name__}"
        raise InvalidInputError(f"{quoted(key)} {fault}")
    return _as_text(text, key)


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


def as_cost(value: Any, what: str) -> float:
    """What a text takes from a budget; the cell of a table holds it as a string."""
    number = as_float(as_plain(value))
    if not math.isfinite(number) or number < 0:
        raise InvalidInputError(f"{quoted(what)} must be a finite number of at least 0, got {quoted(value)}")
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


def parse_lines(path: Path, parse: Callable[[str], Any]) -> Iterator[Any]:
    """What ``parse`` makes of each line that is not blank; an InvalidInputError names the line."""
    return (parsed for _, _, parsed in _lines(path, parse))


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """An error of the block names the file and the line."""
    try:
        yield
    except (InvalidInputError, csv.Error) as error:
        raise InvalidInputError(f"{place}: {error}") from None


def _read_records(path: Path) -> _Records:
    """The records of a file or folder."""
    suffix = path.suffix.lower()
    if path.is_dir():
        return _texts_of(path)
    if suffix in JSON_SUFFIXES:
        return _lines(path, parse_object)
    if suffix in (".csv", ".tsv"):
        return _rows(path, "\t" if suffix == ".tsv" else ",")
    if suffix == ".parquet":
        return _parquet_rows(path)
    if suffix in _TEXT_SUFFIXES:
        return _lines(path, str.strip)
    raise InvalidParameterError(
        f"{path}: expected .jsonl, .csv, .tsv, .parquet, .txt, or a folder of .txt and .md files"
    )


def _collect(records: Iterable[tuple[str, str, Any]], convert: Callable[[Any, str], _Item], none: str) -> list[_Item]:
    """The items of the records; an error if two have one id, or, with the message ``none``, if there are none."""
    items: dict[str, _Item] = {}
    for place, default_id, record in records:
        with _naming(place):
            item = convert(record, default_id)
            if item.id in items:
                raise InvalidInputError(f"id {quoted(item.id)} occurs a second time")
        items[item.id] = item
    if not items:
        raise InvalidInputError(none)
    return list(items.values())


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}") from error


def _lines(path: Path, parse: Callable[[str], Any]) -> _Records:
    for number, line in enumerate(_read_bytes(path).split(b"\n"), 1):
        if line.strip(_BLANK):
            place = f"{path}:{number}"
            with _naming(place):
                parsed = parse(decode_text(line))
            yield place, str(number), parsed


def _rows(path: Path, delimiter: str) -> _Records:
    """The rows of a table, each with the number of its last line."""
    # The csv module's own limit, 131,072 characters, is below the length of a book chapter in one cell.
    csv.field_size_limit(2**31 - 1)
    # Bytes that are not UTF-8 become surrogates, so that the row that has them can be named.
    text = _read_bytes(path).decode("utf-8-sig", errors="surrogateescape")
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    columns: list[str] | None = None
    number = 0
    try:
        for cells in reader:
            place = f"{path}:{reader.line_num}"
            if not is_text("".join(cells)):
                raise InvalidInputError(f"{place}: not UTF-8")
            if columns is None:
                columns = [name.strip() for name in cells]
            elif any(cell.strip() for cell in cells):
                number += 1
                with _naming(place):
                    if len(cells) != len(columns):
                        raise InvalidInputError(f"{len(cells)} cells under {len(columns)} columns")
                    row = {name: _read_cell(name, cell) for name, cell in zip(columns, cells, strict=True)}
                yield place, str(number), row
    except csv.Error as error:
        raise InvalidInputError(f"{path}:{reader.line_num}: not a table: {error}") from None


def _read_cell(name: str, cell: str) -> Any:
    if name not in _SEVERAL:
        return cell if name == "text" else cell.strip()
    if cell.lstrip().startswith(("[", "{")):
        return parse_json(cell)
    return [part.strip() for part in cell.split(";") if part.strip()]


def _parquet_rows(path: Path) -> _Records:
    parquet = import_library("pyarrow.parquet", "batch")
    try:
        rows = parquet.read_table(path).to_pylist()
    # pyarrow raises its own errors, and those of Python for text that is not UTF-8.
    except (ValueError, OSError) as error:
        raise InvalidInputError(f"{path} cannot be read: {quoted(str(error))}") from error
    for number, row in enumerate(rows, 1):
        yield f"{path}: row {number}", str(number), row


def _texts_of(folder: Path) -> _Records:
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder)
        hidden = any(part.startswith(".") for part in name.parts)
        if file.suffix.lower() in _TEXT_SUFFIXES and not hidden and file.is_file():
            with _naming(str(file)):
                text = decode_text(file.read_bytes())
                if not text.strip():
                    raise InvalidInputError("the file is empty")
            yield str(file), name.as_posix(), text


def _as_record(record: Any) -> Mapping[str, Any]:
    if isinstance(record, str):
        return {"text": record}
    if not isinstance(record, Mapping):
        raise InvalidInputError(f"expected a text or an object with a text, got {type(record).__name__}")
    return record


def _read_id(record: Mapping[str, Any], keys: tuple[str, ...], default: str) -> str:
    key = next((key for key in keys if not is_missing(record.get(key))), None)
    return default if key is None else as_name(record[key], key)


def _as_text(value: Any, what: str) -> str:
    text = as_text(value)
    if not is_text(text):
        raise InvalidInputError(f"{quoted(what)} holds a lone surrogate, half of a character, got {quoted(text)}")
    return text
