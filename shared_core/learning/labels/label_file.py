"""Labels kept in a file of JSON lines while they are made, so that a crash costs the item in hand at most."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from ...errors import InvalidInputError, InvalidParameterError

FORMAT = "setselect labels"
VERSION = 1

_HEADER_START = b'{"format": "setselect labels", "version": '
_LINE_START = b'{"query": '

Scored = list[tuple[tuple[int, ...], float]]
"""The subsets of one item, rows of the pool, each with its score."""


class LabelFile:
    """An append-only file: a header with the settings, then a line for each labelled item.

    To open it reads and checks, and changes nothing. ``with`` begins the file if there is none, takes out a last
    line that a crash tore, and closes the file at the end.

    Parameters
    ----------
    path : path
        The file, which need not exist; its folder must.
    settings : mapping
        All that makes one run's labels differ from another's, as JSON has it. ``k`` and ``subsets`` are the size of
        the largest subset and their number (None: any).
    pool : int
        How many items there are; rows are 0..pool - 1.

    Attributes
    ----------
    known : dict of int to list of (tuple of int, float)
        The subsets and scores of the items in the file, by the item's row.

    Raises
    ------
    InvalidParameterError
        The file was begun with other settings, or by a later version; the message says which.
    InvalidInputError
        A line is damaged or foreign; the message names it.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> settings = {"k": 2, "subsets": None, "seed": 0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with LabelFile(folder + "/labels.jsonl", settings, 9) as file:
    ...         file.append(3, [((7, 1), 0.25), ((0, 5), 0.5)])
    ...     LabelFile(folder + "/labels.jsonl", settings, 9).known
    {3: [((7, 1), 0.25), ((0, 5), 0.5)]}
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any], pool: int) -> None:
        self.path = Path(path)
        self.known: dict[int, Scored] = {}
        self._settings = dict(settings)
        self._pool = pool
        self._file: BinaryIO | None = None
        self._whole = self._read()

    def append(self, query: int, scored: Sequence[tuple[Sequence[int], float]]) -> None:
        """Add an item's subsets and scores, and see that they are on the disk.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        subsets, scores = [list(subset) for subset, _ in scored], [score for _, score in scored]
        self._write({"query": query, "subsets": subsets, "scores": scores})

    def __enter__(self) -> LabelFile:
        self._file = self.path.open("ab")
        # Only now: a run that is refused leaves the file as it was.
        if self._file.tell() > self._whole:
            self._file.truncate(self._whole)
        if not self._whole:
            self._write({"format": FORMAT, "version": VERSION, "settings": self._settings})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, content: Mapping[str, Any]) -> None:
        if self._file is None:
            raise ValueError(f"{self.path} is not open: use it in a with statement")
        self._file.write(json.dumps(content).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self) -> int:
        """Fill ``known``; how many bytes of the file are whole lines."""
        if not self.path.exists():
            return 0
        content = self.path.read_bytes()
        *lines, torn = content.split(b"\n")
        # Only what begins as our lines do is ours to take out.
        start = _LINE_START if lines else _HEADER_START
        if lines:
            self._check_header(lines[0])
        for place, line in enumerate(lines[1:], 2):
            query, scored = self._parse(line, place)
            if query in self.known:
                raise self._refused(
                    place, f"labels item {query} a second time, as two runs at once would; take one out"
                )
            self.known[query] = scored
        if torn[: len(start)] != start[: len(torn)]:
            raise self._refused(len(lines) + 1, "is no label; the file is of another kind, or damaged. Name another")
        return len(content) - len(torn)

    def _check_header(self, line: bytes) -> None:
        try:
            header = json.loads(line)
            kind, version, settings = header["format"], header["version"], header["settings"]
        except (ValueError, TypeError, KeyError, RecursionError):
            kind, version, settings = None, None, None
        if kind != FORMAT or type(version) is not int or not isinstance(settings, dict):
            raise self._refused(1, "is not the header of a file of labels; name another file")
        if version != VERSION:
            raise InvalidParameterError(
                f"{self.path}: the labels have format version {version}, this setselect reads {VERSION}; "
                "use the setselect that wrote them, or name another file"
            )
        differing = [
            f"{name} ({settings.get(name)!r} there, {self._settings.get(name)!r} here)"
            for name in {**self._settings, **settings}
            if settings.get(name) != self._settings.get(name)
        ]
        if differing:
            raise InvalidParameterError(
                f"{self.path}: the labels were made otherwise: {', '.join(differing)}; "
                "go on with what they were made with, or name another file"
            )

    def _parse(self, line: bytes, place: int) -> tuple[int, Scored]:
        try:
            entry = json.loads(line)
            query, subsets, scores = entry["query"], entry["subsets"], entry["scores"]
            finite = [type(score) in (int, float) and math.isfinite(score) for score in scores]
            sound = len(subsets) == len(scores) > 0 and all(finite) and self._is_row(query)
            sound = sound and all(self._is_subset(subset, query) for subset in subsets)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            sound = False
        if not sound or self._settings.get("subsets") not in (None, len(subsets)):
            raise self._refused(
                place, f"holds no labels of {self._pool} items; the file is of another kind, or damaged. Name another"
            )
        return query, [(tuple(subset), float(score)) for subset, score in zip(subsets, scores, strict=True)]

    def _is_row(self, value: Any) -> bool:
        return type(value) is int and 0 <= value < self._pool

    def _is_subset(self, subset: Any, query: int) -> bool:
        right_size = 0 < len(subset) == len(set(subset)) <= self._settings["k"]
        return right_size and query not in subset and all(map(self._is_row, subset))

    def _refused(self, place: int, why: str) -> InvalidInputError:
        return InvalidInputError(f"{self.path}: line {place} {why}")


def name_of(thing: Any) -> str:
    """What tells a feedback, or a way to draw, from another: the same when the program is started again.

    Its ``fingerprint`` (a string, or a method that gives one), else the name of a function or class, else the
    ``repr`` without addresses.

    Examples
    --------
    >>> name_of("random"), name_of(name_of)
    ('random', 'shared_core.learning.labels.label_file.name_of')
    """
    if isinstance(thing, str):
        return thing
    own = getattr(thing, "fingerprint", None)
    if own is not None:
        return str(own() if callable(own) else own)
    if hasattr(thing, "__qualname__"):
        return f"{thing.__module__}.{thing.__qualname__}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(thing))
