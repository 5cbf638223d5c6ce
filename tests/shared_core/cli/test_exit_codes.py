"""The program as a whole: its exit codes, and what it loads."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shared_core.cli import compare as command
from shared_core.cli import main


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["setselect", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert isinstance(end.value.code, int)
    return end.value.code


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (IndexError("a fault of ours"), 70, "IndexError: a fault of ours"),
        (MemoryError(), 2, "error: there is not enough memory"),
        (OSError(28, "No space left on device"), 2, "No space left on device"),
        (KeyboardInterrupt(), 2, "interrupted"),
    ],
)
def test_an_error_ends_with_its_exit_code(
    error: BaseException, code: int, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def read_documents(path: Path, **keys: Any) -> Any:
        raise error

    monkeypatch.setattr(command, "read_documents", read_documents)
    assert run(monkeypatch, "compare", "--documents", "docs.jsonl", "--queries", "queries.jsonl") == code
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    is_fault = code == 70
    assert ("Traceback (most recent call last)" in err) == is_fault
    assert ("in read_documents" in err) == is_fault
    assert ("Please report it at https://" in err) == is_fault


def test_ctrl_c_before_the_command_begins_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "message_console", interrupt)
    assert run(monkeypatch, "compare") == 130


def test_a_closed_pipe_ends_with_1_and_without_a_message() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as closed:
        done = subprocess.run([sys.executable, "-m", "setselect", "--help"], stdout=closed, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (1, b"")


def test_wrong_options_end_with_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["compare", "--k", "0"], ["compare", "--seed", "-1"], ["nothing"]):
        assert run(monkeypatch, *arguments) == 2
    capsys.readouterr()
    assert run(monkeypatch, "compair") == 2
    assert "Did you mean 'compare'?" in capsys.readouterr().err


LOADED = """
import sys
from shared_core.cli import main
try:
    main()
finally:
    print(*{name.split(".")[1] for name in sys.modules if name.startswith("shared_core.")}, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("name", "unused"), [("batch", {"evaluation", "learning", "retrieval"}), ("compare", {"learning", "retrieval"})]
)
def test_a_command_loads_only_what_it_needs(name: str, unused: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, name, "--help"], capture_output=True, text=True, check=True, timeout=120
    )
    assert not unused & set(done.stderr.split())
