"""Hybrid search and other rankings as settings of a comparison, against BM25 and rank fusion by loops."""

import re

import numpy as np

from shared_core.evaluation.compare import compare, compare_candidates
from shared_core.evaluation.corpus import Document
from shared_core.evaluation.judging import SearchResult
from shared_core.evaluation.results import Comparison
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


def ranked(question: str, fetch_k: int) -> tuple[list[int], list[int]]:
    """Hybrid search and the sum of scores among the nearest rows and the 25 best by words."""
    cosines = VECTORS @ embed(question) / np.linalg.norm(VECTORS, axis=1) / np.linalg.norm(embed(question))
    words = oracles.bm25(split(question), [split(text) for text in TEXTS])
    rows = list(dict.fromkeys([*np.argsort(-cosines, kind="stable")[:fetch_k].tolist(), *bm25(question, TEXTS)[:25]]))
    places: dict[int, float] = dict.fromkeys(sorted(rows, key=lambda row: -cosines[row]), 0.0)
    for order in (list(places), sorted((row for row in rows if words[row] > 0), key=lambda row: -words[row].round(5))):
        for rank, row in enumerate(order):
            places[row] += 1 / (61 + rank)
    z = [(values[rows] - values[rows].mean()) / values[rows].std() for values in (cosines, words)]
    total = dict(zip(rows, z[0] + 0.7 * z[1], strict=True))
    return sorted(places, key=lambda row: -places[row]), sorted(rows, key=lambda row: -total[row])


def row_of(found: Comparison, label: str = "hybrid search") -> int:
    return [setting.label for setting in found.settings].index(label)


def test_hybrid_search_and_the_sum_of_scores_rank_the_candidates_of_keyword_search() -> None:
    documents = [{"id": f"d{i}", "text": text} for i, text in enumerate(TEXTS)]
    found = compare(documents, QUESTIONS, (VECTORS, [embed(text) for text in QUESTIONS]), k=4, fetch_k=4)
    assert [setting.label for setting in found.settings[-2:]] == ["hybrid search", "sum of scores"]
    for view, question in zip(found.queries, QUESTIONS, strict=True):
        for label, rows in zip(("hybrid search", "sum of scores"), ranked(question, 4), strict=True):
            assert [view.candidates[i].id for i in view.picks[row_of(found, label)]] == [f"d{row}" for row in rows[:4]]
        near = {i for i, candidate in enumerate(view.candidates) if not candidate.beyond}
        assert len(near) == 4
    assert any(candidate.beyond for view in found.queries for candidate in view.candidates)


def test_without_a_search_by_words_the_nearest_are_ranked_among_themselves() -> None:
    candidates = SearchResult([1.0, 0.9], [Document("a", "one"), Document("b", "red")], np.eye(2))
    found = compare_candidates(["red?"], lambda query: candidates, k=1, settings=[named("similarity")])
    assert [view.picks for view in found.queries] == [{0: (0,), 1: (1,), 2: (0,)}]
