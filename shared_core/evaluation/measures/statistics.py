"""How certain a comparison is: intervals for means over queries, and paired tests of methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._validation import check_integer, check_number, quoted
from ...errors import InvalidInputError, InvalidParameterError
from ._inputs import Floats, as_values

_RESAMPLES = 9999
# Rows of resamples that are held in memory together: 8 MB for 2,000 queries.
_BATCH = 500
# Sums of the same numbers in another order differ by less than this.
_ROUNDING = 1e-12


def bootstrap_interval(values: ArrayLike, confidence: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Percentile bootstrap interval for the mean over queries (Efron 1979), by ``scipy.stats.bootstrap``.

    The percentile interval exists for every input. Other intervals are undefined if all queries have the same value,
    which is common for measures of 0 and 1.

    Parameters
    ----------
    values : array-like of shape (Q,)
        One value for each query; bools count as 0 and 1.
    confidence : float in (0, 1), default 0.95
        The share of such intervals that hold the true mean.
    seed : int >= 0, default 0
        The same seed gives the same result.

    Returns
    -------
    (low, high) : floats
        ``low <= mean <= high``. Both are equal for a single query, which tells nothing about the spread.

    Raises
    ------
    InvalidInputError
        ``values`` is empty, is not one-dimensional, or holds NaN or inf.
    InvalidParameterError
        ``confidence`` or ``seed`` is out of range.
    ImportError
        scipy is not installed.

    Examples
    --------
    >>> bootstrap_interval([0.0, 1.0, 1.0, 1.0])
    (0.25, 1.0)
    """
    low, high = bootstrap_intervals([as_values(values, "values")], confidence, seed)
    return float(low[0]), float(high[0])


