"""Measures that only the papers' tables need: win rate and Max-diff (VRSD 4.2), perspectives (PIR 2.3 and 2.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike


def win_rate(ours: ArrayLike, theirs: ArrayLike, tolerance: float = 1e-9) -> float:
    """Share of the queries where ours is above theirs by more than ``tolerance``, which is no win but rounding."""
    return float((np.asarray(ours) > np.asarray(theirs) + tolerance).mean())


def max_difference(ours: ArrayLike, theirs: ArrayLike) -> float:
    """Largest lead of ours over theirs among the queries; negative if theirs always leads."""
    return float(np.subtract(ours, theirs).max())


def success_at_k(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> bool:
    """Whether a gold document is among the first k."""
    return not set(gold).isdisjoint(ranked[:k])


def p_recall_at_k(success: ArrayLike, root_of: Sequence[Hashable]) -> float:
    """p-Recall@k: mean over root queries of the mean success of their perspectives (PIR 2.3, equation 1)."""
    of_root: dict[Hashable, list[float]] = {}
    for root, value in zip(root_of, np.asarray(success, float).tolist(), strict=True):
        of_root.setdefault(root, []).append(value)
    return float(np.mean([np.mean(successes) for successes in of_root.values()]))


def perspective_shares(
    ranked: Sequence[Sequence[Hashable]], gold: Sequence[Mapping[str, Collection[Hashable]]], k: int
) -> dict[str, float]:
    """Share of each perspective among the gold documents that root queries find, summing to 1 (PIR 2.5, Table 3).

    The counts of all root queries are added and divided by their total. (The paper's 27.9, 44.3 and 27.9 percent are
    17, 27 and 17 of 61.) They show a bias only if each perspective has equally many gold documents.
    """
    found: Counter[str] = Counter()
    for ids, of_perspective in zip(ranked, gold, strict=True):
        for perspective, documents in of_perspective.items():
            found[perspective] += len({*ids[:k]} & {*documents})
    return {perspective: count / found.total() for perspective, count in found.items()}
