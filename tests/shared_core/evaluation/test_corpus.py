"""Documents and queries from files and from records: what is read, and which line a problem names."""

import json
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize(
    ("name", "head", "line", "message"),
    [
        ("d.jsonl", b"", b"{oops", "not JSON"),
        ("d.jsonl", b"", b'["no", "object"]', "expected a JSON object"),
        ("d.jsonl", b"", b'{"id": "c", "body": "no text"}', r"there is no 'text'; found \['id', 'body'\]"),
        ("d.jsonl", b"", b'{"id": "d", "text": "   "}', "is empty"),
        ("d.jsonl", b"", b'{"id": "e", "text": 5}', "must be a string"),
        ("d.jsonl", b"", b'{"id": "a", "text": "The same id."}', "a second time"),
        ("d.jsonl", b"", b'{"id": "f", "text": "\xff"}', "not UTF-8"),
        ("d.csv", b"id,text,source\n", b"b,too,many,cells", "4 cells under 3 columns"),
        ("d.csv", b"id,text,source\n", b"d,\xe9,x", "not UTF-8"),
        ("d.csv", b"id,text,source\n", b"e,,x", "'text' is empty"),
        ("d.csv", b"id,text,source\n", b'f,"Open.,x', "not a table"),
    ],
)
def test_a_bad_line_ends_the_reading_and_is_named(
    tmp_path: Path, name: str, head: bytes, line: bytes, message: str
) -> None:
    path = tmp_path / name
    good = b'a,"One,\ntwo lines.",x\n\n' if head else b'{"id": "a", "text": "One."}\n\n'
    path.write_bytes(b"\xef\xbb\xbf" + head + good + line + b"\n")
    with pytest.raises(InvalidInputError, match=rf"{path}:{5 if head else 3}: .*{message}"):
        read_documents(path)


def test_files_keep_their_order(tmp_path: Path) -> None:
    lines, table = tmp_path / "d.jsonl", tmp_path / "d.csv"
    lines.write_bytes(
        b'\xef\xbb\xbf{"id": "a", "text": "One.", "subtopics": ["x", "y"]}\n\n'
        b'{"text": "Two, without an id."}\n{"id": 12, "text": "A number."}'
    )
    assert read_documents(lines) == [
        Document("a", "One."), Document("3", "Two, without an id."), Document("12", "A number."),
    ]  # fmt: skip
    table.write_bytes(b'id,text, source\na,"One,\ntwo lines.",x\n\nc,Three.,\n,No id.,\n')
    assert read_documents(table) == [
        Document("a", "One,\ntwo lines.", source="x"), Document("c", "Three."), Document("3", "No id."),
    ]  # fmt: skip


def test_parquet_files(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "d.parquet"
    parquet.write_table(arrow.table({"id": [7, 8], "text": ["One.", "Two."], "source": ["x", None]}), path)
    assert read_documents(path) == [Document("7", "One.", source="x"), Document("8", "Two.")]
    parquet.write_table(arrow.table({"id": [7, 8], "text": ["One.", None]}), path)
    with pytest.raises(InvalidInputError, match=r"d\.parquet: row 2: 'text' is empty"):
        read_documents(path)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(InvalidInputError, match=r"d\.parquet cannot be read"):
        read_documents(path)


def test_texts_from_lines_and_folders(tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("First?\n\n  Second?  \n", encoding="utf-8")
    assert read_queries(tmp_path / "queries.txt") == [Query("1", "First?"), Query("3", "Second?")]
    folder = tmp_path / "texts"
    (folder / "sub").mkdir(parents=True)
    (folder / "b.md").write_text("B\n", encoding="utf-8")
    (folder / "sub" / "a.txt").write_text("A", encoding="utf-8")
    (folder / "other.pdf").write_bytes(b"%PDF")
    assert read_documents(folder) == [Document("b.md", "B\n"), Document("sub/a.txt", "A")]
    for content, message in ((b" \n", "the file is empty"), (b"\xe9", "not UTF-8")):
        (folder / "bad.txt").write_bytes(content)
        with pytest.raises(InvalidInputError, match=f"bad.txt: {message}"):
            read_documents(folder)


def test_queries_in_every_shape(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"query": "A?", "gold": [1, "b"], "answer": "42"},
        {"id": "q", "question": "B?", "subtopics": {"x": []}},
        {"_id": "r", "text": "C?", "subtopics": {"x": [1, "2"], "y": "3"}, "gold": ["a", "b"]},
    ]
    expected = [
        Query("1", "A?", ("1", "b")),
        Query("q", "B?"),
        Query("r", "C?", ("a", "b"), {"x": ("1", "2"), "y": ("3",)}),
    ]
    assert convert_all(records, as_query, "queries") == expected
    path = tmp_path / "queries.csv"
    path.write_text('query,subtopics,gold\nA?,"{""x"": [""a""]}", b;c\n', encoding="utf-8")
    assert read_queries(path) == [Query("1", "A?", ("b", "c"), {"x": ("a",)})]
    path = tmp_path / "queries.jsonl"
    path.write_text('{"text": "A?"}\n{"text": "B?", "gold": ["b", 1.5]}\n', encoding="utf-8")
    with pytest.raises(InvalidInputError, match=f"{path}:2: 'gold' must be a string"):
        read_queries(path)


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


def test_a_folder_holds_documents_but_no_queries(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="holds no document"):
        read_documents(tmp_path)
    with pytest.raises(InvalidParameterError, match="is a folder"):
        read_queries(tmp_path)


def test_a_misspelt_key_of_a_query_is_a_problem_and_metadata_is_not() -> None:
    keys = {"golden": "gold", "Gold": "gold", "subtopic": "subtopics"}
    for key, near in keys.items():
        with pytest.raises(InvalidInputError, match=f"'{key}' .* '{near}'"):
            as_query({"text": "?", key: ["a"]}, "1")
    kept = as_query({"text": "?", "gold": ["a"], "golden": "x", "answer": "a text", "language": "en", 7: 8}, "1")
    assert kept == Query("1", "?", ("a",))


def test_sources_and_costs_are_read_from_json_lines_and_tables(tmp_path: Path) -> None:
    lines = write(tmp_path / "d.jsonl", [{"text": "A", "source": 7, "cost": 2}, {"text": "B"}])
    table = lines.with_suffix(".csv")
    table.write_text("text,source,cost\nA,7,2\nB,,\n", encoding="utf-8")
    for path in (lines, table):
        documents = read_documents(path)
        assert [(document.source, document.cost) for document in documents] == [("7", 2.0), (None, None)]


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


def test_what_no_file_can_hold_is_refused_with_its_key() -> None:
    value = "\ud800"
    for key in ("id", "title", "source"):
        with pytest.raises(InvalidInputError, match=f"'{key}'"):
            as_document({"text": "A", key: value}, "1")
    for key in ("id", "gold"):
        with pytest.raises(InvalidInputError, match=f"'{key}'"):
            as_query({"text": "?", key: value if key == "id" else [value]}, "1")
    with pytest.raises(InvalidInputError, match="'subtopics'"):
        as_query({"text": "?", "subtopics": {value: ["a"]}}, "1")
