"""What a corpus holds, against corpora whose shares are known by construction."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from setselect import InvalidInputError, InvalidParameterError
from shared_core.evaluation.compare import compare, diagnose_documents
from shared_core.evaluation.corpus import Document
from shared_core.evaluation.diagnosis import Diagnosis, Found, diagnose, search_documents
from shared_core.texts import Texts

RNG = np.random.default_rng(5)


def prose(n: int = 60, d: int = 32) -> NDArray[np.float64]:
    return RNG.standard_normal((n, d))


def texts(n: int) -> list[dict[str, Any]]:
    return [{"id": f"t{i}", "text": f"text {i}"} for i in range(n)]


def shares(found: Diagnosis) -> dict[str, float]:
    return {finding.key: finding.share for finding in found.findings}


def test_prose_holds_nothing_and_nothing_is_recommended() -> None:
    found = diagnose_documents(texts(60), prose())
    assert {*shares(found).values()} == {0.0}
    assert (found.documents, found.typical, found.fetch_k) == (60, 60, 50)
    assert json.loads(found.to_json())["text"] == found.text


def test_copies_and_near_copies_are_counted_apart() -> None:
    vectors, records = np.repeat(prose(20), 3, axis=0), texts(60)
    for i, record in enumerate(records):
        record["text"] = f"text {i // 3}"
    found = shares(diagnose_documents(records, vectors))
    assert (found["copies"], found["near"]) == (1.0, 0.0)
    # The model gives any two texts a high cosine.
    narrow = np.concatenate([vectors[:30], prose(30)]) / 10 + np.eye(1, 32)
    found = shares(diagnose_documents(texts(60), narrow))
    assert (found["copies"], found["near"]) == (0.0, 0.5)
    empty = [Document("a", ""), Document("b", ""), Document("c", "C")]
    assert shares(diagnose_documents(empty, np.eye(3), k=2))["copies"] == 0


def test_references_of_each_kind_have_a_row() -> None:
    records = [
        {"text": "It was directed by Ann Lee.", "title": "Forbidden Ground", "source": "a"},
        {"text": "She was born in 1962.", "title": "Ann Lee", "source": "b"},
        {"text": "Rule 4.2 does not apply.", "section": "4.1", "source": "c"},
        {"text": "Records are kept.", "section": "4.2", "source": "c"},
    ]
    found = diagnose_documents(records, np.eye(4), k=1, fetch_k=4)
    assert shares(found) == {
        "copies": 0, "near": 0, "sources": 1, "name": 1, "link": 0, "citation": 1, "neighbour": 0,
    }  # fmt: skip


def test_an_index_that_returns_few_texts_is_looked_at_as_far_as_it_goes() -> None:
    search = search_documents([Document(str(i), f"text {i}") for i in range(400)], prose(400))

    def few(vector: NDArray[np.float64], k: int) -> Found:
        return search(vector, min(k, 10))

    found = diagnose(few, 32, title="Few", documents=None, fetch_k=8, widest=10)
    assert 10 < found.typical <= 80


@pytest.mark.parametrize(
    ("vectors", "options", "error", "message"),
    [
        (np.zeros((3, 2)), {}, InvalidInputError, "zero"),
        (np.ones((2, 2)), {}, InvalidInputError, r"\(3, d\), got \(2, 2\)"),
        (np.ones((3, 2)), {"k": 3, "fetch_k": 2}, InvalidParameterError, "fetch_k = 2"),
    ],
)
def test_what_cannot_be_diagnosed_is_refused(
    vectors: ArrayLike, options: dict[str, int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        diagnose_documents(texts(3), vectors, **options)


def test_a_corpus_without_texts_is_refused_and_a_single_text_is_none_of_it() -> None:
    def nothing(vector: NDArray[np.float64], k: int) -> Found:
        return Found([], np.zeros((0, 4)), [], lambda: Texts([]))

    with pytest.raises(InvalidInputError, match="no texts"):
        diagnose(nothing, 4, title="Empty", documents=0, fetch_k=3)
    assert {*shares(diagnose_documents(["alone"], [[1.0, 0.0]], k=1)).values()} == {0.0}


# In a comparison


def test_a_comparison_says_how_many_texts_each_setting_replaces() -> None:
    vectors = [[1.0, 0.0], [1.0, 0.01], [0.8, 0.6]]
    queries = ["Which lamp is red?", "Which is blue?"]
    found = compare(["A lamp", "Lamp", "A red one"], queries, (vectors, [[3.0, 1.0], [0.8, 0.6]]), k=2)
    for setting, replacement in enumerate(found.replacements):
        picks = [(view.picks[0], view.picks[setting]) for view in found.queries]
        assert replacement.changed == np.mean([{*before} != {*after} for before, after in picks])
        assert replacement.replaced == np.mean([len({*before} - {*after}) for before, after in picks])
    changed = [replacement for replacement in found.replacements if replacement.most]
    assert [query for replacement in changed for query, _ in replacement.most] == ["1"] * len(changed)
    assert len(changed) > 1
    assert found.question("1") == queries[0]
    [default] = [
        one for one, setting in zip(found.replacements, found.settings, strict=True) if setting.label == "coverage"
    ]
    assert f"{default.replaced:.1f} of 2 texts" in found.recommendation.text


@pytest.mark.parametrize(("several", "few"), [(0, True), (1, True), (2, False)])
def test_few_questions_that_need_two_texts_are_counted(several: int, few: bool) -> None:
    queries = [{"text": f"question {i}", "gold": ["t1", "t2"] if i < several else ["t1"]} for i in range(10)]
    vectors = prose(8), prose(10)
    found = compare(texts(8), queries, vectors, k=2)
    assert (f"({several} of 10)" in found.recommendation.text) == few
