"""The measures of all queries together: the mean of each setting, and what it gains and loses against the first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..candidates import as_unit_rows
from ..errors import InvalidInputError, quoted
from .corpus import Query
from .judging import JudgedQuery, Matrix
from .measures import alpha_ndcg, bootstrap_interval, ndcg, recall, subtopic_recall, success
from .results import Difference, Estimate, Measure, Needs, counted, percent

# Measures of the same picks, computed in another order, differ by less than this.
_ROUNDING = 1e-9
# Two gold documents nearly repeat each other if the cosine of their vectors is at least this, after the mean vector of
# all candidates was subtracted from both: some models give any two texts a cosine of 0.7 or more.
_NEAR = 0.8
# From this share of gold documents on that nearly repeat another one, point recall decides in place of recall.
_MANY = 0.25
# Name, key, what the queries must hold, and description of each measure, in the order of the report.
_MEASURES: tuple[tuple[str, str, Needs, str], ...] = (
    ("relevance", "relevance", "nothing", "mean cosine of the picks with the query"),
    ("redundancy", "redundancy", "nothing", "mean cosine between the picks: how much they repeat each other"),
    ("set and query", "sum_cosine", "nothing", "cosine of the sum of all picks with the query: cos(sum, q)"),
    ("recall@{k}", "recall", "gold", "share of the gold documents that are picked"),
    ("precision@{k}", "precision", "gold", "share of the picks that are gold documents"),
    ("nDCG@{k}", "ndcg", "gold", "picked gold documents, discounted by rank, relative to the best possible"),
    ("success@{k}", "success", "gold", "share of the queries with at least one gold document picked"),
    ("point recall@{k}", "point_recall", "gold", "recall of the gold documents, with near-repeats as one document"),
    ("subtopic recall@{k}", "subtopic_recall", "subtopics", "share of the query's subtopics that the picks cover"),
    ("topic precision@{k}", "topic_precision", "subtopics", "share of the picks that cover a subtopic of the query"),
    ("α-nDCG@{k}", "alpha_ndcg", "subtopics", "covered subtopics, discounted by rank; each repetition counts half"),
)
_KEYS = tuple(key for _, key, _, _ in _MEASURES)


def _precision(picked: Sequence[str], right: Collection[str], k: int) -> float:
    return sum(name in right for name in picked) / max(len(picked), 1)


def _point_recall(picked: Sequence[str], points: Collection[frozenset[str]], k: int) -> float:
    return sum(not point.isdisjoint(picked) for point in points) / len(points)


_GOLD, _SUBTOPICS = attrgetter("query.gold"), attrgetter("query.subtopics")
# For each measure of the ids of the picks: what a query must hold for it, and its value.
_OF_PICKS: dict[str, tuple[Callable[[JudgedQuery], Any], Callable[[list[str], Any, int], float]]] = {
    "recall": (_GOLD, lambda picked, gold, k: recall(picked, gold)),
    "precision": (_GOLD, _precision),
    "ndcg": (_GOLD, ndcg),
    "success": (_GOLD, lambda picked, gold, k: success(picked, gold)),
    "point_recall": (attrgetter("points"), _point_recall),
    "subtopic_recall": (_SUBTOPICS, lambda picked, topics, k: subtopic_recall(picked, topics)),
    "topic_precision": (lambda judged: set().union(*judged.query.subtopics.values()), _precision),
    "alpha_ndcg": (_SUBTOPICS, alpha_ndcg),
}


class MeasureValues(NamedTuple):
    """A measure and its values, shape (settings, N), for N queries with these ids."""

    measure: Measure
    values: Matrix
    queries: tuple[str, ...]


def allowed_measures(queries: Sequence[Query]) -> list[str]:
    """The keys of the measures that can be computed for these queries. No candidates are needed to know them."""
    held: dict[Needs, bool] = {
        "nothing": True,
        "gold": any(query.gold for query in queries),
        "subtopics": any(query.subtopics for query in queries),
    }
    return [key for _, key, needs, _ in _MEASURES if held[needs]]


def count_parts(outcomes: Sequence[JudgedQuery]) -> list[int]:
    """How many different texts or points each query needs, of the queries that say what is right."""
    wanted = [max(map(len, (o.points or o.query.gold, o.query.subtopics))) for o in outcomes]
    return [number for number in wanted if number]


def measure(outcomes: Sequence[JudgedQuery], k: int, keys: Collection[str] = _KEYS) -> list[MeasureValues]:
    """The measures of these keys that at least one query allows, each over those queries; ``k`` is in the names."""
    counts = np.array([len(o.query.gold) for o in outcomes if o.query.gold] or [k])
    most = {key: float(np.mean(np.minimum(counts, k) / of)) for key, of in (("precision", k), ("recall", counts))}
    columns = []
    for name, key, needs, description in _MEASURES:
        values: dict[str, ArrayLike] = {}
        for outcome in outcomes if key in keys else ():
            picks = outcome.sizes[k]
            if key in picks.values:
                values[outcome.query.id] = picks.values[key]
            elif key in _OF_PICKS and (right := _OF_PICKS[key][0](outcome)):
                values[outcome.query.id] = [_OF_PICKS[key][1](picked, right, k) for picked in picks.ids]
        if values:
            shown = Measure(name.format(k=k), key, description, key != "redundancy", needs, most.get(key, 1.0))
            columns.append(MeasureValues(shown, np.array([*values.values()]).T, tuple(values)))
    return columns


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


def find_points(outcomes: Sequence[JudgedQuery]) -> tuple[list[JudgedQuery], str | None]:
    """The outcomes with the points of each query; and how many documents nearly repeat another, None if few do."""
    mean = np.mean([outcome.mean_candidate for outcome in outcomes], axis=0)
    with_points, gold, queries = [], 0, 0
    repeating: list[tuple[Query, list[str]]] = []
    for outcome in outcomes:
        groups = group_near(outcome.gold_vectors, mean)
        # Nothing tells which of the gold documents without a vector repeat another. They are one point together.
        beyond = set(outcome.query.gold) - outcome.gold_vectors.keys()
        points = [*map(frozenset, groups), *([frozenset(beyond)] if beyond else [])]
        with_points.append(replace(outcome, points=tuple(points)))
        gold += len(outcome.gold_vectors)
        queries += bool(groups)
        repeating += [(outcome.query, group) for group in groups if len(group) > 1]
    count = sum(len(group) for _, group in repeating)
    if not repeating or count < _MANY * gold:
        return with_points, None
    query, (first, second, *_) = repeating[0]
    return with_points, (
        f"{percent(count / gold)} of the gold documents nearly repeat another gold document of their query, such as "
        f"{quoted(first)} and {quoted(second)} of query {quoted(query.text)}. This concerns "
        f"{len({query.id for query, _ in repeating}):,} of {counted(queries, 'query', 'queries')}."
    )


def group_near(vectors: Mapping[str, ArrayLike], mean: ArrayLike) -> list[list[str]]:
    """The names of the vectors in groups: each joins the first group with a vector that it nearly repeats.

    >>> group_near({"a": [2.0, 0.1], "b": [2.0, 0.0], "c": [1.0, 1.0]}, [1.0, 0.0])
    [['a', 'b'], ['c']]
    """
    if not vectors:
        return []
    unit = as_unit_rows(np.stack([np.asarray(row) for row in vectors.values()]) - np.asarray(mean))
    near = unit @ unit.T >= _NEAR
    groups: list[list[int]] = []
    for row in range(len(unit)):
        for group in groups:
            if near[row, group].any():
                group.append(row)
                break
        else:
            groups.append([row])
    names = list(vectors)
    return [[names[row] for row in group] for group in groups]


def gold_in_reach(outcomes: Sequence[JudgedQuery]) -> float | None:
    """The mean share of a query's gold documents that are among the nearest; None without gold."""
    pairs = [(one.candidates, one.query.gold) for one in outcomes if one.query.gold]
    return float(np.mean([recall([*near], gold) for near, gold in pairs])) if pairs else None


def without_unknown_ids(queries: Sequence[Query], known: Collection[str]) -> tuple[list[Query], list[str]]:
    """The queries without ids that no document has, and notes on these; an error if no document has any of them."""
    notes = []
    gold = [name for query in queries for name in query.gold]
    covering = [name for query in queries for names in query.subtopics.values() for name in names]
    for what, ids in (("gold ids", gold), ("ids under subtopics", covering)):
        missing = [name for name in ids if name not in known]
        if missing and len(missing) == len(ids):
            raise InvalidInputError(
                f"none of the {what} of the queries is the id of a document: a query has {quoted(missing[0])}, and the "
                f"first document has the id {quoted(next(iter(known)))}. Write the documents' own ids into the queries"
            )
        if missing:
            examples = ", ".join(map(quoted, missing[:3]))
            notes.append(f"No document has {len(missing)} of the {len(ids)} {what}, such as {examples}.")
    cleaned = []
    for query in queries:
        subtopics = {label: tuple(i for i in ids if i in known) for label, ids in query.subtopics.items()}
        kept = {label: ids for label, ids in subtopics.items() if ids}
        cleaned.append(replace(query, gold=tuple(i for i in query.gold if i in known), subtopics=kept))
    return cleaned, notes
