"""A folder of Parquet parts, one for each block of queries, that a broken-off run goes on with."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import InvalidParameterError

# Readers of Parquet take a folder for a data set and pass over what begins with _ or a dot.
SETTINGS = "_settings.json"
STAGED = "_queries"


@dataclass(frozen=True)
class Summary:
    """What a run wrote.

    Attributes
    ----------
    out : Path
        The folder.
    rows, errors : int
        Rows of all parts, and how many of them have an error in place of a set.
    parts, resumed : int
        Parts there are, and how many of them were there already.
    first_error : str or None
    """

    out: Path
    rows: int
    errors: int
    parts: int
    resumed: int
    first_error: str | None


class OutputFolder:
    """The parts of one run. Where a part's file is, it is whole: it is written aside and renamed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def refuse_others(self) -> None:
        """Nothing is written among what somebody else put there.

        Raises
        ------
        InvalidParameterError
            The path is a file, or a folder that was not made here.
        """
        if self.path.exists() and not self.path.is_dir():
            raise InvalidParameterError(f"out must be a folder (Parquet readers take it as one table): {self.path}")
        if not self.path.is_dir() or (self.path / SETTINGS).is_file():
            return
        there = sorted(f.name for f in self.path.iterdir() if f.name != STAGED and not f.name.endswith(".tmp"))
        if there:
            raise InvalidParameterError(
                f"{self.path} holds {there[0]} and no {SETTINGS}: it was not made here; take an empty folder"
            )

    def open(self, settings: dict[str, Any]) -> None:
        """Make the folder, or go on with it.

        Raises
        ------
        InvalidParameterError
            It holds something else, or parts made with other settings; the message names what differs.
        """
        self.refuse_others()
        self.path.mkdir(parents=True, exist_ok=True)
        manifest = self.path / SETTINGS
        if not manifest.is_file():
            _write_whole(manifest, json.dumps(settings, indent=1).encode())
            return
        try:
            known = dict(json.loads(manifest.read_bytes()))
        except (ValueError, TypeError) as error:
            raise InvalidParameterError(f"{manifest} is damaged ({error}); take another folder") from None
        settings = json.loads(json.dumps(settings))
        differing = [name for name in {**known, **settings} if known.get(name) != settings.get(name)]
        if differing:
            listed = "; ".join(f"{name}: {known.get(name)} there, {settings.get(name)} now" for name in differing)
            raise InvalidParameterError(f"{self.path} was begun with other settings ({listed}); take another folder")

    def part(self, number: int) -> Path:
        """Where a block's part is, or will be."""
        return self.path / f"part-{number:05d}.parquet"

    def has(self, number: int, rows: int) -> bool:
        """Whether a block's part is there with all its rows; one that a copy or a full disk cut off is made again."""
        try:
            return int(pq.read_metadata(self.part(number)).num_rows) == rows
        except (pa.ArrowInvalid, FileNotFoundError):
            return False

    def write(self, number: int, table: Any) -> None:
        """Write a block's part; to write it twice leaves what one writing leaves."""
        aside = self.path / f".part-{number:05d}.{uuid.uuid4().hex}.tmp"
        pq.write_table(table, aside)
        try:
            _sync(aside)
            aside.replace(self.part(number))
        except FileNotFoundError:
            # Another run into the same folder had all parts, this one too, and cleared up.
            if not self.has(number, table.num_rows):
                raise

    def tried(self, number: int) -> int:
        """How often a block was begun before without coming to an end; counts this time in for the next."""
        with self._tries(number).open("ab") as file:
            before = file.tell()
            file.write(b".")
        return before

    def forget_tries(self) -> None:
        """Begin to count anew."""
        for left in self.path.glob(".part-*.tries"):
            left.unlink(missing_ok=True)

    def _tries(self, number: int) -> Path:
        return self.path / f".part-{number:05d}.tries"

    def summary(self, numbers: range, resumed: int) -> Summary:
        """Count the rows and errors of all parts, and clear away what broken-off runs left."""
        rows = errors = 0
        first: str | None = None
        for number in numbers:
            column = pq.read_table(self.part(number), columns=["error"], partitioning=None)["error"]
            rows += len(column)
            errors += len(column) - column.null_count
            if first is None and column.null_count < len(column):
                first = column.drop_null()[0].as_py()
        self.forget_tries()
        for left in self.path.glob(".part-*.tmp"):
            left.unlink(missing_ok=True)
        return Summary(self.path, rows, errors, len(numbers), resumed, first)


def _write_whole(path: Path, content: bytes) -> None:
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    aside.write_bytes(content)
    _sync(aside)
    aside.replace(path)


def _sync(path: Path) -> None:
    # A name must not stand for content that a power cut took.
    with path.open("rb") as file:
        os.fsync(file.fileno())
