"""benchmarks/fetch_k.py on a corpus made up here, with figures by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import fetch_k
from benchmarks.fetch_k import KS, SIZES, Cost, Found
from benchmarks.regimes_tasks import Regime, share


def test_what_lies_beyond_the_candidates_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # Text i is the i-th nearest to the question. Text 30 has its only word.
    angles = np.linspace(0.1, 1.5, 220)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    texts = ["needle" if row == 30 else f"straw {row}" for row in range(220)]
    case = share("needle", [frozenset([row]) for row in range(220)], frozenset([30]))
    embedded = vectors, np.array([[1.0, 0.0]])
    monkeypatch.setattr(fetch_k, "embed_regime", lambda regime: embedded)
    found = fetch_k.measure(Regime(texts, [case], "found"))
    assert not found.similarity.any()
    assert found.default[0, 0].tolist() == [[0, 0]] + [[1, 1]] * 3, "20 candidates do not hold text 30"
    assert found.default[1, 0].tolist() == [[1, 1]] * 4, "a search by words finds text 30"


def test_gains_belong_to_their_half_and_costs_are_compared_store_by_store() -> None:
    worth = np.zeros((3, len(SIZES), len(KS)))
    worth[0], worth[1, 2] = 0.5, 1.0
    found = Found(np.array([False, False, True]), np.zeros((3, len(KS))), np.stack([worth, np.ones_like(worth)]))
    assert found.gains(development=False).tolist() == [[25, 25], [25, 25], [75, 75], [25, 25]]
    assert found.gains(development=False, by_words=True).tolist() == [[100, 100]] * 4
    assert not found.gains(development=True).any()
    rows = fetch_k.cost_table([Cost("a", "x", (1, 2, 4, 8)), Cost("b", "x", (10, 10, 10, 40))]).splitlines()
    assert rows[2:] == [
        "| a | x | 1.0 | 2.0 (2.0) | 4.0 (4.0) | 8.0 (8.0) |",
        "| b | x | 10.0 | 10.0 (1.0) | 10.0 (1.0) | 40.0 (4.0) |",
        "| **median** |  |  | **+0.5 (1.5)** | **+1.5 (2.5)** | **+18.5 (6.0)** |",
    ]
