"""The scales on which relevance and quality enter a selection."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._validation import as_float64, check_range
from .errors import InvalidInputError

Scale = Literal["minmax", "rank", "sigmoid", "zscore"]
SCALES = ("minmax", "rank", "sigmoid", "zscore")


def rescale(values: ArrayLike, scale: Scale | None = "minmax") -> NDArray[np.float64]:
    """Relevance or quality on a scale that a selector can weigh against cosines.

    MMR adds relevance and quality to cosines. Unscaled, large numbers (votes, BM25, a reranker's logits) would outweigh
    the cosines, and small numbers would have no effect. RAGSys (Algorithm 1) adds quality unscaled.

    Parameters
    ----------
    values : array-like, shape (..., n)
        Each row holds the numbers of one query's candidates, and is scaled by itself. Higher is better.
    scale : {"minmax", "rank", "sigmoid", "zscore"} or None
        ``"minmax"``: (x - min) / (max - min); one outlier pushes all other values together. ``"rank"``: the rank among
        the n, from 0 for the worst to 1 for the best; equal values share their mean rank. ``"sigmoid"``:
        1 / (1 + exp(-x)), for logits. ``"zscore"``: mean 0 and standard deviation 1. None: unchanged.

    Returns
    -------
    ndarray, shape (..., n), float64
        A new array. If all values of a row are equal, ``"minmax"`` and ``"rank"`` map them to 0.5, ``"zscore"`` to 0.

    Examples
    --------
    >>> from setselect import rescale
    >>> rescale([7.5, 2.5, 5.0]).tolist()
    [1.0, 0.0, 0.5]
    >>> rescale([7.5, 2.5, 7.5], "rank").tolist()
    [0.75, 0.0, 0.75]
    """
    column = as_float64(values, "values")
    if not column.ndim or not column.size:
        raise InvalidInputError(f"values to scale must have shape (..., n) with n >= 1, got {column.shape}")
    bad = np.argwhere(~np.isfinite(column))
    if bad.size:
        *query, row = bad[0].tolist()
        where = f"query {', '.join(map(str, query))}, " if query else ""
        raise InvalidInputError(f"{where}row {row} is {column[tuple(bad[0])]}; every value must be finite")
    if scale is None:
        return column
    check_range("scale", scale)
    if scale == "sigmoid":
        # exp(-|x|) cannot overflow.
        small = np.exp(-np.abs(column))
        return np.where(column < 0, small, 1.0) / (1.0 + small)
    if scale == "rank":
        ranked: NDArray[np.float64] = np.apply_along_axis(_mean_ranks, -1, column)
        return ranked
    # Differences and squares of very large numbers would overflow. Dividing by a power of two is exact.
    column = np.ldexp(column, -np.frexp(np.abs(column).max(axis=-1, keepdims=True))[1] - 1)
    low, high = column.min(axis=-1, keepdims=True), column.max(axis=-1, keepdims=True)
    differ = high > low
    if scale == "zscore":
        centred = column - column.mean(axis=-1, keepdims=True)
        return np.where(differ, centred / np.where(differ, column.std(axis=-1, keepdims=True), 1.0), 0.0)
    return np.where(differ, (column - low) / np.where(differ, high - low, 1.0), 0.5)


def _mean_ranks(row: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ranks of a row, from 0 to 1."""
    _, group, sizes = np.unique(row, return_inverse=True, return_counts=True)
    mean_ranks: NDArray[np.float64] = np.cumsum(sizes) - (sizes + 1) / 2
    return mean_ranks[group] / (len(row) - 1) if len(sizes) > 1 else np.full(len(row), 0.5)
