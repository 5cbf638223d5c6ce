"""Measures of answers against arithmetic by hand: every probability is a fraction, as a model would give it."""

from __future__ import annotations

import math
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers._answers import dpo, leave_one_out, mc1, mc2, mc2_truthfulqa, mc3, mc3_truthfulqa
from shared_core import InvalidInputError

NAN = float("nan")
log_probabilities = st.lists(st.floats(-3000, 0), min_size=1, max_size=8)


def logs(*probabilities: F) -> list[float]:
    return [math.log(p) for p in probabilities]


def close(value: float, expected: Any) -> bool:
    return value == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


CORRECT = [F(1, 4), F(1, 16), F(1, 2)]
INCORRECT = [F(1, 8), F(3, 8)]


def test_mc1_compares_the_best_answer_with_every_incorrect_one() -> None:
    assert [mc1(logs(*CORRECT), logs(*INCORRECT), best=i) for i in range(3)] == [0.0, 0.0, 1.0]
    # The indicator's inequality is strict.
    assert mc1([-1.0], [-1.0]) == 0.0


def test_mc2_is_the_share_of_correct_answers_above_all_incorrect_ones() -> None:
    assert close(mc2(logs(*CORRECT), logs(*INCORRECT)), F(1, 3))
    assert close(mc2(logs(*CORRECT), logs(F(1, 8))), F(2, 3))
    assert close(mc3_truthfulqa(logs(*CORRECT), logs(*INCORRECT)), F(1, 3))


def test_mc3_is_the_ratio_of_the_summed_probabilities() -> None:
    # (1/4 + 1/16 + 1/2) / (1/8 + 3/8) = (13/16) / (1/2)
    assert close(mc3(logs(*CORRECT), logs(*INCORRECT)), F(13, 8))


def test_truthfulqa_mc2_is_the_share_of_the_summed_probabilities() -> None:
    # (13/16) / (13/16 + 1/2)
    assert close(mc2_truthfulqa(logs(*CORRECT), logs(*INCORRECT)), F(13, 21))


def test_dpo_by_hand() -> None:
    # One triple: p(a|q,C) = 1/2, p(a|q) = 1/8, p(ā|q,C) = 1/4, p(ā|q) = 1/2: the ratio of the ratios is 4 / (1/2) = 8,
    # and σ(log 8) = 8/9.
    value = dpo(logs(F(1, 2)), logs(F(1, 4)), correct_alone=logs(F(1, 8)), incorrect_alone=logs(F(1, 2)))
    assert close(value, math.log(F(8, 9)))


def test_dpo_is_the_mean_over_all_triples() -> None:
    # Gains of correct answers ×2 and ×1/2, of incorrect ones ×1 and ×3: σ(log r) = r / (1 + r).
    with_context = logs(F(1, 2), F(1, 8)), logs(F(1, 4), F(3, 8))
    alone = {"correct_alone": logs(F(1, 4), F(1, 4)), "incorrect_alone": logs(F(1, 4), F(1, 8))}
    ratios = [F(2, 1), F(2, 3), F(1, 2), F(1, 6)]
    expected = sum(math.log(r / (1 + r)) for r in ratios) / 4
    assert close(dpo(*with_context, **alone), expected)


def test_log_probabilities_far_below_the_smallest_float() -> None:
    # exp(-2000) is 0 in float64. Shift both by 2000: (1 + e^-1) over e^-2.
    correct, incorrect = [-2000.0, -2001.0], [-2002.0]
    ratio = (1 + math.exp(-1)) / math.exp(-2)
    assert mc1(correct, incorrect) == 1.0
    assert mc2(correct, incorrect) == 1.0
    assert close(mc3(correct, incorrect), ratio)
    assert close(mc2_truthfulqa(correct, incorrect), ratio / (1 + ratio))
    assert close(dpo([-2000.0], [-2001.0]), -math.log1p(math.exp(-1)))


def test_extremes_saturate_without_a_warning() -> None:
    assert mc3([-1.0], [-2000.0]) == math.inf
    assert mc3([-2000.0], [-1.0]) == 0.0
    assert mc2_truthfulqa([-1.0], [-2000.0]) == 1.0
    assert mc2_truthfulqa([-2000.0], [-1.0]) == 0.0
    # log σ(x) is x itself far below 0, and 0 far above.
    assert dpo([-2000.0], [-1.0]) == -1999.0
    assert dpo([-1.0], [-2000.0]) == 0.0


@settings(deadline=None, derandomize=True)
@given(log_probabilities, log_probabilities, st.randoms(use_true_random=False))
def test_the_order_of_the_answers_does_not_matter(correct: list[float], incorrect: list[float], random: Any) -> None:
    mixed = random.sample(correct, len(correct)), random.sample(incorrect, len(incorrect))
    share = mc2_truthfulqa(correct, incorrect)
    assert 0 <= share <= 1
    assert mc2(correct, incorrect) in {i / len(correct) for i in range(len(correct) + 1)}
    assert mc1(correct, incorrect, correct.index(max(correct))) >= mc2(correct, incorrect)
    assert dpo(correct, incorrect) <= 0
    assert mc2(*mixed) == mc2(correct, incorrect)
    for measure in (mc3, mc2_truthfulqa, dpo):
        assert measure(*mixed) == pytest.approx(measure(correct, incorrect), rel=1e-9, abs=1e-12)
    if (ratio := mc3(correct, incorrect)) < 1e300:
        assert share == pytest.approx(ratio / (1 + ratio), rel=1e-9, abs=1e-12)


def test_leave_one_out_drops_every_demonstration_of_the_question() -> None:
    groups = ["q1", "q2", "q1", "q3"]
    assert leave_one_out(groups, "q1").tolist() == [False, True, False, True]
    assert leave_one_out(groups, "q9").all()
    assert leave_one_out(np.array([1, 2, 1]), 1).tolist() == [False, True, False]
    assert leave_one_out([("q", 1), ("q", 2)], ("q", 1)).tolist() == [False, True]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: mc1([], [-1]), "correct must be a non-empty list"),
        (lambda: mc2([-1], [NAN]), "incorrect: position 0 holds NaN"),
        (lambda: mc3([-math.inf], [-1]), "correct: position 0 holds NaN or inf"),
        (lambda: mc2([-1, 0.25], [-1]), "correct: position 1 is 0.25, but a log-probability is at most 0"),
        (lambda: dpo([-1], [-1], correct_alone=[-1, -2], incorrect_alone=[-1]), "correct holds 1 answers"),
        (lambda: dpo([-1], [-1], correct_alone=[-1]), "together, or neither"),
    ],
)
def test_bad_input_is_named(call: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        call()
