"""From the outcomes of single queries to measures with intervals, one row for each setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .judging import Judged
from .measures.metrics import rank_measures
from .measures.statistics import bootstrap_interval
from .results import Estimate, Measure, Needs

Matrix = NDArray[np.float64]


class Measured(NamedTuple):
    """A measure and its values, shape (settings, N): of N queries, or of N roots where it is the perspectives'."""

    measure: Measure
    values: Matrix


def measured(outcomes: Sequence[Judged], k: int) -> list[Measured]:
    """Every measure that these queries allow, each over the queries that allow it.

    Parameters
    ----------
    outcomes : sequence of Judged, at least one
    k : int
        How many were picked; stands in the names.
    """
    with_gold = [judged for judged in outcomes if judged.query.gold]
    with_roots = [judged for judged in with_gold if judged.query.root is not None]
    with_subtopics = [judged for judged in outcomes if judged.subtopics]
    columns: list[tuple[Measure, Matrix | None]] = [
        (_RELEVANCE, _stack([judged.relevance for judged in outcomes])),
        (_REDUNDANCY, _stack([judged.redundancy for judged in outcomes if judged.redundancy is not None])),
        (_TOGETHER, _stack([judged.together for judged in outcomes])),
        *_ranked(with_gold, _gold_grades, k, _of_gold(k)),
        *_ranked(with_subtopics, _subtopic_grades, k, _of_subtopics(k)),
        (_p_recall(k), _by_root(with_roots)),
        (_ANSWERS, _stack([judged.answered for judged in outcomes if judged.answered is not None])),
    ]
    return [Measured(measure, values) for measure, values in columns if values is not None]


def estimate(values: Matrix, seed: int) -> Estimate:
    """Mean and bootstrap 95 % interval of one setting's values, shape (N,).

    >>> estimate(np.array([0.5, 0.5]), seed=0)
    Estimate(mean=0.5, low=0.5, high=0.5, queries=2)
    """
    low, high = bootstrap_interval(values, seed=seed)
    # The mean of equal numbers may differ from them in the last bit.
    mean = float(np.clip(values.mean(), low, high)) if len(set(values.tolist())) == 1 else float(values.mean())
    return Estimate(mean, min(low, mean), max(high, mean), len(values))


def _stack(rows: Sequence[Matrix]) -> Matrix | None:
    return np.stack(rows, axis=1) if rows else None


def _ranked(
    outcomes: Sequence[Judged],
    grades: Callable[[Judged], dict[str, int] | dict[str, dict[str, int]]],
    k: int,
    wanted: dict[str, Measure],
) -> list[tuple[Measure, Matrix | None]]:
    if not outcomes:
        return []
    qrels = {judged.query.id: grades(judged) for judged in outcomes}
    settings = range(len(outcomes[0].picks))
    by_setting = [
        rank_measures(qrels, {judged.query.id: judged.picks[setting] for judged in outcomes}, list(wanted))
        for setting in settings
    ]
    return [(measure, np.stack([values[name] for values in by_setting])) for name, measure in wanted.items()]


def _gold_grades(judged: Judged) -> dict[str, int]:
    return dict.fromkeys(judged.query.gold, 1)


def _subtopic_grades(judged: Judged) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    for label, ids in judged.subtopics.items():
        for document in ids:
            grades.setdefault(document, {})[label] = 1
    return grades


def _by_root(outcomes: Sequence[Judged]) -> Matrix | None:
    """p-recall root by root: its mean is the measure, its spread the interval's."""
    if not outcomes:
        return None
    of_root: dict[str, list[list[float]]] = {}
    for judged in outcomes:
        gold = set(judged.query.gold)
        hits = [float(not gold.isdisjoint(picked)) for picked in judged.picks]
        of_root.setdefault(str(judged.query.root), []).append(hits)
    return np.array([np.mean(successes, axis=0) for successes in of_root.values()]).T


def _measure(name: str, key: str, description: str, needs: Needs, *, higher: bool = True) -> Measure:
    return Measure(name, key, description, higher, needs)


_RELEVANCE = _measure("relevance", "relevance", "mean cosine of the picks with the query", "nothing")
_REDUNDANCY = _measure(
    "redundancy",
    "redundancy",
    "mean cosine between the picks: how much they repeat each other",
    "nothing",
    higher=False,
)
_TOGETHER = _measure(
    "cos(sum, q)",
    "sum_cosine",
    "cosine of the sum of the picks with the query: how well the set points at it",
    "nothing",
)
_ANSWERS = _measure("answers", "answers", "share of the query's answers that occur in the picked texts", "answers")


def _of_gold(k: int) -> dict[str, Measure]:
    return {
        f"R@{k}": _measure(f"recall@{k}", "recall", "share of the right documents that are picked", "gold"),
        f"nDCG@{k}": _measure(
            f"nDCG@{k}", "ndcg", "right documents picked, the earlier the better, against the best possible", "gold"
        ),
        f"Success@{k}": _measure(
            f"success@{k}", "success", "share of the queries with at least one right document picked", "gold"
        ),
    }


def _of_subtopics(k: int) -> dict[str, Measure]:
    return {
        f"StRecall@{k}": _measure(
            f"subtopic recall@{k}",
            "subtopic_recall",
            "share of the query's subtopics that the picks cover",
            "subtopics",
        ),
        f"alpha_nDCG@{k}": _measure(
            f"α-nDCG@{k}",
            "alpha_ndcg",
            "subtopics covered, the earlier the better; each repeat of one counts half the one before",
            "subtopics",
        ),
    }


def _p_recall(k: int) -> Measure:
    return _measure(
        f"p-recall@{k}",
        "p_recall",
        "success, averaged over the perspectives of each root query, then over root queries (PIR paper)",
        "perspectives",
    )
