import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from shared_core.cli import _terminal, app
from shared_core.evaluation import compare as compare_module
from shared_core.signals.embedding_models import SentenceModel, load_model
from tests.embedding import embed

DOCUMENTS = [
    {"id": "bread", "text": "Bread is baked from flour, water and yeast."},
    {"id": "loaf", "text": "A loaf of bread is baked from flour and yeast."},
    {"id": "river", "text": "The river carries water from the mountains to the sea."},
    {"id": "violin", "text": "A violin has four strings and is played with a bow."},
]
QUERIES = [
    {"text": "How is bread baked, and what does a river carry?", "gold": ["bread", "river"]},
    {"text": "How is a violin played?", "gold": ["violin"]},
]


@pytest.fixture(autouse=True)
def _models_stay_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_terminal, "load_model", _load_once)


_load_once = functools.cache(load_model)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write(tmp_path / "docs.jsonl", DOCUMENTS)
    write(tmp_path / "queries.jsonl", QUERIES)
    return tmp_path


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def on(corpus: Path, *arguments: object) -> Result:
    files = ("--documents", corpus / "docs.jsonl", "--queries", corpus / "queries.jsonl")
    return run(*files, "--cache", corpus / "cache", "--k", 2, *arguments)


def test_a_comparison_is_shown_and_written(corpus: Path) -> None:
    result = on(corpus, "--out", corpus / "report.json", "--title", "Two questions")
    assert result.exit_code == 0, result.output
    assert "Two questions: 4 documents, 2 queries; 2 of the 4 nearest; all-MiniLM-L6-v2" in result.stdout
    assert "→ VRSD " in result.stdout
    assert "Take VRSD: its recall@2 is 1.000" in result.stdout
    assert f"Written: {corpus / 'report.json'}" in result.stdout
    assert result.stderr == ""
    written = json.loads((corpus / "report.json").read_text(encoding="utf-8"))
    assert [view["text"] for view in written["queries"]] == [query["text"] for query in QUERIES]
    # Similarity picks two documents that say nearly the same.
    first = written["queries"][0]
    assert {first["candidates"][i]["id"] for i in first["picks"]["0"]} == {"bread", "loaf"}


