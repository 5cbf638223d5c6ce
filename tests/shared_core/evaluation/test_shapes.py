"""Documents, questions, judgements and pools as people have them: tables, packed files, exports of other programs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from shared_core.errors import InvalidInputError
from shared_core.evaluation.corpus import (
    Document,
    Query,
    as_document,
    as_query,
    convert_all,
    read_documents,
    read_qrels,
    read_queries,
)

NAN = float("nan")


class Polars:
    """What a DataFrame of polars has, which iterates over its columns."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows, self.columns = rows, list(rows[0])

    def to_dicts(self) -> list[dict[str, Any]]:
        return self.rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.columns)


class HuggingFace:
    """What a Dataset of the package datasets has, whose to_dict gives columns."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def to_dict(self, batch_size: int | None = None) -> dict[str, list[Any]]:
        return {key: [row[key] for row in self.rows] for key in self.rows[0]}

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)


RECORDS: list[dict[str, Any]] = [
    {"id": 7, "text": "A sea.", "source": "x"},
    {"id": 8, "text": "A lake.", "source": None},
]
TABLES: list[Callable[[list[dict[str, Any]]], Any]] = [
    list, iter, pd.DataFrame, pa.Table.from_pylist, Polars, HuggingFace,
    lambda rows: pd.DataFrame(rows).astype({"id": "float", "text": "category"}),
]  # fmt: skip


@pytest.mark.parametrize("table", TABLES, ids=range(len(TABLES)))
def test_a_table_is_a_list_of_its_rows(table: Callable[[Any], Any]) -> None:
    assert convert_all(table(RECORDS), as_document, "documents") == [
        Document("7", "A sea.", source="x"),
        Document("8", "A lake."),
    ]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ("a text", "str"),
        ({"text": ["a"]}, "dict"),
        (pd.DataFrame({"a": ["b"]}), "position 0: .*'text'.*'a'"),
        (pd.DataFrame({"text": ["b", None]}), "position 1: 'text' is empty"),
        (pd.DataFrame({"text": []}), "no documents"),
    ],
    ids=repr,
)
def test_what_is_no_table_of_texts_is_refused_by_name(given: Any, word: str) -> None:
    with pytest.raises(InvalidInputError, match=word):
        convert_all(given, as_document, "documents")


NAME = UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (np.array(["a", "b"]), ("a", "b")),
        ([np.int64(7), "b", NAME], ("7", "b", str(NAME))),
        (7.0, ("7",)),
        (pa.scalar(["a", "b"]), ("a", "b")),
        (("a", None, NAN, " ", pd.NA, "b"), ("a", "b")),
        ([None], ()),
    ],
    ids=repr,
)
def test_ids_are_strings_whole_numbers_and_uuids_alone_or_in_lists(given: Any, names: tuple[str, ...]) -> None:
    assert as_query({"text": "?", "gold": given}, "1").gold == names


@pytest.mark.parametrize("given", [7.5, [True], {"a": 1}, [2.0**53]], ids=repr)
def test_what_is_no_id_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInputError, match="'gold'"):
        as_query({"text": "?", "gold": given}, "1")


def test_the_rows_of_an_arrow_table_have_no_labels_of_other_rows() -> None:
    rows = [
        {"text": "A?", "subtopics": {"x": ["a"]}},
        {"text": "B?", "subtopics": {"y": []}},
    ]
    expected = [
        Query("1", "A?", subtopics={"x": ("a",)}),
        Query("2", "B?"),
    ]
    for table in (rows, pa.Table.from_pylist(rows), pd.DataFrame(rows)):
        assert convert_all(table, as_query, "queries") == expected


@pytest.mark.parametrize("missing", [None, NAN, " ", pd.NA, pa.scalar(None)], ids=repr)
def test_a_missing_value_is_none_under_every_key(missing: Any) -> None:
    keys = ("id", "title", "source", "cost")
    assert as_document({"text": "A", **dict.fromkeys(keys, missing)}, "5") == Document("5", "A")
    keys = ("id", "_id", "gold", "subtopics", "text")
    assert as_query({**dict.fromkeys(keys, missing), "question": "?"}, "5") == Query("5", "?")
    assert as_document({"title": "Only a title", "text": missing}, "5").text == "Only a title"
    with pytest.raises(InvalidInputError, match="'text' is empty"):
        as_document({"text": missing}, "5")


# --- files ------------------------------------------------------------------------------------------------------------

LINES = '{"_id": "a", "title": "", "text": "A sea."}\n{"_id": "b", "title": "Lake", "text": "A \\"lake\\"."}\n'
SEA_AND_LAKE = [Document("a", "A sea."), Document("b", 'Lake A "lake".', title="Lake")]
FILES = {
    "mteb.jsonl": LINES,
    "null.ndjson": LINES.replace('""', "null"),
    "spaced.csv": 'id, title, text\r\na, , A sea.\r\nb, "Lake", "A ""lake""."\r\n',
    "literal.tsv": 'id\ttitle\ttext\na\t\tA sea.\nb\tLake\tA "lake".\n',
}


@pytest.mark.parametrize("name", FILES)
def test_one_corpus_in_the_files_of_other_programs(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name].encode())
    assert read_documents(tmp_path / name) == SEA_AND_LAKE


@pytest.mark.parametrize("delimiter", ["\t", ","])
def test_a_quotation_mark_is_a_character_inside_a_cell_and_must_be_closed_around_it(
    tmp_path: Path, delimiter: str
) -> None:
    path = tmp_path / f"docs.{'tsv' if delimiter == chr(9) else 'csv'}"

    def write(*rows: str) -> None:
        path.write_text("\n".join(["id\ttext", *rows]).replace("\t", delimiter) + "\n", encoding="utf-8")

    write('1\tA 5" pipe', '2\t"A\tsea', 'and ""lake"""', "3\tC")
    texts = ['A 5" pipe', f'A{delimiter}sea\nand "lake"', "C"]
    assert [item.text for item in read_documents(path)] == [item.text for item in read_queries(path)] == texts
    for row in ('1\t"A sea', '1\t"Weird Al" Yankovic'):
        write("0\tA", row, "2\tB")
        with pytest.raises(InvalidInputError, match=rf"{path}:\d: not a table: "):
            read_documents(path)


def test_hidden_files_and_folders_of_a_folder_are_left_out(tmp_path: Path) -> None:
    for name in ("a.md", "b/c.txt", ".git/d.md", "b/.obsidian/e.md", "._f.md", ".ipynb_checkpoints/g/h.md"):
        path = tmp_path / ".home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("A text.", encoding="utf-8")
    assert [document.id for document in read_documents(tmp_path / ".home")] == ["a.md", "b/c.txt"]


JUDGED = {
    "headless.tsv": "1\ta\t1\n1\tb\t0\n2\tb\t2\n",
    "q0.qrels": "1\tQ0\ta\t1\n1  Q0   b -1 \n\n2 Q0 b 2\n2 Q0 b 1\n",
    "unclosed.tsv": '1\ta\t1\n1\tb\t0\n2\tb\t2\n2\t"c\t0\n',
}


@pytest.mark.parametrize("name", JUDGED)
def test_one_set_of_judgements_in_the_files_of_other_programs(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(JUDGED[name].encode())
    assert read_qrels(tmp_path / name) == {"1": {"": ["a"]}, "2": {"": ["b"]}}
