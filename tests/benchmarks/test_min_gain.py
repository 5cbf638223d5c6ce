"""benchmarks/min_gain.py with figures by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.min_gain import MOST, Measured
from setselect import Selection


def selection(worth: list[float]) -> Selection:
    gains = np.log(worth)
    return Selection(np.arange(len(worth)), gains, gains, float(gains.sum()))


def test_a_set_that_ends_is_compared_with_a_fixed_number_of_the_same_mean() -> None:
    # The first question has all with 2 texts, the second with 4; the third is of the other half.
    one = selection([1.0, 0.9, *[0.1] * 8]), np.array([0.0, *[1.0] * 9])
    two = selection([1.0, 0.9, 0.9, 0.9, *[0.1] * 6]), np.array([0.0, 0.0, 0.0, *[1.0] * 7])
    measured = Measured(np.array([False, False, True]), {"coverage": [one, two, one]})
    ended = measured.ended("coverage", 0.5, 2, False)
    assert (ended.sizes.tolist(), ended.points.tolist(), ended.fixed.shape) == ([2, 4], [100, 100], (2, MOST))
    assert ended.above_fixed == pytest.approx(50), "3 texts for each question have all for one of them"
    assert measured.ended("coverage", 0.5, 3, True).sizes.tolist() == [3]
