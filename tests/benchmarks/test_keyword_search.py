"""benchmarks/keyword_search.py on a corpus made up here: which texts are candidates."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import keyword_search
from benchmarks.keyword_search import POOLS, cells_of
from benchmarks.models import MINILM
from benchmarks.regimes_methods import HYBRID, SIMILARITY, SUM
from benchmarks.regimes_tasks import Regime, share

# By the hash of their text, the first question belongs to the development half and the second one to the other half.
QUESTIONS = ["the needle", "needle"]


def test_a_text_that_only_the_words_find_joins_the_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    # Text i is the i-th nearest to each question. Text 60 has the only word of the questions.
    angles = np.linspace(0.1, 1.5, 220)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    texts = ["needle" if row == 60 else f"straw {row}" for row in range(220)]
    cases = [share(question, [frozenset([row]) for row in range(220)], frozenset([60])) for question in QUESTIONS]

    def embed(regime: Regime, model: str) -> tuple[np.ndarray, np.ndarray]:
        return vectors, np.array([[1.0, 0.0]] * len(regime.cases), np.float32)

    monkeypatch.setattr(keyword_search, "embed_regime", embed)
    cells = cells_of("a task", Regime(texts, cases, "found"))
    assert [cell.questions for cell in cells] == [QUESTIONS[:1], QUESTIONS[1:]]
    assert {cell.vectors for cell in cells} == {MINILM}
    for cell in cells:
        found = {method: values[0] for method, values in next(iter(cell.worth.values())).items()}
        # Text 60 is among the 100 nearest, and the best by words.
        reached = {method: size > 60 or more > 0 for method, (size, more) in POOLS.items()}
        # Beside the 20 nearest it is too far from the question.
        reached["20 nearest and 25 by words"] = False
        assert found == {SIMILARITY: False, HYBRID: True, SUM: True} | reached
