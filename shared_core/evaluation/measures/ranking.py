"""Measures of a ranking: recall, nDCG and success by right documents, and two measures by subtopics.

A ranking holds ids, the best first. Its measure is that of all its ids: cut it to the first k before.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeAlias

_Topics: TypeAlias = frozenset[str]
# The weight that each repetition leaves to a subtopic: 1 − α, with α = 0.5.
_KEEP = 0.5


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
    topics_of: dict[str, set[str]] = {}
    for topic, covering in subtopics.items():
        for name in covering:
            topics_of.setdefault(name, set()).add(topic)
    topics = {name: frozenset(covered) for name, covered in topics_of.items()}
    ranked = [topics.get(name, frozenset()) for name in ranking]
    return _discounted_gain(ranked) / _discounted_gain(_greedy_ideal(topics, k))


def _discount(rank: int) -> float:
    return 1 / math.log2(1 + rank)


def _greedy_ideal(topics: Mapping[str, _Topics], k: int) -> list[_Topics]:
    """The ranking that takes the document of the highest gain at each rank."""
    # Documents of the same subtopics have the same gain, so one comparison serves all of them.
    names: dict[_Topics, list[str]] = {}
    for name, covered in topics.items():
        names.setdefault(covered, []).append(name)
    left = {covered: sorted(heapq.nlargest(k, of)) for covered, of in names.items()}
    weights: dict[str, float] = {}
    ideal: list[_Topics] = []
    while left and len(ideal) < k:
        best = max(left, key=lambda covered: (_gain(covered, weights), left[covered][-1]))
        ideal.append(best)
        _lower(weights, best)
        left[best].pop()
        if not left[best]:
            del left[best]
    return ideal


def _discounted_gain(ranking: Sequence[_Topics]) -> float:
    weights: dict[str, float] = {}
    total = 0.0
    for rank, covered in enumerate(ranking, 1):
        total += _gain(covered, weights) * _discount(rank)
        _lower(weights, covered)
    return total


def _gain(covered: _Topics, weights: Mapping[str, float]) -> float:
    # The order of a set differs between processes; fsum gives the same sum in every order.
    return math.fsum(weights.get(topic, 1.0) for topic in covered)


def _lower(weights: dict[str, float], covered: _Topics) -> None:
    """Lower the weight of each covered subtopic, for the next document that covers it."""
    weights.update({topic: weights.get(topic, 1.0) * _KEEP for topic in covered})
