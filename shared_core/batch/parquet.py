"""Parquet files of queries, texts and vectors: their rows, and what a column of them holds."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import import_library, is_missing, quoted
from ..errors import InvalidInputError
from ..facts import IDENTIFIER_KEYS, PLACE_KEYS, find_identifiers, write_identifier

pa, pq = import_library("pyarrow", "batch"), import_library("pyarrow.parquet", "batch")
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
# pyarrow raises these where a file is damaged or cannot be read.
PARQUET_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError)
# Rows that are decoded, and rows of vectors or texts that are in memory, at once.
_BATCH_ROWS, _BLOCK_ROWS = 4096, 100_000
_ZERO = "the vector is zero and has no direction"


class Rows(NamedTuple):
    """The rows of one part: ``size`` rows of a file, from ``start`` on. ``first_row`` counts over all files."""

    number: int
    file: str
    start: int
    size: int
    first_row: int


def list_files(paths: Paths) -> list[Path]:
    """The files in the given order; a folder stands for the .parquet files in it, sorted by name."""
    files: list[Path] = []
    for path in map(Path, [paths] if isinstance(paths, (str, os.PathLike)) else paths):
        # As readers of Parquet do, skip names that begin with an underscore or a dot.
        inside = sorted(f for f in path.glob("*.parquet") if f.name[0] not in "._") if path.is_dir() else [path]
        files += [file.absolute() for file in inside]
        if not all(file.is_file() for file in inside or [path]):
            raise InvalidInputError(f"there is no file {path}, and no .parquet file in a folder of this name")
    return files


def cut_into_rows(files: Iterable[Path], block_rows: int, columns: Iterable[str]) -> list[Rows]:
    """The rows of these files in order, at most ``block_rows`` of one file together; each file has the ``columns``.

    Files without rows give one empty block, whose part has the columns of any other part.
    """
    blocks: list[Rows] = []
    first_row = 0
    for file in files:
        try:
            with pq.ParquetFile(file, memory_map=True) as parquet:
                schema, count = parquet.schema_arrow, parquet.metadata.num_rows
        except PARQUET_ERRORS as error:
            raise InvalidInputError(f"{file} is not a Parquet file, or is damaged: {quoted(str(error))}") from None
        check_columns(schema.names, columns, str(file))
        for start in range(0, count, block_rows):
            blocks.append(Rows(len(blocks), str(file), start, min(block_rows, count - start), first_row + start))
        first_row += count
    return blocks or [Rows(0, str(file), 0, 0, 0)]


def check_columns(names: Sequence[str], columns: Iterable[str], where: str) -> None:
    """Refuse a table that has not each of these columns once."""
    for name in columns:
        if names.count(name) != 1:
            count = f"{names.count(name)} columns" if name in names else "no column"
            raise InvalidInputError(f"{where}: there is {count} {name!r} among {', '.join(names)}")


def read_rows(rows: Rows, columns: Iterable[str]) -> Any:
    """The rows as a pyarrow Table of those of these columns that the file has."""
    end, pieces = rows.start + rows.size, []
    try:
        with pq.ParquetFile(rows.file, memory_map=True) as parquet:
            names = [name for name in dict.fromkeys(columns) if name in parquet.schema_arrow.names]
            sizes = [parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups)]
            firsts = [0, *accumulate(sizes)]
            groups = [i for i in range(len(sizes)) if firsts[i] < end and firsts[i + 1] > rows.start]
            # A row group may be long: its rows before ``start`` are decoded in batches and dropped.
            row = firsts[groups[0]] if groups else 0
            for piece in parquet.iter_batches(batch_size=_BATCH_ROWS, row_groups=groups, columns=names):
                first, last = max(rows.start - row, 0), min(end - row, len(piece))
                pieces += [piece.slice(first, last - first)] if first < last else []
                row += len(piece)
                if row >= end:
                    break
            schema = pa.schema([parquet.schema_arrow.field(name) for name in names])
        table = pa.Table.from_batches(pieces, schema).combine_chunks()
        # Text that is not UTF-8 would fail where it is used.
        table.validate(full=True)
    except PARQUET_ERRORS as error:
        where = f"{rows.file}: rows {rows.start} to {end - 1}"
        raise InvalidInputError(f"{where} cannot be read: {quoted(str(error))}") from None
    return table


def as_arrays(table: Any, column: str) -> list[NDArray[Any] | None]:
    """The lists of a column as arrays; None for a null."""
    arrays: list[NDArray[Any] | None] = []
    for chunk in table[column].chunks:
        # Ray stores arrays as tensors, and those of different lengths as structs.
        lists = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
        lists = lists.field("data") if pa.types.is_struct(lists.type) else lists
        if not hasattr(lists, "flatten") or pa.types.is_dictionary(lists.type):
            raise InvalidInputError(f"column {column!r} must contain lists of numbers, but contains {lists.type}")
        arrays += [row.values.to_numpy(zero_copy_only=False) if row.is_valid else None for row in lists]
    return arrays


def read_vectors(
    table: Any, column: str, dimension: int | None
) -> tuple[list[NDArray[np.float32] | None], list[str | None]]:
    """The vectors of a column, and why a row has none. Without a dimension the most common length counts."""
    arrays = as_arrays(table, column)
    lengths = Counter(len(row) for row in arrays if row is not None)
    dimension = dimension or (max(lengths, key=lengths.__getitem__) if lengths else 0)
    with np.errstate(over="ignore"):
        vectors = [None if row is None else row.astype(np.float32) for row in arrays]
    return vectors, [find_fault(vector, dimension) for vector in vectors]


def find_fault(vector: NDArray[np.float32] | None, dimension: int) -> str | None:
    """Why a vector cannot be used; None if it can."""
    if vector is None:
        return "the vector is null"
    if len(vector) != dimension:
        return f"the vector has length {len(vector)}, not {dimension}"
    if not np.isfinite(vector).all():
        return f"the vector contains {vector[~np.isfinite(vector)][0]} (as float32)"
    return None if vector.any() else _ZERO


def read_vectors_by_id(paths: Paths, ids: Sequence[str]) -> NDArray[np.float32]:
    """The vectors of these ids, float32 (n, d), from Parquet files with the columns ``id`` and ``vector``.

    An error names the file, and the row (from 0) with its id.
    """
    by_id: dict[str, NDArray[np.float32]] = {}
    first_id, dimension, wanted = None, None, set(ids)
    for rows, table in _read_blocks(paths, ["id", "vector"]):
        vectors, faults = read_vectors(table, "vector", dimension)
        for row, name in enumerate(table["id"].to_pylist()):
            # A row without an id is nobody's.
            first_id = first_id or (None if is_missing(name) else str(name))
            if is_missing(name) or str(name) not in wanted:
                continue
            fault = "the id occurs a second time" if str(name) in by_id else faults[row]
            vector = vectors[row]
            # A document without any known word has a vector of zeros.
            if vector is None or fault not in (None, _ZERO):
                raise InvalidInputError(f"{rows.file}: row {rows.start + row} (id {quoted(name)}): {fault}")
            by_id[str(name)], dimension = vector, len(vector)
    for name in ids:
        if name not in by_id:
            raise InvalidInputError(f"{paths} has no vector of id {quoted(name)}; its first id is {quoted(first_id)}")
    if not ids:
        raise InvalidInputError("there are no ids to read vectors for")
    return np.stack([by_id[name] for name in ids])


def read_texts(paths: Paths, columns: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """By id, what files say of each text: its ``texts``, and titles, numbers and so on, from the ``columns`` named.

    Without a name the usual columns are read, if there are any. A null is an empty text.
    """
    records: dict[str, dict[str, Any]] = {}
    usual = ("title", "source", *PLACE_KEYS, *IDENTIFIER_KEYS)
    for _, table in _read_blocks(paths, ["id", "text", *columns.values()], usual):
        for row in table.to_pylist():
            # A row without an id is nobody's.
            if is_missing(row["id"]):
                continue
            if (name := str(row["id"])) in records:
                raise InvalidInputError(f"{paths}: the id {quoted(name)} occurs a second time")
            if not isinstance(row["text"], (str, NoneType)):
                raise InvalidInputError(f"{paths}: the text of {quoted(name)} is {quoted(row['text'])}")
            places = [row[key] for key in PLACE_KEYS if row.get(key) is not None]
            named = [row[columns["identifiers"]]] if "identifiers" in columns else []
            records[name] = {
                "texts": row["text"] or "",
                "titles": row.get(columns.get("titles", "title")),
                "identifiers": find_identifiers(row, *named) or None,
                "sources": write_identifier("{}", row.get(columns.get("sources", "source"))),
                "neighbours": row[columns["neighbours"]] if "neighbours" in columns else (places or [None])[0],
            }
    if "neighbours" in columns and not any(record["sources"] for record in records.values()):
        raise InvalidInputError("sources is missing: neighbours are the numbers of the texts in their sources")
    return records


def _read_blocks(paths: Paths, columns: Sequence[str], more: Sequence[str] = ()) -> Iterator[tuple[Rows, Any]]:
    for rows in cut_into_rows(list_files(paths), _BLOCK_ROWS, columns):
        yield rows, read_rows(rows, [*columns, *more])
