from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from benchmarks.learned.page import gains, held_out, reported_and_true
from benchmarks.learned.rows import BEST, RIVALS, UNLEARNED
from tests.shared_core.learning.test_fitting import quick


def seed(gain: float, learned: list[float], vrsd: list[float], linear: list[float]) -> dict[str, Any]:
    """What ``work`` gives for one seed. On held-out items VRSD is the best selector without learning."""
    unlearned = dict.fromkeys(RIVALS, 0.5) | {"VRSD()": 0.6}
    fit = {"gain": gain, "error": 0.01, "feedback": 0.7, "unlearned": unlearned, "epoch": 1, "temperature": 0.1}
    fit["history"] = [{"feedback": 0.6}, {"feedback": 0.7}]
    coverage = {BEST: learned, "VRSD": vrsd, "NDPP, linear": linear}
    return {"fits": {BEST: fit}, "coverage": {row: {"4": values} for row, values in coverage.items()}}


SEEDS = [seed(0.10, [0.5, 0.9], [0.4, 0.6], [0.6, 0.9]), seed(0.06, [0.8, 0.8], [0.7, 0.9], [0.0, 0.0])]


def test_every_selector_that_a_fit_is_compared_with_has_a_row() -> None:
    assert set(quick(epochs=1).unlearned) == set(RIVALS)
    assert set(RIVALS.values()) <= set(UNLEARNED)


def test_the_reported_gain_and_the_gain_on_new_queries_are_over_the_same_selector() -> None:
    """On the new queries the linear NDPP is better than VRSD, but the report could not know that."""
    reported, true = gains(SEEDS[0], BEST)
    assert reported == (0.10, 0.01)
    assert true == pytest.approx((0.2, 0.1))


def test_the_report_stands_beside_the_truth() -> None:
    text = reported_and_true({"geoquery": SEEDS})
    assert "| geoquery | +0.0800 ± 0.0071 | +0.1000 ± 0.0707 | -0.0200 | 2 of 2 |" in text
    assert "Reported minus true, over all 2 fits: -0.0200 ± 0.0800." in text
    assert "+0.0800 ± 0.0071 | +0.1000 ± 0.0707 | 1/1 1/1 |" in held_out(SEEDS)
