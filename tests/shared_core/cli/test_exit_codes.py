import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shared_core.cli import compare as command
from shared_core.cli import main

ESCAPE = "\x1b[31m"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["setselect", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert isinstance(end.value.code, int)
    return end.value.code


def break_compare(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def read_documents(path: Path, **keys: Any) -> Any:
        raise error

    monkeypatch.setattr(command, "read_documents", read_documents)


FILES = ("--documents", "docs.jsonl", "--queries", "queries.jsonl")


def test_a_crash_has_its_own_exit_code_and_keeps_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    break_compare(monkeypatch, IndexError(f"a fault {ESCAPE}of ours"))
    assert run(monkeypatch, "compare", *FILES) == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback (most recent call last)" in err
    assert "in read_documents" in err
    assert r"IndexError: a fault \x1b[31mof ours" in err
    told = err[err.index("This is a fault of setselect") :]
    assert "Please report it at https://" in told
    assert len(told) < 400


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "error: there is not enough memory"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
)
def test_what_the_machine_lacks_is_an_error_and_no_crash(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, message: str
) -> None:
    break_compare(monkeypatch, error)
    assert run(monkeypatch, "compare", *FILES) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


def test_ctrl_c_outside_of_the_commands_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "message_console", _interrupt)
    assert run(monkeypatch, "compare", *FILES) == 130


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_the_exit_code_is_right_even_if_no_message_can_be_shown() -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        done = subprocess.run(
            [sys.executable, "-m", "setselect", "compare", "--documents", "absent.jsonl"], stderr=full
        )
    assert done.returncode == 2


def test_a_closed_pipe_ends_with_1_and_without_a_message() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as closed:
        done = subprocess.run([sys.executable, "-m", "setselect", "--help"], stdout=closed, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (1, b"")


def test_the_help_explains_every_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--help") == 0
    told = capsys.readouterr().out
    codes = told[told.index("Exit codes") :]
    assert [line.split()[0] for line in codes.splitlines()[1:] if line] == ["0", "1", "2", "70", "130"]


def test_wrong_options_end_with_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["compare", "--k", "0"], ["compare", "--seed", "-1"], ["nothing"], ["compare", f"{ESCAPE}x"]):
        assert run(monkeypatch, *arguments) == 2
        assert "\x1b" not in capsys.readouterr().err