def bootstrap_intervals(
    values: ArrayLike, confidence: float = 0.95, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """:func:`bootstrap_interval` for several methods on the same queries; all share the resamples, which saves time.

    Parameters
    ----------
    values : array-like of shape (S, Q)
        One row for each method.
    confidence, seed
        See :func:`bootstrap_interval`.

    Returns
    -------
    (low, high) : float64 arrays of shape (S,)

    Raises
    ------
    InvalidInputError, InvalidParameterError, ImportError
        See :func:`bootstrap_interval`.

    Examples
    --------
    >>> low, high = bootstrap_intervals([[0.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5]])
    >>> low.tolist(), high.tolist()
    ([0.25, 0.5], [1.0, 0.5])
    """
    stats = _scipy_stats()
    rows = as_values(values, "values", 2)
    level = check_number(confidence, "confidence", 0, 1)
    if level in (0, 1):
        raise InvalidParameterError(f"confidence must lie between 0 and 1, such as 0.95, got {quoted(confidence)}")
    generator = np.random.default_rng(check_integer(seed, "seed", 0))
    # The computed mean of equal numbers can differ from them in the last bit.
    spread = (rows != rows[:, :1]).any(axis=1)
    low, high = rows[:, 0].copy(), rows[:, 0].copy()
    if spread.any():
        varied = rows[spread]

        def means(draws: NDArray[np.intp], axis: int) -> Floats:
            """(S, B): the mean of each row over each of B resamples, which hold positions of queries, (B, Q)."""
            batch, queries = draws.shape
            # How often each resample holds each query: then one matrix product gives all means.
            places = (draws + queries * np.arange(batch)[:, None]).ravel()
            counts = np.bincount(places, minlength=draws.size).reshape(batch, queries)
            found: Floats = varied @ counts.T.astype(np.float64) / queries
            return found

        options = {"n_resamples": _RESAMPLES, "batch": _BATCH, "method": "percentile", "rng": generator}
        queries = np.arange(rows.shape[1])
        found = stats.bootstrap((queries,), means, vectorized=True, confidence_level=level, **options)
        low[spread], high[spread] = found.confidence_interval
    return low, high


def paired_test(ours: ArrayLike, theirs: ArrayLike, seed: int = 0) -> float:
    """Two-sided p value of the mean difference between two methods over the same queries, in (0, 1].

    Fisher's randomisation test, which flips the sign of each query's difference (recommended for retrieval by Smucker,
    Allan and Carterette, CIKM 2007), by ``scipy.stats.permutation_test``. It is exact up to 13 queries. Above that it
    uses 9,999 draws, so no p value is below 0.0001.

    Parameters
    ----------
    ours, theirs : array-like of shape (Q,)
        Values of two methods for the same queries in the same order.
    seed : int >= 0, default 0
        The same seed gives the same result.

    Raises
    ------
    InvalidInputError
        An array is empty, is not one-dimensional or holds NaN or inf, or the lengths differ.
    InvalidParameterError
        ``seed`` is negative or not an integer.
    ImportError
        scipy is not installed.

    Examples
    --------
    >>> paired_test([0.9, 0.8, 0.7], [0.5, 0.5, 0.5])
    0.25
    """
    return float(paired_tests([as_values(ours, "ours")], theirs, seed)[0])


def paired_tests(ours: ArrayLike, theirs: ArrayLike, seed: int = 0) -> NDArray[np.float64]:
    """:func:`paired_test` of several methods against one, with p values that allow for the number of methods, (S,).

    If many methods are tried, the best of them leads by chance more often than one would. A p value here is the chance
    that *any* of the S methods shows a difference as large, in units of its own spread, if none of them differs from
    ``theirs``. All methods share the flipped signs, so that methods with nearly equal values count as nearly one: the
    single-step maximum method of Westfall and Young (Resampling-Based Multiple Testing, 1993). For one method it
    is :func:`paired_test`. No p value is below 0.0001.

    Parameters
    ----------
    ours : array-like of shape (S, Q)
        One row for each method.
    theirs : array-like of shape (Q,)
        Values of the method that all are tested against, for the same queries in the same order.
    seed : int >= 0, default 0
        The same seed gives the same result.

    Returns
    -------
    float64 array of shape (S,), in (0, 1]

    Raises
    ------
    InvalidInputError, InvalidParameterError, ImportError
        See :func:`paired_test`.

    Examples
    --------
    >>> theirs = [0.5] * 8
    >>> paired_test([0.9] * 8, theirs)
    0.0078125
    >>> paired_tests([[0.9] * 8, [0.7, 0.3] * 4], theirs).tolist()
    [0.015625, 1.0]
    """
    stats = _scipy_stats()
    left, right = as_values(ours, "ours", 2), as_values(theirs, "theirs")
    if left.shape[1] != len(right):
        raise InvalidInputError(
            f"ours has {left.shape[1]} values, theirs {len(right)}: both must hold the same queries in the same order"
        )
    differences = left - right
    generator = np.random.default_rng(check_integer(seed, "seed", 0))
    length = np.linalg.norm(differences, axis=1, keepdims=True)
    # A flip leaves the length as it is, so the scaled sum rises and falls with the t statistic.
    scaled = np.divide(differences, length, out=np.zeros_like(differences), where=length > 0)
    observed = np.abs(scaled.sum(axis=1))
    if differences.shape[1] == 1:
        return np.ones(len(differences))

    def largest(signs: Floats, axis: int) -> Floats:
        found: Floats = np.abs(signs @ scaled.T).max(axis=-1)
        return found

    options = {"n_resamples": _RESAMPLES, "batch": _BATCH, "alternative": "greater", "rng": generator}
    signs = np.ones(differences.shape[1])
    drawn = stats.permutation_test((signs,), largest, permutation_type="samples", vectorized=True, **options)
    null = drawn.null_distribution
    reached = (null >= observed[:, None] * (1 - _ROUNDING) - _ROUNDING).sum(axis=1)
    # Few queries have fewer than _RESAMPLES assignments of signs: all were enumerated. Otherwise they were drawn, and
    # the observed assignment counts as one more.
    extra = int(len(null) == _RESAMPLES)
    p: NDArray[np.float64] = (reached + extra) / (len(null) + extra)
    return p


def _scipy_stats() -> Any:
    try:
        from scipy import stats  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError('intervals and tests need scipy: pip install "setselect[eval]"') from error
    return stats
