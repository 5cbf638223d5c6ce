"""How certain a comparison is: intervals for means over queries, and paired tests of methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._validation import as_numeric, check_integer, check_number, quoted
from ...errors import InvalidInputError, InvalidParameterError

_RESAMPLES = 9999
# Rows of resamples that are held in memory together: 8 MB for 2,000 queries.
_BATCH = 500
# Sums of the same numbers in another order differ by less than this.
_ROUNDING = 1e-12
_Floats = NDArray[np.float64]


def bootstrap_interval(values: ArrayLike, confidence: float = 0.95, seed: int = 0) -> tuple[Any, Any]:
    """Percentile bootstrap interval for the mean over queries (Efron 1979), by ``scipy.stats.bootstrap``.

    The percentile interval exists for every input. Other intervals are undefined if all queries have the same value,
    which is common for measures of 0 and 1.

    Parameters
    ----------
    values : array-like of shape (Q,) or (S, Q)
        One value for each query, bools as 0 and 1; or a row for each of S methods, which share the resamples.
    confidence : float in (0, 1), default 0.95
        The share of such intervals that hold the true mean.
    seed : int >= 0, default 0
        The same seed gives the same result.

    Returns
    -------
    (low, high) : floats, or arrays of shape (S,)
        ``low <= mean <= high``. Both are equal for a single query, which tells nothing about the spread.

    Raises
    ------
    InvalidInputError
        ``values`` is empty, has another shape, or holds NaN or inf.
    InvalidParameterError
        ``confidence`` or ``seed`` is out of range.
    ImportError
        scipy is not installed.

    Examples
    --------
    >>> bootstrap_interval([0.0, 1.0, 1.0, 1.0])
    (0.25, 1.0)
    >>> low, high = bootstrap_interval([[0.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5]])
    >>> low.tolist(), high.tolist()
    ([0.25, 0.5], [1.0, 0.5])
    """
    stats = _scipy_stats()
    single, rows = _as_rows(values, "values")
    level = check_number(confidence, "confidence", 0, 1)
    if level in (0, 1):
        raise InvalidParameterError(f"confidence must lie between 0 and 1, such as 0.95, got {quoted(confidence)}")
    generator = np.random.default_rng(check_integer(seed, "seed", 0))
    # The computed mean of equal numbers can differ from them in the last bit.
    spread = (rows != rows[:, :1]).any(axis=1)
    low, high = rows[:, 0].copy(), rows[:, 0].copy()
    if spread.any():
        varied = rows[spread]

        def means(draws: NDArray[np.intp], axis: int) -> _Floats:
            """(S, B): the mean of each row over each of B resamples, which hold positions of queries, (B, Q)."""
            batch, queries = draws.shape
            # How often each resample holds each query: then one matrix product gives all means.
            places = (draws + queries * np.arange(batch)[:, None]).ravel()
            counts = np.bincount(places, minlength=draws.size).reshape(batch, queries)
            of_rows: _Floats = varied @ counts.T.astype(np.float64) / queries
            return of_rows

        options = {"n_resamples": _RESAMPLES, "batch": _BATCH, "method": "percentile", "rng": generator}
        positions = (np.arange(rows.shape[1]),)
        result = stats.bootstrap(positions, means, vectorized=True, confidence_level=level, **options)
        low[spread], high[spread] = result.confidence_interval
    return (float(low[0]), float(high[0])) if single else (low, high)


def paired_test(ours: ArrayLike, theirs: ArrayLike, seed: int = 0) -> Any:
    """Two-sided p value of the mean difference between two methods over the same queries, in (0, 1].

    Fisher's randomisation test, which flips the sign of each query's difference (recommended for retrieval by Smucker,
    Allan and Carterette, CIKM 2007), by ``scipy.stats.permutation_test``. It is exact up to 13 queries. Above that it
    uses 9,999 draws, so no p value is below 0.0001.

    If many methods are tried, the best of them leads by chance more often than one would. The p value of one of S
    methods is therefore the chance that *any* of them shows a difference as large, in units of its own spread, if none
    of them differs from ``theirs``. All methods share the flipped signs, so that methods with nearly equal values count
    as nearly one: the single-step maximum method of Westfall and Young (Resampling-Based Multiple Testing, 1993).

    Parameters
    ----------
    ours : array-like of shape (Q,) or (S, Q)
        Values of a method, or a row for each of S methods.
    theirs : array-like of shape (Q,)
        Values of the method that all are tested against, for the same queries in the same order.
    seed : int >= 0, default 0
        The same seed gives the same result.

    Returns
    -------
    float, or array of shape (S,)

    Raises
    ------
    InvalidInputError
        An array is empty, has another shape or holds NaN or inf, or the lengths differ.
    InvalidParameterError
        ``seed`` is negative or not an integer.
    ImportError
        scipy is not installed.

    Examples
    --------
    >>> theirs = [0.5] * 8
    >>> paired_test([0.9] * 8, theirs)
    0.0078125
    >>> paired_test([[0.9] * 8, [0.7, 0.3] * 4], theirs).tolist()
    [0.015625, 1.0]
    """
    stats = _scipy_stats()
    (single, left), (one_row, right) = _as_rows(ours, "ours"), _as_rows(theirs, "theirs")
    if not one_row or left.shape[1] != right.shape[1]:
        raise InvalidInputError(
            f"ours has {left.shape[1]} values, theirs has shape {np.shape(theirs)}: both must hold the same queries in "
            "the same order"
        )
    differences = left - right
    generator = np.random.default_rng(check_integer(seed, "seed", 0))
    length = np.linalg.norm(differences, axis=1, keepdims=True)
    # A flip leaves the length as it is, so the scaled sum rises and falls with the t statistic.
    scaled = np.divide(differences, length, out=np.zeros_like(differences), where=length > 0)
    observed = np.abs(scaled.sum(axis=1))
    p: _Floats = np.ones(len(differences))
    if differences.shape[1] > 1:

        def largest(signs: _Floats, axis: int) -> _Floats:
            of_all: _Floats = np.abs(signs @ scaled.T).max(axis=-1)
            return of_all

        options = {"n_resamples": _RESAMPLES, "batch": _BATCH, "alternative": "greater", "rng": generator}
        signs = np.ones(differences.shape[1])
        drawn = stats.permutation_test((signs,), largest, permutation_type="samples", vectorized=True, **options)
        null = drawn.null_distribution
        reached = (null >= observed[:, None] * (1 - _ROUNDING) - _ROUNDING).sum(axis=1)
        # Few queries have fewer than _RESAMPLES assignments of signs: all were enumerated. Otherwise they were drawn,
        # and the observed assignment counts as one more.
        extra = int(len(null) == _RESAMPLES)
        p = (reached + extra) / (len(null) + extra)
    return float(p[0]) if single else p


def _as_rows(values: ArrayLike, what: str) -> tuple[bool, _Floats]:
    """Whether ``values`` has shape (Q,), and the values as float64 of shape (S, Q); bools become 0 and 1."""
    if np.asarray(values).dtype == np.bool_:
        # as_numeric refuses bools.
        values = np.asarray(values, dtype=np.uint8)
    array = as_numeric(values, what)
    if array.ndim not in (1, 2) or not array.size:
        raise InvalidInputError(f"{what} must have shape (queries,) or (methods, queries), got {array.shape}")
    rows = np.atleast_2d(array).astype(np.float64)
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        raise InvalidInputError(
            f"{what}: row {bad[0, 0]}, query {bad[0, 1]} holds NaN or inf; leave it out or measure it again"
        )
    return array.ndim == 1, rows


def _scipy_stats() -> Any:
    try:
        from scipy import stats  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError('intervals and tests need scipy: pip install "setselect[eval]"') from error
    return stats
