"""Every notebook runs from top to bottom, in its folder, and comes to the results that its text speaks of."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]
# What the outputs of each notebook must contain. test_each_notebook_has_its_expectations fails for one that is missing.
SAYS = {
    "answers_with_a_real_model": [
        "| similarity | map, home, faq, flyer | open: 10 to 18; entry: 10 euros |",
        "| ndpp | map, ticket, tram, faq | open: 10 to 18; entry: 12 euros |",
    ],
}


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_each_notebook_has_its_expectations() -> None:
    assert set(NAMES) == set(SAYS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_is_stored_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not outputs(notebook)
    assert all(cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_runs_without_noise(path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    # tqdm asks for ipywidgets, which notebook editors bring and the environment of the tests does not.
    monkeypatch.setenv("PYTHONWARNINGS", "ignore:IProgress not found")
    notebook = nbformat.read(path, as_version=4)
    if "_gemma" in path.read_text(encoding="utf-8"):
        request.getfixturevalue("gemma")
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
    noise = [output.text for output in outputs(notebook) if output.output_type == "stream" and output.name == "stderr"]
    assert not noise
    shown = "\n".join(str(text) for output in outputs(notebook) for text in output.get("data", {}).values())
    for words in SAYS[path.stem]:
        assert words in shown, f"{path.name} does not show {words!r} but\n{shown}"
