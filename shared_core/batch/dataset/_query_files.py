"""Parquet files of queries, cut into blocks that depend on nothing but the files and the length of a block."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import InvalidInputError

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_READ_AT_ONCE = 4096


@dataclass(frozen=True)
class Block:
    """Rows ``start`` to ``start + rows`` of a file; ``first_row`` counts over all files."""

    number: int
    file: str
    start: int
    rows: int
    first_row: int


def files_of(paths: Paths) -> list[Path]:
    """The files meant: one, several in their order, or those of a folder by name.

    Raises
    ------
    InvalidInputError
        There is none.
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    files: list[Path] = []
    for path in (Path(one).absolute() for one in several):
        # As readers of Parquet do: what begins with _ or . is none of the data.
        inside = sorted(f for f in path.glob("*.parquet") if f.name[0] not in "._") if path.is_dir() else [path]
        if not inside:
            raise InvalidInputError(
                f"there is no .parquet file in the folder {path} itself (folders in it do not count)"
            )
        files += inside
    missing = [str(file) for file in files if not file.is_file()]
    if missing or not files:
        raise InvalidInputError(f"there is no file {missing[0]}" if missing else "no file of queries was given")
    return files


def opened(file: str | Path) -> Any:
    """The file for reading.

    Raises
    ------
    InvalidInputError
        It is no Parquet file.
    """
    try:
        return pq.ParquetFile(file, memory_map=True)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(f"{file} is no Parquet file, or not all of it: {error}") from None


def blocks_of(files: Sequence[Path], block_rows: int) -> list[Block]:
    """The blocks of these files, in order; none reaches over the end of a file.

    Of no rows at all there is an empty block, for a part that says which columns there would be.
    """
    blocks: list[Block] = []
    first_row = 0
    for file in files:
        with opened(file) as parquet:
            rows = parquet.metadata.num_rows
        for start in range(0, rows, block_rows):
            blocks.append(Block(len(blocks), str(file), start, min(block_rows, rows - start), first_row + start))
        first_row += rows
    return blocks or [Block(0, str(files[0]), 0, 0, 0)]


def read_block(block: Block, columns: list[str]) -> Any:
    """The block as a pyarrow Table of these columns.

    Of a long row group what comes before the block is decoded piece by piece and dropped, never held.

    Raises
    ------
    InvalidInputError
        The file is damaged there.
    """
    try:
        return _read(block, columns)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInputError(
            f"{block.file}: rows {block.start} to {block.start + block.rows - 1} cannot be read: {error}"
        ) from None


def first_rows(file: str | Path, column: str, rows: int) -> Any:
    """Up to so many rows of a column from the beginning of a file, as a pyarrow ChunkedArray."""
    with opened(file) as parquet:
        rows = min(rows, parquet.metadata.num_rows)
    return read_block(Block(0, str(file), 0, rows, 0), [column])[column]


def _read(block: Block, columns: list[str]) -> Any:
    end = block.start + block.rows
    with opened(block.file) as parquet:
        groups, before, at = [], 0, 0
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            if at + rows <= block.start:
                before += rows
            elif at < end:
                groups.append(group)
            at += rows
        pieces, at = [], before
        for piece in parquet.iter_batches(batch_size=_READ_AT_ONCE, row_groups=groups, columns=columns):
            low, high = max(block.start - at, 0), min(end - at, len(piece))
            if low < high:
                pieces.append(piece.slice(low, high - low))
            at += len(piece)
            if at >= end:
                break
        schema = parquet.schema_arrow
        return pa.Table.from_batches(pieces, pa.schema([schema.field(name) for name in columns])).combine_chunks()
