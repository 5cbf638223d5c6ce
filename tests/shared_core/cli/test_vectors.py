"""The vectors of ``setselect compare``: files in place of a model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from shared_core.cli import _program
from shared_core.cli._program import app
from shared_core.evaluation import compare as compare_module

DOCUMENTS = [{"id": name, "text": f"Text {name}."} for name in "abcd"]
QUERIES = [{"id": "q1", "text": "First?", "gold": ["a", "c"]}, {"id": "q2", "text": "Second?", "gold": ["d"]}]
ROWS = np.array([[1.0, 0.0, 0.1], [1.0, 0.05, 0.1], [0.1, 1.0, 0.0], [0.0, 0.1, 1.0]])
QUERY_ROWS = np.array([[1.0, 0.9, 0.0], [0.0, 0.1, 1.0]])


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(f"loaded {name}")

    monkeypatch.setattr(_program, "load_model", refuse)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("docs.jsonl", DOCUMENTS)
    write("queries.jsonl", QUERIES)
    np.save("docs.npy", ROWS)
    np.save("queries.npy", QUERY_ROWS)
    return tmp_path


def write(path: str, records: list[Any]) -> None:
    Path(path).write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")


def run(*arguments: object) -> Result:
    files = ("--documents", "docs.jsonl", "--queries", "queries.jsonl", "--k", 2, "--cache", "cache")
    return CliRunner().invoke(app, ["compare", *map(str, (*files, *arguments))])


def nearest(result: Result, report: str = "report.json") -> list[str]:
    """For each query the id of its nearest document."""
    assert result.exit_code in (0, 1), result.output
    written = json.loads(Path(report).read_text(encoding="utf-8"))
    return [view["candidates"][0]["id"] for view in written["queries"]]


def test_vectors_from_files_need_no_model(corpus: Path) -> None:
    result = run("--vectors", "docs.npy", "--query-vectors", "queries.npy", "--out", "report.json")
    assert nearest(result) == ["b", "d"]
    assert "2 of the 4 nearest; docs.npy, queries.npy\n" in result.stdout


def test_queries_without_a_judgement_are_left_out_and_their_rows_with_them(corpus: Path) -> None:
    Path("qrels").write_text("q2 0 d 1\n", encoding="utf-8")
    result = run("--vectors", "docs.npy", "--query-vectors", "queries.npy", "--qrels", "qrels", "--out", "report.json")
    assert nearest(result) == ["d"]


def test_queries_may_be_embedded_where_the_documents_have_vectors(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Model:
        name = fingerprint = "three"
        max_characters = None

        def embed_queries(self, texts: list[str]) -> Any:
            return QUERY_ROWS

    monkeypatch.setattr(_program, "load_model", lambda name: Model())
    result = run("--vectors", "docs.npy", "--model", "three", "--out", "report.json")
    assert nearest(result) == ["b", "d"]
    assert "; docs.npy, three\n" in result.stdout
    np.save("docs.npy", np.ones((4, 5)))
    result = run("--vectors", "docs.npy", "--model", "three")
    assert (result.exit_code, "length 5, those of queries 3" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["docs.npy"], "--vectors and --query-vectors need each other"),
        (["docs.npy", "queries.npy", "--model", "x"], "leave out --model"),
        (["docs.csv", "queries.npy"], "docs.csv"),
        (["text.npy", "queries.npy"], "text.npy is not a .npy file"),
        (["queries.npy", "queries.npy"], "queries.npy: vectors must have shape (4, d)"),
        (["nan.npy", "queries.npy"], "nan.npy: row 2, counted from 0, holds NaN or inf"),
        (["docs.npy", "zero.npy"], "query 'Second?'"),
    ],
)
def test_vectors_that_do_not_fit_are_an_error_of_one_line(corpus: Path, arguments: list[str], message: str) -> None:
    Path("text.npy").write_text("no array", encoding="utf-8")
    np.save("nan.npy", np.where(np.arange(4)[:, None] == 2, np.inf, ROWS))
    np.save("zero.npy", QUERY_ROWS * [[1], [0]])
    names = [name for pair in zip(("--vectors", "--query-vectors"), arguments, strict=False) for name in pair]
    result = run(*names, *arguments[2:])
    assert result.exit_code == 2
    assert message in result.stderr
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")


# --- packages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        (["scipy", "sentence_transformers"], [], "compare"),
        (["jinja2"], ["--vectors", "docs.npy", "--query-vectors", "queries.npy", "--out", "report.html"], "eval"),
    ],
)
def test_missing_packages_are_one_line_that_names_the_one_extra(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, missing: list[str], arguments: list[str], extra: str
) -> None:
    real = compare_module.find_spec
    monkeypatch.setattr(compare_module, "find_spec", lambda name: None if name in missing else real(name))
    result = run(*arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    for word in (*missing, f"setselect[{extra}]"):
        assert word in result.stderr
