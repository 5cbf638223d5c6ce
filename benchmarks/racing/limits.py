"""What no numpy selector that scores every candidate at each step can go below.

k picks take k passes over the vectors: one for the relevance, one for each pick but the last.
"""

from __future__ import annotations

import numpy as np

from benchmarks.racing.contenders import Run
from benchmarks.racing.points import Data

PASS, CALLS, STEP = "limit: one pass", "limit: the calls of one step", "limit: one step"
LIMITS = (PASS, CALLS, STEP)


def limits(given: Data) -> dict[str, Run]:
    """One product with all vectors; the four calls of a step of MMR on vectors of one number each; and both in one."""
    rows, query = given.vectors, given.query
    n = len(rows)
    products = np.empty(n, np.float32)
    return {
        PASS: lambda: rows.dot(query, products),
        CALLS: _step(np.ones((n, 1), np.float32), np.ones(1, np.float32), given.scores),
        STEP: _step(rows, query, given.scores),
    }


def _step(rows: np.ndarray, query: np.ndarray, scores: np.ndarray) -> Run:
    nearest, products = np.zeros(len(rows), np.float32), np.empty(len(rows), np.float32)
    dot, argmax, maximum, subtract = rows.dot, products.argmax, np.maximum, np.subtract

    def step() -> object:
        dot(query, products)
        maximum(nearest, products, out=nearest)
        subtract(scores, nearest, out=products)
        return argmax()

    return step
