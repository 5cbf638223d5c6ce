"""Rankings against judgements: recall, nDCG and success by ir_measures, and two measures of subtopics.

The two are computed here. ir_measures computes them by ndeval, which refuses cutoffs above 20, needs a compiler on
platforms without a wheel, and returns zeros if ir_measures 0.4.3 calls it for several parameters in one run.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..._validation import quoted
from ...errors import InvalidInputError, InvalidParameterError

# Keys are hashables. They are typed Any because Mapping is invariant in the type of its keys.
_Judgements: TypeAlias = Mapping[Any, int | Mapping[Any, int]]
_Topics: TypeAlias = frozenset[Hashable]

_OF_DOCUMENTS = ("R", "nDCG", "Success")
_OF_SUBTOPICS = ("StRecall", "alpha_nDCG")
# The weight that each repetition leaves to a subtopic: 1 − α, with α = 0.5.
_KEEP = 0.5


def rank_measures(
    qrels: Mapping[Any, _Judgements], run: Mapping[Any, Sequence[Hashable]], names: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    """Measures of each query's ranking, by the names that ir_measures gives them.

    - ``R@5``, ``nDCG@5``, ``Success@5``: recall, discounted gain, and whether any relevant document is there.
    - ``StRecall@5``: share of the subtopics that the first five documents cover (Zhai, Cohen and Lafferty, SIGIR 2003).
    - ``alpha_nDCG@5``: a document's gain is the sum over its subtopics of 0.5 to the power of the number of earlier
      documents of that subtopic. Gains are discounted by log2(1 + rank), and their sum is divided by that of the greedy
      ideal ranking (Clarke et al., SIGIR 2008). The greedy ideal is an approximation, so a value can be slightly above
      1. Its ties go to the last id, as text, as in ndeval.

    Parameters
    ----------
    qrels : mapping
        For each query the grade of each judged document: an int (0 is irrelevant) or, for subtopics, a mapping from
        subtopic to grade. The other measures then use the document's highest grade.
    run : mapping
        For each query of ``qrels`` its ids, best first. An empty ranking gives 0.
    names : sequence of str
        Names of these measures with their cutoffs.

    Returns
    -------
    dict
        For each name a float64 array of shape (Q,), in the order of ``qrels``.

    Raises
    ------
    InvalidInputError
        There are no queries, ``run`` lacks one of them, a query has no relevant document, an id is ranked twice, or a
        measure of subtopics is requested for grades without subtopics.
    InvalidParameterError
        A name is none of these.
    ImportError
        ir_measures is not installed.

    Examples
    --------
    >>> qrels = {"q": {"d1": {"fruit": 1}, "d2": {"firm": 1}, "d3": {"firm": 1}}}
    >>> rank_measures(qrels, {"q": ["d2", "d3", "d1"]}, ["R@2", "StRecall@2"])
    {'R@2': array([0.66666667]), 'StRecall@2': array([0.5])}
    """
    measures = {name: _parse(name) for name in names}
    if not qrels:
        raise InvalidInputError("qrels holds no queries")
    for query, judged in qrels.items():
        _check(query, judged, run)
    values = {}
    for name, (kind, cutoff) in measures.items():
        if kind in _OF_DOCUMENTS:
            values[name] = _by_library(qrels, run, name)
        else:
            measure = _subtopic_recall if kind == "StRecall" else _alpha_ndcg
            values[name] = np.array([measure(_topics(q, qrels[q]), run[q], cutoff) for q in qrels])
    return values


def _parse(name: str) -> tuple[str, int]:
    """The name of the measure, and its cutoff."""
    kind, _, cutoff = name.partition("@")
    if kind not in (*_OF_DOCUMENTS, *_OF_SUBTOPICS) or not cutoff.isdecimal() or int(cutoff) < 1:
        known = ", ".join(f"{one}@5" for one in (*_OF_DOCUMENTS, *_OF_SUBTOPICS))
        raise InvalidParameterError(f"{quoted(name)} is no measure with a cutoff: write one of {known}")
    return kind, int(cutoff)


def _check(query: Hashable, judged: _Judgements, run: Mapping[Any, Sequence[Hashable]]) -> None:
    if query not in run:
        raise InvalidInputError(
            f"run holds no ranking for query {quoted(query)}; pass an empty one if nothing was found"
        )
    ranking = list(run[query])
    if len(set(ranking)) < len(ranking):
        twice = next(name for name in ranking if ranking.count(name) > 1)
        raise InvalidInputError(f"run: query {quoted(query)} ranks id {quoted(twice)} more than once")
    if max(map(_highest, judged.values()), default=0) < 1:
        raise InvalidInputError(f"qrels: query {quoted(query)} has no relevant document, so nothing can be measured")


def _highest(grade: int | Mapping[Any, int]) -> int:
    return max(grade.values(), default=0) if isinstance(grade, Mapping) else grade


def _by_library(
    qrels: Mapping[Any, _Judgements], run: Mapping[Any, Sequence[Hashable]], name: str
) -> NDArray[np.float64]:
    try:
        import ir_measures
    except ImportError as error:
        raise ImportError('measures of rankings need ir-measures: pip install "setselect[eval]"') from error
    kind, cutoff = _parse(name)
    grades_of, scores_of = {}, {}
    for row, (query, judged) in enumerate(qrels.items()):
        ranking = run[query]
        # ir_measures takes ids as text. Positions replace them here, so that the ids 1 and "1" stay different.
        texts = {document: str(i) for i, document in enumerate(dict.fromkeys([*ranking, *judged]))}
        grades_of[str(row)] = {texts[document]: int(_highest(grade)) for document, grade in judged.items()}
        scores_of[str(row)] = {texts[document]: float(len(ranking) - i) for i, document in enumerate(ranking)}
    # ir_measures can leave out a query whose ranking is empty; its value stays 0.
    values = np.zeros(len(qrels))
    for metric in ir_measures.iter_calc([getattr(ir_measures, kind) @ cutoff], grades_of, scores_of):
        values[int(metric.query_id)] = metric.value
    return values


def _topics(query: Hashable, judged: _Judgements) -> dict[Hashable, _Topics]:
    """The subtopics that each document is relevant to."""
    for document, grades in judged.items():
        if not isinstance(grades, Mapping):
            raise InvalidInputError(
                f"qrels: query {quoted(query)}, id {quoted(document)} has grade {quoted(grades)}; measures of "
                "subtopics need a mapping from subtopic to grade"
            )
    return {
        document: frozenset(topic for topic, grade in grades.items() if grade > 0)  # type: ignore[union-attr]
        for document, grades in judged.items()
    }


def _subtopic_recall(topics: Mapping[Hashable, _Topics], ranking: Sequence[Hashable], cutoff: int) -> float:
    covered: _Topics = frozenset().union(*(topics.get(name, ()) for name in ranking[:cutoff]))
    return len(covered) / len(frozenset().union(*topics.values()))


def _alpha_ndcg(topics: Mapping[Hashable, _Topics], ranking: Sequence[Hashable], cutoff: int) -> float:
    first: list[_Topics] = [topics.get(name, frozenset()) for name in ranking[:cutoff]]
    return _discounted_gain(first) / _discounted_gain(_ideal(topics, cutoff))


def _ideal(topics: Mapping[Hashable, _Topics], length: int) -> list[_Topics]:
    """The ranking that takes the document of the highest gain at each rank."""
    # Documents of the same subtopics have the same gain, so one comparison serves all of them.
    names: dict[_Topics, list[str]] = {}
    for name, covered in topics.items():
        if covered:
            names.setdefault(covered, []).append(str(name))
    left = {covered: sorted(heapq.nlargest(length, of)) for covered, of in names.items()}
    weights: dict[Hashable, float] = {}
    ideal: list[_Topics] = []
    while left and len(ideal) < length:
        best = max(left, key=lambda covered: (_gain(covered, weights), left[covered][-1]))
        ideal.append(best)
        _repeat(best, weights)
        left[best].pop()
        if not left[best]:
            del left[best]
    return ideal


def _discounted_gain(ranking: Sequence[_Topics]) -> float:
    weights: dict[Hashable, float] = {}
    total = 0.0
    for rank, covered in enumerate(ranking, 1):
        total += _gain(covered, weights) / math.log2(1 + rank)
        _repeat(covered, weights)
    return total


def _gain(covered: _Topics, weights: Mapping[Hashable, float]) -> float:
    # The order of a set differs between processes; fsum gives the same sum in every order.
    return math.fsum(weights.get(topic, 1.0) for topic in covered)


def _repeat(covered: _Topics, weights: dict[Hashable, float]) -> None:
    """Lower the weight of each covered subtopic, for the next document that covers it."""
    weights.update({topic: weights.get(topic, 1.0) * _KEEP for topic in covered})
