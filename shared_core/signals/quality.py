"""Where a number for each item comes from, quality for :class:`MMR` or costs for a budget, what scales it, and how an
index ranks by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_number
from ..arrays import FloatArray, as_column, as_numeric, scaled_rows, unit_query, working_dtype
from ..errors import InvalidInputError, InvalidParameterError
from ..retrieval.items import called_item, item_id

ItemValue = str | Mapping[Any, float] | Callable[[Any], float]

QUALITY_SCALERS = ("none", "min-max", "rank", "z-score")


def item_values(items: Sequence[Any], source: ItemValue, what: str) -> NDArray[np.float64]:
    """One finite number for each item: its metadata under a key, or what a function makes of it.

    Parameters
    ----------
    items : sequence of n objects
        LangChain documents, LlamaIndex nodes, or whatever the function takes.
    source : str, mapping or callable
        A key of ``item.metadata``; numbers by the items' ids; or ``function(item) -> float``.
    what : str
        What the numbers are, for messages: ``"quality"``, ``"costs"``.

    Returns
    -------
    ndarray, float64, shape (n,)

    Raises
    ------
    InvalidInputError
        An item has no such key, the mapping no such id, or the value is not a finite number; the message names the
        item by its id.

    Examples
    --------
    >>> item_values(["a", "bcd"], len, "costs").tolist()
    [1.0, 3.0]
    """
    values = np.empty(len(items))
    for row, item in enumerate(items):
        value = _value(item, source, what, row)
        try:
            if isinstance(value, (str, bytes)):
                raise TypeError
            values[row] = float(value)
        except (TypeError, ValueError):
            raise InvalidInputError(f"{what} of {called_item(item, row)} is {value!r}, not a number") from None
        if not np.isfinite(values[row]):
            raise InvalidInputError(f"{what} of {called_item(item, row)} is {values[row]}; it must be finite")
    return values


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
    with np.errstate(over="ignore", invalid="ignore"):
        rows, inverse = scaled_rows(given.astype(working_dtype(given.dtype)), None)
    column = as_column(quality, len(rows), "quality")
    joined = np.empty((len(rows), rows.shape[1] + 1), rows.dtype)
    joined[:, :-1] = rows if inverse is None else rows * inverse[:, None]
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
    unit = unit_query(given, np.empty((0, len(given))))
    return np.append(weight * unit, 1 - weight)


def _value(item: Any, source: ItemValue, what: str, row: int) -> Any:
    if isinstance(source, str):
        return _metadata(item, source, what, row)
    if not isinstance(source, Mapping):
        return source(item)
    key = item_id(item)
    if key is None:
        raise InvalidInputError(
            f"{what} is to come from a mapping by id, but item {row} has no id: give the items ids, or pass a "
            "metadata key or a function"
        )
    try:
        return source[key]
    except KeyError:
        raise InvalidInputError(
            f"{what} is to come from a mapping by id, but it has no {key!r} (item {row}); it has {len(source)} others. "
            "Add it, or pass a function to supply a default"
        ) from None


def _metadata(item: Any, key: str, what: str, row: int) -> Any:
    try:
        return item.metadata[key]
    except KeyError:
        raise InvalidInputError(
            f"{what} is to come from metadata {key!r}, but {called_item(item, row)} has no such key; "
            f"it has {', '.join(map(repr, item.metadata)) or 'none'}. Pass a function to supply a default"
        ) from None