def test_a_second_run_takes_the_embeddings_from_the_cache(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = on(corpus)
    from sentence_transformers import SentenceTransformer

    def refuse(self: object, *arguments: object, **options: object) -> None:
        raise AssertionError("embedded again")

    monkeypatch.setattr(SentenceTransformer, "encode_document", refuse)
    monkeypatch.setattr(SentenceTransformer, "encode_query", refuse)
    assert on(corpus).stdout == first.stdout


def test_the_report_is_written_as_html(corpus: Path) -> None:
    result = on(corpus, "--out", corpus / "report.html")
    assert result.exit_code == 0, result.output
    text = (corpus / "report.html").read_text(encoding="utf-8")
    assert "How is a violin played?" in text
    assert "VRSD" in text


def test_bad_lines_are_reported_the_rest_is_compared_and_the_exit_code_is_1(corpus: Path) -> None:
    with (corpus / "docs.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n{oops\n")
    with (corpus / "queries.jsonl").open("a", encoding="utf-8") as file:
        file.write('\n{"text": ""}\n')
    result = on(corpus)
    assert result.exit_code == 1
    assert f"skipped {corpus / 'docs.jsonl'}:5: not JSON" in result.stderr
    assert f"skipped {corpus / 'queries.jsonl'}:3: 'text' is empty" in result.stderr
    assert "4 documents, 2 queries" in result.stdout
    assert "Note: 2 lines or files could not be read and were left out" in result.stdout


def test_only_the_first_of_many_bad_lines_are_reported(corpus: Path) -> None:
    with (corpus / "docs.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n{oops" * 25)
    result = on(corpus)
    assert result.stderr.count("skipped") == 20
    assert "... and 5 more" in result.stderr


def test_ctrl_c_keeps_the_finished_queries(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = compare_module.judge

    def judge(query: Any, *arguments: Any, **options: Any) -> Any:
        if query.id == "2":
            raise KeyboardInterrupt
        return real(query, *arguments, **options)

    monkeypatch.setattr(compare_module, "judge", judge)
    result = on(corpus, "--out", corpus / "report.json")
    assert result.exit_code == 1
    assert "4 documents, 1 queries of 2, interrupted" in result.stdout
    assert json.loads((corpus / "report.json").read_text(encoding="utf-8"))["partial"] is True


def test_ctrl_c_before_the_first_result_says_that_embeddings_are_kept(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compare_module, "judge", judge)
    result = on(corpus)
    assert result.exit_code == 2
    assert "finished embeddings are kept" in result.stderr


def test_texts_longer_than_the_model_reads_are_noted(corpus: Path) -> None:
    write(corpus / "docs.jsonl", [*DOCUMENTS, {"text": "A long one. " * 200}])
    assert "Note: 1 of 5 documents are longer than about 1024 characters" in on(corpus).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "report.pdf"], "--out must end in .html or .json"),
        (["--out", "no/such/folder/report.html"], "--out: there is no folder"),
        (["--k", "9"], "error: --k = 9, but there are only 4 documents"),
        (["--k", "3", "--fetch-k", "2"], "error: --fetch-k = 2 is below --k = 3"),
        (["--decide-by", "best"], "error: --decide-by must be one of"),
        (["--decide-by", "p_recall"], "error: --decide-by must be one of recall, ndcg, success, got"),
        (["--demo"], "--demo has its own documents"),
        (["--model", "no/such-model-anywhere"], "model 'no/such-model-anywhere' cannot be loaded"),
        (["--documents", "absent.jsonl"], "absent.jsonl cannot be read"),
        (["--documents", "docs.xlsx"], "expected .jsonl, .csv"),
    ],
)
def test_a_command_that_cannot_run_says_why_in_the_terms_of_its_options(
    corpus: Path, arguments: list[str], message: str
) -> None:
    result = on(corpus, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stdout == ""


def test_both_files_are_needed(corpus: Path) -> None:
    result = run("--queries", corpus / "queries.jsonl")
    assert (result.exit_code, "--documents and --queries are both needed" in result.stderr) == (2, True)
    assert run("--k", "many").exit_code == 2


class WordModel:
    """Embeds the 900 docstrings of the demo in a second, where a language model takes a minute."""

    max_seq_length = None

    def encode(self, texts: list[str], **options: Any) -> np.ndarray:
        return np.array([embed(text) for text in texts], dtype=np.float32)

    encode_document = encode_query = encode


def test_the_demo_needs_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_terminal, "load_model", lambda name: SentenceModel(name, "words", WordModel()))
    result = run("--demo", "--cache", tmp_path / "cache", "--out", tmp_path / "demo.json")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "demo.json").read_text(encoding="utf-8"))
    assert found["title"] == "NumPy's docstrings"
    assert {measure["key"] for measure in found["measures"]} >= {"recall", "subtopic_recall"}
    assert found["corpus"]["queries"] == 24


def test_without_typer_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['typer'] = None; import shared_core.cli"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'ImportError: the command setselect needs typer and rich: pip install "setselect[eval]"' in result.stderr


def test_it_runs_as_a_module() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "setselect", "compare", "--help"], capture_output=True, text=True, check=True
    )
    assert "--documents" in result.stdout


def test_a_terminal_without_greek_letters_does_not_cost_the_report(corpus: Path) -> None:
    script = corpus / "run.py"
    script.write_text(
        "import sys\n"
        "from shared_core import cli\n"
        "from shared_core.cli import compare as command\n"
        "from shared_core.evaluation.compare import compare\n"
        "import numpy as np\n"
        "rows = np.random.default_rng(0).standard_normal((4, 8))\n"
        "command._compare = lambda say, documents, queries, *_, **__: compare(\n"
        "    documents, queries, (rows, rows[:2]), k=2, fetch_k=4\n"
        ")\n"
        "cli.main()\n"
    )
    files = ["--documents", corpus / "docs.jsonl", "--queries", corpus / "queries.jsonl", "--out", corpus / "r.html"]
    done = subprocess.run(
        [sys.executable, script, "compare", *files],
        env={**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode("cp1252", "replace")
    assert (corpus / "r.html").exists()
