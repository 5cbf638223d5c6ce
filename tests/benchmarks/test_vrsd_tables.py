"""The pure functions of the VRSD paper's tables, on cases worked out by hand; no data, no model."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.papers import vrsd

QUERY = np.array([1.0, 0.0])
# Degrees from the query. The pool of three leaves out the item at 90°; its order by cosine is rows 3, 1, 2.
ANGLES = (90, 12, -20, 10)
ITEMS = np.array([[math.cos(math.radians(a)), math.sin(math.radians(a))] for a in ANGLES])
BM25 = np.array([5.0, 1.0, 0.0, 0.0])


def cosine_of(degrees: float) -> float:
    return math.cos(math.radians(degrees))


@pytest.mark.parametrize(("n", "asked"), [(10, 2), (70, 14), (4833, 966), (2099, 419)])
def test_a_fifth_are_questions_and_no_items(n: int, asked: int) -> None:
    questions, rest = vrsd.split(n)
    assert len(questions) == asked
    assert sorted([*questions, *rest]) == list(range(n))


def test_what_each_method_selects() -> None:
    found = vrsd.picks(QUERY, ITEMS, BM25, size=3, k=2)
    assert {name: chosen.tolist() for name, chosen in found.items()} == {
        "similarity": [3, 1],
        "MMR λ 1": [3, 1],
        # ½(cos 12° − cos 2°) < 0 < ½(cos 20° − cos 30°)
        "MMR λ 0.5": [3, 2],
        # ¾ cos 20° − ¼ cos 30° = 0.488, and 0.484 for row 1
        "MMR λ 0.75": [3, 2],
        "MMR λ 0": [3, 2],
        # 10° and −20° add up to −5°, 10° and 12° to 11°
        "VRSD": [3, 2],
        "VRSD refined": [3, 2],
        # BM25 scores rows 2 and 3 equally; row 3 is nearer.
        "BM25, the pool": [1, 3],
        "BM25, all items": [0, 1],
    }
