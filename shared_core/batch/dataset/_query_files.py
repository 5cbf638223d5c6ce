"""Parquet files of queries, cut into blocks that depend only on the files and on the length of a block."""

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
_BATCH_ROWS = 4096


@dataclass(frozen=True)
class Block:
    """Rows ``start`` to ``start + rows`` of a file. ``first_row`` counts over all files."""

    number: int
    file: str
    start: int
    rows: int
    first_row: int


def list_files(paths: Paths) -> list[Path]:
    """The files in their order; of a folder those in it, by name."""
    files: list[Path] = []
    for path in (Path(one).absolute() for one in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)):
        # As readers of Parquet do, skip names that begin with an underscore or a dot.
        inside = sorted(f for f in path.glob("*.parquet") if f.name[0] not in "._") if path.is_dir() else [path]
        if not inside:
            raise InvalidInputError(f"the folder {path} contains no .parquet file (folders inside it are not searched)")
        files += inside
    if not files:
        raise InvalidInputError("queries: the list of files is empty")
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise InvalidInputError(f"there is no file {missing[0]}")
    return files


def open_parquet(file: str | Path) -> Any:
    """The file, opened for reading."""
    try:
        return pq.ParquetFile(file, memory_map=True)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(f"{file} is not a Parquet file, or is truncated: {error}") from None


def cut_into_blocks(files: Sequence[Path], block_rows: int) -> list[Block]:
    """The blocks of these files, in order; a block never spans two files. No rows give one empty block."""
    blocks: list[Block] = []
    first_row = 0
    for file in files:
        with open_parquet(file) as parquet:
            rows = parquet.metadata.num_rows
        for start in range(0, rows, block_rows):
            blocks.append(Block(len(blocks), str(file), start, min(block_rows, rows - start), first_row + start))
        first_row += rows
    # The part of an empty block has the columns of any other part.
    return blocks or [Block(0, str(files[0]), 0, 0, 0)]


def read_block(block: Block, columns: list[str]) -> Any:
    """The block as a pyarrow Table of these columns."""
    try:
        return _read(block, columns)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInputError(
            f"{block.file}: rows {block.start} to {block.start + block.rows - 1} cannot be read: {error}"
        ) from None


def _read(block: Block, columns: list[str]) -> Any:
    end = block.start + block.rows
    with open_parquet(block.file) as parquet:
        groups, skipped, row = [], 0, 0
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            if row + rows <= block.start:
                skipped += rows
            elif row < end:
                groups.append(group)
            row += rows
        # A row group may be long: the rows before the block are decoded in batches and dropped.
        pieces, row = [], skipped
        for piece in parquet.iter_batches(batch_size=_BATCH_ROWS, row_groups=groups, columns=columns):
            low, high = max(block.start - row, 0), min(end - row, len(piece))
            if low < high:
                pieces.append(piece.slice(low, high - low))
            row += len(piece)
            if row >= end:
                break
        schema = parquet.schema_arrow
        return pa.Table.from_batches(pieces, pa.schema([schema.field(name) for name in columns])).combine_chunks()
