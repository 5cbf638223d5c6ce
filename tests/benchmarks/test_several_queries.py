"""benchmarks/several_queries.py on a corpus made up here, with figures by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks import several_queries
from benchmarks.regimes_tasks import Regime, complete, share
from benchmarks.several_queries import HIGHEST, KS, METHODS, Task, fuse, search, take_turns

TEXTS = ["the north", "northern lights", "a northern town", "the east", "an eastern town", "both ways"]
# Degrees of the texts, and of the three queries.
ANGLES = dict(zip([*TEXTS, "north and east", "north", "east"], [0, 2, 4, 90, 86, 45, 44, 0, 90], strict=True))
QUERIES = ["north and east", "north", "east"]


def embed(texts: Sequence[str], model: str, query: bool = False) -> np.ndarray:
    angles = np.radians([ANGLES[text] for text in texts])
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.fixture
def task() -> Task:
    case = complete(share(QUERIES[0], [frozenset([row]) for row in range(6)], frozenset([0, 3])))
    return Task(Regime(TEXTS, [case], "everything found"), [QUERIES])


def test_lists_are_fused_or_take_turns(task: Task) -> None:
    fetched = search(task, embed(TEXTS, ""), QUERIES, embed(QUERIES, ""), 2)
    assert fetched.lists == [[5, 2], [0, 1], [3, 4]]
    assert fetched.rows.tolist() == [5, 2, 0, 1, 3, 4]
    assert take_turns(fetched, 4) == [5, 0, 3, 2]
    fetched = search(task, embed(TEXTS, ""), QUERIES, embed(QUERIES, ""), 6)
    assert fuse(1)(fetched, 4) == [5, 0, 3], "lists of one text have no fourth"
    assert fuse(6)(fetched, 1) == [5], "the text that is mediocre for all queries"


def test_texts_stored_three_times_are_worth_as_much(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several_queries, "embed", embed)
    monkeypatch.setattr(several_queries, "is_development", lambda question: False)
    stored = several_queries.store_three_times(task)
    assert stored.regime.cases[0].worth([2, 11]) == 1
    assert stored.regime.cases[0].worth([0, 1, 2]) == 0
    cell = several_queries.measure(stored, "")
    assert set(cell.found) == set(METHODS)
    assert {values.shape for values in cell.found.values()} == {(1, len(KS))}
    assert cell.found["question alone, similarity"].tolist() == [[0, 0]]
    # Three copies of one, and two of the other.
    assert cell.found[HIGHEST].tolist() == [[100, 100]]
