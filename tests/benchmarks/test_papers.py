"""The papers' tables on cases that are small enough to check by hand; no data, no model."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import pytest

from benchmarks.papers import pir, ragsys, vrsd_optimum
from benchmarks.papers.pir import Vectors, p_recall_at_k
from benchmarks.papers.ragsys import Pool, Totals, mc1, mc2, mc2_truthfulqa, mc3
from tests import oracles
from tests.shared_core.cases import gaussian

HALF = math.sqrt(0.5)
CORRECT, INCORRECT = np.log([1 / 4, 1 / 16, 1 / 2]), np.log([1 / 8, 3 / 8])


def test_each_measure_by_hand() -> None:
    assert (mc1(CORRECT, INCORRECT), mc1(CORRECT[::-1], INCORRECT)) == (0, 1)
    assert mc1(np.log([0.5]), np.log([0.5])) == 0, "a tie"
    assert mc2(CORRECT, INCORRECT) == pytest.approx(1 / 3)
    assert mc3(CORRECT, INCORRECT) == pytest.approx(13 / 8)
    assert mc2_truthfulqa(CORRECT, INCORRECT) == pytest.approx(13 / 21)


def test_p_recall_by_hand() -> None:
    # Roots r1 (1, 0, 1), r2 (0), r3 (1, 0): (2/3 + 0 + 1/2) / 3, where plain recall would be 3/6.
    success = [True, False, False, True, True, False]
    roots = ["r1", "r1", "r2", "r3", "r1", "r3"]
    assert p_recall_at_k(success, roots) == pytest.approx(float((F(2, 3) + 0 + F(1, 2)) / 3))


# q = (1, 1)/√2, root (1, 0), perspective (0, 1): removing leaves (1, 0), emphasizing gives (1, 2).
@pytest.mark.parametrize(
    ("mode", "how", "expected"),
    [
        ("base", None, [2, 0, 1]),
        ("pap", "remove", [0, 2, 1]),
        ("pap+", "remove", [0, 2, 1]),
        ("pap", "emphasize", [2, 1, 0]),
        ("cast", None, [0, 2, 1]),
    ],
)
def test_modes_by_hand(mode: str, how: str | None, expected: list[int]) -> None:
    items = np.array([[1.0, 0.0], [0.0, 1.0], [HALF, HALF]])
    v = Vectors(items, *(np.array([row]) for row in ([HALF, HALF], [1.0, 0.0], [0.0, 1.0])))
    assert pir.rankings(v, mode, how) == [expected]


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


@pytest.mark.parametrize("seed", range(12))
def test_the_best_sets_are_those_of_the_reference(seed: int) -> None:
    query, vectors = (oracles.unit_rows(np.atleast_2d(given)) for given in gaussian(seed, 12, 5))
    relevance, dots = vectors @ query[0], vectors @ vectors.T
    picks, with_nearest = vrsd_optimum.optimum(relevance, dots, 5)
    expected, highest = oracles.best_vrsd_set(query[0], vectors, 5)
    assert set(picks) == expected
    assert vrsd_optimum.cosines_of(relevance, dots, np.array([picks]))[0] == pytest.approx(highest, abs=1e-12)
    nearest = int(relevance.argmax())
    assert nearest in with_nearest
    assert (with_nearest == picks) == (nearest in expected)
