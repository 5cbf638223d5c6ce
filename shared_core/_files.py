"""Files that survive a crash: whole files replaced in one step, journals of JSON lines, and locks for one writer."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import secrets
import socket
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

from ._parsing import parse_json
from .errors import InvalidInputError, InvalidParameterError

# Of the lines that retrieval/events.py writes to the log setselect.shadow, and evaluation/shadow_log.py reads.
SHADOW_LOG_VERSION = 1


def write_atomically(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write bytes, or text as UTF-8, in one step: a kill or a power cut leaves the old content or the new, whole."""
    target = Path(path)
    aside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with named_errors(target), aside.open("wb") as file:
            _write(file, data.encode() if isinstance(data, str) else data)
        # The content is on the disk before the file gets its name: a power cut must not leave an empty file.
        aside.replace(target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove the half-written files that killed runs of :func:`write_atomically` left for this path."""
    target = Path(path)
    for left in target.parent.glob(f".{glob.escape(target.name)}.{'[0-9a-f]' * 16}.tmp"):
        left.unlink(missing_ok=True)


@contextlib.contextmanager
def named_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let the OSErrors of the block name ``path``: that of a full disk names no file."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


@contextlib.contextmanager
def hold_lock(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Keep ``<path>.lock``, or ``_lock`` in a folder, so that one run at a time writes ``path``; None: no lock.

    The operating system frees the lock when its process ends. The InvalidParameterError of a second run names it.
    """
    if path is None:
        yield
        return
    import filelock

    folder = Path(path).is_dir()
    lock = Path(path, "_lock") if folder else Path(f"{os.fspath(path)}.lock")
    # filelock would create a missing folder.
    lock.parent.stat()
    try:
        # The owner writes its name just after it has got the lock, so the others wait before they read it.
        with named_errors(lock):
            held = filelock.FileLock(lock, on_acquired=_write_owner).acquire(timeout=0.5)
    except filelock.Timeout:
        raise InvalidParameterError(
            f"{path} is in use by {_read_owner(lock)}: wait until it ends, or name another "
            f"{'folder' if folder else 'file'}"
        ) from None
    with held:
        try:
            yield
        finally:
            # Another run that waits for this file notices that it is gone, and creates a new one. Windows refuses to
            # remove an open file; there filelock removes it.
            with contextlib.suppress(PermissionError):
                lock.unlink(missing_ok=True)


class Journal:
    """An append-only file of JSON lines; a crash loses at most the line that is being written.

    A last line without a line break is torn: :meth:`read` leaves it out and :meth:`begin` removes it, provided that it
    starts as the lines of this journal do. Each record's line starts with ``start``, such as ``'{"key": "'``. Messages
    call a record ``record``, such as ``"a score"``. ``header`` is the first line of a new file.
    """

    def __init__(
        self, path: str | os.PathLike[str], start: str, record: str, header: Mapping[str, Any] | None = None
    ) -> None:
        self.path = Path(path)
        self._start = start.encode()
        self._record = record
        self._header = b"" if header is None else _line(header)
        self._size = self._whole = -1

    def read(self) -> Iterator[tuple[int, Any]]:
        """The number and the value of each whole line, the header's too; None where a line is not JSON.

        An InvalidInputError is raised if the file ends with a part of a line that this journal did not write.
        """
        content = self.path.read_bytes() if self.path.exists() else b""
        *lines, torn = content.split(b"\n")
        for number, line in enumerate(lines, 1):
            value = None
            with contextlib.suppress(InvalidInputError):
                value = parse_json(line)
            yield number, value
        start = self._start if lines or not self._header else self._header
        if torn[: len(start)] != start[: len(torn)]:
            raise self.error(len(lines) + 1)
        self._size, self._whole = len(content), len(content) - len(torn)

    def begin(self) -> None:
        """Create the file, or remove the torn last line that :meth:`read` found, so that records can be appended."""
        with named_errors(self.path), self.path.open("ab") as file:
            size = file.tell()
            # Lines that another process appended since the file was read are kept.
            if size == self._size:
                size = file.truncate(self._whole)
            if self._header and not size:
                _write(file, self._header)
        if not size:
            _sync_folder(self.path.parent)

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add a line for each record, in one write, and wait until the lines are on the disk."""
        lines = b"".join(map(_line, records))
        if lines:
            # Without a buffer, each call is one write, so the lines of two processes do not mix.
            with named_errors(self.path), self.path.open("ab", buffering=0) as file:
                _write(file, lines)

    def error(self, number: int, problem: str = "") -> InvalidInputError:
        """The error for a line with this ``problem``; by default, that the line is no record of this journal."""
        problem = problem or f"is not {self._record}: the file is damaged or of another kind; name another file"
        return InvalidInputError(f"{self.path}: line {number} {problem}")


def _write_owner(descriptor: int) -> None:
    # A lock file that a killed process left behind is used again.
    os.ftruncate(descriptor, 0)
    now = datetime.now().isoformat(" ", "seconds")
    os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()} since {now}".encode())


def _read_owner(lock: Path) -> str:
    try:
        owner = lock.read_text(encoding="utf-8", errors="replace")
    # Windows refuses to read a locked file.
    except OSError:
        owner = ""
    return owner or "another process"


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def _write(file: BinaryIO | FileIO, data: bytes) -> None:
    """Write all of ``data`` and wait until it is on the disk."""
    while data:
        data = data[file.write(data) :]
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Wait until the names of new files in ``folder`` are on the disk, if the system and the file system can do it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
