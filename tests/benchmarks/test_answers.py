"""The measures of RAGSys 3.2 with probabilities by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.papers._answers import dpo, mc1, mc2, mc2_truthfulqa, mc3

CORRECT, INCORRECT = np.log([1 / 4, 1 / 16, 1 / 2]), np.log([1 / 8, 3 / 8])


def test_each_measure_by_hand() -> None:
    assert (mc1(CORRECT, INCORRECT), mc1(CORRECT[::-1], INCORRECT)) == (0, 1)
    assert mc1(np.log([0.5]), np.log([0.5])) == 0, "a tie"
    assert mc2(CORRECT, INCORRECT) == pytest.approx(1 / 3)
    assert mc3(CORRECT, INCORRECT) == pytest.approx(13 / 8)
    assert mc2_truthfulqa(CORRECT, INCORRECT) == pytest.approx(13 / 21)


def test_dpo_is_the_mean_over_all_triples() -> None:
    # Gains of correct answers ×2 and ×1/2, of incorrect ones ×1 and ×3: σ(log r) = r / (1 + r).
    logs = (np.log(values) for values in ([1 / 2, 1 / 8], [1 / 4, 3 / 8], [1 / 4, 1 / 4], [1 / 4, 1 / 8]))
    expected = sum(math.log(r / (1 + r)) for r in (2, 2 / 3, 1 / 2, 1 / 6)) / 4
    assert dpo(*logs) == pytest.approx(expected)
