"""The words of questions and candidates, from a column of the queries and from files or a function of texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shared_core import InvalidInputError, InvalidParameterError, SetSelectWarning, VectorSourceError, select
from shared_core.batch.dataset import select_dataset, select_table
from tests.shared_core.batch.dataset.corpus import N, corpus, flat_index, nearest, queries, write_index

COUNT = 25
WORDS = ["river", "harbour", "engine", "bread", "violin", "north", "old", "red", "loud", "glass"]
TEXTS = [" ".join(np.random.default_rng([9, i]).choice(WORDS, 6)) for i in range(N)]
QUESTIONS = [" ".join(np.random.default_rng([10, i]).choice(WORDS, 3)) for i in range(COUNT)]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return flat_index(tmp_path / "index.faiss")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder with two files, whose ids have different types."""
    (tmp_path / "texts").mkdir()
    pq.write_table(pa.table({"id": range(300), "text": TEXTS[:300]}), tmp_path / "texts" / "a.parquet")
    others = pa.table({"text": TEXTS[300:], "more": [0] * (N - 300), "id": list(map(str, range(300, N)))})
    pq.write_table(others, tmp_path / "texts" / "b.parquet")
    return tmp_path / "texts"


def asked(**columns: Any) -> Any:
    rows: dict[str, Any] = {"id": range(COUNT), "vector": list(queries()[:COUNT]), "question": QUESTIONS}
    return pa.table(rows | columns)


def expected(labels: Any = range(N), **parameters: Any) -> list[list[int]]:
    found = []
    for query, question in zip(queries(), QUESTIONS, strict=False):
        near = nearest(query)
        own = [TEXTS[i] for i in near]
        one = select(query, corpus()[near], 4, "coverage", question=question, texts=own, **parameters)
        found.append([int(labels[near[i]]) for i in one.indices])
    return found


def test_a_row_has_the_selection_of_a_single_call_with_question_and_texts(index: Path, texts: Path) -> None:
    found = select_table(asked(), index, question_column="question", texts=texts)
    assert found["error"].null_count == COUNT
    assert found["ids"].to_pylist() == expected()
    near = [nearest(query) for query in queries()[:COUNT]]
    of_vectors = [one[select(q, corpus()[one], 4).indices].tolist() for q, one in zip(queries(), near, strict=False)]
    assert select_table(asked(), index)["ids"].to_pylist() == of_vectors != expected()
    half = select_table(asked(), index, question_column="question", texts=texts, word_weight=0.5)
    assert half["ids"].to_pylist() == expected(word_weight=0.5)


def test_texts_may_come_from_a_function_and_candidates_from_a_column(tmp_path: Path) -> None:
    labels = write_index("IDMap,Flat", tmp_path / "index.faiss")
    calls = []

    def texts_by_id(ids: list[int]) -> dict[int, str]:
        calls.append(len(ids))
        return {i: TEXTS[labels.index(i)] for i in ids}

    settings: dict[str, Any] = {"question_column": "question", "texts": texts_by_id}
    table = asked(hits=[[labels[i] for i in nearest(query)] for query in queries()[:COUNT]])
    found = select_table(table, tmp_path / "index.faiss", candidates_column="hits", **settings)
    assert found["ids"].to_pylist() == expected(labels)
    assert len(calls) == 1
    with pytest.raises(VectorSourceError, match=r"^texts_by_id\(ids\) .*\['a'"):
        select_table(table, tmp_path / "index.faiss", **(settings | {"texts": lambda ids: ["a"]}))


def test_a_row_without_question_or_text_has_an_error(index: Path, tmp_path: Path) -> None:
    near = int(nearest(queries()[1])[0])
    kept = [i for i in range(N) if i != near]
    pq.write_table(pa.table({"id": kept, "text": [None] * len(kept)}, pa.schema({"id": "int64", "text": "string"})),
                   tmp_path / "texts.parquet")  # fmt: skip
    questions = [None, *QUESTIONS[1:]]
    found = select_table(asked(question=questions), index, question_column="question", texts=tmp_path / "texts.parquet")
    errors = found["error"].to_pylist()
    assert errors[:2] == ["the question is null", f"there is no text of candidate {near}"]
    # A text that is null has no words.
    row = errors.index(None)
    assert found["ids"][row].as_py() == select_table(asked(), index)["ids"][row].as_py()


