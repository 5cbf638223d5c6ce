"""benchmarks/min_gain.py with figures by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.min_gain import MOST, Measured, count_before_gap
from setselect import Selection


def selection(worth: list[float]) -> Selection:
    gains = np.log(worth)
    return Selection(np.arange(len(worth)), gains, gains, float(gains.sum()))


def test_a_set_that_ends_is_compared_with_a_fixed_number_of_the_same_mean() -> None:
    # The first question has all with 2 texts, the second with 4; the third is of the other half.
    one = selection([1.0, 0.9, *[0.1] * 8]), np.array([0.0, *[1.0] * 9])
    two = selection([1.0, 0.9, 0.9, 0.9, *[0.1] * 6]), np.array([0.0, 0.0, 0.0, *[1.0] * 7])
    measured = Measured(np.array([False, False, True]), {"coverage": [one, two, one]}, [])
    ended = measured.ended("coverage", 0.5, 2, False)
    assert (ended.sizes.tolist(), ended.points.tolist(), ended.fixed.shape) == ([2, 4], [100, 100], (2, MOST))
    assert ended.above_fixed == pytest.approx(50), "3 texts for each question have all for one of them"
    assert measured.ended("coverage", 0.5, 3, True).sizes.tolist() == [3]


def test_adaptive_k_cuts_at_the_largest_gap_of_the_cosines() -> None:
    cosines = np.array([0.9, 0.6, 0.58, 0.4, *[0.39] * 7, 0.1])
    assert [count_before_gap(cosines, least) for least in (1, 2)] == [1, 3], "0.1 is the twelfth text: 10 are the most"
    one = selection([1.0] * 10), np.array([0.0, 0.0, *[1.0] * 8])
    measured = Measured(np.array([False]), {"coverage": [one]}, [cosines])
    assert measured.cut("coverage", 2, False).points.tolist() == [100]
    assert measured.cut("coverage", 1, False).points.tolist() == [0]
