"""Hybrid search and other rankings as settings of a comparison, against BM25 and rank fusion by loops."""

import re
from typing import Any

import numpy as np
import pytest

from shared_core import TopK
from shared_core.errors import InvalidInputError
from shared_core.evaluation.compare import compare, compare_candidates
from shared_core.evaluation.corpus import Document, Query
from shared_core.evaluation.judging import SearchResult, judge
from shared_core.evaluation.results import Comparison
from shared_core.evaluation.search import fuse_rankings
from shared_core.evaluation.settings import named
from tests import oracles
from tests.embedding import corpus, embed

STOP_WORDS = {"a", "and", "the", "of", "in", "is", "with", "for", "it", "to", "was", "at", "by", "on", "that", "as"}
TEXTS = [text for text, _ in corpus()]
VECTORS = np.array([embed(text) for text in TEXTS])
QUESTIONS = ["the hidden northern harbour, and its engine", "old bread", "Violin at the river?"]


def split(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if word not in STOP_WORDS]


def bm25(question: str, texts: list[str]) -> list[int]:
    """The rows with a word of the question, the best first."""
    # bm25s has single precision.
    scores = oracles.bm25(split(question), [split(text) for text in texts]).round(5)
    return [row for row in np.argsort(-scores, kind="stable").tolist() if scores[row] > 0]


def fused(question: str, fetch_k: int) -> list[int]:
    cosines = VECTORS @ embed(question) / np.linalg.norm(VECTORS, axis=1)
    lists = np.argsort(-cosines, kind="stable")[:fetch_k].tolist(), bm25(question, TEXTS)[:fetch_k]
    scores: dict[int, float] = {}
    for ranking in lists:
        for place in range(len(ranking)):
            scores[ranking[place]] = scores.get(ranking[place], 0) + 1 / (61 + place)
    return sorted(scores, key=lambda row: -scores[row])


def hybrid(found: Comparison) -> int:
    return [setting.label for setting in found.settings].index("hybrid search")


def test_rank_fusion_by_hand() -> None:
    # 1/61 + 1/63 is above 1/62 + 1/62; rows of equal sums keep the order of the first ranking.
    assert list(fuse_rankings([[4, 5, 6], [7, 5, 4]])) == [4, 5, 7, 6]
    assert list(fuse_rankings([[], [2, 1]])) == [2, 1]


def test_hybrid_search_is_a_setting_that_may_pick_what_the_vectors_do_not_find() -> None:
    queries = [{"text": text, "gold": [f"d{fused(text, 6)[3]}", "d0"]} for text in QUESTIONS]
    documents = [{"id": f"d{i}", "text": text} for i, text in enumerate(TEXTS)]
    found = compare(documents, queries, (VECTORS, [embed(text) for text in QUESTIONS]), k=4, fetch_k=6)
    setting, beyond = hybrid(found), 0
    assert setting == len(found.settings) - 1
    recall, relevance, redundancy = [], [], []
    for view, question in zip(found.queries, QUESTIONS, strict=True):
        rows = fused(question, 6)[:4]
        assert [view.candidates[i].id for i in view.picks[setting]] == [f"d{row}" for row in rows]
        near = {i for i, candidate in enumerate(view.candidates) if not candidate.beyond}
        assert len(near) == 6
        assert all(near.issuperset(picks) for other, picks in view.picks.items() if other != setting)
        assert near.union(view.picks[setting]) == {*range(len(view.candidates))}
        beyond += len(view.candidates) - 6
        unit = VECTORS[rows] / np.linalg.norm(VECTORS[rows], axis=1, keepdims=True)
        query = embed(question) / np.linalg.norm(embed(question))
        relevance.append((unit @ query).mean())
        redundancy.append((unit @ unit.T)[np.triu_indices(4, 1)].mean())
        recall.append(len({f"d{row}" for row in rows} & set(view.gold)) / len(view.gold))
    assert beyond > 0
    for key, values in (("recall", recall), ("relevance", relevance), ("redundancy", redundancy)):
        assert found.values[setting, key].mean == pytest.approx(np.mean(values), abs=1e-6)
    # With two picks, too, it takes the first.
    [size] = [size for size in found.sizes if size.k == 2]
    shares = [
        len({f"d{row}" for row in fused(view.text, 6)[:2]} & set(view.gold)) / len(view.gold) for view in found.queries
    ]
    assert size.values[setting, "recall"].mean == pytest.approx(np.mean(shares))


def test_a_document_beyond_the_candidates_counts_by_its_text_answers_and_subtopics() -> None:
    documents = [{"id": "a", "text": "one"}, {"id": "b", "text": "two"}, {"id": "far", "text": "word 42"}]
    documents += [{"id": "copy", "text": "word 42"}]
    vectors = [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.0, 1.0]]
    query = {"text": "word?", "gold": ["copy"], "subtopics": {"x": ["copy"], "y": ["a"]}, "answers": ["42"]}
    found = compare(documents, [query], (vectors, [[1.0, 0.0]]), k=2, fetch_k=2)
    setting, view = hybrid(found), found.queries[0]
    # One list holds a, b, and the other both copies of one text, which counts as the gold one.
    assert [view.candidates[i].id for i in view.picks[setting]] == ["a", "copy"]
    assert [(candidate.id, candidate.beyond) for candidate in view.candidates] == [
        ("a", False), ("b", False), ("copy", True)
    ]  # fmt: skip
    for key, value in (("recall", 1), ("subtopic_recall", 1), ("answers", 1), ("precision", 0.5)):
        assert found.values[setting, key].mean == value
    assert found.values[0, "recall"].mean == 0
    assert any("hold 0.0%" in note or "No gold document is among" in note for note in found.notes)


RANKED = [Document(name, name) for name in "abcd"]
NEAR = [[1.0, 0.0], [1.0, 0.1], [0.5, 1.0], [0.0, 1.0]]


def ranking(**rankings: Any) -> SearchResult:
    return SearchResult([1.0, 0.0], RANKED, NEAR, rankings=rankings, candidates=3)


def test_a_ranking_of_ones_own_is_a_setting() -> None:
    outcome = judge(Query("1", "?"), ranking(mine=[3, 1], other=np.array([2])), [TopK()], [2, 3], view=True)
    assert outcome.rankings == ("mine", "other")
    assert outcome.sizes[2].picks == [["a", "b"], ["d", "b"], ["c"]]
    assert outcome.sizes[3].picks == [["a", "b", "c"], ["d", "b"], ["c"]]
    assert outcome.candidates == {"a", "b", "c"}
    # d is not a candidate, so nothing else selects it.
    found = compare_candidates(["?"], lambda query: ranking(mine=[3]), k=3)
    assert found.settings[-1].label == "mine"
    assert all(max(picks) == 2 for picks in list(found.queries[0].picks.values())[:-1])
    plain = compare_candidates(
        ["?"], lambda query: SearchResult([1.0, 0.0], RANKED[:3], NEAR[:3]), k=3, settings=[named("similarity")]
    )
    assert found.values[0, "relevance"] == plain.values[0, "relevance"]


def test_rankings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"query '\?': the ranking 'mine' holds row 4, .* 4 documents"):
        compare_candidates(["?"], lambda query: ranking(mine=[0, 4]), k=2)
    given = {"1": ranking(mine=[0]), "2": ranking()}
    with pytest.raises(InvalidInputError, match=r"but query '\?' has 'mine' and query '!' has none"):
        compare_candidates(["?", "!"], lambda query: given[query.id], k=2)