def test_a_run_resumes_only_with_the_same_texts(index: Path, texts: Path, tmp_path: Path) -> None:
    pq.write_table(asked(), tmp_path / "queries.parquet")
    settings: dict[str, Any] = {"out": tmp_path / "sets", "question_column": "question", "texts": texts}
    done = select_dataset(tmp_path / "queries.parquet", index, block_rows=10, **settings)
    assert (done.rows, done.errors, done.parts) == (COUNT, 0, 3)
    assert pq.read_table(tmp_path / "sets")["ids"].to_pylist() == expected()
    described = json.loads((tmp_path / "sets" / "_settings.json").read_text())
    assert described["question_column"] == "question"
    assert select_dataset(tmp_path / "queries.parquet", index, block_rows=10, **settings).resumed == 3
    pq.write_table(pa.table({"id": range(300), "text": TEXTS[100:]}), texts / "a.parquet")
    with pytest.raises(InvalidParameterError, match=r"made with other settings \(texts\.0: "):
        select_dataset(tmp_path / "queries.parquet", index, block_rows=10, **settings)


def test_a_selector_that_reads_no_words_gets_none_and_a_warning(index: Path) -> None:
    def refuse(ids: Any) -> Any:
        raise AssertionError("read for nothing")

    with pytest.warns(SetSelectWarning, match="^texts .*MMR"):
        found = select_table(asked(), index, selector="mmr", question_column="question", texts=refuse)
    assert found["error"].null_count == COUNT


# --- names in the texts ---------------------------------------------------------------------------

TITLES = [f"Place {i // 2} Hill" if i % 3 else "" for i in range(N)]
NAMING = [f"{text} by {TITLES[(i * 7) % N]}" for i, text in enumerate(TEXTS)]


def named(titles: list[str] | None = TITLES, **parameters: Any) -> list[tuple[list[int], list[int | None]]]:
    """The ids of the picks of each query, and of the texts that name them, by single calls."""
    found = []
    for query, question in zip(queries(), QUESTIONS, strict=False):
        near = nearest(query)
        given: dict[str, Any] = {"question": question, "texts": [NAMING[i] for i in near]}
        own = None if titles is None else [titles[i] for i in near]
        one = select(query, corpus()[near], 4, titles=own, **given, **parameters)
        assert one.referred_by is not None
        by = [None if row < 0 else int(near[row]) for row in one.referred_by]
        found.append(([int(near[i]) for i in one.indices], by))
    return found


def written(table: Any) -> list[tuple[list[int], list[int | None]]]:
    return list(zip(table["ids"].to_pylist(), table["referred_by"].to_pylist(), strict=True))


def test_a_row_says_which_candidate_names_each_pick(index: Path, tmp_path: Path) -> None:
    # One of the files has no titles, and one has a null in place of an empty title.
    titles = [title or None for title in TITLES[:300]] + [""] * (N - 300)
    (tmp_path / "texts").mkdir()
    first = pa.table({"id": range(300), "text": NAMING[:300], "title": titles[:300], "name": ["Nobody"] * 300})
    pq.write_table(first, tmp_path / "texts" / "a.parquet")
    second = pa.table({"id": range(300, N), "text": NAMING[300:], "name": ["Nobody"] * (N - 300)})
    pq.write_table(second, tmp_path / "texts" / "b.parquet")
    settings: dict[str, Any] = {"question_column": "question", "texts": tmp_path / "texts"}
    found = select_table(asked(), index, **settings)
    assert found.column_names == ["id", "ids", "gains", "relevance", "referred_by", "error"]
    assert written(found) == named([title or "" for title in titles])
    assert any(name is not None for names in found["referred_by"].to_pylist() for name in names)
    other = select_table(asked(), index, **settings, titles="name", reference_weight=0.5)
    assert written(other) == named(["Nobody"] * N, reference_weight=0.5)
    by_id = {i: title for i, title in enumerate(TITLES) if title}
    assert written(select_table(asked(), index, **settings, titles=lambda ids: by_id)) == named()
    without = select_table(asked(), index, **settings, reference_weight=0, neighbour_weight=0)
    assert without.column_names == ["id", "ids", "gains", "relevance", "error"]
    with pytest.raises(InvalidInputError, match=r"heading; .* id, text, title"):
        select_table(asked(), index, **settings, titles="heading")


RULES = [f"{i // 20 + 1}.{i % 20 + 1}" for i in range(N)]
CITING = [f"{text}, see Rule {RULES[(i * 7) % N]}" for i, text in enumerate(TEXTS)]
BOOKS = ["B" if i % 2 else "A" for i in range(N)]


def cited(identifiers: list[str], sources: list[str]) -> list[tuple[list[int], list[int | None]]]:
    """The ids of the picks of each query, and of the texts that cite them, by single calls."""
    found = []
    for query, question in zip(queries(), QUESTIONS, strict=False):
        near = nearest(query)
        columns = {"texts": CITING, "identifiers": identifiers, "sources": sources}
        given: dict[str, Any] = {name: [column[i] for i in near] for name, column in columns.items()}
        one = select(query, corpus()[near], 4, question=question, **given)
        assert one.referred_by is not None
        by = [None if row < 0 else int(near[row]) for row in one.referred_by]
        found.append(([int(near[i]) for i in one.indices], by))
    return found


