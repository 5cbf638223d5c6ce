"""The setting ``min_gain``: a set ends where a further pick would add too little."""

from __future__ import annotations

import numpy as np

from .registry import Selector, capabilities_of
from .selection import Selection

# The number of picks that a set has in any case where ``min_gain`` ends it, chosen by benchmarks/min_gain.py.
DEFAULT_MIN_K = 2


def count_worthwhile(selection: Selection, selector: Selector, min_gain: float, min_k: int) -> int:
    """How many picks come before the first after ``min_k`` whose gain is below ``min_gain``; see :func:`select`.

    Gains that are logarithms are 0 for the most relevant candidate by itself. Other gains are divided by the first.
    """
    gains = selection.gains
    if capabilities_of(selector).log_gains:
        worth = np.exp(np.minimum(gains, 0))
    elif len(gains) and gains[0] > 0:
        worth = gains / gains[0]
    else:
        return len(gains)
    below = np.flatnonzero(worth[min_k:] < min_gain)
    return min_k + int(below[0]) if len(below) else len(gains)
