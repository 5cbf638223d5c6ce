"""Rankings against judgements: recall, nDCG and every other measure of ir_measures, and three measures of subtopics.

The three are computed here. ir_measures computes them by ndeval, which refuses cutoffs above 20, needs a compiler on
platforms without a wheel, and returns zeros if ir_measures 0.4.3 calls it for several parameters in one run.
"""

from __future__ import annotations

import ast
import heapq
import math
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._validation import check_integer, check_number, quoted
from ...errors import InvalidInputError, InvalidParameterError
from ._inputs import Floats

if TYPE_CHECKING:
    from ir_measures import Measure

_NOTATION = re.compile(r"(?P<name>\w+)(\((?P<parameters>.*)\))?(@(?P<at>\d[\d.]*))?")

# Keys are hashables. They are typed Any because Mapping is invariant in the type of its keys.
_Judged = Mapping[Any, int | Mapping[Any, int]]
_Ranked = Sequence[Hashable] | Mapping[Any, float]
_Topics = frozenset[Hashable]


def rank_measures(
    qrels: Mapping[Any, _Judged],
    run: Mapping[Any, _Ranked],
    names: Sequence[str],
) -> dict[str, Floats]:
    """Measures of each query's ranking, in the notation of ir_measures.

    A name is ``R@5``, ``nDCG@10``, ``RR@10`` or that of another measure that ir_measures can compute on this machine,
    or one of these measures of subtopics:

    - ``alpha_nDCG@10``: a document's gain is the sum over its subtopics of (1 − α) to the power of the number of
      earlier documents of that subtopic. Gains are discounted by log2(1 + rank), and their sum is divided by that of
      the greedy ideal ranking (Clarke et al., SIGIR 2008). α is 0.5, or as in ``alpha_nDCG(alpha=0.9)@10``. The greedy
      ideal is an approximation, so a value can be slightly above 1. Its ties go to the last id, as text, as in ndeval.
    - ``ERR_IA@10``: intent-aware expected reciprocal rank (Chapelle et al., Information Retrieval 2011). All subtopics
      are equally probable, and a relevant document satisfies the reader with probability 0.5. The value is
      divided by that of a ranking whose every document is relevant to every subtopic, as in ndeval.
    - ``StRecall@10``: share of the subtopics that the first ten documents cover (Zhai, Cohen and Lafferty, SIGIR 2003).

    A subtopic counts if it has a relevant document. ``rel=2`` in a name counts only grades of 2 and above.

    Parameters
    ----------
    qrels : mapping
        For each query the grade of each judged document: an int (0 is irrelevant) or, for subtopics, a mapping from
        subtopic to grade. The other measures then use the document's highest grade.
    run : mapping
        For each query of ``qrels`` its ids, best first, or a mapping from id to score. An empty ranking gives 0.
    names : sequence of str
        Names of ir-measures, such as ``"nDCG@10"``.

    Returns
    -------
    dict
        For each name a float64 array of shape (Q,), in the order of ``qrels``.

    Raises
    ------
    InvalidInputError
        There are no queries, ``run`` lacks one of them, a query has no relevant document, an id is ranked twice, a
        grade is not an integer, a score is NaN, or a measure of subtopics is requested for grades without subtopics.
    InvalidParameterError
        A name is unknown, or nothing that is installed computes it.
    ImportError
        ir_measures is not installed.

    Examples
    --------
    >>> qrels = {"q": {"d1": {"fruit": 1}, "d2": {"firm": 1}, "d3": {"firm": 1}}}
    >>> rank_measures(qrels, {"q": ["d2", "d3", "d1"]}, ["R@2", "StRecall@2"])
    {'R@2': array([0.66666667]), 'StRecall@2': array([0.5])}
    """
    measures = _parsed(names)
    if not qrels:
        raise InvalidInputError("qrels holds no queries")
    rankings = {query: _ranking(query, run) for query in qrels}
    values: dict[str, Floats] = {}
    ours = {name: measure for name, measure in measures.items() if measure.NAME in _OF_SUBTOPICS}
    theirs = {name: measure for name, measure in measures.items() if name not in ours}
    if theirs:
        values.update(_by_library(qrels, rankings, theirs))
    for name, measure in ours.items():
        values[name] = np.array([_of_query(q, qrels[q], rankings[q], measure) for q in qrels])
    return {name: values[name] for name in names}


