"""Measures of a language model's answers (RAGSys 3.2), and which demonstrations it may see (RAGSys 4.1.3).

Every measure takes the total log-probabilities of the reference answers to *one* question, log p(answer | question,
context): the sum over the answer's tokens. The papers' figures are means over questions.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_integer
from ..errors import InvalidInputError, InvalidParameterError
from .measures._inputs import Floats, column

# Servers round: the log-probability of a certain token may come out a little above 0.
_ROUNDING = 1e-6


def mc1(correct: ArrayLike, incorrect: ArrayLike, best: int = 0) -> float:
    """1.0 where the best correct answer is more probable than every incorrect one, else 0.0 (RAGSys 3.2.1, MC1).

    TruthfulQA's own MC1 is the same. A tie counts as 0.

    Parameters
    ----------
    correct : array-like of shape (a,)
        Total log-probabilities of the correct answers, at most 0.
    incorrect : array-like of shape (b,)
        The same for the incorrect answers.
    best : int, default 0
        Which of ``correct`` is the best answer.

    Raises
    ------
    InvalidInputError
        One of the two is empty, no list of numbers, holds NaN or inf, or a number above 0.
    InvalidParameterError
        ``best`` is no position in ``correct``.

    Examples
    --------
    >>> mc1([-3.0, -1.0], [-2.0, -5.0])
    0.0
    >>> mc1([-3.0, -1.0], [-2.0, -5.0], best=1)
    1.0
    """
    right, wrong = _log_probabilities(correct, "correct"), _log_probabilities(incorrect, "incorrect")
    position = check_integer(best, "best", 0)
    if position >= len(right):
        raise InvalidParameterError(f"best={position} is no position among {len(right)} correct answers")
    return float(right[position] > wrong.max())


def mc2(correct: ArrayLike, incorrect: ArrayLike) -> float:
    """Share of the correct answers that are more probable than every incorrect one, in [0, 1] (RAGSys 3.2.1, MC2).

    What TruthfulQA calls MC3: the paper says that its names follow TruthfulQA's, but MC2 and MC3 are interchanged.

    Parameters
    ----------
    correct, incorrect : array-like of shapes (a,) and (b,)
        Total log-probabilities, at most 0.

    Raises
    ------
    InvalidInputError
        As `mc1`.

    Examples
    --------
    >>> mc2([-3.0, -1.0], [-2.0, -5.0])
    0.5
    """
    right, wrong = _log_probabilities(correct, "correct"), _log_probabilities(incorrect, "incorrect")
    return float((right > wrong.max()).mean())


def mc3(correct: ArrayLike, incorrect: ArrayLike) -> float:
    """Probability of all correct answers over that of all incorrect ones, at least 0 (RAGSys 3.2.1, MC3).

    A ratio as printed, without an upper bound, so that a few questions rule a mean of it. The paper's tables show
    values below 1, ordered like MC1: they most likely hold the share of the probability, `mc2_truthfulqa`, which is
    r / (1 + r) of this ratio r.

    Parameters
    ----------
    correct, incorrect : array-like of shapes (a,) and (b,)
        Total log-probabilities, at most 0.

    Returns
    -------
    float
        inf where the ratio is beyond float64 (the totals lie more than 709 apart).

    Raises
    ------
    InvalidInputError
        As `mc1`.

    Examples
    --------
    >>> from math import log
    >>> round(mc3([log(0.25), log(0.125)], [log(0.5)]), 9)
    0.75
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

    gain is log p(answer | question, context) − log p(answer | question), of a correct answer and of an incorrect one.
    The paper has one value for each triple of question, correct and incorrect answer; this is the mean over the a·b
    triples of one question. For the paper's mean over all triples of a data set, weigh each question by its a·b.
    Without incorrect answers their term is left out, as the paper allows.

    Parameters
    ----------
    correct, incorrect : array-like of shapes (a,) and (b,)
        Total log-probabilities with the context, at most 0.
    correct_alone, incorrect_alone : array-like of shapes (a,) and (b,), optional
        The same answers without any context. The paper's measure needs them. Left out, the answers are taken to be
        equally probable without context, which favours short answers.

    Raises
    ------
    InvalidInputError
        As `mc1`, or the numbers of answers with and without context differ, or only one kind comes without context.

    Examples
    --------
    >>> from math import log
    >>> with_context = [log(0.5)], [log(0.25)]
    >>> round(dpo(*with_context, correct_alone=[log(0.125)], incorrect_alone=[log(0.25)]), 9) == round(log(0.8), 9)
    True
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
    """Share of the correct answers in the probability of all reference answers, in [0, 1]: MC2 of TruthfulQA's code.

    Parameters
    ----------
    correct, incorrect : array-like of shapes (a,) and (b,)
        Total log-probabilities, at most 0.

    Raises
    ------
    InvalidInputError
        As `mc1`.

    Examples
    --------
    >>> round(mc2_truthfulqa([-2000.0], [-2000.0, -2000.0, -2000.0]), 9)
    0.25
    """
    right, wrong = _log_probabilities(correct, "correct"), _log_probabilities(incorrect, "incorrect")
    total = _log_sum(right)
    return math.exp(total - float(np.logaddexp(total, _log_sum(wrong))))


def mc3_truthfulqa(correct: ArrayLike, incorrect: ArrayLike) -> float:
    """Share of the correct answers that are more probable than every incorrect one: MC3 of TruthfulQA's code.

    The same as RAGSys' `mc2`, under TruthfulQA's name for it.

    Parameters
    ----------
    correct, incorrect : array-like of shapes (a,) and (b,)
        Total log-probabilities, at most 0.

    Raises
    ------
    InvalidInputError
        As `mc1`.

    Examples
    --------
    >>> mc3_truthfulqa([-3.0, -1.0], [-2.0, -5.0])
    0.5
    """
    return mc2(correct, incorrect)


def leave_one_out(group_of_item: Sequence[Hashable], group: Hashable) -> NDArray[np.bool_]:
    """Which demonstrations remain when all that belong to one question are left out (RAGSys 4.1.3).

    Parameters
    ----------
    group_of_item : sequence of n hashables
        The question that each demonstration belongs to.
    group : hashable
        The question that is asked. None need belong to it: then all remain.

    Returns
    -------
    ndarray of bool, shape (n,)
        True where the demonstration may be shown.

    Raises
    ------
    InvalidInputError
        ``group_of_item`` is a string, no collection, or empty.

    Examples
    --------
    >>> leave_one_out(["q1", "q1", "q2"], "q1")
    array([False, False,  True])
    """
    if isinstance(group_of_item, (str, bytes)) or not hasattr(group_of_item, "__len__") or not len(group_of_item):
        raise InvalidInputError(f"group_of_item must be a non-empty list of questions, got {group_of_item!r}")
    return np.fromiter((bool(item != group) for item in group_of_item), np.bool_, len(group_of_item))


def _log_probabilities(values: ArrayLike, what: str) -> Floats:
    array = column(values, what)
    above = np.flatnonzero(array > _ROUNDING)
    if len(above):
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
            f"{what} holds {len(with_context)} answers, {what}_alone {len(without)}: pass the same answers twice"
        )
    return with_context - without
