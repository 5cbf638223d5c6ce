"""A folder of Parquet parts, one for each block of queries; a run that was stopped resumes from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..._files import hold_lock, remove_leftovers, write_atomically
from ..._validation import printable, quoted
from ...errors import InvalidInputError, InvalidParameterError
from ._queries import PARQUET_ERRORS

# Readers of Parquet take a folder for one table and skip names that begin with an underscore or a dot.
SETTINGS = "_settings.json"
STAGED = "_queries"
_OWN = (STAGED, "_lock")
# A message shows at most _SHOWN of the settings that differ, and _ABSENT for a setting that is missing.
_SHOWN = 5
_ABSENT = "absent"


@dataclass(frozen=True)
class Summary:
    """The result of a run.

    Attributes
    ----------
    out : Path
        The folder.
    rows, errors : int
        The number of rows in all parts, and how many of them have an error in place of a selection.
    parts, resumed : int
        The number of parts, and how many of them existed before this run.
    first_error : str or None
        The error of the first row that has one.

    Examples
    --------
    >>> Summary(Path("sets"), rows=10, errors=1, parts=2, resumed=0, first_error="the vector is null").errors
    1
    """

    out: Path
    rows: int
    errors: int
    parts: int
    resumed: int
    first_error: str | None


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values inside a JSON value, each with its name: ``selector.MMR.lambda_mult``."""
    if not name and not isinstance(value, dict):
        raise ValueError("it contains no settings")
    if isinstance(value, (dict, list)) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _describe_difference(name: str, known: dict[str, Any], new: dict[str, Any]) -> str:
    there, now = (quoted(settings.get(name, _ABSENT)) for settings in (known, new))
    return f"{printable(name)[:80]}: {there} there, {now} now"


class OutputFolder:
    """The parts of one run. A part that exists is complete, because it is written under another name and renamed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Make the folder, and keep other runs out of it; InvalidParameterError if there is one, or other content."""
        self._check_owner()
        self.path.mkdir(parents=True, exist_ok=True)
        with hold_lock(self.path):
            # Another program, or a run of another version without locks, may have written meanwhile.
            self._check_owner()
            yield

    def _check_owner(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise InvalidParameterError(
                f"out must be a folder (Parquet readers take it as one table): {printable(self.path)}"
            )
        if not self.path.is_dir() or (self.path / SETTINGS).is_file():
            return
        others = sorted(f.name for f in self.path.iterdir() if f.name not in _OWN and not f.name.endswith(".tmp"))
        if others:
            raise InvalidParameterError(
                f"{printable(self.path)} contains {printable(others[0])} but no {SETTINGS}, so another program made "
                "it; name an empty folder"
            )

    def open(self, settings: dict[str, Any]) -> None:
        """Write the settings, or check that those of earlier parts are the same; the error names what differs."""
        file = self.path / SETTINGS
        remove_leftovers(file)
        if not file.is_file():
            write_atomically(file, json.dumps(settings, indent=1))
            return
        try:
            known = dict(_leaves(json.loads(file.read_bytes())))
        except (ValueError, RecursionError) as error:
            raise InvalidParameterError(
                f"{printable(file)} is damaged: {quoted(str(error))}; name another folder"
            ) from None
        new = dict(_leaves(json.loads(json.dumps(settings))))
        differing = [name for name in new | known if known.get(name, _ABSENT) != new.get(name, _ABSENT)]
        if differing:
            listed = [_describe_difference(name, known, new) for name in differing[:_SHOWN]]
            more = [f"and {len(differing) - _SHOWN} more"] if len(differing) > _SHOWN else []
            raise InvalidParameterError(
                f"{printable(self.path)} has parts that were made with other settings ({'; '.join(listed + more)}); "
                "name another folder"
            )

    def part(self, number: int) -> Path:
        """The path of a block's part."""
        return self.path / f"part-{number:05d}.parquet"

    def has(self, number: int, rows: int) -> bool:
        """Whether a block's part exists with all its rows; a copy or a full disk can have truncated it."""
        try:
            return int(pq.read_metadata(self.part(number)).num_rows) == rows
        except PARQUET_ERRORS:
            return False

    def write(self, number: int, table: Any) -> None:
        """Write a block's part. A second call for the same block has no effect."""
        content = pa.BufferOutputStream()
        pq.write_table(table, content)
        try:
            write_atomically(self.part(number), content.getvalue().to_pybytes())
        except FileNotFoundError:
            # A Ray actor may outlive its run. The next run then writes this part and removes temporary files.
            if not self.has(number, table.num_rows):
                raise

    def count_try(self, number: int) -> int:
        """The number of earlier starts of a block. This start counts in the next call."""
        with (self.path / f".part-{number:05d}.tries").open("ab") as file:
            before = file.tell()
            file.write(b".")
        return before

    def forget_tries(self) -> None:
        """Count from 0 again."""
        self._remove(".part-*.tries")

    def summarise(self, numbers: range, resumed: int) -> Summary:
        """Count the rows and errors of all parts, and remove temporary files of runs that were stopped."""
        rows = errors = 0
        first: str | None = None
        for number in numbers:
            column = self._read_errors(number)
            rows += len(column)
            errors += len(column) - column.null_count
            if first is None and column.null_count < len(column):
                first = column.drop_null()[0].as_py()
        self.forget_tries()
        self._remove(".part-*.tmp")
        return Summary(self.path, rows, errors, len(numbers), resumed, first)

    def _read_errors(self, number: int) -> Any:
        part = self.part(number)
        try:
            return pq.read_table(part, columns=["error"], partitioning=None)["error"]
        # A KeyError says that the column is missing.
        except (*PARQUET_ERRORS, KeyError) as error:
            raise InvalidInputError(
                f"{printable(part)} is damaged: {quoted(str(error))}; delete it, and repeat the same call"
            ) from None

    def _remove(self, pattern: str) -> None:
        for file in self.path.glob(pattern):
            file.unlink(missing_ok=True)