def test_numbers_and_sources_are_read_from_the_usual_columns_or_named_ones(index: Path, tmp_path: Path) -> None:
    columns = {
        "id": range(N),
        "text": CITING,
        "section": RULES,
        "source": BOOKS,
        "shelf": RULES[::-1],
        "one": ["A"] * N,
    }
    pq.write_table(pa.table(columns), tmp_path / "texts.parquet")
    settings: dict[str, Any] = {"question_column": "question", "texts": tmp_path / "texts.parquet"}
    usual = written(select_table(asked(), index, **settings))
    assert usual == cited(RULES, BOOKS) != cited(RULES[::-1], ["A"] * N)
    assert any(by is not None for _, names in usual for by in names)
    named = select_table(asked(), index, **settings, identifiers="shelf", sources="one")
    assert written(named) == cited(RULES[::-1], ["A"] * N)
    by_id = select_table(
        asked(), index, **settings, identifiers=lambda ids: dict(enumerate(RULES[::-1])), sources="one"
    )
    assert written(by_id) == written(named)
    with pytest.raises(InvalidInputError, match=r"heading; .* id, text, section"):
        select_table(asked(), index, **settings, identifiers="heading")
    with pytest.raises(VectorSourceError, match=r"^sources_by_id\(ids\) "):
        select_table(asked(), index, **settings, sources=lambda ids: BOOKS)
    with pytest.raises(InvalidInputError, match=r"^identifiers: row 0 .* 7"):
        select_table(asked(), index, **settings, identifiers=lambda ids: dict.fromkeys(ids, 7))


def test_neighbours_are_read_from_the_usual_columns_or_a_named_one(index: Path, tmp_path: Path) -> None:
    columns = {"id": range(N), "text": TEXTS, "source": ["A"] * N, "chunk": range(N), "place": [*range(N)][::-1]}
    pq.write_table(pa.table(columns), tmp_path / "texts.parquet")
    settings: dict[str, Any] = {"question_column": "question", "texts": tmp_path / "texts.parquet"}
    settings |= {"neighbour_weight": 20, "reference_weight": 0}
    usual = written(select_table(asked(), index, **settings))
    led = [(name, by) for names, referring in usual for name, by in zip(names, referring, strict=True)]
    assert {abs(name - by) for name, by in led if by is not None} == {1}
    # Numbers that run backwards have the same neighbours; random ones have others.
    assert written(select_table(asked(), index, **settings, neighbours="place")) == usual
    with pytest.raises(InvalidInputError, match=r"^neighbours: row \d+ is 'x'"):
        select_table(asked(), index, **settings, neighbours=lambda ids: dict.fromkeys(ids, "x"))
    pq.write_table(pa.table({"id": range(N), "text": TEXTS, "chunk": range(N)}), tmp_path / "texts.parquet")
    without = written(select_table(asked(), index, **settings))
    assert all(referring is None for _, referring in without)
    with pytest.raises(InvalidInputError, match="sources"):
        select_table(asked(), index, **settings, neighbours="chunk")


def test_titles_may_come_from_a_function_and_ids_be_texts(tmp_path: Path) -> None:
    def search(vectors: Any, k: int) -> Any:
        near = [nearest(vector) for vector in vectors]
        return [[f"doc {i}" for i in own] for own in near], [corpus()[own] for own in near]

    def of(values: list[str]) -> Any:
        return lambda ids: {name: values[int(name.removeprefix("doc "))] for name in ids}

    settings: dict[str, Any] = {"question_column": "question", "texts": of(NAMING)}
    as_text: Any = [
        ([f"doc {i}" for i in ids], [None if i is None else f"doc {i}" for i in names]) for ids, names in named()
    ]
    assert written(select_table(asked(), search, **settings, titles=of(TITLES))) == as_text
    assert written(select_table(asked(), search, **settings)) != as_text
    with pytest.raises(VectorSourceError, match=r"^titles_by_id\(ids\) "):
        select_table(asked(), search, **settings, titles=lambda ids: TITLES)
    missing = select_table(asked(), search, **settings, titles=lambda ids: dict.fromkeys(ids, float("nan")))
    assert written(missing) == written(select_table(asked(), search, **settings))
    with pytest.raises(InvalidInputError, match=r"^titles: row 0 is 7"):
        select_table(asked(), search, **settings, titles=lambda ids: dict.fromkeys(ids, 7))
