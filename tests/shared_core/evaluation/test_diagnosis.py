"""What a corpus gives the settings to act on, against corpora whose shares are known by construction."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from setselect import InvalidInputError, InvalidParameterError
from shared_core.evaluation import diagnosis as diagnosis_module
from shared_core.evaluation.compare import compare, diagnose_documents
from shared_core.evaluation.corpus import Document
from shared_core.evaluation.diagnosis import Found, diagnose, search_documents
from shared_core.evaluation.results import Diagnosis
from shared_core.facts import Facts
from shared_core.texts import Texts
from tests.embedding import embed

RNG = np.random.default_rng(5)


def prose(n: int = 60, d: int = 32) -> NDArray[np.float64]:
    return RNG.standard_normal((n, d))


def repeated(groups: int, each: int) -> NDArray[np.float64]:
    """Groups of vectors with a cosine of about 0.99 within a group, and about 0 between groups."""
    centres = np.repeat(np.eye(groups, 32), each, axis=0)
    return centres + 0.01 * RNG.standard_normal(centres.shape)


def texts(n: int) -> list[dict[str, Any]]:
    return [{"id": f"t{i}", "text": f"text {i}"} for i in range(n)]


def shares(found: Diagnosis) -> dict[str, float]:
    return {finding.key: finding.share for finding in found.findings}


def acts(found: Diagnosis) -> dict[str, str]:
    return {finding.key: finding.acts for finding in found.findings}


def test_prose_has_nothing_to_act_on_and_says_so() -> None:
    found = diagnose_documents(texts(60), prose())
    assert {*acts(found).values()} == {"nothing"}
    assert "expect little" in found.text
    assert found.notes == ()
    assert (found.documents, found.typical, found.questions, found.k, found.fetch_k) == (60, 60, 0, 5, 50)


def test_repetition_is_counted_in_texts_and_in_places() -> None:
    found = diagnose_documents(texts(40), repeated(5, 8), k=5)
    # Each text has seven near-repeats. They fill the five places, of which the first repeats nothing.
    assert (shares(found)["repeats"], shares(found)["slots"], shares(found)["copies"]) == (1.0, 0.8, 0.0)
    assert "expect little" not in found.text
    assert "something to act on for drop_near_duplicates, coverage (the default), ndpp, mmr." in found.text
    # Four near-repeats are too few for the first, and leave one place of five.
    found = diagnose_documents(texts(25), repeated(5, 5), k=5)
    assert (shares(found)["repeats"], shares(found)["slots"]) == (0.0, 3 / 5)


def test_copies_are_counted_by_themselves_because_the_adapters_drop_them() -> None:
    vectors, records = np.repeat(prose(20), 3, axis=0), texts(60)
    for i, record in enumerate(records):
        record["text"] = f"text {i // 3}"
    found = diagnose_documents(records, vectors)
    assert (shares(found)["copies"], shares(found)["slots"], shares(found)["repeats"]) == (1.0, 0.0, 0.0)
    empty = [Document("a", ""), Document("b", ""), Document("c", "C")]
    assert shares(diagnose_documents(empty, np.eye(3), k=2))["copies"] == 0


def test_names_and_references_of_each_kind_have_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        {"text": "It was directed by Ann Lee.", "title": "Forbidden Ground"},
        {"text": "She was born in 1962.", "title": "Ann Lee"},
        {"text": "Ships sail far.", "title": "model names"},
        {"text": "A port by the sea.", "title": "model names"},
    ]
    found = diagnose_documents(records, np.eye(4), k=2)
    # Each of the four searches has three candidates; those for the last two texts have both who refer.
    assert (shares(found)["name"], shares(found)["link"]) == (0.5, 0.0)
    assert shares(found)["names"] == 0.5
    assert (acts(found)["name"], acts(found)["link"]) == ("something", "nothing")
    assert "to act on for reference_weight, follow." in found.text
    monkeypatch.setattr(diagnosis_module, "REFERENCE_KINDS", ("telepathy", "link"))
    [other] = [one for one in diagnose_documents(records, np.eye(4), k=2).findings if one.key == "telepathy"]
    assert other.share == 0.5
    assert "telepathy" in other.name


def test_links_are_read_from_the_texts_that_a_search_returns() -> None:
    names = ["a", "b", "c", "d"]

    def search(vector: NDArray[np.float64], k: int) -> Found:
        rows = np.argsort(-vector, kind="stable")[:k].tolist()
        links = [("a",) if names[row] == "b" else None for row in rows]
        bodies = [names[row] for row in rows]
        return Found(
            bodies,
            np.eye(4)[rows],
            [None] * len(rows),
            lambda: Texts(bodies, [Facts(links=link, keys=(body,)) for link, body in zip(links, bodies, strict=True)]),
        )

    found = diagnose(search, 4, title="Links", documents=4, k=2, fetch_k=3)
    # Without "a" itself, or "b" itself, nothing is linked.
    assert shares(found)["link"] == 0.5


def test_one_source_for_all_is_nothing_to_limit() -> None:
    several = [{**record, "source": f"s{i // 4}"} for i, record in enumerate(texts(40))]
    found = diagnose_documents(several, np.repeat(prose(10), 4, axis=0) + 0.01 * prose(40), k=3)
    assert (shares(found)["sources"], acts(found)["sources"]) == (2 / 3, "something")
    one = [{**record, "source": "wiki"} for record in several]
    assert acts(diagnose_documents(one, prose(40), k=3))["sources"] == "nothing"
    assert "sources" not in shares(diagnose_documents(texts(40), prose(40)))


def test_a_model_that_gives_all_texts_high_cosines_is_allowed_for() -> None:
    narrow = prose() / 10 + np.eye(1, 32)
    found = diagnose_documents(texts(60), narrow)
    assert (shares(found)["repeats"], shares(found)["slots"]) == (0.0, 0.0)
    [note] = found.notes
    assert "mean vector was subtracted" in note
    found = diagnose_documents(texts(40), repeated(5, 8) / 2 + np.eye(1, 32, 20))
    assert (shares(found)["repeats"], shares(found)["slots"]) == (1.0, 0.8)


def test_what_concerns_the_candidates_is_counted_for_the_questions() -> None:
    vectors = np.concatenate([repeated(2, 8), 0.1 * np.eye(16, 32, 16)])
    documents = [Document(one["id"], one["text"]) for one in texts(32)]
    search = search_documents(documents, vectors)
    far = [("what about text 20?", vectors[20]), ("nothing of it", vectors[21])]
    found = diagnose(search, 32, far, title="Asked", documents=32, k=5, fetch_k=10)
    # The texts repeat each other, but not where the questions search.
    assert (found.questions, shares(found)["repeats"]) == (2, 0.5)
    assert shares(found)["words"] == 0.5
    assert "for 2 questions" in next(one.text for one in found.findings if one.key == "slots")


def test_an_index_that_returns_few_texts_is_looked_through_by_many_searches() -> None:
    vectors = prose(400)
    search = search_documents([Document(str(i), f"text {i}") for i in range(400)], vectors)
    asked: list[int] = []

    def few(vector: NDArray[np.float64], k: int) -> Found:
        asked.append(k)
        return search(vector, min(k, 10))

    found = diagnose(few, 32, title="Few", documents=None, k=3, fetch_k=8)
    assert (found.typical, found.documents) == (200, None)
    assert len(asked) < 500
    [note] = found.notes
    assert "7 points" in note


@pytest.mark.parametrize(
    ("vectors", "options", "error", "message"),
    [
        (np.zeros((3, 2)), {}, InvalidInputError, "zero"),
        (np.ones((2, 2)), {}, InvalidInputError, r"\(3, d\), got \(2, 2\)"),
        (np.ones((3, 2)), {"k": 0}, InvalidParameterError, "k"),
        (np.ones((3, 2)), {"k": 3, "fetch_k": 2}, InvalidParameterError, "fetch_k = 2"),
    ],
)
def test_what_cannot_be_diagnosed_is_refused(
    vectors: ArrayLike, options: dict[str, int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        diagnose_documents(texts(3), vectors, **options)


# In a comparison


def test_a_comparison_has_a_diagnosis_only_if_no_query_says_what_is_right() -> None:
    records = texts(30)
    vectors = [embed(record["text"]) for record in records]
    asked = [embed("text 3"), embed("text 4")]
    judged = compare(records, [{"text": "text 3", "gold": ["t3"]}, "text 4"], (vectors, asked), k=2)
    assert judged.diagnosis is None
    unjudged = compare(records, ["text 3", "text 4"], (vectors, asked), k=2, title="My texts")
    assert unjudged.diagnosis is not None
    assert (unjudged.diagnosis.title, unjudged.diagnosis.questions) == ("My texts", 2)
    assert json.loads(unjudged.to_json())["diagnosis"]["text"] == unjudged.diagnosis.text
    # No recall is invented.
    assert {measure.key for measure in unjudged.measures} == {"relevance", "redundancy", "sum_cosine"}


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
    assert "'Which lamp is red?' (1)" in found.recommendation.text


@pytest.mark.parametrize(("several", "few"), [(0, True), (1, True), (2, False)])
def test_few_questions_that_need_two_texts_are_a_reason_to_expect_little(several: int, few: bool) -> None:
    queries = [{"text": f"question {i}", "gold": ["t1", "t2"] if i < several else ["t1"]} for i in range(10)]
    vectors = prose(8), prose(10)
    found = compare(texts(8), queries, vectors, k=2)
    assert (f"({several} of 10)" in found.recommendation.text) == few
    assert ("expect little" in found.recommendation.text) == few
