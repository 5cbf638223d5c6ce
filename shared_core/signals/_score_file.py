"""Scores kept in a file of JSON lines while they are computed, so that a crash costs a batch at most."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

from ..errors import InvalidInputError

_LINE_START = b'{"key": "'


def read_scores(path: str | os.PathLike[str]) -> dict[str, float]:
    """The scores in a file, by key; the file is begun if there is none.

    A last line that a crash tore is taken out of the file, so that what is added next starts a line of its own.

    Raises
    ------
    InvalidInputError
        The file holds something else; the message names the line. The file is left as it is.
    OSError
        The file can be neither read nor begun.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     append_scores(folder + "/scores.jsonl", {"a": -0.5})
    ...     read_scores(folder + "/scores.jsonl")
    {'a': -0.5}
    """
    file = Path(path)
    if not file.exists():
        # A folder that is not there must not come to light after hours of computing.
        file.touch()
    *lines, torn = file.read_bytes().split(b"\n")
    known = dict(_score(line, file, place) for place, line in enumerate(lines, 1))
    # Only what begins as our lines do is ours to take out.
    if torn[: len(_LINE_START)] != _LINE_START[: len(torn)]:
        raise _foreign(file, len(lines) + 1)
    if torn:
        os.truncate(file, file.stat().st_size - len(torn))
    return known


def append_scores(path: str | os.PathLike[str], scores: Mapping[str, float]) -> None:
    """Add scores to a file, and see that they are on the disk.

    Raises
    ------
    OSError
        The file cannot be written.

    Examples
    --------
    >>> append_scores(os.devnull, {})
    """
    lines = "".join(json.dumps({"key": key, "log_probability": value}) + "\n" for key, value in scores.items())
    with Path(path).open("ab") as file:
        file.write(lines.encode())
        file.flush()
        if lines:
            os.fsync(file.fileno())


def _score(line: bytes, file: Path, place: int) -> tuple[str, float]:
    try:
        entry = json.loads(line)
        key, value = entry["key"], float(entry["log_probability"])
    except (ValueError, TypeError, KeyError):
        raise _foreign(file, place) from None
    if not isinstance(key, str) or not math.isfinite(value):
        raise _foreign(file, place)
    return key, value


def _foreign(file: Path, place: int) -> InvalidInputError:
    return InvalidInputError(
        f"{file}: line {place} holds no score, so this is another kind of file, or a damaged one; name another"
    )
