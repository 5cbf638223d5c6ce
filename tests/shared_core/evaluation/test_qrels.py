from pathlib import Path

import pytest

from shared_core.errors import InvalidInputError
from shared_core.evaluation.corpus import Document, Query, beir_files, read_judged, read_qrels


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A BEIR folder whose split "test" judges two of its four queries."""
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "Bread", "text": "is baked.", "metadata": {}}\n'
        '{"_id": "d2", "title": "", "text": "Rivers carry water."}\n'
        '{"_id": 3, "title": "Only a title", "text": ""}\n',
        encoding="utf-8",
    )
    (tmp_path / "queries.jsonl").write_text(
        "\n".join(f'{{"_id": "q{i}", "text": "Question {i}?", "metadata": {{}}}}' for i in range(1, 5)),
        encoding="utf-8",
    )
    (tmp_path / "qrels").mkdir()
    write(tmp_path / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\t3\t1\nq1\td2\t0\nq3\td2\t1\n")
    write(tmp_path / "qrels" / "dev.tsv", "query-id\tcorpus-id\tscore\nq2\td2\t1\n")
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_a_beir_folder_gives_titles_with_texts_and_the_queries_of_one_split(folder: Path) -> None:
    corpus = read_judged(*beir_files(folder))
    assert corpus.documents == [
        Document("d1", "Bread is baked.", title="Bread"),
        Document("d2", "Rivers carry water."),
        Document("3", "Only a title", title="Only a title"),
    ]
    assert corpus.queries == [
        Query("q1", "Question 1?", gold=("d1", "3"), subtopics={}),
        Query("q3", "Question 3?", gold=("d2",), subtopics={}),
    ]
    assert corpus.notes == ["Left out: 2 of 4 queries, without a relevant document in test.tsv."]
    [query] = read_judged(*beir_files(folder, folder / "qrels" / "dev.tsv")).queries
    assert query.id == "q2"


def test_the_split_is_test_or_the_only_one(folder: Path) -> None:
    assert beir_files(folder)[2].name == "test.tsv"
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "train.tsv")
    with pytest.raises(InvalidInputError, match=r"qrels holds dev, train, and no test"):
        beir_files(folder)
    (folder / "qrels" / "dev.tsv").unlink()
    assert beir_files(folder)[2].name == "train.tsv"
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(InvalidInputError, match="not a BEIR folder"):
        beir_files(folder)


def test_another_file_of_judgements_takes_the_place_of_those_in_the_folder(folder: Path) -> None:
    trec = write(folder / "nuggets.qrels", "q4 1 d1 1\nq4 2 d1 1\nq4 2 d2 1\n")
    for file in (folder / "qrels").iterdir():
        file.unlink()
    with pytest.raises(InvalidInputError, match="holds nothing"):
        beir_files(folder)
    [query] = read_judged(*beir_files(folder, trec)).queries
    assert query == Query("q4", "Question 4?", gold=("d1", "d2"), subtopics={"1": ("d1",), "2": ("d1", "d2")})


def test_the_second_of_four_columns_is_a_subtopic(tmp_path: Path) -> None:
    # As ndeval counts them: 0 is a subtopic like any other, and one that no document covers is none.
    text = "1 0 a 1\n1 1 a 0\n1 2 b 2\n1 2 a 1\n1 3 c -2\n2 1 c 1\n"
    assert read_qrels(write(tmp_path / "diversity", text)) == {
        "1": {"0": ["a"], "2": ["b", "a"]},
        "2": {"1": ["c"]},
    }


def test_ids_of_tables_may_hold_spaces_and_quotation_marks(tmp_path: Path) -> None:
    text = 'query-id\tcorpus-id\tscore\nq 1\t"<say ""hi"">"\t1\nq 1\tthe "b"\t1\n'
    assert read_qrels(write(tmp_path / "test.tsv", text))["q 1"][""] == ['<say "hi">', 'the "b"']


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q\ta\t1\nq\tb\tyes\n", ":2: the score, .*got 'yes'"),
        ("q 0 a nan\n", ":1: the score"),
        ("q\ta\t1\n\nq\tb\n", ":3: 2 columns"),
        ("q 0 a 1 run 5\n", ":1: 6 columns"),
        ("query-id\tcorpus-id\tscore\nq\t\t1\n", ":2: 3 columns, .* none empty"),
        ("q\ta\t1\nq\t\udcff\t1\n", ":2: not UTF-8"),
        ("query-id\tcorpus-id\tscore\n\n", " holds no judgement"),
    ],
)
def test_a_wrong_line_of_judgements_is_an_error_that_names_it(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "test.tsv"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InvalidInputError, match=f"^{path}{message}"):
        read_qrels(path)


def test_judgements_of_other_queries_are_an_error_and_some_of_them_are_counted(folder: Path) -> None:
    files = beir_files(folder)
    write(files[2], "1\td1\t1\n2\td2\t1\n")
    with pytest.raises(InvalidInputError, match=r"none of the query ids of test.tsv .*'1'.*'q1'"):
        read_judged(*files)
    write(files[2], "1\td1\t1\nq2\td2\t1\nq3\td1\t0\n")
    corpus = read_judged(*files)
    assert [query.id for query in corpus.queries] == ["q2"]
    assert corpus.notes == [
        "No query has 1 of the 3 query ids of test.tsv, such as '1'.",
        "Left out: 3 of 4 queries, without a relevant document in test.tsv.",
    ]
    write(files[2], "q2\td2\t0\nq3\td1\t-1\n")
    with pytest.raises(InvalidInputError, match=r"test.tsv names no relevant document"):
        read_judged(*files)
