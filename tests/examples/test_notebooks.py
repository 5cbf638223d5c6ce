"""Every notebook runs from top to bottom, in its folder, and comes to the results that its text speaks of.

Each is stored with its outputs, so that it can be read without running it. ``python tests/examples/test_notebooks.py``
runs all of them, or those that are named, and stores their outputs again.
"""

from __future__ import annotations

import html
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]
RUNS = [pytest.param(path, marks=pytest.mark.slow) for path in NOTEBOOKS]
# What the outputs of each notebook must contain. test_each_notebook_has_its_expectations fails for one that is missing.
SAYS = {
    "answers_with_a_real_model": [
        "| coverage | home, ticket, flyer, map | open: 10 to 18; entry: 12 euros |",
        "{'similarity': 0, 'ndpp': 4, 'coverage': 4}",
    ],
    "does_it_help_on_my_corpus": [
        "Too few to tell: coverage word_weight=2 has the highest subtopic recall@4, 0.875",
        "4       0.715     0.854",
        "Questions of one part. No row is better than similarity",
        "the same subtopic recall@3, 1.000 over 2 queries",
    ],
    "few_shot_examples_that_help_together": [
        "Request: What is the temperature outside?\nProgram: say(temperature(outside))\n\nRequest: How warm",
        "learning did not help",
        "do not tell selectors apart",
    ],
}


def execute(path: Path) -> nbformat.NotebookNode:
    """The notebook after a run; its metadata stay as they are stored."""
    notebook = nbformat.read(path, as_version=4)
    metadata = notebook.metadata.copy()
    folder = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=600, record_timing=False, coalesce_streams=True, resources=folder).execute()
    notebook.metadata = metadata
    return notebook


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def shown(notebook: nbformat.NotebookNode) -> str:
    """All outputs that are text, without the escapes of HTML."""
    texts = [output.get("text", "") for output in outputs(notebook)]
    data = [item for output in outputs(notebook) for item in sorted(output.get("data", {}).items())]
    texts += [text for kind, text in data if kind != "image/png"]
    return html.unescape("\n".join(texts))


def check_says(notebook: nbformat.NotebookNode, name: str) -> None:
    found = shown(notebook)
    for words in SAYS[name]:
        assert words in found, f"{name} does not show {words!r} but\n{found}"


def test_each_notebook_has_its_expectations() -> None:
    assert set(NAMES) == set(SAYS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_links_lead_to_files(path: Path) -> None:
    texts = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]
    links = re.findall(r"\]\((?!https?:)([^)#]+)", "\n".join(texts))
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_is_stored_as_it_ran(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert path.stat().st_size < 200_000
    assert str(Path.home()) not in shown(notebook)
    check_says(notebook, path.stem)


@pytest.mark.parametrize("path", RUNS, ids=NAMES)
def test_runs_without_noise(
    path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # tqdm asks for ipywidgets, which notebook editors bring and the environment of the tests does not.
    monkeypatch.setenv("PYTHONWARNINGS", "ignore:IProgress not found")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    if "_gemma" in path.read_text(encoding="utf-8"):
        request.getfixturevalue("gemma")
    ran = execute(path)
    noise = [output.text for output in outputs(ran) if output.output_type == "stream" and output.name == "stderr"]
    assert not noise
    check_says(ran, path.stem)
    # Rounding can change the last digit of a figure on another processor.
    stored = nbformat.read(path, as_version=4)
    assert re.sub(r"\d+", "0", shown(ran)) == re.sub(r"\d+", "0", shown(stored)), "store the outputs again"


if __name__ == "__main__":
    os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"
    for path in NOTEBOOKS:
        if path.stem in (sys.argv[1:] or NAMES):
            nbformat.write(execute(path), path)
