"""Input as it comes: cut characters, huge cells, stray blanks, gold for a few queries only."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared_core import InvalidInputError
from shared_core.evaluation.compare import compare, compare_candidates
from shared_core.evaluation.corpus import read_documents, read_queries
from shared_core.evaluation.judging import Found, _answers_in
from shared_core.evaluation.records import Document, as_document, found_documents

RNG = np.random.default_rng(3)
TEXTS = [{"id": f"d{i}", "text": f"text {i}"} for i in range(12)]
VECTORS = RNG.standard_normal((12, 8))


def compared(queries: list[dict[str, Any]], **options: Any) -> Any:
    return compare(TEXTS, queries, (VECTORS, RNG.standard_normal((len(queries), 8))), k=3, fetch_k=8, **options)


def test_a_cell_longer_than_the_csv_module_likes_is_one_cell(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    long = "\n".join(["a line, with commas"] * 9000)
    path.write_text(f'text,id\none,a\n"{long}",b\nthree,c\n', encoding="utf-8")
    found = read_documents(path)
    assert [document.id for document in found.items] == ["a", "b", "c"]
    assert found.items[1].text == long
    assert not found.problems


def test_blanks_beside_commas_are_not_part_of_an_id(tmp_path: Path) -> None:
    documents, queries = tmp_path / "d.csv", tmp_path / "q.csv"
    documents.write_text('text, id\none, a\n"two", "b"\n', encoding="utf-8")
    queries.write_text("text,gold\nwhich,a;b\n", encoding="utf-8")
    assert [document.id for document in read_documents(documents).items] == ["a", "b"]
    assert read_queries(queries).items[0].gold == ("a", "b")


def test_half_a_character_is_named_with_its_line_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"text": "whole"}\n{"text": "cut \\ud83d"}\n{"text": "whole too"}\n', encoding="utf-8")
    found = read_documents(path)
    assert [document.text for document in found.items] == ["whole", "whole too"]
    assert "2" in str(found.problems[0])
    assert "surrogate" in str(found.problems[0])
    with pytest.raises(InvalidInputError, match="surrogate"):
        as_document({"text": "cut \ud83d"}, "1")


def test_one_label_in_the_metadata_of_a_store_is_a_label() -> None:
    found = found_documents([("a", "A", "x"), ("b", "B", ["x", "y"]), ("c", "C", None)])
    assert [document.subtopics for document in found] == [("x",), ("x", "y"), ()]


def test_a_measure_that_one_query_allows_does_not_decide_for_all() -> None:
    queries: list[dict[str, Any]] = [{"text": f"q{i}", "gold": [f"d{i}"]} for i in range(10)]
    queries[0]["answers"] = ["text"]
    assert compared(queries).recommendation.measure == "recall"
    assert compared(queries, decide_by="answers").recommendation.measure == "answers"


def test_where_everything_is_missed_nothing_is_recommended() -> None:
    queries = [{"text": "q", "answers": ["nowhere to be found"]}, {"text": "r", "answers": ["nor this"]}]
    advice = compared(queries).recommendation
    assert advice.setting is None
    assert "No setting can be named" in advice.text


def test_a_single_query_has_no_interval_in_the_text() -> None:
    advice = compared([{"text": "q", "gold": ["d0", "d1", "d2", "d3"]}]).recommendation
    assert "interval" not in advice.text
    assert "1 query" in advice.text or advice.setting is None


@pytest.mark.parametrize(
    ("text", "answer", "held"),
    [
        ("日本の首都は東京です。", "東京", True),
        ("กรุงเทพมหานครเป็นเมืองหลวง", "เมืองหลวง", True),
        ("The cats sleep", "cat", False),
        ("The CAT, asleep", "cat", True),
        ("c++ and c", "c++", True),
    ],
)
def test_answers_are_whole_words_where_words_are_parted(text: str, answer: str, held: bool) -> None:
    assert bool(_answers_in([text], [answer])[0, 0]) is held


def test_gold_that_was_not_fetched_leaves_its_subtopics_unknown() -> None:
    documents = [Document(name, name, ("x",)) for name in "abc"]
    found = Found([1.0, 0.0], documents, np.array([[1.0, 0.0], [0.9, 0.1], [0.5, 0.5]]))
    there = compare_candidates([{"text": "q", "gold": ["a"]}], lambda query: found, k=1, fetch_k=3)
    beyond = compare_candidates([{"text": "q", "gold": ["a", "z"]}], lambda query: found, k=1, fetch_k=3)
    keys = [{measure.key for measure in one.measures} for one in (there, beyond)]
    assert "subtopic_recall" in keys[0]
    assert "subtopic_recall" not in keys[1]


def test_a_terminal_that_knows_no_greek_costs_no_report(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        "import sys\n"
        "from shared_core import cli\n"
        "from shared_core.evaluation.compare import compare\n"
        "import numpy as np\n"
        "rows = np.random.default_rng(0).standard_normal((12, 8))\n"
        "cli._compare = lambda say, held, asked, *_, **__: compare(held, asked, (rows, rows[:2]), k=3, fetch_k=8)\n"
        "cli.main()\n"
    )
    documents, queries, out = tmp_path / "d.jsonl", tmp_path / "q.jsonl", tmp_path / "r.html"
    documents.write_text("\n".join(map(json.dumps, TEXTS)))
    queries.write_text('{"text": "one", "gold": ["d1"]}\n{"text": "two", "gold": ["d2"]}\n')
    command = [sys.executable, str(script), "compare", "--documents", str(documents), "--queries", str(queries)]
    done = subprocess.run(
        [*command, "--out", str(out)], env={"PYTHONIOENCODING": "cp1252", "PATH": "", "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, io.BytesIO(done.stderr).read().decode("cp1252", "replace")
    assert out.exists()
