"""The whole choice as machine code (numba), for query after query, without the interpreter and its lock."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .arrays import TIE_EPS, FloatArray
from .loops import Indices, Vector, as_machine_code, dot, pick_marginal, pick_sum, products
from .mmr import NOTHING_PICKED
from .vrsd_sum import ROOT_HALF

_EPS = float(np.finfo(np.float64).eps)


@as_machine_code()
def _look(
    rows: FloatArray, query: FloatArray, known: FloatArray, least: float, most: float, slack: float,
    inverse: FloatArray, relevance: FloatArray,
) -> bool:  # fmt: skip
    """One over the length of each row, and its cosine with the query; False where one is zero or out of range."""
    square = dot(query, query)
    # Written so that NaN fails.
    if not (square > least and square < most):
        return False
    over = query.dtype.type(1 / np.sqrt(square))
    if len(known):
        if known.min() == 0:
            return False
        inverse[:] = known
    else:
        unit = True
        for v in range(len(rows)):
            square = dot(rows[v], rows[v])
            if not (square > least and square < most):
                return False
            unit = unit and abs(square - 1) <= slack
            inverse[v] = 1 / np.sqrt(square)
        if unit:
            inverse[:] = 1
    products(rows, query, relevance)
    for v in range(len(rows)):
        relevance[v] = relevance[v] * over * inverse[v]
    return True


@as_machine_code()
def many_sums(
    queries: FloatArray, rows: FloatArray, known: FloatArray, least: float, most: float, slack: float, tie: float,
    picks: Indices, gains: Vector, cosines: Vector, odd: NDArray[np.bool_],
) -> None:  # fmt: skip
    """VRSD for each query and its own rows (or, of a single set of rows, all from that); ``odd`` ones are left."""
    n = rows.shape[1]
    inverse, relevance = np.empty(n, rows.dtype), np.empty(n, rows.dtype)
    kept = np.empty((0, n))
    for i in range(len(queries)):
        given = rows[i if len(rows) > 1 else 0]
        odd[i] = not _look(given, queries[i], known, least, most, slack, inverse, relevance)
        if not odd[i]:
            own = relevance.astype(np.float64)
            pick_sum(
                given, inverse, own, own * ROOT_HALF, np.zeros(n), 0.0, 0.0, 0.0, tie, 0.0, picks[i], gains[i], kept
            )
            for t in range(picks.shape[1]):
                cosines[i, t] = relevance[picks[i, t]]


@as_machine_code()
def many_marginal(
    queries: FloatArray, rows: FloatArray, known: FloatArray, least: float, most: float, slack: float, tie: float,
    picks: Indices, gains: Vector, cosines: Vector, odd: NDArray[np.bool_],
    lambda_d: float, lambda_b: float, quality: Vector,
) -> None:  # fmt: skip
    """As :func:`many_sums` for MMR; ``quality`` has a row for each query, or one for all, or none."""
    n = rows.shape[1]
    inverse, relevance = np.empty(n, rows.dtype), np.empty(n, rows.dtype)
    for i in range(len(queries)):
        given = rows[i if len(rows) > 1 else 0]
        odd[i] = not _look(given, queries[i], known, least, most, slack, inverse, relevance)
        value = relevance.astype(np.float64)
        room = tie
        if len(quality):
            good = quality[i if len(quality) > 1 else 0]
            odd[i] = odd[i] or not np.all(np.isfinite(good))
            value = lambda_b * value + (1 - lambda_b) * good
            room += TIE_EPS * _EPS * np.abs(value).max()
        if not odd[i]:
            best = value.max()
            first = 0
            while value[first] < best - room:
                first += 1
            weighted = lambda_d * value
            picks[i, 0], gains[i, 0] = first, weighted[first]
            weighted[first] = -np.inf
            nearest = np.full(n, NOTHING_PICKED)
            pick_marginal(given, inverse, weighted, nearest, 1 - lambda_d, room, picks[i], gains[i], 1)
            for t in range(picks.shape[1]):
                cosines[i, t] = relevance[picks[i, t]]
