"""Files that survive a crash: whole files replaced in one step, and locks for one writer."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import InvalidParameterError


def write_atomically(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write bytes, or text as UTF-8, in one step: a kill or a power cut leaves the old content or the new, whole."""
    target = Path(path)
    aside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with named_errors(target), aside.open("wb") as file:
            write_through(file, data.encode() if isinstance(data, str) else data)
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
    """Keep ``<path>.lock``, so that one run at a time writes ``path``; None: no lock. It ends with its process."""
    if path is None:
        yield
        return
    import filelock

    lock = Path(f"{os.fspath(path)}.lock")
    # filelock would create a missing folder.
    lock.parent.stat()
    try:
        held = filelock.FileLock(lock).acquire(timeout=0)
    except filelock.Timeout:
        raise InvalidParameterError(
            f"{path} is in use by another run: wait until it ends, or name another file"
        ) from None
    with held:
        try:
            yield
        finally:
            # Another run that waits for this file notices that it is gone, and creates a new one. Windows refuses to
            # remove an open file; there filelock removes it.
            with contextlib.suppress(PermissionError):
                lock.unlink(missing_ok=True)


def write_through(file: BinaryIO, data: bytes) -> None:
    """Write all of ``data`` and wait until it is on the disk."""
    file.write(data)
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
