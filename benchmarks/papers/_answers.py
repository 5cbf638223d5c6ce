"""Measures of a language model's answers (RAGSys 3.2), and which demonstrations it may see (RAGSys 4.1.3).

Every measure takes the total log-probabilities of the reference answers to one question, log p(answer | question,
context): for each answer the sum over its tokens, at most 0. It raises ``InvalidInputError`` for an empty list, NaN,
inf, or a number above 0. The paper's figures are means over questions.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shared_core import InvalidInputError, InvalidParameterError

Floats = NDArray[np.float64]
# Servers round: the log-probability of a certain token may come out slightly above 0.
_ROUNDING = 1e-6


def mc1(correct: ArrayLike, incorrect: ArrayLike, best: int = 0) -> float:
    """1.0 if the best correct answer is more probable than every incorrect one, else 0.0 (RAGSys 3.2.1, MC1).

    A tie counts as 0. ``best`` is the position of the best answer in ``correct``. TruthfulQA's MC1 is the same measure.
    """
    right, wrong = _log_probabilities(correct, "correct"), _log_probabilities(incorrect, "incorrect")
    if best not in range(len(right)):
        raise InvalidParameterError(f"best={best} is not a position among {len(right)} correct answers")
    return float(right[best] > wrong.max())


def mc2(correct: ArrayLike, incorrect: ArrayLike) -> float:
    """Share of the correct answers that are more probable than every incorrect one, in [0, 1] (RAGSys 3.2.1, MC2).

    TruthfulQA calls this measure MC3. The paper says that its names follow TruthfulQA's, but MC2 and MC3 are exchanged.
    """
    right, wrong = _log_probabilities(correct, "correct"), _log_probabilities(incorrect, "incorrect")
    return float((right > wrong.max()).mean())


def mc3(correct: ArrayLike, incorrect: ArrayLike) -> float:
    """Probability of all correct answers over that of all incorrect ones, at least 0 (RAGSys 3.2.1, MC3).

    The ratio r has no upper bound, so a few questions dominate its mean. It is inf if the totals lie more than 709
    apart. The paper's tables show values below 1 in the order of MC1; they most likely hold r / (1 + r), which is
    `mc2_truthfulqa`.
    """
    right, wrong = _log_probabilities(correct, "correct"), _log_probabilities(incorrect, "incorrect")
    try:
        return math.exp(_log_sum(right) - _log_sum(wrong))
    except OverflowError:
        return math.inf


def dpo(
    correct: ArrayLike,
    incorrect: ArrayLike | None = None,
    *,
    correct_alone: ArrayLike | None = None,
    incorrect_alone: ArrayLike | None = None,
) -> float:
    """How much the context favours correct over incorrect answers, at most 0 (RAGSys 3.2.2): log σ(gain − gain').

    gain is log p(answer | question, context) − log p(answer | question) of a correct answer, gain' that of an incorrect
    one. The paper has one value for each triple of question, correct and incorrect answer. This is the mean over the
    a·b triples of one question; for the mean over all triples of a data set, weight each question by its a·b. Without
    incorrect answers their term is left out, as the paper allows.

    ``correct_alone`` and ``incorrect_alone`` are the same answers without context. The paper's measure needs them.
    Without them the answers count as equally probable without context, which favours short answers.
    """
    right = _gain(correct, correct_alone, "correct")
    if incorrect is None:
        if incorrect_alone is not None:
            raise InvalidInputError("incorrect_alone was given without incorrect: pass both, or neither")
        margins = right
    else:
        if (correct_alone is None) != (incorrect_alone is None):
            raise InvalidInputError("pass correct_alone and incorrect_alone together, or neither")
        margins = np.subtract.outer(right, _gain(incorrect, incorrect_alone, "incorrect"))
    return float(-np.logaddexp(0, -margins).mean())


def mc2_truthfulqa(correct: ArrayLike, incorrect: ArrayLike) -> float:
    """Share of the correct answers in the probability of all reference answers, in [0, 1]: MC2 of TruthfulQA's code."""
    right, wrong = _log_probabilities(correct, "correct"), _log_probabilities(incorrect, "incorrect")
    total = _log_sum(right)
    return math.exp(total - float(np.logaddexp(total, _log_sum(wrong))))


def mc3_truthfulqa(correct: ArrayLike, incorrect: ArrayLike) -> float:
    """MC3 of TruthfulQA's code, which is RAGSys's `mc2`."""
    return mc2(correct, incorrect)


def leave_one_out(group_of_item: Sequence[Hashable], group: Hashable) -> NDArray[np.bool_]:
    """Mask of the demonstrations that may be shown, shape (n,): those of every question but ``group`` (RAGSys 4.1.3).

    ``group_of_item`` holds the question that each demonstration belongs to.
    """
    if isinstance(group_of_item, (str, bytes)) or not hasattr(group_of_item, "__len__") or not len(group_of_item):
        raise InvalidInputError(f"group_of_item must be a non-empty list of questions, got {group_of_item!r}")
    return np.fromiter((bool(item != group) for item in group_of_item), np.bool_, len(group_of_item))


def _log_probabilities(values: ArrayLike, what: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise InvalidInputError(f"{what} must be a non-empty list of numbers, got shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise InvalidInputError(f"{what}: position {bad[0]} holds NaN or inf")
    above = np.flatnonzero(array > _ROUNDING)
    if above.size:
        raise InvalidInputError(
            f"{what}: position {above[0]} is {array[above[0]]:g}, but a log-probability is at most 0; "
            "pass the sum of the log-probabilities of the answer's tokens"
        )
    return array


def _log_sum(values: Floats) -> float:
    return float(np.logaddexp.reduce(values))


def _gain(answers: ArrayLike, alone: ArrayLike | None, what: str) -> Floats:
    with_context = _log_probabilities(answers, what)
    if alone is None:
        return with_context
    without = _log_probabilities(alone, f"{what}_alone")
    if len(without) != len(with_context):
        raise InvalidInputError(
            f"{what} holds {len(with_context)} answers, {what}_alone {len(without)}: both must hold the same answers"
        )
    return with_context - without
