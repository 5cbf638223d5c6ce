"""Where a number for each item comes from, quality for :class:`MMR` or costs for a budget, and what scales it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import column_of, numeric
from .errors import InvalidInputError, InvalidParameterError
from .items import called_item, item_id

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
    given = numeric(values, "quality")
    if given.ndim != 1:
        raise InvalidInputError(f"quality must have shape (n,), one number for each item, got {given.shape}")
    column = column_of(given, len(given), "quality").copy()
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
