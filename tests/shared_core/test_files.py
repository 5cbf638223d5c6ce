from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from shared_core import InvalidParameterError
from shared_core._files import hold_lock, remove_leftovers, write_atomically

ROOT = Path(__file__).resolve().parents[2]


# --- whole files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "stored"), [(b"\x00\xff", b"\x00\xff"), ("é\n", "é\n".encode()), ("", b"")])
def test_a_file_is_written_and_replaced(data: bytes | str, stored: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    for _ in range(2):
        write_atomically(str(path), data)
        assert path.read_bytes() == stored
    assert os.listdir(tmp_path) == ["file"]


def test_a_failed_write_keeps_the_old_content_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=str(path)):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


WRITER = """
import sys
from shared_core._files import write_atomically
while True:
    for byte in (b"a", b"b"):
        write_atomically(sys.argv[1], byte * 10_000_000)
"""


def unfinished(folder: Path) -> bool:
    """Whether a temporary file of the writer has content; a listed file may be gone meanwhile."""
    with suppress(FileNotFoundError):
        return any(file.stat().st_size > 0 for file in folder.glob(".*.tmp"))
    return False


def test_after_a_kill_while_it_is_written_there_is_the_old_content_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "file[1]"
    (tmp_path / ".file[1].other.tmp").touch()
    half_written: set[Path] = set()
    while not half_written:
        with subprocess.Popen([sys.executable, "-c", WRITER, path], cwd=ROOT, stderr=subprocess.PIPE) as process:
            while not path.exists() or not unfinished(tmp_path):
                assert process.poll() is None, process.communicate()[1].decode()
            os.kill(process.pid, signal.SIGKILL)
        content = path.read_bytes()
        assert content in (b"a" * 10_000_000, b"b" * 10_000_000)
        half_written = {file for file in tmp_path.iterdir() if file.stat().st_size and file != path}
    remove_leftovers(path)
    assert {file.name for file in tmp_path.iterdir()} == {"file[1]", ".file[1].other.tmp"}


# --- locks ----------------------------------------------------------------------------------------


IN_USE = "file is in use by another run: wait"


def test_the_second_to_lock_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with hold_lock(path):
        assert os.listdir(tmp_path) == ["file.lock"]
        with pytest.raises(InvalidParameterError, match=IN_USE), hold_lock(str(path)):
            pytest.fail("two hold the lock")
        with hold_lock(tmp_path / "other"), hold_lock(None):
            assert "other.lock" in os.listdir(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "none" / "file", b"")
    with pytest.raises(FileNotFoundError, match="none"), hold_lock(tmp_path / "none" / "file"):
        pass
    assert os.listdir(tmp_path) == []


HOLDER = """
import sys, time
from shared_core._files import hold_lock
with hold_lock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_lock_lasts_as_long_as_its_process(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(InvalidParameterError, match=IN_USE), hold_lock(path):
            pytest.fail("two hold the lock")
        os.kill(process.pid, signal.SIGKILL)
    assert os.listdir(tmp_path) == ["file.lock"]
    with hold_lock(path):
        pass
    assert os.listdir(tmp_path) == []
