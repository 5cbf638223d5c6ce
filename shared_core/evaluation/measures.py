"""The papers' measures of selections, measures of rankings by ids, and statistics over queries.

A ranking holds ids, the best first. Its measure is that of all its ids: cut it to the first k before.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import as_numeric, check_integer, check_number, import_library
from ..candidates.unit_vectors import measure_set
from ..errors import InvalidInputError, InvalidParameterError, quoted

__all__ = [
    "alpha_ndcg", "bootstrap_interval", "mean_pairwise_cosine", "ndcg", "paired_test", "recall", "subtopic_recall",
    "success", "sum_cosine",
]  # fmt: skip

_Floats = NDArray[np.float64]
# The weight that each repetition leaves to a subtopic: 1 − α, with α = 0.5.
_KEEP = 0.5
_RESAMPLES = 9999
# Rows of resamples that are held in memory together: 8 MB for 2,000 queries.
_BATCH = 500
# Sums of the same numbers in another order differ by less than this.
_ROUNDING = 1e-12


def sum_cosine(query: ArrayLike, vectors: ArrayLike) -> float:
    """Cosine of the query (d,) with the sum of the unit vectors (k, d) that were picked for it (VRSD 4.2).

    0.0 if the vectors cancel each other. A zero row adds nothing.

    >>> round(sum_cosine([1, 1], [[2, 0], [0, 3]]), 9)
    1.0
    """
    return measure_set(query, _as_matrix(vectors)).sum_cosine


def mean_pairwise_cosine(vectors: ArrayLike) -> float:
    """Mean cosine over all pairs of two or more vectors (k, d): low if they differ (RAGSys 4.4, Figure 1).

    >>> round(mean_pairwise_cosine([[1, 0], [0, 1], [2, 0]]), 3)
    0.333
    """
    rows = _as_matrix(vectors)
    if len(rows) < 2:
        raise InvalidInputError("vectors holds one vector: a cosine between pairs needs at least two")
    return float(np.clip(measure_set(np.ones(rows.shape[1]), rows).redundancy, -1, 1))


def recall(ranking: Sequence[Hashable], right: Collection[Hashable]) -> float:
    """Share of the right ids that are ranked.

    >>> recall(["a", "b"], {"a", "c"})
    0.5
    """
    return len(set(right).intersection(ranking)) / len(set(right))


def success(ranking: Sequence[Hashable], right: Collection[Hashable]) -> float:
    """Whether any right id is ranked, as 0 or 1.

    >>> success(["a", "b"], {"c"})
    0.0
    """
    return float(not set(right).isdisjoint(ranking))


def ndcg(ranking: Sequence[Hashable], right: Collection[Hashable], k: int) -> float:
    """Right ids, each discounted by log2(1 + rank), relative to the best possible ranking of length k.

    >>> round(ndcg(["b", "a"], {"a"}, 2), 3)
    0.631
    """
    gain = sum(_discount(rank) for rank, name in enumerate(ranking, 1) if name in right)
    return gain / sum(_discount(rank) for rank in range(1, min(k, len(set(right))) + 1))


def subtopic_recall(ranking: Sequence[str], subtopics: Mapping[str, Collection[str]]) -> float:
    """Share of the subtopics that the ids cover; each subtopic holds the ids that cover it (Zhai et al., SIGIR 2003).

    >>> subtopic_recall(["a", "b"], {"fruit": ["a", "b"], "firm": ["c"]})
    0.5
    """
    return sum(not set(ranking).isdisjoint(covering) for covering in subtopics.values()) / len(subtopics)


def alpha_ndcg(ranking: Sequence[str], subtopics: Mapping[str, Collection[str]], k: int) -> float:
    """Covered subtopics, discounted by rank, relative to the greedy ideal ranking of length k (Clarke et al., 2008).

    The gain of an id is the sum over its subtopics of 0.5 to the power of the number of earlier ids of that subtopic.
    The greedy ideal is an approximation, so a value can be slightly above 1. Its ties go to the last id, as in ndeval.

    >>> round(alpha_ndcg(["a", "b"], {"fruit": ["a", "b"], "firm": ["c"]}, 2), 3)
    0.807
    """
    topics: dict[str, set[str]] = {}
    for topic, covering in subtopics.items():
        for name in covering:
            topics.setdefault(name, set()).add(topic)
    # Of equal gains the last id counts.
    left, weights = sorted(topics, reverse=True), dict[str, float]()
    ideal: list[set[str]] = []
    while left and len(ideal) < k:
        best = max(left, key=lambda name: _gain(topics[name], weights))
        left.remove(best)
        ideal.append(topics[best])
        _lower(weights, topics[best])
    return _discounted_gain([topics.get(name, set()) for name in ranking]) / _discounted_gain(ideal)


def bootstrap_interval(values: ArrayLike, confidence: float = 0.95, seed: int = 0) -> tuple[Any, Any]:
    """Percentile bootstrap interval for the mean over queries (Efron 1979), by ``scipy.stats.bootstrap``.

    ``values`` has one value for each query, (Q,), bools as 0 and 1; or a row for each of S methods, (S, Q), which share
    the resamples. Both ends are equal for a single query. The same ``seed`` gives the same result.

    >>> bootstrap_interval([0.0, 1.0, 1.0, 1.0])
    (0.25, 1.0)
    """
    stats = import_library("scipy.stats", "eval")
    single, rows = _as_rows(values, "values")
    level = check_number(confidence, "confidence", 0, 1)
    if level in (0, 1):
        raise InvalidParameterError(f"confidence must lie between 0 and 1, such as 0.95, got {quoted(confidence)}")
    generator = np.random.default_rng(check_integer(seed, "seed", 0))
    # The computed mean of equal numbers can differ from them in the last bit.
    spread = (rows != rows[:, :1]).any(axis=1)
    low, high = rows[:, 0].copy(), rows[:, 0].copy()
    if spread.any():
        varied, queries = rows[spread], rows.shape[1]

        def means(draws: NDArray[np.intp], axis: int) -> _Floats:
            """(S, B): the mean of each row over each of B resamples, which hold positions of queries, (B, Q)."""
            # How often each resample holds each query: then one matrix product gives all means.
            places = (draws + queries * np.arange(len(draws))[:, None]).ravel()
            counts = np.bincount(places, minlength=draws.size).reshape(draws.shape)
            of_rows: _Floats = varied @ counts.T.astype(np.float64) / queries
            return of_rows

        options = {"n_resamples": _RESAMPLES, "batch": _BATCH, "method": "percentile", "rng": generator}
        result = stats.bootstrap((np.arange(queries),), means, vectorized=True, confidence_level=level, **options)
        low[spread], high[spread] = result.confidence_interval
    return (float(low[0]), float(high[0])) if single else (low, high)


def paired_test(ours: ArrayLike, theirs: ArrayLike, seed: int = 0) -> Any:
    """Two-sided p value of the mean difference between two methods over the same queries, in (0, 1].

    Fisher's randomisation test, which flips the sign of each query's difference (Smucker, Allan and Carterette, CIKM
    2007), by ``scipy.stats.permutation_test``: exact up to 13 queries, else by 9,999 draws.

    ``ours`` has the values of a method, (Q,), or a row for each of S methods, (S, Q). The best of many methods leads by
    chance more often than one would. The p value of one of them is therefore the chance that *any* shows a difference
    as large, in units of its own spread, if none differs from ``theirs``, (Q,): the single-step maximum method of
    Westfall and Young (Resampling-Based Multiple Testing, 1993).

    >>> paired_test([[0.9] * 8, [0.7, 0.3] * 4], [0.5] * 8).tolist()
    [0.015625, 1.0]
    """
    stats = import_library("scipy.stats", "eval")
    (single, left), (one_row, right) = _as_rows(ours, "ours"), _as_rows(theirs, "theirs")
    if not one_row or left.shape[1] != right.shape[1]:
        raise InvalidInputError(
            f"ours has {left.shape[1]} values, theirs has shape {np.shape(theirs)}: both must hold the same queries in "
            "the same order"
        )
    differences = left - right
    generator = np.random.default_rng(check_integer(seed, "seed", 0))
    length = np.linalg.norm(differences, axis=1, keepdims=True)
    # A flip leaves the length as it is, so the scaled sum rises and falls with the t statistic.
    scaled = np.divide(differences, length, out=np.zeros_like(differences), where=length > 0)
    observed = np.abs(scaled.sum(axis=1))
    p: _Floats = np.ones(len(differences))
    if differences.shape[1] > 1:

        def largest(signs: _Floats, axis: int) -> _Floats:
            of_all: _Floats = np.abs(signs @ scaled.T).max(axis=-1)
            return of_all

        options = {"n_resamples": _RESAMPLES, "batch": _BATCH, "alternative": "greater", "rng": generator}
        signs = np.ones(differences.shape[1])
        drawn = stats.permutation_test((signs,), largest, permutation_type="samples", vectorized=True, **options)
        null = drawn.null_distribution
        reached = (null >= observed[:, None] * (1 - _ROUNDING) - _ROUNDING).sum(axis=1)
        # Few queries have fewer than _RESAMPLES assignments of signs: all were enumerated. Otherwise they were drawn,
        # and the observed assignment counts as one more.
        extra = int(len(null) == _RESAMPLES)
        p = (reached + extra) / (len(null) + extra)
    return float(p[0]) if single else p


def _as_matrix(vectors: ArrayLike) -> _Floats:
    """``vectors`` (n, d) as float64."""
    matrix = as_numeric(vectors, "vectors")
    if matrix.ndim != 2:
        raise InvalidInputError(f"vectors must have shape (n, d), one row for each vector, got {matrix.shape}")
    return matrix.astype(np.float64)


def _as_rows(values: ArrayLike, what: str) -> tuple[bool, _Floats]:
    """Whether ``values`` has shape (Q,), and the values as float64 of shape (S, Q); bools become 0 and 1."""
    if np.asarray(values).dtype == np.bool_:
        # as_numeric refuses bools.
        values = np.asarray(values, dtype=np.uint8)
    array = as_numeric(values, what)
    if array.ndim not in (1, 2) or not array.size:
        raise InvalidInputError(f"{what} must have shape (queries,) or (methods, queries), got {array.shape}")
    rows = np.atleast_2d(array).astype(np.float64)
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        raise InvalidInputError(
            f"{what}: row {bad[0, 0]}, query {bad[0, 1]} holds NaN or inf; leave it out or measure it again"
        )
    return array.ndim == 1, rows


def _discount(rank: int) -> float:
    return 1 / math.log2(1 + rank)


def _discounted_gain(ranking: Sequence[Collection[str]]) -> float:
    weights: dict[str, float] = {}
    total = 0.0
    for rank, covered in enumerate(ranking, 1):
        total += _gain(covered, weights) * _discount(rank)
        _lower(weights, covered)
    return total


def _gain(covered: Collection[str], weights: Mapping[str, float]) -> float:
    # The order of a set differs between processes; fsum gives the same sum in every order.
    return math.fsum(weights.get(topic, 1.0) for topic in covered)


def _lower(weights: dict[str, float], covered: Collection[str]) -> None:
    """Lower the weight of each covered subtopic, for the next document that covers it."""
    weights.update({topic: weights.get(topic, 1.0) * _KEEP for topic in covered})
