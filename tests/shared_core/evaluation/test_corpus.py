"""Documents and queries from files and from records: what is read, and which line a problem names."""

import csv
import json
import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core._validation import quoted
from shared_core.errors import InvalidInputError, InvalidParameterError
from shared_core.evaluation.corpus import (
    Document,
    Query,
    as_document,
    as_query,
    convert_all,
    read_documents,
    read_queries,
)


def write(path: Path, records: list[Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
    return path


def test_json_lines_keep_their_order_and_the_bad_ones_are_reported_by_line(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    lines = [
        b'\xef\xbb\xbf{"id": "a", "text": "One.", "subtopics": ["x", "y"], "author": "me"}',
        b"",
        b'{"text": "Two, without an id."}',
        b"{oops",
        b'["no", "object"]',
        b'{"id": "c", "body": "no text"}',
        b'{"id": "d", "text": "   "}',
        b'{"id": "e", "text": 5}',
        b'{"id": "a", "text": "The same id."}',
        b'{"id": "f", "text": "\xff"}',
        b'{"id": "g", "text": "Last.", "subtopics": {"no": "list"}}',
        b'{"id": 12, "text": "A number."}',
    ]
    path.write_bytes(b"\n".join(lines))
    read = read_documents(path)
    assert read.items == [
        Document("a", "One.", ("x", "y")),
        Document("3", "Two, without an id."),
        Document("12", "A number."),
    ]
    words = {
        4: "not JSON", 5: "expected a JSON object", 6: "there is no 'text'; found ['id', 'body']", 7: "is empty",
        8: "must be a string", 9: "a second time", 10: "not UTF-8", 11: "'subtopics' must be a list",
    }  # fmt: skip
    assert [problem.line for problem in read.problems] == list(words)
    for problem in read.problems:
        assert str(problem).startswith(f"{path}:{problem.line}: ")
        assert words[problem.line or 0] in problem.what
    # Places count the lines that are not blank, with those that cannot be read.
    assert read.places == {"a": 0, "3": 1, "12": 10}
    assert len(read.items) + len(read.problems) == 11


def test_csv_problems_name_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "docs.csv"
    path.write_bytes(
        b"\xef\xbb\xbfid,text, subtopics\n"
        b'a,"One,\ntwo lines.",x;y\n'
        b"b,too,many,cells\n"
        b"\n"
        b'c,Three.,"[""p;q"", ""r""]"\n'
        b"d,\xe9,x\n"
        b"e,,x\n"
        b'f,Broken.,"[oops"\n'
        b",No id.,\n"
    )
    read = read_documents(path)
    assert read.items == [
        Document("a", "One,\ntwo lines.", ("x", "y")),
        Document("c", "Three.", ("p;q", "r")),
        Document("7", "No id."),
    ]
    assert [(p.line, p.what.split(":")[0]) for p in read.problems] == [
        (4, "4 cells under 3 columns"),
        (7, "not UTF-8"),
        (8, "'text' is empty"),
        (9, "not JSON"),
    ]


@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text.strip()), min_size=1))
def test_every_text_comes_back_from_json_lines_and_from_tables(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        jsonl, table = Path(folder, "d.jsonl"), Path(folder, "d.csv")
        write(jsonl, [{"text": text} for text in texts])
        with table.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["text"], *([text] for text in texts)])
        for path in (jsonl, table):
            assert [document.text for document in read_documents(path).items] == texts


def test_texts_from_lines_and_folders(tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("First?\n\n  Second?  \n", encoding="utf-8")
    assert read_queries(tmp_path / "queries.txt").items == [Query("1", "First?"), Query("3", "Second?")]
    folder = tmp_path / "texts"
    (folder / "sub").mkdir(parents=True)
    (folder / "b.md").write_text("B\n", encoding="utf-8")
    (folder / "sub" / "a.txt").write_text("A", encoding="utf-8")
    (folder / "empty.txt").write_text(" \n", encoding="utf-8")
    (folder / "latin.txt").write_bytes(b"\xe9")
    (folder / "other.pdf").write_bytes(b"%PDF")
    read = read_documents(folder)
    assert read.items == [Document("b.md", "B\n"), Document("sub/a.txt", "A")]
    assert [str(problem) for problem in read.problems] == [
        f"{folder / 'empty.txt'}: the file is empty",
        f"{folder / 'latin.txt'}: not UTF-8",
    ]


def test_queries_in_every_shape(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"query": "A?", "gold": [1, "b"], "answers": ["forty-two"], "sub_questions": ["A1?", "A2?", "A1?"]},
        {"id": "q", "question": "B?", "subtopics": ["x", "y"], "root": "b"},
        {"_id": "r", "text": "C?", "subtopics": {"x": [1, "2"], "y": "3"}, "root_query": "c", "gold": ["a", "b"]},
    ]
    expected = [
        Query("1", "A?", ("1", "b"), answers=("forty-two",), sub_questions=("A1?", "A2?")),
        Query("q", "B?", subtopics={"x": (), "y": ()}, root="b"),
        Query("r", "C?", ("a", "b"), {"x": ("1", "2"), "y": ("3",)}, "c"),
    ]
    assert convert_all(records, as_query, "queries") == expected
    path = tmp_path / "queries.csv"
    path.write_text('query,subtopics,gold,sub_questions\nA?,"{""x"": [""a""]}", b;c,A1?;A2?\n', encoding="utf-8")
    assert read_queries(path).items == [Query("1", "A?", ("b", "c"), {"x": ("a",)}, sub_questions=("A1?", "A2?"))]
    path = tmp_path / "queries.jsonl"
    path.write_text('{"text": "A?"}\n{"text": "B?", "sub_questions": ["B1?", 1.5]}\n', encoding="utf-8")
    assert str(read_queries(path).problems[0]).startswith(f"{path}:2: 'sub_questions' must be a string")


