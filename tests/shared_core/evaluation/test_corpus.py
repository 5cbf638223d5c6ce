import csv
import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared_core.errors import InvalidInputError, InvalidParameterError
from shared_core.evaluation.corpus import (
    Document,
    Query,
    as_document,
    as_query,
    convert_all,
    found_documents,
    read_documents,
    read_queries,
)


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
    expected = {
        4: "not JSON: Expecting property name enclosed in double quotes at column 2",
        5: "expected a JSON object, got list",
        6: "there is no 'text'; found ['id', 'body']",
        7: "'text' is empty",
        8: "'text' must be a string, got int",
        9: "id 'a' occurs a second time",
        10: "not UTF-8",
        11: "'subtopics' must be a list of strings, got dict",
    }
    assert [problem.line for problem in read.problems] == list(expected)
    for problem in read.problems:
        assert problem.what.startswith(expected[problem.line or 0])
        assert str(problem).startswith(f"{path}:{problem.line}: ")


def test_csv_problems_name_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "docs.csv"
    path.write_bytes(
        b"id,text,subtopics\n"
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


def test_tabs_separate_the_cells_of_tsv(tmp_path: Path) -> None:
    path = tmp_path / "docs.tsv"
    path.write_text("text\tid\nOne, two.\ta\n", encoding="utf-8")
    assert read_documents(path).items == [Document("a", "One, two.")]


def test_a_folder_gives_one_document_for_each_file(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "b.md").write_text("# B\n\nText.", encoding="utf-8")
    (tmp_path / "deep" / "er" / "a.txt").write_bytes(b"\xef\xbb\xbfA.")
    (tmp_path / "deep" / "empty.txt").write_text(" \n", encoding="utf-8")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    read = read_documents(tmp_path)
    assert read.items == [Document("b.md", "# B\n\nText."), Document("deep/er/a.txt", "A.")]
    assert [str(p) for p in read.problems] == [
        f"{tmp_path / 'deep' / 'empty.txt'}: the file is empty",
        f"{tmp_path / 'latin.txt'}: not UTF-8",
    ]


def test_queries_hold_what_is_known_about_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    records = [
        {"question": "A?", "gold": [1, "b", "b"], "answers": "forty-two"},
        {"id": "q", "query": "B?", "subtopics": ["x", "y"], "root_query": "b"},
        {"id": "r", "text": "C?", "subtopics": {"x": ["1", "2"], "y": "3"}, "root": "c", "gold": None},
        {"id": "s", "text": "D?", "gold": {"not": "a list"}},
        {"id": "t", "text": "E?", "answers": [True]},
    ]
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    read = read_queries(path)
    assert read.items == [
        Query("1", "A?", ("1", "b"), answers=("forty-two",)),
        Query("q", "B?", subtopics={"x": (), "y": ()}, root="b"),
        Query("r", "C?", subtopics={"x": ("1", "2"), "y": ("3",)}, root="c"),
    ]
    assert [(p.line, p.what) for p in read.problems] == [
        (4, "'gold' must be a list of strings, got dict"),
        (5, "'answers' must be a string or a whole number, got True"),
    ]


def test_ids_and_titles_are_read_as_benchmarks_write_them() -> None:
    assert as_document({"_id": 7, "title": "Bread", "text": "is baked."}, "1") == Document("7", "Bread is baked.")
    assert as_document({"id": "a", "_id": "b", "title": None, "text": " c"}, "1") == Document("a", " c")
    assert as_document({"_id": "", "title": "Only a title", "text": ""}, "1") == Document("1", "Only a title")
    for key in ("_id", "query_id", "topic_id"):
        assert as_query({key: "q", "query": "A?"}, "1") == Query("q", "A?")
    with pytest.raises(InvalidInputError, match="there is no 'text'"):
        as_document({"title": "No text"}, "1")
    with pytest.raises(InvalidInputError, match="'title' must be a string, got int"):
        as_document({"title": 5, "text": "A"}, "1")
    with pytest.raises(InvalidInputError, match="'_id' must be a string or a whole number"):
        as_document({"_id": ["a"], "text": "A"}, "1")


def test_queries_may_be_lines_of_text(tmp_path: Path) -> None:
    path = tmp_path / "queries.txt"
    path.write_text("First?\n\n  Second?  \n", encoding="utf-8")
    assert read_queries(path).items == [Query("1", "First?"), Query("3", "Second?")]


def test_a_csv_cell_may_map_subtopics_to_documents(tmp_path: Path) -> None:
    path = tmp_path / "queries.csv"
    path.write_text('query,subtopics\nA?,"{""x"": [""a""]}"\n', encoding="utf-8")
    assert read_queries(path).items == [Query("1", "A?", subtopics={"x": ("a",)})]


@pytest.mark.parametrize("content", ["", "\n\n", "{oops\n"])
def test_a_file_without_a_single_document_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInputError, match="holds no document"):
        read_documents(path)


