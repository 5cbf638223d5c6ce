"""The measures of all queries together: the mean of each setting, and what it gains and loses against the first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .corpus import Query
from .judging import JudgedQuery, Matrix
from .measures import alpha_ndcg, bootstrap_interval, ndcg, recall, subtopic_recall, success
from .results import Difference, Estimate, Measure, Needs

# Measures of the same picks, computed in another order, differ by less than this.
_ROUNDING = 1e-9
# Name, key, what the queries must hold, and description of each measure, in the order of the report.
_MEASURES: tuple[tuple[str, str, Needs, str], ...] = (
    ("relevance", "relevance", "nothing", "mean cosine of the picks with the query"),
    ("redundancy", "redundancy", "nothing", "mean cosine between the picks: how much they repeat each other"),
    ("cos(sum, q)", "sum_cosine", "nothing", "cosine of the sum of the picks with the query"),
    ("recall@{k}", "recall", "gold", "share of the gold documents that are picked"),
    ("precision@{k}", "precision", "gold", "share of the picks that are gold documents"),
    ("nDCG@{k}", "ndcg", "gold", "picked gold documents, discounted by rank, relative to the best possible"),
    ("success@{k}", "success", "gold", "share of the queries with at least one gold document picked"),
    ("point recall@{k}", "point_recall", "gold", "recall of the gold documents, with near-repeats as one document"),
    ("subtopic recall@{k}", "subtopic_recall", "subtopics", "share of the query's subtopics that the picks cover"),
    ("topic precision@{k}", "topic_precision", "subtopics", "share of the picks that cover a subtopic of the query"),
    ("α-nDCG@{k}", "alpha_ndcg", "subtopics", "covered subtopics, discounted by rank; each repetition counts half"),
    ("p-recall@{k}", "p_recall", "perspectives", "mean over root queries of the success of their perspectives (PIR)"),
    ("answers", "answers", "answers", "share of the query's answers that occur in the picked texts"),
)
_KEYS = tuple(key for _, key, _, _ in _MEASURES)

_OfQueries: TypeAlias = dict[str, list[float]]


class MeasureValues(NamedTuple):
    """A measure and its values, shape (settings, N), for N queries with these ids; for p-recall, for N roots."""

    measure: Measure
    values: Matrix
    queries: tuple[str, ...]


def allowed_measures(queries: Sequence[Query], with_subtopics: bool) -> list[str]:
    """The keys of the measures that can be computed for these queries. No candidates are needed to know them."""
    held: dict[Needs, bool] = {
        "nothing": True,
        "gold": any(query.gold for query in queries),
        "subtopics": with_subtopics,
        "perspectives": any(query.gold and query.root is not None for query in queries),
        "answers": any(query.answers for query in queries),
    }
    return [key for _, key, needs, _ in _MEASURES if held[needs]]


def measure(outcomes: Sequence[JudgedQuery], k: int, keys: Collection[str] = _KEYS) -> list[MeasureValues]:
    """The measures of these keys that at least one query allows, each over those queries; ``k`` is in the names."""
    with_gold = [judged for judged in outcomes if judged.query.gold]
    with_subtopics = [judged for judged in outcomes if judged.subtopics]

    def score(judged_queries: Iterable[JudgedQuery], of: Callable[[JudgedQuery, list[str]], float]) -> _OfQueries:
        return {judged.query.id: [of(judged, picked) for picked in judged.sizes[k].picks] for judged in judged_queries}

    # For each key the values of each query, shape (settings,); for p-recall of each root.
    found: dict[str, Mapping[str, ArrayLike]] = {
        key: {o.query.id: values for o in outcomes if (values := getattr(o.sizes[k], key)) is not None}
        for key in ("relevance", "redundancy", "sum_cosine", "answers")
    }
    found["recall"] = score(with_gold, lambda judged, picked: recall(picked, judged.query.gold))
    found["success"] = score(with_gold, lambda judged, picked: success(picked, judged.query.gold))
    found["precision"] = score(with_gold, lambda judged, picked: _precision(picked, judged.query.gold))
    found["subtopic_recall"] = score(with_subtopics, lambda judged, picked: subtopic_recall(picked, judged.subtopics))
    found["topic_precision"] = score(
        with_subtopics, lambda judged, picked: _precision(picked, set().union(*judged.subtopics.values()))
    )
    found["point_recall"] = score(
        (judged for judged in outcomes if judged.points),
        lambda judged, picked: float(np.mean([not point.isdisjoint(picked) for point in judged.points])),
    )
    if "ndcg" in keys:
        found["ndcg"] = score(with_gold, lambda judged, picked: ndcg(picked, judged.query.gold, k))
    if "alpha_ndcg" in keys:
        found["alpha_ndcg"] = score(with_subtopics, lambda judged, picked: alpha_ndcg(picked, judged.subtopics, k))
    of_root: dict[str, list[Any]] = {}
    for judged in with_gold:
        if judged.query.root is not None:
            of_root.setdefault(judged.query.root, []).append(found["success"][judged.query.id])
    found["p_recall"] = {root: np.mean(successes, axis=0) for root, successes in of_root.items()}
    counts = np.array([len(judged.query.gold) for judged in with_gold] or [k])
    most = {key: float(np.mean(np.minimum(counts, k) / of)) for key, of in (("precision", k), ("recall", counts))}
    return [
        MeasureValues(
            Measure(name.format(k=k), key, description, key != "redundancy", needs, most.get(key, 1.0)),
            np.array([*found[key].values()]).T,
            tuple(found[key]),
        )
        for name, key, needs, description in _MEASURES
        if key in keys and found.get(key)
    ]


def summarise(
    columns: Sequence[MeasureValues],
) -> tuple[dict[tuple[int, str], Estimate], dict[tuple[int, str], Difference]]:
    """The mean of each setting by each measure, and what it gains and loses against the first, query by query."""
    gaps = [column._replace(values=column.values - column.values[0]) for column in columns]
    means = estimate(gaps)
    differences = {}
    for measured, gains, queries in gaps:
        losses = np.where(np.abs(gains) < _ROUNDING, 0.0, -gains if measured.higher_is_better else gains)
        for setting, loss in enumerate(losses):
            mean, lost = means[setting, measured.key], loss[loss > 0]
            differences[setting, measured.key] = Difference(
                mean.mean,
                mean.low,
                mean.high,
                better=float((loss < 0).mean()),
                worse=float((loss > 0).mean()),
                loss=float(lost.mean()) if len(lost) else 0.0,
                worst_loss=float(lost.max()) if len(lost) else 0.0,
                worst_query=queries[int(loss.argmax())] if len(lost) else None,
            )
    return estimate(columns), differences


def estimate(columns: Sequence[MeasureValues]) -> dict[tuple[int, str], Estimate]:
    """The mean of each setting by each measure, with its bootstrap 95 % interval.

    Measures over the same number of queries share the resamples, which saves time.
    """
    found: dict[str, list[Estimate]] = {}
    for number in {len(column.queries) for column in columns}:
        same = [column for column in columns if len(column.queries) == number]
        rows = np.vstack([column.values for column in same])
        # The computed mean of equal numbers can differ from them in the last bit.
        means = np.where((rows == rows[:, :1]).all(axis=1), rows[:, 0], rows.mean(axis=1))
        bounds = zip(means.tolist(), *(ends.tolist() for ends in bootstrap_interval(rows)), strict=True)
        estimates = [Estimate(mean, min(low, mean), max(high, mean), number) for mean, low, high in bounds]
        for i, column in enumerate(same):
            found[column.measure.key] = estimates[i * len(column.values) : (i + 1) * len(column.values)]
    return {
        (setting, column.measure.key): one
        for column in columns
        for setting, one in enumerate(found[column.measure.key])
    }


def _precision(picked: Sequence[str], right: Collection[str]) -> float:
    return sum(name in right for name in picked) / max(len(picked), 1)
