"""How certain a comparison is: an interval for a mean over queries, and a paired test of two methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._validation import check_integer, check_number, quoted
from ...errors import InvalidParameterError
from ._inputs import as_paired_values, as_values

_RESAMPLES = 9999
# Rows of resamples that are held in memory together: 8 MB for 2,000 queries.
_BATCH = 500


def bootstrap_interval(values: ArrayLike, confidence: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Percentile bootstrap interval for the mean over queries (Efron 1979), by ``scipy.stats.bootstrap``.

    The percentile interval exists for every input. Other intervals are undefined if all queries have the same value,
    which is common for measures of 0 and 1.

    Parameters
    ----------
    values : array-like of shape (Q,)
        One value for each query; bools count as 0 and 1.
    confidence : float in (0, 1), default 0.95
    seed : int >= 0, default 0

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
    stats = _scipy_stats()
    sample = as_values(values, "values")
    level = check_number(confidence, "confidence", 0, 1)
    if level in (0, 1):
        raise InvalidParameterError(f"confidence must lie between 0 and 1, such as 0.95, got {quoted(confidence)}")
    generator = np.random.default_rng(check_integer(seed, "seed", 0))
    # The computed mean of equal numbers can differ from them in the last bit.
    if (sample == sample[0]).all():
        return float(sample[0]), float(sample[0])
    options = {"n_resamples": _RESAMPLES, "batch": _BATCH, "method": "percentile", "rng": generator}
    interval = stats.bootstrap((sample,), np.mean, confidence_level=level, **options).confidence_interval
    return float(interval.low), float(interval.high)


def paired_test(ours: ArrayLike, theirs: ArrayLike, seed: int = 0) -> float:
    """Two-sided p value of the mean difference between two methods over the same queries, in (0, 1].

    Fisher's randomisation test, which flips the sign of each query's difference (recommended for retrieval by Smucker,
    Allan and Carterette, CIKM 2007), by ``scipy.stats.permutation_test``. It is exact up to 13 queries. Above that it
    uses 9,999 draws, so no p value is below 0.0002.

    Parameters
    ----------
    ours, theirs : array-like of shape (Q,)
        Values of two methods for the same queries in the same order.
    seed : int >= 0, default 0

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
    stats = _scipy_stats()
    left, right = as_paired_values(ours, theirs)
    generator = np.random.default_rng(check_integer(seed, "seed", 0))
    if len(left) == 1:
        return 1.0
    options = {"n_resamples": _RESAMPLES, "batch": _BATCH, "alternative": "two-sided", "rng": generator}
    result = stats.permutation_test((left - right,), np.mean, permutation_type="samples", vectorized=True, **options)
    return float(result.pvalue)


def _scipy_stats() -> Any:
    try:
        from scipy import stats  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError('intervals and tests need scipy: pip install "setselect[eval]"') from error
    return stats