def test_paths_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="No such file"):
        read_documents(tmp_path / "absent.jsonl")
    with pytest.raises(InvalidParameterError, match=r"expected \.jsonl, \.csv"):
        read_documents(tmp_path / "docs.xlsx")
    with pytest.raises(InvalidParameterError, match="is a folder"):
        read_queries(tmp_path)
    with pytest.raises(InvalidInputError, match="holds no document"):
        read_documents(tmp_path)


def test_errors_for_python_callers_name_the_position() -> None:
    assert convert_all(["A", {"text": "B", "id": "x"}, Document("y", "C")], as_document, "documents") == [
        Document("1", "A"),
        Document("x", "B"),
        Document("y", "C"),
    ]
    with pytest.raises(InvalidInputError, match="documents, position 1: expected a text or an object"):
        convert_all(["A", 3], as_document, "documents")
    with pytest.raises(InvalidInputError, match="queries, position 1: id '1' occurs a second time"):
        convert_all(["A", Query("1", "B")], as_query, "queries")
    with pytest.raises(InvalidInputError, match="documents must be a list"):
        convert_all("one text", as_document, "documents")
    with pytest.raises(InvalidInputError, match="there are no queries"):
        convert_all([], as_query, "queries")


def test_a_cell_above_the_limit_of_the_csv_module_is_one_cell(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    long = "\n".join(["a line, with commas"] * 9000)
    path.write_text(f'text,id\none,a\n"{long}",b\nthree,c\n', encoding="utf-8")
    found = read_documents(path)
    assert [document.id for document in found.items] == ["a", "b", "c"]
    assert found.items[1].text == long
    assert not found.problems


def test_spaces_beside_commas_are_not_part_of_an_id(tmp_path: Path) -> None:
    documents, queries = tmp_path / "d.csv", tmp_path / "q.csv"
    documents.write_text('text, id\none, a\n"two", "b"\n', encoding="utf-8")
    queries.write_text("text,gold\nwhich,a;b\n", encoding="utf-8")
    assert [document.id for document in read_documents(documents).items] == ["a", "b"]
    assert read_queries(queries).items[0].gold == ("a", "b")


def test_a_lone_surrogate_is_a_problem_of_its_line_only(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"text": "whole"}\n{"text": "cut \\ud83d"}\n{"text": "whole too"}\n', encoding="utf-8")
    found = read_documents(path)
    assert [document.text for document in found.items] == ["whole", "whole too"]
    assert "2" in str(found.problems[0])
    assert "surrogate" in str(found.problems[0])
    with pytest.raises(InvalidInputError, match="surrogate"):
        as_document({"text": "cut \ud83d"}, "1")


def test_a_single_label_in_the_metadata_of_a_store_is_a_label() -> None:
    found = found_documents([("a", "A", "x"), ("b", "B", ["x", "y"]), ("c", "C", None)])
    assert [document.subtopics for document in found] == [("x",), ("x", "y"), ()]


def test_reading_a_table_leaves_the_cell_limit_of_the_csv_module_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(f"text\none\n{'x' * 200_000}\n", encoding="utf-8")
    before = csv.field_size_limit()
    assert len(read_documents(path).items) == 2
    assert csv.field_size_limit() == before
    # Files of different sizes at the same time must not take the limit from each other.
    (tmp_path / "short.csv").write_text("text\n" + "\n".join(map(str, range(3000))), encoding="utf-8")
    results: list[int] = []
    names = ["d.csv", "short.csv"] * 3
    threads = [
        threading.Thread(target=lambda n=n: results.append(len(read_documents(tmp_path / n).items))) for n in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [2, 2, 2, 3000, 3000, 3000]
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("depth", [400, 5000, 200_000])
def test_brackets_inside_each_other_are_a_problem_of_their_line(tmp_path: Path, depth: int) -> None:
    for closed in ("", "]" * depth):
        (tmp_path / "q.csv").write_text(f'text,gold\na,"{"[" * depth}{closed}"\nb,x\n', encoding="utf-8")
        lines = f'{{"text": "a", "gold": {"[" * depth}{closed}}}\n{{"text": "b", "gold": "x"}}\n'
        (tmp_path / "q.jsonl").write_text(lines, encoding="utf-8")
        for name, line in (("q.csv", 2), ("q.jsonl", 1)):
            found = read_queries(tmp_path / name)
            assert [query.text for query in found.items] == ["b"]
            assert [problem.line for problem in found.problems] == [line]
            assert "maximum recursion depth" not in found.problems[0].what
            assert len(found.problems[0].what) < 200


def test_a_number_with_too_many_digits_is_a_problem_of_its_line(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"text": "a", "id": ' + "9" * 5000 + '}\n{"text": "b"}\n', encoding="utf-8")
    found = read_documents(path)
    assert [str(problem) for problem in found.problems] == [
        f"{path}:1: not JSON that can be read: a number has too many digits"
    ]
    with pytest.raises(InvalidInputError, match="documents, position 0: 'id' is a number with too many digits"):
        convert_all([{"text": "a", "id": 10**5000}], as_document, "documents")


@pytest.mark.parametrize(
    "line",
    [
        {"x" * 200_000: "no text"},
        {"text": "a", "id": ["\x1b[31m" * 50_000]},
        {"text": "a", "subtopics": ["a", {"\x07" * 200_000: 1}]},
        {"text": "a", "id": "\x1b[2J" * 50_000},
    ],
)
def test_messages_quote_little_and_escape_control_characters(tmp_path: Path, line: dict[str, Any]) -> None:
    path = tmp_path / "\x1b[31mdocs\n.jsonl"
    path.write_text(f'{{"text": "good"}}\n{json.dumps(line)}\n{json.dumps(line)}\n', encoding="utf-8")
    said = str(read_documents(path).problems[0])
    assert said.isprintable()
    assert len(said) < len(str(path)) + 300


@pytest.mark.parametrize("name", ["\x1b[31m.jsonl", "\x1b[31m.xlsx", "\x1b[31m", "\x1b[31m.csv"])
@pytest.mark.parametrize("kind", ["absent", "folder", "file"])
def test_the_name_of_a_file_is_escaped_in_every_message(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    if kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.write_bytes(b"\xff")
    for read in (read_documents, read_queries):
        with pytest.raises((InvalidInputError, InvalidParameterError)) as error:
            read(path)
        assert str(error.value).isprintable()


def test_pipes_and_impossible_paths_are_errors(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    for read in (read_documents, read_queries):
        with pytest.raises(InvalidInputError, match=r"pipe.jsonl is not a file: a folder, a pipe or a device"):
            read(tmp_path / "pipe.jsonl")
        with pytest.raises(InvalidInputError, match=r"a\\x00b.jsonl is not a path"):
            read("a\0b.jsonl")
        with pytest.raises(InvalidInputError, match="cannot be read: File name too long"):
            read("x" * 5000 + ".jsonl")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_table_in_another_encoding_is_refused_by_its_head(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "d.csv"
    path.write_text("text,id\na,b\n", encoding=encoding)
    with pytest.raises(InvalidInputError, match=r"d\.csv:1: the head is not UTF-8: save the file as UTF-8"):
        read_documents(path)


def test_null_characters_in_cells_and_strings_are_kept(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_bytes(b"text\na\0b\n")
    (tmp_path / "d.jsonl").write_bytes(b'{"text": "a\\u0000b"}\n\0\n')
    for name in ("d.csv", "d.jsonl"):
        assert [document.text for document in read_documents(tmp_path / name).items] == ["a\0b"]


@pytest.mark.parametrize("records", [None, 3, [3], [None], [["a"]]])
def test_records_of_another_type_are_errors(records: Any) -> None:
    for convert in (as_document, as_query):
        with pytest.raises(InvalidInputError):
            convert_all(records, convert, "records")


@pytest.mark.parametrize("key", ["id", "gold", "subtopics", "root", "answers"])
def test_arrays_are_no_names(key: str) -> None:
    with pytest.raises(InvalidInputError, match=f"'{key}' must be a .*got "):
        as_query({"text": "a", key: np.array([1, 2])}, "1")


def test_half_a_character_in_a_label_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'subtopics' holds half a character"):
        as_query({"text": "a", "subtopics": {"\ud800": ["x"]}}, "1")


# --- keys of other shapes ---------------------------------------------------------------------------------------------


def test_documents_of_another_shape_are_read_by_their_own_keys(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    lines = [
        {"doc": 7, "body": "One.", "text": "not this", "id": "nor this"},
        {"doc": "b", "title": "Two", "body": "and a title."},
        {"doc": "c", "content": "no body"},
        {"body": "no doc", "id": "d"},
        {"doc": None, "body": "empty"},
        {"doc": "e", "body": ["a list"]},
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    read = read_documents(path, text_key="body", id_key="doc")
    assert read.items == [Document("7", "One."), Document("b", "Two and a title.")]
    assert [str(problem).removeprefix(str(path)) for problem in read.problems] == [
        ":3: there is no 'body'; found ['doc', 'content']",
        ":4: there is no 'doc'; found ['body', 'id']",
        ":5: 'doc' must be a string or a whole number, got None",
        ":6: 'body' must be a string, got list",
    ]


def test_queries_of_another_shape_are_read_by_their_own_keys(tmp_path: Path) -> None:
    keys = {"query_key": "q", "query_id_key": "number", "gold_key": "relevant"}
    lines = [{"q": "One?", "number": 1, "relevant": ["a", 2], "gold": ["not this"]}, {"q": "Two?", "number": 2}]
    jsonl, table = tmp_path / "queries.jsonl", tmp_path / "queries.csv"
    jsonl.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    table.write_text("q,number,relevant\nOne?,1,a;2\nTwo?,2,\n", encoding="utf-8")
    for path in (jsonl, table):
        assert read_queries(path, **keys).items == [Query("1", "One?", ("a", "2")), Query("2", "Two?")]


def test_a_misspelt_gold_is_an_error_before_anything_is_embedded(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"text": "One?", "golds": ["a"]}\n{"text": "Two?", "note": "x"}\n', encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"no line has 'gold', but there is 'golds': rename it, or .*gold_key"):
        read_queries(path)
    assert read_queries(path, gold_key="golds").items[0].gold == ("a",)
    path.write_text('{"text": "One?", "golds": 3}\n{"text": "Two?", "gold": ["a"]}\n', encoding="utf-8")
    assert [query.gold for query in read_queries(path).items] == [(), ("a",)]


def test_a_key_that_no_line_has_is_an_error_that_lists_the_keys_that_there_are(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"q": "One?"}\n{"q": "Two?", "relevant": ["a"]}\n', encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"in all of its lines there is no 'golds'; found \['q', 'relevant'\]"):
        read_queries(path, query_key="q", gold_key="golds")
    with pytest.raises(InvalidInputError, match=r"holds no query; the first problem: .*:1: there is no 'text'; found"):
        read_queries(path, query_key="text")
    # More keys than a short list shows.
    path.write_text(json.dumps({f"column {i}": i for i in range(12)}), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"'column 11'\]"):
        read_queries(path)


def test_plain_texts_have_no_keys(tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("One?", encoding="utf-8")
    with pytest.raises(
        InvalidParameterError, match=r"query_key = 'q', but .*queries.txt holds plain texts without keys"
    ):
        read_queries(tmp_path / "queries.txt", query_key="q")
    with pytest.raises(InvalidParameterError, match=r"id_key = 'id', but .* holds plain texts"):
        read_documents(tmp_path, id_key="id")


def test_places_count_the_records_of_a_file_with_those_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text('{"id": "a", "text": "A"}\n\n{oops\n{"id": "b", "text": "B"}\n', encoding="utf-8")
    read = read_documents(path)
    assert (read.places, len(read.items) + len(read.problems)) == ({"a": 0, "b": 2}, 3)
