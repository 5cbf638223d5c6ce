"""benchmarks/keyword_search.py on a corpus made up here: which texts are candidates."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import keyword_search
from benchmarks.keyword_search import CHOSEN, FUSED, NEAR_ALONE, POOLS, cells_of
from benchmarks.models import MINILM
from benchmarks.regimes_methods import DEFAULT, HYBRID, SIMILARITY
from benchmarks.regimes_tasks import Regime, share

# By the hash of their text, the first question belongs to the development half and the second one to the other half.
QUESTIONS = ["the needle", "needle"]


def test_a_text_that_only_the_words_find_joins_the_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    # Text i is the i-th nearest to each question. Text 80 has the only word of the questions.
    angles = np.linspace(0.1, 1.5, 220)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    texts = ["needle" if row == 80 else f"straw {row}" for row in range(220)]
    cases = [share(question, [frozenset([row]) for row in range(220)], frozenset([80])) for question in QUESTIONS]

    def embed(regime: Regime, model: str) -> tuple[np.ndarray, np.ndarray]:
        return vectors, np.array([[1.0, 0.0]] * len(regime.cases), np.float32)

    monkeypatch.setattr(keyword_search, "embed_regime", embed)
    development, *others = cells_of("a task", Regime(texts, cases, "found"))
    assert development.vectors == MINILM
    assert [cell.questions for cell in (development, *others)] == [QUESTIONS[:1], *[QUESTIONS[1:]] * 2]
    found = {method: values[0] for method, values in next(iter(development.worth.values())).items()}
    # No text among the nearest has the word, so it tells nothing where only these are measured.
    far = [SIMILARITY, DEFAULT, NEAR_ALONE]
    assert found == {method: method not in far for method in (SIMILARITY, HYBRID, *POOLS, NEAR_ALONE, FUSED)}
    for cell in others:
        assert next(iter(cell.worth.values()))[CHOSEN] == [1]
