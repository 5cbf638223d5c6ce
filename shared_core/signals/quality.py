"""Quality for :class:`MMR` in an index: one more column of the vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, as_column, as_numeric, check_number
from ..candidates import as_unit_rows, as_unit_vector
from ..errors import InvalidInputError


def with_quality_column(vectors: ArrayLike, quality: ArrayLike) -> FloatArray:
    """Vectors for an inner-product index that ranks by relevance and quality together.

    RAGSys, section 5.3: the vectors get quality as one more column, and the query gets its weight
    (:func:`with_quality_weight`). The index then ranks by λ_b cos(q, e_i) + (1 − λ_b) b_i, so a good document is
    among the ``fetch_k`` even if many mediocre ones are slightly nearer.

    Parameters
    ----------
    vectors : array-like, shape (n, d)
        Embeddings of any length; a zero row has cosine 0.
    quality : array-like, shape (n,)
        On the scale of a cosine; see :func:`rescale`.

    Returns
    -------
    ndarray, shape (n, d + 1), float32 (float64 if ``vectors`` need it)
        A new array: rows of unit length, and their quality. To select from stored rows, pass ``[:, :-1]`` as vectors
        and ``[:, -1]`` as quality.

    Raises
    ------
    InvalidInputError
        A shape is wrong, or a value is NaN, inf or not a number; the message names the row.

    Examples
    --------
    >>> with_quality_column([[3.0, 4.0], [2.0, 0.0]], [0.25, 1.0]).round(9).tolist()
    [[0.6, 0.8, 0.25], [1.0, 0.0, 1.0]]
    """
    array = as_numeric(vectors, "vectors")
    if array.ndim != 2 or not array.size:
        raise InvalidInputError(f"vectors must have shape (n, d), one row for each document, got {array.shape}")
    rows = as_unit_rows(array, copy=False)
    return np.column_stack([rows, as_column(quality, len(rows), "quality").astype(rows.dtype)])


def with_quality_weight(query: ArrayLike, lambda_b: float) -> NDArray[np.float64]:
    """The query for an index of :func:`with_quality_column`: inner products are λ_b cos + (1 − λ_b) b.

    Parameters
    ----------
    query : array-like, shape (d,)
        An embedding of any length above zero.
    lambda_b : float in [0, 1]
        As in :class:`MMR`; 1 means relevance alone. The same index serves every value.

    Returns
    -------
    ndarray, float64, shape (d + 1,)

    Raises
    ------
    InvalidInputError
        The query is not a vector, is zero, or holds NaN or inf.
    InvalidParameterError
        ``lambda_b`` is out of range.

    Examples
    --------
    >>> rows = with_quality_column([[3.0, 4.0], [2.0, 0.0]], [0.25, 1.0])
    >>> (rows @ with_quality_weight([1.0, 0.0], 0.5)).round(9).tolist()  # half the cosine plus half the quality
    [0.425, 1.0]
    """
    weight = check_number(lambda_b, "lambda_b", 0, 1)
    array = as_numeric(query, "query")
    if array.ndim != 1:
        raise InvalidInputError(f"query must be one vector, got shape {array.shape}")
    unit = as_unit_vector(array, array.shape, np.dtype(np.float64))
    return np.append(weight * unit, 1 - weight)
