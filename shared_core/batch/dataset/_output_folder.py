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

from ..._argument_names import argument_name
from ..._files import hold_lock, write_atomically
from ..._parsing import parse_object
from ...errors import InvalidInputError, InvalidParameterError
from ._row_ranges import PARQUET_ERRORS, RowRange

# Readers of Parquet take a folder for one table and skip names that begin with an underscore or a dot.
SETTINGS = "_settings.json"
STAGED = "_queries"
_OWN = (STAGED, "_lock")
# A message shows at most _SHOWN of the settings that differ.
_SHOWN = 5


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


@dataclass(frozen=True)
class OutputFolder:
    """The parts of one run. A part that exists is complete, because it is written under another name and renamed."""

    path: Path

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Make the folder, and keep other runs out of it; InvalidParameterError if there is one, or other content."""
        if self.path.exists() and not self.path.is_dir():
            raise InvalidParameterError(
                f"{argument_name('out')} must be a folder (Parquet readers take it as one table): {self.path}"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        with hold_lock(self.path):
            names = sorted(file.name for file in self.path.iterdir())
            others = [name for name in names if name not in _OWN and not name.endswith(".tmp")]
            if others and SETTINGS not in names:
                raise InvalidParameterError(
                    f"{self.path} contains {others[0]} but no {SETTINGS}, so another program made it; name an empty "
                    "folder"
                )
            yield

    def open(self, settings: dict[str, Any]) -> None:
        """Write the settings, or check that those of earlier parts are the same; the error names what differs."""
        file = self.path / SETTINGS
        if not file.is_file():
            write_atomically(file, json.dumps(settings, indent=1))
            return
        try:
            known = dict(_leaves(parse_object(file.read_bytes())))
        except InvalidInputError as error:
            raise InvalidParameterError(f"{file} is damaged: {error}; name another folder") from None
        new = dict(_leaves(json.loads(json.dumps(settings))))
        pairs = {name: (known.get(name, "absent"), new.get(name, "absent")) for name in new | known}
        differing = [f"{name}: {old!r} there, {now!r} now" for name, (old, now) in pairs.items() if old != now]
        if differing:
            more = [f"and {len(differing) - _SHOWN} more"] if len(differing) > _SHOWN else []
            raise InvalidParameterError(
                f"{self.path} has parts that were made with other settings "
                f"({'; '.join(differing[:_SHOWN] + more)}); name another folder"
            )

    def part(self, number: int) -> Path:
        """The path of a block's part."""
        return self.path / f"part-{number:05d}.parquet"

    def read_errors(self, rows: RowRange) -> Any:
        """The errors of a part; None if it is missing or incomplete: a copy or a full disk can have truncated it."""
        try:
            column = pq.read_table(self.part(rows.number), columns=["error"], partitioning=None)["error"]
            column.validate(full=True)
        # A KeyError says that the column is missing.
        except (*PARQUET_ERRORS, KeyError):
            return None
        return column if len(column) == rows.count else None

    def write(self, number: int, table: Any) -> None:
        """Write a block's part. A second call for the same block has no effect."""
        content = pa.BufferOutputStream()
        pq.write_table(table, content)
        write_atomically(self.part(number), content.getvalue().to_pybytes())

    def summarise(self, plan: list[RowRange], resumed: int) -> Summary:
        """Count the rows and errors of all parts, and remove what killed runs and workers left behind."""
        rows = errors = 0
        first: str | None = None
        for column in map(self.read_errors, plan):
            rows += len(column)
            errors += len(column) - column.null_count
            if first is None and column.null_count < len(column):
                first = column.drop_null()[0].as_py()
        for file in self.path.glob(".*.tmp"):
            if file.is_file():
                file.unlink(missing_ok=True)
        return Summary(self.path, rows, errors, len(plan), resumed, first)


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values inside a JSON value, each with its name: ``selector.MMR.lambda_mult``."""
    if isinstance(value, (dict, list)) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, value