def _parsed(names: Sequence[str]) -> dict[str, Measure]:
    try:
        import ir_measures
    except ImportError as error:
        raise ImportError('measures of rankings need ir-measures: pip install "setselect[eval]"') from error
    pipeline: Any = ir_measures.DefaultPipeline
    measures = {name: _measure(name, ir_measures.measures.registry) for name in names}
    for name, measure in measures.items():
        if measure.NAME not in _OF_SUBTOPICS and not pipeline.supports(measure):
            raise InvalidParameterError(
                f"{quoted(name)} is known to ir_measures, but nothing installed here computes it"
            )
    return measures


def _measure(name: str, registry: Mapping[str, Measure]) -> Measure:
    # ir_measures' own parser needs ast.Num, which Python 3.14 removed.
    found = _NOTATION.fullmatch(name)
    if not found or found["name"] not in registry:
        raise InvalidParameterError(
            f"{quoted(name)} is not a measure of ir_measures; write R@5, nDCG@10, alpha_nDCG@10"
        )
    try:
        call = ast.parse(f"_({found['parameters'] or ''})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("parameters need names")
        parameters = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
        kind: Any = registry[found["name"]]
        if found["at"]:
            parameters[kind.AT_PARAM] = ast.literal_eval(found["at"])
        made = kind(**parameters)
        made.validate_params()
        measure: Measure = made
    except (ValueError, TypeError, SyntaxError, KeyError, AssertionError) as error:
        raise InvalidParameterError(f"{quoted(name)} is not a measure of ir_measures: {quoted(error)}") from error
    # ir_measures accepts a cutoff of 0.
    if "cutoff" in measure.params:
        check_integer(measure.params["cutoff"], f"{quoted(name)}: the cutoff", 1)
    if measure.NAME in _OF_SUBTOPICS:
        if "cutoff" not in measure.params or measure.params.get("judged_only"):
            raise InvalidParameterError(
                f"{quoted(name)} needs a cutoff and counts every document: write {measure.NAME}@10"
            )
        if measure.NAME == "alpha_nDCG":
            check_number(measure["alpha"], f"{quoted(name)}: alpha", 0, 1)
    return measure


def _ranking(query: Hashable, run: Mapping[Any, _Ranked]) -> list[Hashable]:
    if query not in run:
        raise InvalidInputError(
            f"run holds no ranking for query {quoted(query)}; pass an empty one if nothing was found"
        )
    ranked = run[query]
    if isinstance(ranked, Mapping):
        if any(math.isnan(score) for score in ranked.values()):
            raise InvalidInputError(f"run: query {quoted(query)} has a score that is NaN")
        return sorted(ranked, key=lambda name: -ranked[name])
    if len(set(ranked)) < len(ranked):
        twice = next(name for name in ranked if list(ranked).count(name) > 1)
        raise InvalidInputError(f"run: query {quoted(query)} ranks id {quoted(twice)} more than once")
    return list(ranked)


def _whole(grade: Any, query: Hashable, document: Hashable) -> int:
    if isinstance(grade, (int, np.integer)):
        return int(grade)
    raise InvalidInputError(
        f"qrels: query {quoted(query)}, id {quoted(document)} has grade {quoted(grade)}; grades are whole numbers"
    )


def _grades(query: Hashable, judged: _Judged) -> dict[Hashable, int]:
    grades = {}
    for document, grade in judged.items():
        each = grade.values() if isinstance(grade, Mapping) else [grade]
        grades[document] = max((_whole(one, query, document) for one in each), default=0)
    if max(grades.values(), default=0) < 1:
        raise InvalidInputError(f"qrels: query {quoted(query)} has no relevant document, so nothing can be measured")
    return grades


def _by_library(
    qrels: Mapping[Any, _Judged],
    rankings: Mapping[Hashable, list[Hashable]],
    measures: Mapping[str, Measure],
) -> dict[str, Floats]:
    # ir_measures takes ids as text. Positions replace them here, so that the ids 1 and "1" stay different.
    import ir_measures

    grades_of, scores_of = {}, {}
    for row, (query, ranking) in enumerate(rankings.items()):
        grades = _grades(query, qrels[query])
        texts = {name: str(i) for i, name in enumerate(dict.fromkeys([*ranking, *grades]))}
        grades_of[str(row)] = {texts[name]: grade for name, grade in grades.items()}
        scores_of[str(row)] = {texts[name]: float(len(ranking) - i) for i, name in enumerate(ranking)}
    # ir_measures can leave out a query whose ranking is empty; its value stays 0.
    values = {name: np.zeros(len(rankings)) for name in measures}
    for name, measure in measures.items():
        for metric in ir_measures.iter_calc([measure], grades_of, scores_of):
            values[name][int(metric.query_id)] = metric.value
    return values


def _subtopics(query: Hashable, judged: _Judged, least: int) -> tuple[dict[Hashable, _Topics], int]:
    """The subtopics that each document is relevant to, and the number of all subtopics."""
    of_document: dict[Hashable, _Topics] = {}
    for document, grades in judged.items():
        if not isinstance(grades, Mapping):
            raise InvalidInputError(
                f"qrels: query {quoted(query)}, id {quoted(document)} has grade {quoted(grades)}; measures of "
                "subtopics need a mapping from subtopic to grade"
            )
        touched = {topic for topic, grade in grades.items() if _whole(grade, query, document) >= least}
        of_document[document] = frozenset(touched)
    count = len(frozenset().union(*of_document.values()))
    if not count:
        raise InvalidInputError(f"qrels: query {quoted(query)} has no relevant document, so nothing can be measured")
    return of_document, count


def _of_query(query: Hashable, judged: _Judged, ranking: list[Hashable], measure: Measure) -> float:
    topics, count = _subtopics(query, judged, int(measure["rel"]))
    first = [topics.get(name, frozenset()) for name in ranking[: int(measure["cutoff"])]]
    return _OF_SUBTOPICS[str(measure.NAME)](first, topics, count, measure)


def _subtopic_recall(first: list[_Topics], topics: dict[Hashable, _Topics], count: int, measure: Measure) -> float:
    return len(frozenset().union(*first)) / count


def _err_ia(first: list[_Topics], topics: dict[Hashable, _Topics], count: int, measure: Measure) -> float:
    reached = sum(gain / rank for rank, gain in enumerate(_gains(first, 0.5), 1))
    return reached / sum(count * 0.5 ** (rank - 1) / rank for rank in range(1, int(measure["cutoff"]) + 1))


def _alpha_ndcg(first: list[_Topics], topics: dict[Hashable, _Topics], count: int, measure: Measure) -> float:
    keep = 1 - float(measure["alpha"])
    ideal = _ideal(topics, keep, int(measure["cutoff"]))
    return _discounted(_gains(first, keep)) / _discounted(_gains(ideal, keep))


def _ideal(topics: dict[Hashable, _Topics], keep: float, length: int) -> list[_Topics]:
    """The ranking that takes the document of the highest gain at each rank."""
    # Documents of the same subtopics have the same gain, so one comparison serves all of them.
    names: dict[_Topics, list[str]] = {}
    for name, touched in topics.items():
        if touched:
            names.setdefault(touched, []).append(str(name))
    left = {touched: sorted(heapq.nlargest(length, of)) for touched, of in names.items()}
    weight: dict[Hashable, float] = {}
    ideal: list[_Topics] = []
    while left and len(ideal) < length:
        best = max(left, key=lambda touched: (_gain(touched, weight), left[touched][-1]))
        ideal.append(best)
        _spend(best, weight, keep)
        left[best].pop()
        if not left[best]:
            del left[best]
    return ideal


def _gains(ranking: list[_Topics], keep: float) -> list[float]:
    """The gain of each document: each repetition of a subtopic multiplies its weight by ``keep``."""
    weight: dict[Hashable, float] = {}
    gains = []
    for touched in ranking:
        gains.append(_gain(touched, weight))
        _spend(touched, weight, keep)
    return gains


def _gain(touched: _Topics, weight: dict[Hashable, float]) -> float:
    # The order of a set differs between processes; fsum gives the same sum in every order.
    return math.fsum(weight.get(topic, 1.0) for topic in touched)


def _spend(touched: _Topics, weight: dict[Hashable, float], keep: float) -> None:
    weight.update({topic: weight.get(topic, 1.0) * keep for topic in touched})


def _discounted(gains: list[float]) -> float:
    return sum(gain / math.log2(1 + rank) for rank, gain in enumerate(gains, 1))


_OF_SUBTOPICS = {"alpha_nDCG": _alpha_ndcg, "ERR_IA": _err_ia, "StRecall": _subtopic_recall}
