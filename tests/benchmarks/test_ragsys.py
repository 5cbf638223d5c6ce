"""The RAGSys tables on cases worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.papers import ragsys
from benchmarks.papers.ragsys import Pool, Question, Totals


def test_the_best_answer_comes_first_and_no_answer_twice() -> None:
    record = {"question": "q", "best_answer": "b", "correct_answers": ["a", "b", "a"], "incorrect_answers": ["x", "x"]}
    assert ragsys.question_of(record) == Question("q", ("b", "a"), ("x",))


def at(degrees: float) -> tuple[float, float]:
    return math.cos(math.radians(degrees)), math.sin(math.radians(degrees))


# Two answers to "near" and one to each other question. The asked question has the best demonstration, its own.
PAIRS = [("asked", "0"), ("near", "1"), ("near", "2"), ("off", "3"), ("far", "4")]
VECTORS = np.array([at(0), at(10), at(10), at(-40), at(80)])


@pytest.mark.parametrize(
    ("row", "quality", "picked"),
    [
        ("Rel", [0, -1, -1, -9, -1], [1, 2, 3]),
        ("Bias", [0, -4, -3, -1, -2], [3, 4, 2]),
        # 0.95 · 0.985 − 0.05 · 1 = 0.886 for the second near pair, 0.786 for the first (quality −3), 0.678 for "off".
        ("Rel+Bias", [0, -3, -1, -1, -1], [2, 1, 3]),
        # After the first: 0.75 · 0.985 − 0.25 · 1 = 0.489 for its twin, 0.75 · 0.766 − 0.25 · 0.643 = 0.414 for "off".
        ("Rel+Div", [0, 0, 0, 0, 0], [1, 2, 3]),
        # Its quality lowers the twin to 0.75 (0.95 · 0.985 − 0.15) − 0.25 = 0.339; "off": 0.75 · 0.678 − 0.161 = 0.347.
        ("Rel+Div+Bias", [0, -1, -3, -1, -1], [1, 3, 2]),
    ],
)
def test_what_each_row_selects(row: str, quality: list[float], picked: list[int]) -> None:
    pool = Pool(PAIRS, VECTORS, np.array(quality, dtype=float))
    assert pool.picks("asked", np.array([1.0, 0.0]), *ragsys.ROWS[row], k=3).tolist() == picked


def test_dpo_is_a_mean_over_triples_and_the_others_over_questions() -> None:
    log = np.log
    found = [Totals(log([0.5]), log([0.25])), Totals(log([0.25, 0.5]), log([0.375, 0.125, 0.25]))]
    alone = [Totals(log([0.125]), log([0.25])), found[1]]
    values = {name: of_questions.mean() for name, of_questions in ragsys.judged(found, alone).items()}
    # One triple has a margin of log 4, whose σ is 0.8; the context of the other six has no effect.
    assert values["DPO"] == pytest.approx((log(0.8) + 6 * log(0.5)) / 7)
    assert values["MC1"] == 0.5
    assert values["MC2"] == values["TruthfulQA MC3"] == 0.75
    assert values["MC3"] == pytest.approx((2 + 1) / 2)
    assert values["TruthfulQA MC2"] == pytest.approx((2 / 3 + 1 / 2) / 2)
