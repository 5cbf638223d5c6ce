"""Measures that only the papers' tables need: win rate and Max-diff (VRSD 4.2), success at k (PIR 2.3)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

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
