"""Intervals and tests against full enumeration and closed forms."""

from __future__ import annotations

import itertools
import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core import InvalidInputError, InvalidParameterError
from shared_core.evaluation.measures import bootstrap_interval, paired_test

NAN = float("nan")
few = settings(deadline=None, derandomize=True, max_examples=15)


def test_the_interval_agrees_with_the_enumeration_of_all_resamples() -> None:
    # How often 4 draws from {0, 0, 0, 1} give the 1 is binomial: never 0.316, at most once 0.738, twice 0.949, three
    # times 0.996. So the 1 % and 10 % points of the mean are 0, the 90 % point is 2/4, and the 99 % point is 3/4.
    assert bootstrap_interval([0, 0, 0, 1], confidence=0.8) == (0.0, 0.5)
    assert bootstrap_interval([0, 0, 0, 1], confidence=0.98) == (0.0, 0.75)


def by_enumeration(differences: list[float]) -> float:
    """The share of all assignments of signs whose sum is as extreme, times two for both sides."""
    observed = sum(differences)
    sums = [
        sum(sign * value for sign, value in zip(signs, differences, strict=True))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    above = sum(value >= observed - 1e-9 for value in sums) / len(sums)
    below = sum(value <= observed + 1e-9 for value in sums) / len(sums)
    return min(1.0, 2 * min(above, below))


def test_p_values_by_hand() -> None:
    # Five wins of five: 2 of the 2^5 assignments of signs are as extreme.
    assert paired_test([2, 3, 4, 5, 6], [1, 1, 1, 1, 1]) == pytest.approx(2 / 32)
    # Differences 3, 2, -1 sum to 4; the eight sums are ±6, ±4, ±2, ±0: 2 of 8 reach 4, on both sides 4 of 8.
    assert paired_test([3, 2, 0], [0, 0, 1]) == pytest.approx(4 / 8)


@few
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=8))
def test_p_values_of_few_queries_are_exact(pairs: list[tuple[int, int]]) -> None:
    ours, theirs = zip(*pairs, strict=True)
    expected = by_enumeration([a - b for a, b in pairs])
    assert paired_test(ours, theirs) == pytest.approx(expected)
    assert paired_test(theirs, ours) == pytest.approx(expected)
    assert paired_test(ours[::-1], theirs[::-1]) == pytest.approx(expected)


def test_p_values_at_the_ends() -> None:
    rng = np.random.default_rng(3)
    theirs = rng.uniform(size=50)
    assert paired_test(theirs, theirs) == 1.0
    assert paired_test([0.9], [0.1]) == 1.0
    # 9,999 draws and the observed one.
    assert paired_test(theirs + 1, theirs) == pytest.approx(1 / 10_000)
    assert paired_test([theirs + 1, theirs], theirs) == pytest.approx([1 / 10_000, 1.0])


def adjusted_by_enumeration(rows: list[list[float]]) -> list[float]:
    """For each row, the share of all assignments of signs for which any row has a sum as large for its length."""

    def sizes(signs: tuple[int, ...]) -> list[float]:
        sums = (abs(sum(sign * value for sign, value in zip(signs, row, strict=True))) for row in rows)
        return [total / (math.hypot(*row) or 1.0) for total, row in zip(sums, rows, strict=True)]

    assignments = list(itertools.product((1, -1), repeat=len(rows[0])))
    largest = [max(sizes(signs)) for signs in assignments]
    observed = sizes(assignments[0])
    return [sum(size >= one - 1e-9 for size in largest) / len(largest) for one in observed]


@few
@given(st.lists(st.lists(st.integers(-6, 6), min_size=6, max_size=6), min_size=1, max_size=4))
def test_p_values_of_several_methods_are_exact_for_few_queries(rows: list[list[int]]) -> None:
    theirs = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0])
    found = paired_test(theirs + rows, theirs)
    assert found == pytest.approx(adjusted_by_enumeration([[float(v) for v in row] for row in rows]))
    alone = [paired_test(theirs + row, theirs) for row in rows]
    # More methods never make a difference more certain.
    assert (found >= np.array(alone) - 1e-9).all()
    assert paired_test([theirs + rows[0]], theirs) == pytest.approx(alone[:1])


@pytest.mark.parametrize(
    ("call", "error", "word"),
    [
        (lambda: bootstrap_interval([[[1, 2]]]), InvalidInputError, "shape"),
        (lambda: bootstrap_interval([[0.5, 1.0], [NAN, 1.0]]), InvalidInputError, "values: row 1, query 0"),
        (lambda: paired_test([1, 2], [1]), InvalidInputError, "theirs"),
        (lambda: bootstrap_interval([1, 2], confidence=95), InvalidParameterError, "confidence"),
    ],
)
def test_bad_input_is_named(call: Any, error: type[Exception], word: str) -> None:
    with pytest.raises(error, match=word):
        call()


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(ImportError, match=r"setselect\[eval\]"):
        bootstrap_interval([1, 2])
