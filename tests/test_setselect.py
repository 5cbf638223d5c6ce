"""``import setselect``, ``python -m setselect``, and what a bare install or another ``shared_core`` says."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import setselect
import shared_core
from shared_core.cli import main

COMMANDS = ("compare", "train", "batch")


def test_it_gives_the_public_names_of_the_core() -> None:
    for name in shared_core.__all__:
        assert getattr(setselect, name) is getattr(shared_core, name)
    assert {*setselect.__all__} - {*shared_core.__all__} == {"CachedEmbedding", "__version__", "load_model"}


HEAVY = (
    "torch pandas pyarrow scipy transformers typer ir_measures langgraph shared_core.learning shared_core.evaluation"
)
STORES = "faiss chromadb qdrant_client lancedb pymilvus psycopg"


def test_an_import_loads_numpy_and_no_extra() -> None:
    imports = (
        "from setselect import *; import llamaindex_setselect; from langchain_setselect import create_setselect_tool"
    )
    code = f"import sys; {imports}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    loaded = {*done.stdout.split()}
    assert "numpy" in loaded
    assert {*HEAVY.split(), *STORES.split()} & loaded == set()


@pytest.mark.parametrize(
    ("package", "framework", "extra"),
    [("langchain_setselect", "langchain_core", "langchain"), ("llamaindex_setselect", "llama_index", "llamaindex")],
)
def test_without_its_framework_an_adapter_names_the_extra(
    package: str, framework: str, extra: str, tmp_path: Path
) -> None:
    code = f"import sys; sys.modules[{framework!r}] = None; import {package}"
    assert f'pip install "setselect[{extra}]"' in last_line([sys.executable, "-c", code], tmp_path)


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    # In another folder: the installed module runs, not the file of this checkout.
    run = subprocess.run(
        [sys.executable, "-m", "setselect", "--help"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    assert {*COMMANDS, "--version"} <= set(run.stdout.split())


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["setselect", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def without_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "shared_core.cli._program", raising=False)
    monkeypatch.setitem(sys.modules, "typer", None)


def test_the_program_says_its_version_also_on_a_bare_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_typer(monkeypatch)
    assert setselect.__version__ == version("setselect")
    assert run_main(monkeypatch, "--version") == 0
    assert capsys.readouterr() == (f"setselect {setselect.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "extras"),
    [([], COMMANDS), (["--help"], COMMANDS), (["train", "--help"], ["train"])],
)
def test_on_a_bare_install_a_command_names_its_extra_in_one_line(
    arguments: list[str],
    extras: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    without_typer(monkeypatch)
    assert run_main(monkeypatch, *arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err[:7], err.count("\n")) == ("", "error: ", 1)
    assert [name for name in COMMANDS if f'pip install "setselect[{name}]"' in err] == list(extras)


@pytest.mark.parametrize(
    ("package", "file", "content"),
    [
        ("setselect", "shared_core.py", ""),
        ("llamaindex_setselect", "shared_core/__init__.py", "import absent_package"),
    ],
)
def test_another_shared_core_on_the_path_is_named(tmp_path: Path, package: str, file: str, content: str) -> None:
    other = tmp_path / file
    other.parent.mkdir(exist_ok=True)
    other.write_text(content)
    last = last_line([sys.executable, "-c", f"import {package}"], tmp_path)
    assert last.startswith("ImportError: setselect ")
    assert str(other) in last
    assert "Rename" in last


def test_a_missing_numpy_is_not_blamed_on_another_shared_core(tmp_path: Path) -> None:
    code = "import sys; sys.modules['numpy'] = None; import setselect"
    assert "import of numpy halted" in last_line([sys.executable, "-c", code], tmp_path)


def last_line(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder)
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]
