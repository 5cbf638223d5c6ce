"""Parquet files, cut into ranges of rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..._validation import quoted
from ...errors import InvalidInputError

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_BATCH_ROWS = 4096
# pyarrow raises these where a file is damaged or cannot be read.
PARQUET_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError)


@dataclass(frozen=True)
class RowRange:
    """The queries of one part: ``count`` rows of a file, from ``start`` on. ``first_row`` counts over all files."""

    number: int
    file: str
    start: int
    count: int
    first_row: int

    def __str__(self) -> str:
        return f"{self.file}: rows {self.start} to {self.start + self.count - 1}"


def list_files(paths: Paths) -> list[Path]:
    """The files in the given order; a folder stands for the .parquet files in it, sorted by name."""
    files: list[Path] = []
    for path in map(Path, [paths] if isinstance(paths, (str, os.PathLike)) else paths):
        path = path.absolute()
        # As readers of Parquet do, skip names that begin with an underscore or a dot.
        inside = sorted(f for f in path.glob("*.parquet") if f.name[0] not in "._") if path.is_dir() else [path]
        if not inside:
            raise InvalidInputError(f"the folder {path} contains no .parquet file (folders inside it are not searched)")
        files += inside
    if not files:
        raise InvalidInputError("the list of files is empty")
    for file in files:
        if not file.is_file():
            raise InvalidInputError(f"there is no file {file}")
    return files


def open_parquet(file: str | Path) -> Any:
    """The file, opened for reading."""
    try:
        return pq.ParquetFile(file, memory_map=True)
    except PARQUET_ERRORS as error:
        raise InvalidInputError(f"{file} is not a Parquet file, or is damaged: {quoted(str(error))}") from None


def cut_into_ranges(files: Sequence[Path], block_rows: int) -> list[RowRange]:
    """The rows of these files in order, at most ``block_rows`` of one file together. No rows give one empty range."""
    ranges: list[RowRange] = []
    first_row = 0
    for file in files:
        with open_parquet(file) as parquet:
            rows = parquet.metadata.num_rows
        for start in range(0, rows, block_rows):
            ranges.append(RowRange(len(ranges), str(file), start, min(block_rows, rows - start), first_row + start))
        first_row += rows
    # The part of an empty range has the columns of any other part.
    return ranges or [RowRange(0, str(files[0]), 0, 0, 0)]


def read_rows(rows: RowRange, columns: list[str]) -> Any:
    """The rows as a pyarrow Table of these columns."""
    try:
        with open_parquet(rows.file) as parquet:
            table = _read(parquet, rows.start, rows.start + rows.count, columns)
        # Text that is not UTF-8 would fail where it is used.
        table.validate(full=True)
    except PARQUET_ERRORS as error:
        raise InvalidInputError(f"{rows} cannot be read: {quoted(str(error))}") from None
    return table


def _read(parquet: Any, start: int, end: int, columns: list[str]) -> Any:
    sizes = [parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups)]
    firsts = [0, *accumulate(sizes)]
    groups = [group for group in range(len(sizes)) if firsts[group] < end and firsts[group + 1] > start]
    # A row group may be long: its rows before ``start`` are decoded in batches and dropped.
    pieces, row = [], firsts[groups[0]] if groups else 0
    for piece in parquet.iter_batches(batch_size=_BATCH_ROWS, row_groups=groups, columns=columns):
        low, high = max(start - row, 0), min(end - row, len(piece))
        if low < high:
            pieces.append(piece.slice(low, high - low))
        row += len(piece)
        if row >= end:
            break
    schema = parquet.schema_arrow
    return pa.Table.from_batches(pieces, pa.schema([schema.field(name) for name in columns])).combine_chunks()
