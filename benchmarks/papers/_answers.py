"""Measures of a language model's answers (RAGSys 3.2).

A measure of answers takes the total log-probabilities of the correct and of the incorrect answers to one question,
log p(answer | question, context): for each answer the sum over its tokens. The paper's figures are means over
questions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def mc1(correct: Floats, incorrect: Floats) -> float:
    """1.0 if the best correct answer, the first, is more probable than every incorrect one (MC1); a tie counts as 0."""
    return float(correct[0] > incorrect.max())


def mc2(correct: Floats, incorrect: Floats) -> float:
    """Share of the correct answers that are more probable than every incorrect one, in [0, 1] (RAGSys's MC2).

    TruthfulQA calls this measure MC3. The paper says that its names follow TruthfulQA's, but MC2 and MC3 are exchanged.
    """
    return float((correct > incorrect.max()).mean())


def mc3(correct: Floats, incorrect: Floats) -> float:
    """Probability of all correct answers over that of all incorrect ones, at least 0 (RAGSys's MC3).

    The ratio r has no upper bound, so a few questions dominate its mean. The paper's tables show values below 1 in the
    order of MC1; they most likely hold r / (1 + r), which is `mc2_truthfulqa`.
    """
    try:
        return math.exp(np.logaddexp.reduce(correct) - np.logaddexp.reduce(incorrect))
    except OverflowError:
        return math.inf


def mc2_truthfulqa(correct: Floats, incorrect: Floats) -> float:
    """Share of the correct answers in the probability of all reference answers, in [0, 1]: MC2 of TruthfulQA's code."""
    return math.exp(np.logaddexp.reduce(correct) - np.logaddexp.reduce([*correct, *incorrect]))


def dpo(correct: Floats, incorrect: Floats, correct_alone: Floats, incorrect_alone: Floats) -> float:
    """How much the context favours correct over incorrect answers, at most 0 (RAGSys 3.2.2): log σ(gain − gain').

    gain is log p(answer | question, context) − log p(answer | question) of a correct answer, gain' that of an incorrect
    one. The paper has one value for each triple of question, correct and incorrect answer. This is the mean over the
    a·b triples of one question; for the mean over all triples of a data set, weight each question by its a·b.
    """
    margins = np.subtract.outer(correct - correct_alone, incorrect - incorrect_alone)
    return float(-np.logaddexp(0, -margins).mean())
