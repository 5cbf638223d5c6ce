"""Cosines with the question and its sub-questions, and numbers in standard deviations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .candidates import Candidates
from .unit_vectors import TIE_TOLERANCE


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
    centred = values
    # The first mean has a rounding error, which counts if the values hardly differ.
    for _ in range(2):
        centred = centred - np.add.reduce(centred, axis=-1, keepdims=True) / n
    sigma = np.sqrt(np.vecdot(centred, centred) / n)[..., None]
    flat = sigma <= size * TIE_TOLERANCE[dtype or centred.dtype]
    per_sigma = (1.0 - flat) / (sigma + flat)
    return centred * per_sigma, per_sigma
