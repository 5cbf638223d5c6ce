"""Gold documents that nearly repeat each other: the same advice as for the subtopics that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared_core.evaluation.compare import compare, compare_candidates
from shared_core.evaluation.corpus import Document
from shared_core.evaluation.judging import SearchResult
from shared_core.evaluation.results import Comparison
from shared_core.evaluation.settings import named
from tests.embedding import embed
from tests.shared_core.evaluation.versions import corpus_in_versions

CORPUS = corpus_in_versions()
CORPUS = CORPUS._replace(queries=CORPUS.queries[::3])
SETTINGS = [named("similarity"), named("coverage"), named("vrsd")]
VECTORS = np.array([embed(record["text"]) for record in CORPUS.documents])
QUERY_VECTORS = np.array([embed(query["text"]) for query in CORPUS.queries])


def compared(key: str, shift: float = 0.0, **options: Any) -> Comparison:
    """The comparison by gold or by subtopics; ``shift`` moves all vectors in one direction, as some models do."""
    way = shift * np.ones(VECTORS.shape[1])
    unit, unit_queries = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (VECTORS, QUERY_VECTORS))
    vectors = unit + way, unit_queries + way
    return compare(CORPUS.documents, CORPUS.asking(key), vectors, settings=SETTINGS, **options)


def test_gold_documents_in_versions_lead_to_the_same_advice_as_subtopics() -> None:
    gold, subtopics = compared("gold", 0.3), compared("subtopics", 0.3)
    assert (gold.recommendation.measure, subtopics.recommendation.measure) == ("point_recall", "subtopic_recall")
    assert gold.recommendation.setting == subtopics.recommendation.setting != 0
    for setting in range(len(SETTINGS)):
        ours, theirs = (one.values[setting, str(one.recommendation.measure)].mean for one in (gold, subtopics))
        assert ours == pytest.approx(theirs, abs=0.03)
    last = gold.recommendation.claims[-1]
    assert all(fact in last for fact in ("'norvik-", "recall@5", "decide_by=recall", '{"subtopics": {"reset": '))
    assert "decide_by" not in subtopics.recommendation.text


def test_the_question_for_every_copy_can_be_asked() -> None:
    found = compared("gold", decide_by="recall")
    assert found.recommendation.measure == "recall"
    assert "decide_by=point_recall" in found.recommendation.text


def test_gold_documents_that_differ_are_not_grouped() -> None:
    one_of_each = [
        {"text": query["text"], "gold": [ids[0] for ids in query["subtopics"].values()]} for query in CORPUS.queries
    ]
    found = compare(CORPUS.documents, one_of_each, (VECTORS, QUERY_VECTORS), settings=SETTINGS)
    assert found.recommendation.measure == "recall"
    assert "decide_by" not in found.recommendation.text
    assert "point_recall" not in {measure.key for measure in found.measures}


def test_gold_documents_that_a_store_did_not_find_are_one_point_that_is_missed() -> None:
    vectors = np.array([[1.0, 0.0, 0.1], [1.0, 0.0, 0.11], [0.0, 1.0, 0.1]])
    found = SearchResult([1.0, 0.2, 0.0], [Document(name, name) for name in "abc"], vectors)
    asked = {"text": "?", "gold": ["a", "b", "y", "z"]}
    compared = compare_candidates([asked], lambda query: found, k=2, decide_by="point_recall")
    assert {compared.values[i, "point_recall"].mean for i in range(len(compared.settings))} == {0.5}