def test_ids_and_titles_are_read_as_benchmarks_write_them() -> None:
    assert as_document({"_id": 7, "title": "Bread", "text": "is baked."}, "1") == Document(
        "7", "Bread is baked.", title="Bread"
    )
    assert as_document({"id": "a", "_id": "b", "title": None, "text": " c"}, "1") == Document("a", " c")
    assert as_document({"_id": "", "title": "Only a title", "text": ""}, "1") == Document(
        "1", "Only a title", title="Only a title"
    )
    for key in ("_id", "query_id", "topic_id"):
        assert as_query({key: "q", "query": "A?"}, "1") == Query("q", "A?")


@pytest.mark.parametrize(
    ("record", "word"),
    [
        (3, "expected a text"),
        ({"title": "No text"}, "no 'text'"),
        ({"_id": ["a"], "text": "A"}, "'_id'"),
        ({"text": "A", "subtopics": {"x": 1}}, "'subtopics'"),
        ({"text": "A", "subtopics": [True]}, "'subtopics'"),
    ],
)
def test_a_record_that_is_no_document_is_an_error_that_names_position_and_key(record: Any, word: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"documents, position 1: .*{word}"):
        convert_all(["A", record], as_document, "documents")


def test_a_folder_holds_documents_but_no_queries(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="holds no document"):
        read_documents(tmp_path)
    with pytest.raises(InvalidParameterError, match="is a folder"):
        read_queries(tmp_path)


# --- keys of other shapes ---------------------------------------------------------------------------------------------


def test_a_misspelt_key_of_a_query_is_a_problem_and_metadata_is_not() -> None:
    keys = {"golden": "gold", "Gold": "gold", "subtopic": "subtopics", "score": "scores", "queries": "sub_questions"}
    for key, near in keys.items():
        with pytest.raises(InvalidInputError, match=f"'{key}' .* '{near}'"):
            as_query({"text": "?", key: ["a"]}, "1")
    kept = as_query({"text": "?", "gold": ["a"], "golden": "x", "answer": "a text", "language": "en", 7: 8}, "1")
    assert kept == Query("1", "?", ("a",))


def test_a_misspelt_or_missing_gold_is_a_problem_before_anything_is_embedded(tmp_path: Path) -> None:
    path = write(tmp_path / "queries.jsonl", [{"text": "One?", "golds": ["a"]}, {"text": "Two?", "note": "x"}])
    assert [problem.line for problem in read_queries(path).problems] == [1]
    assert read_queries(path, gold_key="golds").items[0].gold == ("a",)
    with pytest.raises(InvalidInputError, match=r"no line has the key 'relevant' \(keys: 'text', 'golds', 'note'\)"):
        read_queries(path, gold_key="relevant")


@pytest.mark.parametrize("scores_key", ["scores", "reranked"])
def test_sources_costs_and_scores_are_read_from_json_lines_and_tables(tmp_path: Path, scores_key: str) -> None:
    key = None if scores_key == "scores" else scores_key
    scores = {"a": 0.5, "b": -2}
    lines = write(tmp_path / "d.jsonl", [{"text": "A", "source": 7, "cost": 2}, {"text": "B"}])
    table = lines.with_suffix(".csv")
    table.write_text("text,source,cost\nA,7,2\nB,,\n", encoding="utf-8")
    for path in (lines, table):
        documents = read_documents(path).items
        assert [(document.source, document.cost) for document in documents] == [("7", 2.0), (None, None)]
    lines = write(tmp_path / "q.jsonl", [{"text": "Q", scores_key: scores}, {"text": "R"}])
    cell = json.dumps(scores).replace('"', '""')
    table = lines.with_suffix(".csv")
    table.write_text(f'text,{scores_key}\nQ,"{cell}"\nR,\n', encoding="utf-8")
    for path in (lines, table):
        assert [query.scores for query in read_queries(path, scores_key=key).items] == [scores, {}]
    with pytest.raises(InvalidInputError, match="no line has the key 'rank'"):
        read_queries(tmp_path / "q.jsonl", scores_key="rank")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"cost": -1}, "'cost' must be a finite number of at least 0, got -1"),
        ({"cost": "cheap"}, "'cost' must be a finite number"),
        ({"source": ["a"]}, "'source' must be a string or a whole number"),
    ],
)
def test_sources_and_costs_that_are_none_are_refused(record: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        as_document({"text": "A", **record}, "1")


@pytest.mark.parametrize("value", [10**5000, -(10**5000), "\ud800"], ids=quoted)
def test_what_no_file_can_hold_is_refused_with_its_key(value: Any) -> None:
    for key in ("id", "title", "source", "subtopics"):
        with pytest.raises(InvalidInputError, match=f"'{key}'"):
            as_document({"text": "A", key: [value] if key == "subtopics" else value}, "1")
    for key in ("id", "gold", "root", "subtopics", "answers"):
        with pytest.raises(InvalidInputError, match=f"'{key}'"):
            as_query({"text": "?", key: value if key in ("id", "root") else [value]}, "1")
    with pytest.raises(InvalidInputError, match="'subtopics'"):
        as_query({"text": "?", "subtopics": {value: ["a"]}}, "1")


@pytest.mark.parametrize("scores", [["a"], {"a": "high"}, {"a": math.inf}, {"a": True}])
def test_scores_that_are_no_numbers_by_id_are_refused(scores: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"'scores.* must be"):
        as_query({"text": "?", "scores": scores}, "1")
