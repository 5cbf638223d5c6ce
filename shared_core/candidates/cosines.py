"""Cosines with the question and its sub-questions, and numbers in standard deviations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .candidates import Candidates
from .unit_vectors import TIE_TOLERANCE, as_unit_rows, as_unit_vector

# If a sum of k unit rows is shorter than k times this, only rounding is left and the sum has no direction.
_CANCELLED = 4 * float(np.finfo(np.float64).eps)


class SetCosines(NamedTuple):
    """What the vectors of a set say: the mean cosine with the query, that of all pairs, and that of the sum."""

    relevance: float
    redundancy: float
    sum_cosine: float


def measure_set(query: ArrayLike, vectors: ArrayLike) -> SetCosines:
    """The cosines of a set of vectors (k, d) with the query (d,) and with each other; 0 for none.

    A single vector repeats nothing. The sum is that of the unit vectors (VRSD paper, 4.2).

    >>> measure_set([1, 1], [[2, 0], [-1, 0]])
    SetCosines(relevance=0.0, redundancy=-1.0, sum_cosine=0.0)
    """
    if not len(given := np.asarray(vectors, np.float64)):
        return SetCosines(0.0, 0.0, 0.0)
    rows = as_unit_rows(given)
    unit, total = as_unit_vector(query, rows.shape, rows.dtype), rows.sum(axis=0)
    length, pairs = float(np.linalg.norm(total)), len(rows) * (len(rows) - 1)
    redundancy = (length**2 - float(np.vdot(rows, rows))) / pairs if pairs else 0.0
    sum_cosine = float(np.clip(total @ unit / length, -1, 1)) if length > len(rows) * _CANCELLED else 0.0
    return SetCosines(float((rows @ unit).mean()), redundancy, sum_cosine)


def cosines_with_queries(candidates: Candidates) -> NDArray[np.float64]:
    """Cosine of each candidate with each query, shape (q, n), float64."""
    # vecdot computes each row alone, unlike the matrix product of Candidates.relevance, so copies of a row get exactly
    # the same cosine. The logarithm of a small cosine, or a low temperature, would enlarge a difference.
    cosines: NDArray[np.float64] = np.vecdot(candidates.vectors, candidates.questions[:, None]).astype(np.float64)
    return cosines


def standardise(
    values: NDArray[np.float64], dtype: np.dtype[Any] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(values - mean) / σ and 1 / σ over the last axis, where σ is the standard deviation; 0 if σ is 0 up to rounding.

    If the values are cosines, ``dtype`` is that of the vectors. None means numbers of any size.
    """
    size: Any = 1.0
    if dtype is None:
        # Squares of very large or very small numbers would overflow or underflow. A power of two rounds nothing.
        size, exponent = np.frexp(np.abs(values).max(axis=-1, keepdims=True))
        values = np.ldexp(values, -exponent)
    n = values.shape[-1]
    # The rounding error of a mean counts if the values hardly differ. Their differences have none.
    centred = values - values[..., :1]
    centred -= np.add.reduce(centred, axis=-1, keepdims=True) / n
    sigma = np.sqrt(np.vecdot(centred, centred) / n)[..., None]
    flat = sigma <= size * TIE_TOLERANCE[dtype or centred.dtype]
    per_sigma = (1.0 - flat) / (sigma + flat)
    return centred * per_sigma, per_sigma
