import functools
import hashlib
import json
import os
import resource
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from shared_core.cli import _terminal
from shared_core.cli._program import app
from shared_core.evaluation import compare as compare_module
from shared_core.signals.embedding_models import SentenceModel, load_model
from tests.embedding import embed

DATA = Path(os.environ.get("SETSELECT_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))
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
    assert "→ similarity " in result.stdout
    # Two queries cannot show that another setting is better.
    assert "Similarity is enough, as far as these queries can tell: its recall@2 is 0.750" in result.stdout
    assert "2 queries are too few to show a difference" in result.stdout
    assert f"Written: {corpus / 'report.json'}" in result.stdout
    # The lines to paste stay whole, each on a line of its own.
    assert '\n\n# LangChain\nretriever = store.as_retriever(search_kwargs={"k": 2})\n' in result.stdout
    # Lines for a log, in place of a bar.
    assert result.stderr == (
        "Embedding documents: 100 %\nEmbedding queries: 100 %\nComparing: 50 %\nComparing: 100 %\n"
    )
    written = json.loads((corpus / "report.json").read_text(encoding="utf-8"))
    assert [view["text"] for view in written["queries"]] == [query["text"] for query in QUERIES]
    # Similarity picks two documents that say nearly the same.
    first = written["queries"][0]
    assert {first["candidates"][i]["id"] for i in first["picks"]["0"]} == {"bread", "loaf"}


def test_the_settings_are_shown_with_what_they_gain_and_lose_against_similarity(corpus: Path) -> None:
    # The last asker wants both documents that say the same, and diversity gives one of them up.
    queries = [*QUERIES[:1] * 9, {**QUERIES[0], "gold": ["bread", "loaf"]}]
    write(corpus / "queries.jsonl", queries)
    result = on(corpus, "--out", corpus / "report.json")
    assert result.exit_code == 0, result.output
    written = json.loads((corpus / "report.json").read_text(encoding="utf-8"))
    position = [setting["label"] for setting in written["settings"]].index("vrsd")
    [to] = [d for d in written["differences"] if (d["setting"], d["measure"]) == (position, "recall")]
    assert (to["better"], to["worse"], to["loss"], to["worst_query"]) == (0.9, 0.1, 0.5, "10")
    table = result.stdout[result.stdout.index("recall@2 against similarity, query by query") :]
    [row] = [line for line in table.splitlines() if line.split()[:1] == ["vrsd"] and "refine" not in line]
    assert (
        row.split() == f"vrsd {to['mean']:+.3f} {to['low']:+.3f} to {to['high']:+.3f} 90 % 10 % 0.500 0.500 10".split()
    )


def test_repeated_texts_count_once_unless_they_are_kept(corpus: Path) -> None:
    write(corpus / "docs.jsonl", [*DOCUMENTS, {**DOCUMENTS[0], "id": "copy"}])
    write(corpus / "queries.jsonl", [{"text": DOCUMENTS[0]["text"], "gold": ["copy", "loaf"]}])
    once = on(corpus, "--out", corpus / "once.json")
    assert "Note: 1 of 5 candidates repeats the text of another candidate of its query. A text" in once.stdout
    kept = on(corpus, "--out", corpus / "kept.json", "--keep-duplicates")
    assert "Note: 1 of 5 candidates repeats the text of another candidate of its query, and is kept." in kept.stdout
    ids = []
    for name in ("once", "kept"):
        view = json.loads((corpus / f"{name}.json").read_text(encoding="utf-8"))["queries"][0]
        ids.append({view["candidates"][i]["id"] for i in view["picks"]["0"]})
    assert ids == [{"copy", "loaf"}, {"bread", "copy"}]


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
    assert "Better and worse than similarity" in text


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


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Takes the place of the language model; the names of the models that were loaded."""
    loaded: list[str] = []

    def load(name: str) -> SentenceModel:
        loaded.append(name)
        return SentenceModel(name, "words", WordModel())

    monkeypatch.setattr(_terminal, "load_model", load)
    return loaded


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--k", "0"], "--k"),
        (["--fetch-k", "0"], "--fetch-k"),
        (["--seed", "-1"], "--seed"),
        (["--views", "-1"], "--views"),
        (["--k", "60"], "error: --fetch-k = 50 is below --k = 60"),
        (["--decide-by", "best"], "error: --decide-by must be one of subtopic_recall"),
        (["--out", "."], "error: --out must end in .html or .json"),
        (["--out", "folder.html"], "error: --out: folder.html is a folder"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    # If the documents were read first, the message would be that there are none.
    result = run("--documents", "absent.jsonl", "--queries", "absent.jsonl", *arguments)
    assert (result.exit_code, words) == (2, [])
    assert message in result.stderr
    assert "absent" not in result.stderr


@pytest.mark.parametrize("arguments", [["--decide-by", "p_recall"], ["--k", "9"]])
def test_an_option_that_the_corpus_does_not_allow_is_refused_before_the_model_is_loaded(
    corpus: Path, words: list[str], arguments: list[str]
) -> None:
    result = on(corpus, *arguments)
    assert (result.exit_code, words) == (2, [])


def test_gold_ids_that_no_document_has_are_an_error_and_a_few_of_them_are_counted(
    corpus: Path, words: list[str]
) -> None:
    write(corpus / "queries.jsonl", [{"text": "bread?", "gold": ["doc-bread"]}, {"text": "river?"}])
    result = on(corpus)
    assert (result.exit_code, words) == (2, [])
    assert "none of the gold ids of the queries is the id of a document: a query has 'doc-bread'" in result.stderr
    assert "first document has the id 'bread'" in result.stderr
    write(corpus / "queries.jsonl", [{"text": "bread?", "gold": ["doc-bread", "loaf"]}, {"text": "river?"}])
    result = on(corpus, "--out", corpus / "report.html")
    assert result.exit_code == 0
    told = "No document has 1 of the 2 gold ids"
    assert f"Note: {told}" in result.stdout
    assert told in (corpus / "report.html").read_text(encoding="utf-8")


def test_the_folder_of_a_local_model_stays_private(corpus: Path, words: list[str]) -> None:
    model = corpus / "private" / "my-model"
    model.mkdir(parents=True)
    for name in ("report.html", "report.json"):
        result = on(corpus, "--model", model, "--out", corpus / name)
        assert "; my-model\n" in result.stdout
        written = (corpus / name).read_text(encoding="utf-8")
        assert "my-model" in written
        assert "private" not in written
    assert words == [str(model)] * 2


def test_no_file_name_or_text_controls_the_terminal(tmp_path: Path, words: list[str]) -> None:
    sign = "\x1b[2J\x9b31m\r\u202e"
    documents, queries, out = (tmp_path / f"{sign}{name}" for name in ("docs.jsonl", "queries.jsonl", "report.json"))
    write(documents, [*DOCUMENTS, {"id": sign, "text": sign}, {"id": sign, "text": sign}])
    write(queries, [{"text": "a cat", "gold": ["bread", sign + "x"]}, {sign: "no text"}])
    files = ("--documents", documents, "--queries", queries, "--cache", tmp_path)
    fine = run(*files, "--k", 2, "--out", out, "--title", sign)
    assert fine.exit_code == 1
    assert out.exists()
    failed = run(*files, "--k", 2, "--out", out / sign, "--decide-by", sign)
    assert failed.exit_code == 2
    for text in (fine.stdout, fine.stderr, failed.stderr):
        assert text
        # The table has line breaks and spaces of its own.
        assert text.replace("\n", "").isprintable()


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
        result = on(corpus, "--out", corpus / "report.html", "--title", "later")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.exit_code == 2
    assert f"\nerror: --out: {corpus / 'report.html'} cannot be written: File too large" in result.stderr
    assert "later: 4 documents" in result.stdout
    assert "Written" not in result.stdout
    assert (corpus / "report.html").read_bytes() == whole
    assert set(corpus.iterdir()) == files


@pytest.mark.parametrize("length", [0, 3, 8])
def test_a_damaged_vector_in_the_cache_is_an_error_that_names_the_file(
    corpus: Path, words: list[str], length: int
) -> None:
    assert on(corpus).exit_code == 0
    with closing(sqlite3.connect(corpus / "cache" / "embeddings.sqlite")) as database, database:
        changed = database.execute(
            "UPDATE embeddings SET vector = ? WHERE model = ? AND text_sha256 = ?",
            (b"x" * length, "words document", hashlib.sha256(DOCUMENTS[0]["text"].encode()).digest()),
        )
        assert changed.rowcount == 1
    result = on(corpus)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "embeddings.sqlite" in result.stderr


# --- BEIR folders and TREC judgements -----------------------------------------------------------------------------


class BagOfWords:
    """Embeds the 5,183 abstracts of SciFact in a second, by the counts of their hashed words."""

    max_seq_length = None

    def encode(self, texts: list[str], **options: Any) -> np.ndarray:
        words = ([zlib.crc32(word.encode()) % 256 for word in text.lower().split()] for text in texts)
        # The logarithm keeps frequent words from hiding the rest.
        return np.log1p([np.bincount(numbers, minlength=256) for numbers in words]).astype(np.float32)

    encode_document = encode_query = encode


@pytest.fixture
def bags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_terminal, "load_model", lambda name: SentenceModel(name, "bag of words", BagOfWords()))


def shared_data(name: str) -> list[dict[str, Any]]:
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"no {name} under {DATA}; set SETSELECT_DATA")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def figures(folder: Path, *arguments: object) -> dict[str, Any]:
    """The report of a run, without what it says of its input."""
    result = run(*arguments, "--cache", folder / "cache", "--out", folder / "report.json", "--views", 5)
    assert result.exit_code == 0, result.output
    written: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    del written["title"]
    return written


def write_beir(folder: Path, documents: list[dict[str, Any]], queries: list[dict[str, Any]]) -> Path:
    (folder / "qrels").mkdir(parents=True)
    write(folder / "corpus.jsonl", documents)
    write(folder / "queries.jsonl", queries)
    return folder


def write_split(folder: Path, name: str, judged: list[tuple[str, str, int]]) -> None:
    lines = ["query-id\tcorpus-id\tscore", *(f"{query}\t{document}\t{score}" for query, document, score in judged)]
    (folder / "qrels" / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_scifact_as_a_beir_folder_has_the_figures_of_scifact_as_json_lines(tmp_path: Path, bags: None) -> None:
    abstracts, claims = shared_data("scifact/corpus.jsonl"), shared_data("scifact/claims.jsonl")
    asked = [claim for claim in claims if claim["split"] == "dev"][:30]
    folder = write_beir(
        tmp_path / "scifact",
        [
            {"_id": one["id"], "title": one["title"], "text": " ".join(one["abstract"]), "metadata": {}}
            for one in abstracts
        ],
        [{"_id": claim["id"], "text": claim["claim"], "metadata": {}} for claim in claims],
    )
    write_split(folder, "dev", [(claim["id"], name, 1) for claim in asked for name in claim["cited_doc_ids"]])
    write_split(folder, "train", [(claims[0]["id"], claims[0]["cited_doc_ids"][0], 1)])
    found = figures(tmp_path, folder, "--split", "dev")

    write(
        tmp_path / "docs.jsonl", [{"id": d["id"], "text": f"{d['title']} {' '.join(d['abstract'])}"} for d in abstracts]
    )
    own = [{"id": claim["id"], "text": claim["claim"], "gold": claim["cited_doc_ids"]} for claim in asked]
    write(tmp_path / "claims.jsonl", own)
    expected = figures(tmp_path, "--documents", tmp_path / "docs.jsonl", "--queries", tmp_path / "claims.jsonl")

    told = f"{len(claims) - 30} of {len(claims)} queries have no relevant document in dev.tsv and are left out."
    assert found.pop("notes") == [told, *expected.pop("notes")]
    assert found == expected
    assert found["corpus"]["queries"] == 30
    recall = [one["mean"] for one in found["values"] if one["measure"] == "recall"]
    assert 0.1 < max(recall) < 1


def test_ambient_with_trec_subtopics_has_the_figures_of_ambient_with_labels(tmp_path: Path, bags: None) -> None:
    results, topics = shared_data("ambient/documents.jsonl"), shared_data("ambient/topics.jsonl")
    topics, kept = topics[:20], {topic["id"] for topic in topics[:20]}
    results = [result for result in results if result["topic_id"] in kept]
    texts = {result["id"]: f"{result['title']} {result['snippet']}".strip() for result in results}
    queries = [{"id": topic["id"], "text": topic["query"]} for topic in topics]
    judged = []
    for result in results:
        about = [label.partition(".")[2] for label in result["subtopics"]]
        judged += [f"{result['topic_id']} {subtopic} {result['id']} 1" for subtopic in about]
        judged += [f"{result['topic_id']} 1 {result['id']} 0"] * (not about)
    (tmp_path / "ambient.qrels").write_text("\n".join(judged), encoding="utf-8")
    write(tmp_path / "results.jsonl", [{"id": name, "text": text} for name, text in texts.items()])
    write(tmp_path / "topics.jsonl", queries)
    files = ("--documents", tmp_path / "results.jsonl", "--queries", tmp_path / "topics.jsonl")
    found = figures(tmp_path, *files, "--qrels", tmp_path / "ambient.qrels")

    labels = {result["id"]: result["subtopics"] for result in results}
    write(tmp_path / "results.jsonl", [{"id": i, "text": text, "subtopics": labels[i]} for i, text in texts.items()])
    asked = [
        {**q, "subtopics": sorted({x for r in results if r["topic_id"] == q["id"] for x in r["subtopics"]})}
        for q in queries
    ]
    write(tmp_path / "topics.jsonl", asked)
    expected = figures(tmp_path, *files)

    for measure in ("subtopic_recall", "alpha_ndcg"):
        values = [[one for one in each["values"] if one["measure"] == measure] for each in (found, expected)]
        assert values[0] == values[1]
        assert 0.1 < values[0][0]["mean"] < 1
        assert values[0][0]["queries"] == 20
    assert found["recommendation"] == expected["recommendation"]
    # Judgements also say which documents are relevant at all, which labels of documents alone do not.
    assert {one["key"] for one in found["measures"]} - {one["key"] for one in expected["measures"]} == {
        "recall",
        "ndcg",
        "success",
    }


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    documents = [{"_id": document["id"], "title": "", "text": document["text"]} for document in DOCUMENTS]
    queries = [{"_id": str(number), "text": query["text"]} for number, query in enumerate(QUERIES)]
    folder = write_beir(tmp_path / "my-corpus", documents, queries)
    write_split(folder, "test", [("0", "bread", 1), ("0", "river", 2), ("1", "violin", 1)])
    write_split(folder, "dev", [("1", "violin", 1)])
    return folder


def test_a_beir_folder_needs_no_option(beir: Path, words: list[str]) -> None:
    cache = ("--cache", beir / "cache", "--k", 2)
    assert "my-corpus, test: 4 documents, 2 queries; 2 of the 4 nearest" in run(beir, *cache).stdout
    assert "my-corpus, dev: 4 documents, 1 queries; 2 of the 4 nearest" in run(beir, "--split", "dev", *cache).stdout
    qrels = beir.parent / "nuggets.qrels"
    qrels.write_text("0 1 bread 1\n0 2 river 1\n0 3 boat 1\n", encoding="utf-8")
    result = run(beir, "--qrels", qrels, *cache)
    assert result.exit_code == 0
    assert "my-corpus, nuggets: 4 documents, 1 queries" in result.stdout
    assert "subtopic recall@2" in result.stdout
    assert "Note: 1 of 2 queries have no relevant document in nuggets.qrels and are left out." in result.stdout
    assert "Note: No document has 1 of the 3 ids under subtopics ('boat')." in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--split", "train"], "--split = 'train', but my-corpus/qrels holds only 'dev', 'test': name one of them"),
        (["--split", "dev", "--qrels", "nuggets"], "--split names judgements of the folder, --qrels a file of them"),
        (["--documents", "docs.jsonl"], "my-corpus has its own documents and queries: leave out --documents"),
        (["--demo"], "--demo has its own documents and queries: leave out folders and files"),
        (["--qrels", "nuggets"], "nuggets:2: the score, in the last column, must be a number, got 'x'"),
        (["--qrels", "absent"], "absent cannot be read: No such file or directory"),
        (["--qrels", "others"], "none of the query ids of others is the id of a query: it has '7'"),
        (["--qrels", "unknown"], "none of the gold ids of the queries is the id of a document: a query has 'boat'"),
        (["--decide-by", "alpha_ndcg"], "--decide-by must be one of recall, ndcg, success, got 'alpha_ndcg'"),
    ],
)
def test_a_beir_folder_that_cannot_be_compared_says_why(
    beir: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(beir.parent)
    Path("nuggets").write_text("0 1 bread 1\n0 2 river x\n", encoding="utf-8")
    Path("others").write_text("7 0 bread 1\n", encoding="utf-8")
    Path("unknown").write_text("0 0 boat 1\n", encoding="utf-8")
    result = run("my-corpus", "--k", 2, *arguments)
    assert (result.exit_code, words) == (2, [])
    assert result.stderr.startswith(f"error: {message}")


def test_a_folder_of_texts_is_no_beir_folder(tmp_path: Path, words: list[str]) -> None:
    result = run(tmp_path)
    assert (result.exit_code, words) == (2, [])
    assert "is not a BEIR folder: it holds no corpus.jsonl" in result.stderr
    result = run("--split", "dev", "--documents", "a.jsonl", "--queries", "b.jsonl")
    assert (result.exit_code, "--split is for a BEIR folder" in result.stderr) == (2, True)


def test_the_demo_needs_no_files(tmp_path: Path, words: list[str]) -> None:
    result = run("--demo", "--cache", tmp_path / "cache", "--out", tmp_path / "demo.json")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "demo.json").read_text(encoding="utf-8"))
    assert found["title"] == "NumPy's docstrings"
    assert {measure["key"] for measure in found["measures"]} >= {"recall", "subtopic_recall"}
    assert found["corpus"]["queries"] == 24


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
        "command._compare = lambda say, corpus, *_, **__: compare(\n"
        "    corpus.documents, corpus.queries, (rows, rows[:2]), k=2, fetch_k=4\n"
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
