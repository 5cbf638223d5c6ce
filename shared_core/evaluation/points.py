"""The points of a query: its gold documents, of which those that nearly repeat each other are one point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from .._validation import quoted
from ..candidates import as_unit_rows
from .corpus import Query
from .judging import JudgedQuery
from .results import counted, percent

# Two gold documents nearly repeat each other if the cosine of their vectors is at least this, after the mean vector of
# all candidates was subtracted from both. Some models give any two texts a cosine of 0.7 or more, because all their
# vectors share one direction. Without the mean, unrelated texts have a cosine near 0 with every model, so that one
# threshold serves all models.
NEAR = 0.8
# From this share of gold documents on that nearly repeat another one, point recall decides in place of recall.
MANY = 0.25


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
    if not repeating or count < MANY * gold:
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
    near = unit @ unit.T >= NEAR
    groups: list[list[int]] = []
    for row in range(len(unit)):
        group = next((group for group in groups if near[row, group].any()), None)
        if group is None:
            groups.append([row])
        else:
            group.append(row)
    names = list(vectors)
    return [[names[row] for row in group] for group in groups]
