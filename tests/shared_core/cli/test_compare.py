"""``setselect compare`` from files to reports: exit codes, key figures, files written, and what refuses to run."""

import io
import json
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from shared_core.cli import _program, main
from shared_core.cli import compare as compare_command
from shared_core.cli._program import app
from shared_core.signals.embedding_models import SentenceModel
from tests.embedding import corpus as passages
from tests.shared_core.cli.word_model import load_words

DOCUMENTS: list[dict[str, str]] = [
    {"id": "bread", "text": "Bread is baked from flour, water and yeast."},
    {"id": "loaf", "text": "A loaf of bread is baked from flour and yeast."},
    {"id": "river", "text": "The river carries water from the mountains to the sea."},
    {"id": "violin", "text": "A violin has four strings and is played with a bow."},
]
QUERIES = [
    {"text": "How is bread baked, and what does a river carry?", "gold": ["bread", "river"]},
    {"text": "How is a violin played?", "gold": ["violin"]},
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write(tmp_path / "docs.jsonl", DOCUMENTS)
    write(tmp_path / "queries.jsonl", QUERIES)
    return tmp_path


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A model of hashed words takes the place of the language model; the names of the models that were loaded."""
    loaded: list[str] = []

    def load(name: str) -> SentenceModel:
        loaded.append(name)
        return load_words(name)

    monkeypatch.setattr(_program, "load_model", load)
    return loaded


def write(path: Path, records: list[Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def on(corpus: Path, *arguments: object) -> Result:
    files = ("--documents", corpus / "docs.jsonl", "--queries", corpus / "queries.jsonl")
    return run(*files, "--cache", corpus / "cache", "--k", 2, *arguments)


def picked_by_similarity(view: dict[str, Any]) -> set[str]:
    return {view["candidates"][i]["id"] for i in view["picks"]["0"]}


def test_a_comparison_is_shown_and_written_and_a_second_run_embeds_nothing(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The one run with the real model. A text longer than it reads is noted.
    write(corpus / "docs.jsonl", [*DOCUMENTS, {"text": "A long one. " * 200}])
    result = on(corpus, "--out", corpus / "report.json")
    assert result.exit_code == 0, result.output
    written = read(corpus / "report.json")
    assert (written["corpus"]["documents"], written["corpus"]["queries"], written["corpus"]["fetch_k"]) == (5, 2, 5)
    assert written["corpus"]["model"] == "all-MiniLM-L6-v2"
    assert [view["text"] for view in written["queries"]] == [query["text"] for query in QUERIES]
    # Similarity picks two documents that say nearly the same.
    assert picked_by_similarity(written["queries"][0]) == {"bread", "loaf"}
    assert any(note.endswith("longer: 1 of 5 documents.") for note in written["notes"])
    # Two queries cannot show that another setting is better.
    assert written["recommendation"]["text"] in " ".join(result.stdout.split())
    assert "similarity" in written["recommendation"]["text"].lower()

    from sentence_transformers import SentenceTransformer

    def refuse(self: object, *arguments: object, **options: object) -> None:
        raise AssertionError("embedded again")

    monkeypatch.setattr(SentenceTransformer, "encode_document", refuse)
    monkeypatch.setattr(SentenceTransformer, "encode_query", refuse)
    assert on(corpus, "--out", corpus / "again.json").exit_code == 0
    assert read(corpus / "again.json") == written


def test_sizes_and_changes_are_shown_and_a_narrow_terminal_cuts_no_figure(
    corpus: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [{**QUERIES[0], "subtopics": {"baking": ["bread", "loaf"], "river": ["river"]}}] * 6
    write(corpus / "queries.jsonl", [*asked, {**QUERIES[1], "id": "violins"}])
    monkeypatch.setattr(compare_command, "result_console", lambda: Console(width=80))
    shown = on(corpus, "--k", 2, "--k", 3).stdout
    assert "…" not in shown
    for measure in ("relevance", "success@2", "α-nDCG@2"):
        assert measure in shown
    table = shown[shown.index("subtopic recall by the number") :].splitlines()
    assert table[1].split() == ["setting", "2", "texts", "3", "texts"]
    assert [line.split()[1:] for line in table if line.split()[:1] == ["similarity"]] == [["0.500", "0.500"]]


def test_settings_of_ones_own_are_compared(corpus: Path, words: list[str]) -> None:
    write(corpus / "docs.jsonl", [{**record, "source": str(i // 2)} for i, record in enumerate(DOCUMENTS)])
    lines = ["mmr lambda_mult=0.5", "coverage max_per_source=1", "similarity budget=50"]
    options = [part for line in lines for part in ("--setting", line)]
    result = on(corpus, *options, "--out", corpus / "report.json")
    assert result.exit_code == 0, result.output
    written = read(corpus / "report.json")
    labels = [setting["label"] for setting in written["settings"]]
    assert labels[-4:-2] == lines[1:]
    assert len({*labels}) == len(labels)
    view = written["queries"][0]
    picked = {label: {view["candidates"][i]["id"] for i in view["picks"][str(at)]} for at, label in enumerate(labels)}
    # Bread and loaf are of one source; each text has more than 25 characters.
    assert picked["similarity"] == {"bread", "loaf"}
    assert len(picked["coverage max_per_source=1"] & {"bread", "loaf"}) == 1
    assert len(picked["similarity budget=50"]) == 1
    assert any("The mean number of texts is similarity budget=50 1.0." in note for note in written["notes"])


@pytest.mark.parametrize(
    ("arguments", "words_of_the_error"),
    [
        (["--out", "report.pdf"], "--out"),
        (["--out", "no/such/folder/report.html"], "in a folder that exists"),
        (["--k", "0"], "--k"),
        (["--k", "2", "--k", "9"], "only 4 documents"),
        (["--k", "4", "--fetch-k", "3"], "--fetch-k"),
        (["--decide-by", "best"], "--decide-by"),
        (["--setting", "coverage max_per_sorce=2"], "did you mean 'max_per_source'"),
        # Options are checked before files are read.
        (["--documents", "absent.jsonl", "--decide-by", "best"], "--decide-by"),
    ],
)
def test_a_command_that_cannot_run_says_why_before_the_model_is_loaded(
    corpus: Path, words: list[str], arguments: list[str], words_of_the_error: str
) -> None:
    result = on(corpus, *arguments)
    assert (result.exit_code, result.stdout, words) == (2, "", [])
    assert words_of_the_error in result.stderr


def test_messages_call_arguments_by_their_options_and_leave_paths_alone(corpus: Path, words: list[str]) -> None:
    folder = corpus / "fetch_k = 3"
    folder.mkdir()
    write(folder / "id_column must go.jsonl", [{"no": "text"}])
    result = on(corpus, "--k", "3", "--fetch-k", "2")
    assert "--fetch-k = 2 is below --k = 3" in result.stderr
    result = on(corpus, "--documents", folder / "id_column must go.jsonl")
    assert f"{folder / 'id_column must go.jsonl'}:1: there is no 'text'" in result.stderr


def test_the_folder_of_a_local_model_stays_private(corpus: Path, words: list[str]) -> None:
    model = corpus / "private" / "my-model"
    model.mkdir(parents=True)
    assert on(corpus, "--model", model, "--out", corpus / "report.html").exit_code == 0
    written = (corpus / "report.html").read_text(encoding="utf-8")
    assert ("my-model" in written, "private" in written) == (True, False)
    assert words == [str(model)]


def test_a_report_that_cannot_be_written_leaves_the_earlier_one_and_shows_the_result(
    corpus: Path, words: list[str]
) -> None:
    assert on(corpus, "--out", corpus / "report.html").exit_code == 0
    whole = (corpus / "report.html").read_bytes()
    files = set(corpus.iterdir())
    # No file can grow beyond 8 kB: the write fails in the middle, as on a full disk. The embeddings are there already.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        result = on(corpus, "--out", corpus / "report.html")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.exit_code == 2
    assert f"'{corpus / 'report.html'}'" in result.stderr
    assert "4 documents, 2 queries" in result.stdout
    assert (corpus / "report.html").read_bytes() == whole
    assert set(corpus.iterdir()) == files


# --- BEIR folders and TREC judgements -----------------------------------------------------------------------------


def test_a_beir_folder_and_trec_subtopics_are_compared(tmp_path: Path, words: list[str]) -> None:
    folder = tmp_path / "my-corpus"
    (folder / "qrels").mkdir(parents=True)
    texts = [text for text, _ in passages()][:30]
    write(folder / "corpus.jsonl", [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(texts)])
    write(folder / "queries.jsonl", [{"_id": f"q{i}", "text": text} for i, text in enumerate(texts[:4])])
    for split, queries in (("test", "012"), ("dev", "3")):
        lines = ["query-id\tcorpus-id\tscore", *(f"q{i}\td{i}\t1" for i in queries)]
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join(lines), encoding="utf-8")
    trec = tmp_path / "topics.qrels"
    trec.write_text("q0 x d0 1\nq0 y d1 1\n", encoding="utf-8")
    found = {}
    for name, arguments in {
        "beir": [],
        "dev": ["--qrels", folder / "qrels" / "dev.tsv"],
        "trec": ["--qrels", trec],
    }.items():
        result = run(folder, *arguments, "--cache", tmp_path / "cache", "--out", tmp_path / "report.json")
        assert result.exit_code == 0, result.output
        found[name] = read(tmp_path / "report.json")
    assert [one["corpus"]["queries"] for one in found.values()] == [3, 1, 1]
    titles = ["my-corpus, test", "my-corpus, dev", "my-corpus, topics"]
    assert [one["title"] for one in found.values()] == titles
    assert ["subtopic_recall" in str(one["measures"]) for one in found.values()] == [False, False, True]
    assert any("1 of 4 queries" in note for note in found["beir"]["notes"])


@pytest.mark.parametrize(
    ("arguments", "words_of_the_error"),
    [
        (["--documents", "docs.jsonl"], "--documents has no effect with folder"),
        (["--demo"], "--demo"),
        (["--qrels", "nuggets"], "nuggets:2: the score"),
        (["--qrels", "absent"], "absent cannot be read"),
        (["--qrels", "others"], "none of the query ids of others"),
        (["--decide-by", "alpha_ndcg"], "--decide-by"),
    ],
)
def test_a_beir_folder_that_cannot_be_compared_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], arguments: list[str], words_of_the_error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("beir/qrels").mkdir(parents=True)
    write(Path("beir/corpus.jsonl"), DOCUMENTS)
    write(Path("beir/queries.jsonl"), QUERIES)
    for split in ("dev", "test"):
        Path(f"beir/qrels/{split}.tsv").write_text("1\tbread\t1\n", encoding="utf-8")
    Path("nuggets").write_text("1 1 bread 1\n1 2 river x\n", encoding="utf-8")
    Path("others").write_text("7 0 bread 1\n", encoding="utf-8")
    result = run("beir", "--k", 2, *arguments)
    assert (result.exit_code, words) == (2, [])
    assert result.stderr.startswith("error: ")
    assert words_of_the_error in result.stderr


# --- the program ------------------------------------------------------------------------------------------------------


def test_the_demo_needs_no_files(tmp_path: Path, words: list[str]) -> None:
    result = run("--demo", "--cache", tmp_path / "cache", "--out", tmp_path / "demo.json")
    assert result.exit_code == 0, result.output
    found = read(tmp_path / "demo.json")
    assert {measure["key"] for measure in found["measures"]} >= {"recall", "subtopic_recall"}
    assert found["corpus"]["queries"] == 24


def test_it_runs_on_a_terminal_without_greek_letters(
    corpus: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ["--documents", corpus / "docs.jsonl", "--queries", corpus / "queries.jsonl", "--out", corpus / "r.html"]
    monkeypatch.setattr(sys, "argv", ["setselect", "compare", *map(str, files), "--cache", str(corpus), "--k", "2"])
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding="cp1252"))
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert (corpus / "r.html").exists()


def test_documents_without_queries_are_diagnosed(corpus: Path, words: list[str]) -> None:
    write(corpus / "docs.jsonl", [*DOCUMENTS, {**DOCUMENTS[0], "id": "copy"}])
    result = run("--documents", corpus / "docs.jsonl", "--cache", corpus / "cache", "--out", corpus / "report.json")
    assert result.exit_code == 0, result.output
    written = read(corpus / "report.json")
    assert (written["title"], written["documents"], written["findings"][0]["share"]) == ("docs.jsonl", 5, 0.4)
    assert "recall" not in result.stdout
    assert run("--documents", corpus / "docs.jsonl", "--out", corpus / "report.html").exit_code == 0
    assert "40 % of 5 texts" in (corpus / "report.html").read_text(encoding="utf-8")
    np.save(corpus / "docs.npy", np.eye(5))
    result = run("--documents", corpus / "docs.jsonl", "--vectors", corpus / "docs.npy")
    assert (result.exit_code, words) == (0, ["all-MiniLM-L6-v2"] * 2)
