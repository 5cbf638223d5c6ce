"""Quality for :class:`MMR`: what scales it, and how an index ranks by it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, as_column, as_numeric, check_number
from ..candidates import as_unit_rows, as_unit_vector
from ..errors import InvalidInputError, InvalidParameterError

QUALITY_SCALERS = ("none", "min-max", "rank", "z-score")


def scale_quality(values: ArrayLike, method: str) -> NDArray[np.float64]:
    """Bring quality to a scale on which :class:`MMR` can weigh it against cosines.

    RAGSys (Algorithm 1) adds b_i to a cosine as it stands, and a mean log-probability (its section 3.3.3) runs from
    minus infinity to 0: unscaled, λ_b has another meaning for every model.

    Parameters
    ----------
    values : array-like, shape (n,)
        Larger is better.
    method : str
        One of ``QUALITY_SCALERS``. ``"none"``: as they are. ``"min-max"``: linear to [0, 1]; one outlier squeezes
        all others together. ``"rank"``: rank among the n to [0, 1], equal values share their mean rank; outliers
        and the shape of the distribution do not matter. ``"z-score"``: mean 0 and standard deviation 1.

    Returns
    -------
    ndarray, float64, shape (n,)
        A new array. Values that are all equal become 0.5 (``"min-max"``, ``"rank"``) or 0 (``"z-score"``).

    Raises
    ------
    InvalidInputError
        ``values`` is not of shape (n,), or one is NaN, inf or no number; the message names the row.
    InvalidParameterError
        The method is unknown.

    Examples
    --------
    >>> scale_quality([-9.0, -1.0, -1.0, -0.5], "rank").tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    if method not in QUALITY_SCALERS:
        raise InvalidParameterError(f"unknown scaler {method!r}; choose from {', '.join(map(repr, QUALITY_SCALERS))}")
    given = as_numeric(values, "quality")
    if given.ndim != 1:
        raise InvalidInputError(f"quality must have shape (n,), one number for each item, got {given.shape}")
    column = as_column(given, len(given), "quality").copy()
    if method == "none" or not column.size:
        return column
    if column.min() == column.max():
        return np.full(len(column), 0.0 if method == "z-score" else 0.5)
    if method == "rank":
        _, group, sizes = np.unique(column, return_inverse=True, return_counts=True)
        mean_ranks: NDArray[np.float64] = np.cumsum(sizes) - (sizes + 1) / 2
        ranks: NDArray[np.float64] = mean_ranks[group] / (len(column) - 1)
        return ranks
    # Differences and squares of extreme values would leave the range of a double; a power of two rounds nothing.
    column = np.ldexp(column, -int(np.frexp(np.abs(column).max())[1]))
    if method == "min-max":
        column -= column.min()
        column /= column.max()
    else:
        column -= column.mean()
        column /= column.std()
    return column


def with_quality_column(vectors: ArrayLike, quality: ArrayLike) -> FloatArray:
    """Vectors for an inner-product index that ranks by relevance and quality together.

    RAGSys, section 5.3: with quality in one more column, and its weight in the query
    (:func:`with_quality_weight`), the index itself ranks by λ_b cos(q, e_i) + (1 − λ_b) b_i, so that a good document
    is among the ``fetch_k`` however many mediocre ones are a little nearer.

    Parameters
    ----------
    vectors : array-like, shape (n, d)
        Embeddings of any length; a zero row has cosine 0.
    quality : array-like, shape (n,)
        On the scale of a cosine: :func:`scale_quality` first.

    Returns
    -------
    ndarray, shape (n, d + 1), float32 (float64 where ``vectors`` need it)
        A new array: rows at length 1, and their quality. What is to be chosen from is ``[:, :-1]``, with
        ``quality=[:, -1]``.

    Raises
    ------
    InvalidInputError
        A shape is another, or a value NaN, inf or no number; the message names the row.

    Examples
    --------
    >>> with_quality_column([[3.0, 4.0], [2.0, 0.0]], [0.25, 1.0]).round(9).tolist()
    [[0.6, 0.8, 0.25], [1.0, 0.0, 1.0]]
    """
    given = as_numeric(vectors, "vectors")
    if given.ndim != 2 or not given.size:
        raise InvalidInputError(f"vectors must have shape (n, d), one row for each document, got {given.shape}")
    rows = as_unit_rows(given, copy=False)
    column = as_column(quality, len(rows), "quality")
    joined = np.empty((len(rows), rows.shape[1] + 1), rows.dtype)
    joined[:, :-1] = rows
    joined[:, -1] = column
    return joined


def with_quality_weight(query: ArrayLike, lambda_b: float) -> NDArray[np.float64]:
    """The query for an index of :func:`with_quality_column`: inner products are λ_b cos + (1 − λ_b) b.

    Parameters
    ----------
    query : array-like, shape (d,)
        An embedding of any length but 0.
    lambda_b : float in [0, 1]
        As in :class:`MMR`: 1 is relevance alone. One index serves every value.

    Returns
    -------
    ndarray, float64, shape (d + 1,)

    Raises
    ------
    InvalidInputError
        The query is no vector, zero, NaN or inf.
    InvalidParameterError
        ``lambda_b`` is out of range.

    Examples
    --------
    >>> rows = with_quality_column([[3.0, 4.0], [2.0, 0.0]], [0.25, 1.0])
    >>> (rows @ with_quality_weight([1.0, 0.0], 0.5)).round(9).tolist()  # half the cosine and half the quality
    [0.425, 1.0]
    """
    weight = check_number(lambda_b, "lambda_b", 0, 1)
    given = as_numeric(query, "query")
    if given.ndim != 1:
        raise InvalidInputError(f"query must be one vector, got shape {given.shape}")
    unit = as_unit_vector(given, given.shape, np.dtype(np.float64))
    return np.append(weight * unit, 1 - weight)
