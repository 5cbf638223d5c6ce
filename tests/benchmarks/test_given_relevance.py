"""benchmarks/given_relevance.py on texts and vectors made up here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks import given_relevance
from benchmarks.given_relevance import FUSED, Task, rankings_of

TEXTS = ["red lamp", "blue lamp", "green chair", "old chair", "lamp and chair"]
VECTORS = dict(zip(TEXTS, np.eye(5) + 0.1, strict=True)) | {"lamp": np.array([0.1, 0.2, 0.3, 0.9, 0.4])}


def embed(texts: Sequence[str], model: str) -> np.ndarray:
    rows = np.array([VECTORS[text] for text in texts], dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.setattr(given_relevance, "embed", embed)
    return Task(TEXTS, ["lamp"], [{0: {"a": 1}, 3: {"b": 1}}], {"found": "StRecall", "α-nDCG": "alpha_nDCG"})


def test_a_text_without_a_word_of_the_query_has_no_rank_by_words(task: Task) -> None:
    found = rankings_of(task, 5)
    assert set(found["BM25, no selection"][0]) == {0, 1, 4}
    assert found["vectors, no selection"][0] == [3, 4, 2, 1, 0]
    assert found[FUSED][0][0] == 4


def test_methods_select_from_the_fused_candidates_by_either_relevance(task: Task) -> None:
    found = rankings_of(task, 5)
    assert found["similarity; cosine"][0] == [3, 4, 2, 1, 0]
    assert found["MMR λ 0.75; fused, minmax"][0][0] == found[FUSED][0][0]
    assert "VRSD; fused, minmax" not in found
