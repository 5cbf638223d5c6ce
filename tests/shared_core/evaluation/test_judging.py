"""Differences to similarity against loops over the picks, and texts that are stored several times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shared_core import Coverage, InvalidInputError, TopK
from shared_core.evaluation import compare as compare_module
from shared_core.evaluation.compare import compare, compare_candidates
from shared_core.evaluation.corpus import Document, Query
from shared_core.evaluation.judging import SearchResult, found_documents, judge
from shared_core.evaluation.results import Comparison, Difference
from shared_core.evaluation.settings import named
from shared_core.facts import Facts

RNG = np.random.default_rng(5)
DOCUMENTS = [{"id": f"d{i}", "text": f"text {i}"} for i in range(30)]
VECTORS = RNG.normal(size=(30, 6))
QUERY_VECTORS = RNG.normal(size=(25, 6))
QUERIES = [
    {"id": f"q{i}", "text": f"question {i}", "gold": [f"d{j}" for j in RNG.choice(30, size=1 + i % 3, replace=False)]}
    for i in range(25)
]


def random_comparison(**options: Any) -> Comparison:
    return compare(DOCUMENTS, QUERIES, (VECTORS, QUERY_VECTORS), k=4, fetch_k=15, **options)


def recalls(found: Comparison, setting: int) -> dict[str, float]:
    """Recall of each query, from the picks that the report shows."""
    picked = {view.id: {view.candidates[i].id for i in view.picks[setting]} for view in found.queries}
    return {view.id: len(picked[view.id] & set(view.gold)) / len(view.gold) for view in found.queries}


def redundancies(found: Comparison, setting: int) -> dict[str, float]:
    """Mean cosine between the picks of each query."""
    by_query = {}
    for view in found.queries:
        rows = [VECTORS[int(view.candidates[i].id[1:])] for i in view.picks[setting]]
        pairs = [(a, b) for i, a in enumerate(rows) for b in rows[:i]]
        cosines = [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in pairs]
        by_query[view.id] = sum(cosines) / len(cosines)
    return by_query


@pytest.mark.parametrize(("key", "of_each", "higher"), [("recall", recalls, True), ("redundancy", redundancies, False)])
def test_differences_to_similarity_are_those_of_single_queries(key: str, of_each: Any, higher: bool) -> None:
    found = random_comparison()
    theirs = of_each(found, 0)
    worse_somewhere = 0
    for setting in range(1, len(found.settings)):
        ours = of_each(found, setting)
        gaps = {name: ours[name] - theirs[name] for name in ours}
        losses = {name: (-gap if higher else gap) for name, gap in gaps.items() if abs(gap) > 1e-9}
        lost = {name: loss for name, loss in losses.items() if loss > 0}
        to = found.differences[setting, key]
        assert to.mean == pytest.approx(sum(gaps.values()) / 25)
        assert to.mean == pytest.approx(found.values[setting, key].mean - found.values[0, key].mean)
        assert to.low <= to.mean <= to.high
        assert to.worse == pytest.approx(len(lost) / 25)
        assert to.better == pytest.approx((len(losses) - len(lost)) / 25)
        assert to.loss == pytest.approx(sum(lost.values()) / len(lost) if lost else 0)
        assert to.worst_loss == pytest.approx(max(lost.values(), default=0))
        if to.worst_query is None:
            assert not lost
        else:
            assert lost[to.worst_query] == pytest.approx(max(lost.values()))
            worse_somewhere += 1
    assert worse_somewhere > 1
    assert found.differences[0, key] == Difference(0, 0, 0, 0, 0, 0, 0, None)


def changed(queries: list[dict[str, Any]], **options: Any) -> Comparison:
    """Similarity picks a and b for each query, vrsd picks b and c."""
    documents = [{"id": name, "text": f"{name} {name}"} for name in "abc"]
    vectors = [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], [[1.0, 0.9]] * len(queries)
    settings = [named("similarity"), named("vrsd")]
    return compare(documents, queries, vectors, k=2, settings=settings, **options)


def test_the_first_queries_and_those_that_change_most_are_kept_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    # Diversity helps all queries but 27, which wants a alone, and 29, which wants a and b. 28 wants b.
    monkeypatch.setattr(compare_module, "VIEWS", 3)
    wanted = {27: ["a"], 28: ["b"], 29: ["a", "b"]}
    queries = [{"id": str(i), "text": "?", "gold": wanted.get(i, ["b", "c"])} for i in range(30)]
    found = changed(queries, decide_by="recall")
    assert found.recommendation.setting == 1
    assert [(one.query, one.similarity, one.setting) for one in found.changes] == [
        ("27", 1.0, 0.0),
        ("29", 1.0, 0.5),
        *((str(i), 0.5, 1.0) for i in range(5)),
    ]
    assert found.differences[1, "recall"].worst_query == "27"
    assert [view.id for view in found.queries] == ["0", "1", "2", "3", "4", "27", "29"]


# Text A is stored three times. The question asks for A and C.
COPIES = [
    {"id": "a1", "text": "A"},
    {"id": "a2", "text": "A"},
    {"id": "b", "text": "B"},
    {"id": "a3", "text": "A"},
    {"id": "c", "text": "C"},
]
COPY_VECTORS = [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.0, 1.0], [1.0, 0.0, 0.0], [0.6, 1.0, 0.0]]
COPY_QUERY = [1.0, 0.5, 0.1]


def copies(query: dict[str, Any], **options: Any) -> Comparison:
    return compare(COPIES, [{"text": "?", **query}], (COPY_VECTORS, [COPY_QUERY]), **{"k": 2, **options})


def picked(found: Comparison, setting: int = 0) -> list[str]:
    view = found.queries[0]
    return [view.candidates[i].id for i in view.picks[setting]]


@pytest.mark.parametrize("gold", ["a1", "a2", "a3"])
def test_a_text_counts_once_and_any_copy_of_a_gold_document_is_gold(gold: str) -> None:
    found = copies({"gold": [gold, "c"]})
    assert picked(found) == [gold, "c"]
    assert found.values[0, "recall"].mean == 1.0
    assert found.values[0, "ndcg"].mean == 1.0
    assert {candidate.id for candidate in found.queries[0].candidates} == {gold, "b", "c"}
    assert any("2 of 5 candidates" in note for note in found.notes)


def test_gold_copies_of_one_text_are_one_gold_document() -> None:
    found = copies({"gold": ["a1", "a3", "b"]})
    assert found.values[0, "recall"].mean == 0.5
    assert found.queries[0].gold == ("a1", "b")


def test_a_gold_copy_beyond_the_candidates_is_found_with_the_text() -> None:
    # The two nearest are a1 and a2, and the gold copy is the third.
    found = copies({"gold": ["a3"]}, k=1, fetch_k=2)
    assert found.values[0, "recall"].mean == 1.0
    assert not any("candidates hold" in note for note in found.notes)


def test_documents_of_a_store_have_an_id_each() -> None:
    rows: list[Any] = [("a", "A", "T", {"source": 7}), ("b", "B", "", {})]
    rows += [("a", "C", "", {"cost": 2}), (None, "D", "", {"source": ""})]
    found = found_documents((*row, Facts()) for row in rows)
    assert [(document.source, document.cost) for document in found] == [
        ("7", None),
        (None, None),
        (None, 2),
        (None, None),
    ]
    assert [document.id for document in found[:3]] == ["a", "b", "a (2)"]
    assert [document.title for document in found] == ["T", "", "", ""]


@pytest.mark.parametrize("cost", [-1, float("inf"), "12 EUR", [3]])
def test_a_cost_that_is_no_cost_is_named_by_a_budget_and_ignored_without_one(cost: Any) -> None:
    rows: list[Any] = [("a", "A", "", {"cost": 3}), ("b", "B", "", {"cost": cost}), ("c", "C", "", {"cost": "4"})]
    documents = found_documents((*row, Facts()) for row in rows)
    found = SearchResult([1.0, 0.0], documents, [[1.0, 0.0], [1.0, 0.1], [1.0, 0.2]])
    assert len(compare_candidates(["?"], lambda query: found, k=2).queries) == 1
    settings = [named("similarity"), named("coverage", budget=7)]
    with pytest.raises(InvalidInputError, match=r"query '\?': 'cost of document b' must be a finite number"):
        compare_candidates(["?"], lambda query: found, k=2, settings=settings)
    valid = replace(found, documents=[found.documents[0], found.documents[2]], vectors=[[1.0, 0.0], [1.0, 0.2]])
    assert compare_candidates(["?"], lambda query: valid, k=2, settings=settings).queries[0].picks[1] == (0, 1)


def test_a_view_says_which_pick_names_each_pick() -> None:
    texts = ["The river flows through Lys Park.", "A sea.", "A lake.", "It has oaks.", "Lys Park has oaks."]
    titles = ["River", "Sea", "", "Lys Park", "Lys Park"]
    documents = [Document(str(i), text, title=title) for i, (text, title) in enumerate(zip(texts, titles, strict=True))]
    vectors = np.column_stack([[0.9, 0.8, 0.7, 0.6, 0.3], np.eye(5)])
    selectors = [TopK(), Coverage(), Coverage(reference_weight=0)]
    found = SearchResult([1.0, 0, 0, 0, 0, 0], documents, vectors)
    view = judge(Query("1", "?"), found, selectors, [3], view=True).view
    assert view is not None
    assert set(view.picks[1]) > {0, 3}
    assert view.reasons.keys() == {1, 2}
    led = [i for i, reason in zip(view.picks[1], view.reasons[1], strict=True) if "; named by River (" in reason]
    assert led == [3]
    assert all(reason.startswith("relevance 0.") and "words" not in reason for reason in view.reasons[1])
    oaks = judge(Query("1", "Which sea has oaks?"), found, selectors, [3], view=True).view
    assert oaks is not None
    first = next(i for i in oaks.picks[1] if i in (3, 4))
    assert "oaks (" in oaks.reasons[1][oaks.picks[1].index(first)]


def test_a_view_has_the_rare_words_of_the_query() -> None:
    texts = ["the nile river", "the river lys", "the red sea", "the sea " * 200]
    vectors = np.array([[1.0, 0.1, 0.0], [1.0, 0.3, 0.1], [0.8, 0.7, 0.2], [0.2, 1.0, 0.5]])
    documents = [Document(f"d{i}", text) for i, text in enumerate(texts)]
    query = Query("1", "Which river is the Nile in?", gold=("d2",))
    view = judge(query, SearchResult([1.0, 0.0, 0.0], documents, vectors), [TopK()], [2], view=True).view
    assert view is not None
    # All texts have "the", and none has "which".
    assert view.words == ("nile", "river")
    assert len(view.candidates[3].text) < 200 < len(texts[3]), "neither picked nor gold"


def test_the_limits_of_recall_and_precision_are_those_of_the_best_picks() -> None:
    vectors = np.eye(6)
    queries = [Query("1", "?", gold=("1",)), Query("2", "?", gold=("1", "2", "3", "4"))]
    found = compare(list("abcdef"), queries, (vectors, vectors[:2]), k=2)
    most = {one.key: one.most for one in found.measures}
    assert (most["recall"], most["precision"], most["ndcg"]) == (0.75, 0.75, 1.0)
    assert found.corpus.gold_in_reach == 1.0
