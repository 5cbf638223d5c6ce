"""The search for the VRSD paper's setting, on cases worked out by hand; no data, no model."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.papers import vrsd_settings
from benchmarks.papers.vrsd_settings import FIRST, RANDOM, SINGLE, SUM, VRSD, Setting

QUERY = np.array([1.0, 0.0])
# Degrees from the query, in another order than that of the cosine.
ANGLES = (40, 2, -6, 25, -55, 70, -90, 5)
RECORDS = [
    {"question": f"q{row}", "answer": f"a{row}", "choices": [{"text": f"a{row}"}, {"text": "no"}]} for row in range(10)
]


def cosine_of(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def setting(**changes: object) -> Setting:
    return vrsd_settings.CODE._replace(**changes)  # type: ignore[arg-type]


def test_values_for_each_number_of_picks_follow_from_the_angles() -> None:
    items = np.array([[cosine_of(angle), math.sin(math.radians(angle))] for angle in ANGLES])
    judged = vrsd_settings.judge(QUERY[None], items, [8])
    assert set(judged) == {(8, SUM), (8, SINGLE)}
    ordered = [cosine_of(angle) for angle in sorted(ANGLES, key=abs)]
    total = items.sum(axis=0)
    for name in vrsd_settings.ROWS:
        sums, singles = judged[8, SUM][name], judged[8, SINGLE][name]
        assert sums.shape == singles.shape == (1, 8)
        # The nearest item is everybody's first pick, and all eight are the same set.
        assert sums[0, 0] == singles[0, 0] == pytest.approx(cosine_of(2), abs=1e-6)
        assert sums[0, 7] == pytest.approx(total[0] / math.hypot(*total), abs=1e-6)
        assert singles[0, 7] == pytest.approx(np.mean(ordered), abs=1e-6)
    # The sum of two unit vectors lies in the middle of them: 2° and 5°, or 2° and −6° with VRSD.
    assert judged[8, SUM]["MMR λ 1"][0, 1] == pytest.approx(cosine_of(3.5), abs=1e-6)
    assert judged[8, SINGLE]["MMR λ 1"][0] == pytest.approx(np.cumsum(ordered) / np.arange(1, 9), abs=1e-6)
    assert judged[8, SUM][VRSD][0, 1] == pytest.approx(cosine_of(-2), abs=1e-6)
    assert judged[8, SUM]["MMR λ 0"][0, 1] == pytest.approx(cosine_of(-44), abs=1e-6)


def test_questions_are_the_first_fifth_or_a_random_one() -> None:
    questions, rest = vrsd_settings.fifth(10, FIRST)
    assert (questions.tolist(), rest.tolist()) == ([0, 1], [2, 3, 4, 5, 6, 7, 8, 9])
    questions, rest = vrsd_settings.fifth(100, RANDOM)
    assert len(questions) == 20
    assert sorted([*questions, *rest]) == list(range(100))


def test_the_own_record_is_among_the_items_only_if_asked_for() -> None:
    queries, items = vrsd_settings.pair(vrsd_settings.ANSWERED, RECORDS, FIRST, own=False)
    assert queries == ["q0?", "q1?"]
    assert items == [f"q{row}?->a{row}" for row in range(2, 10)]
    assert len(vrsd_settings.pair(vrsd_settings.ANSWERED, RECORDS, FIRST, own=True)[1]) == 10
