"""How sure a comparison is: an interval for a mean over queries, a test of two methods on the same queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._validation import check_integer, check_number
from ...errors import InvalidParameterError
from ._inputs import Floats, column, paired

_RESAMPLES = 9999
# Rows of resamples held at a time: 2000 queries take 8 MB.
_BATCH = 500


def bootstrap_interval(values: ArrayLike, confidence: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Percentile bootstrap interval for the mean over queries (Efron 1979), by ``scipy.stats.bootstrap``.

    The percentile interval is chosen since it exists for every input: others are undefined where all queries score
    the same, which is common with measures of 0 and 1.

    Parameters
    ----------
    values : array-like of shape (Q,)
        One value for each query; bools count as 0 and 1.
    confidence : float in (0, 1), default 0.95
    seed : int >= 0, default 0

    Returns
    -------
    (low, high) : floats
        ``low <= mean <= high``. Equal for a single query, which says nothing of the spread.

    Raises
    ------
    InvalidInputError
        ``values`` is empty, not one-dimensional, or holds NaN or inf.
    InvalidParameterError
        ``confidence`` or ``seed`` is out of range.

    Examples
    --------
    >>> low, high = bootstrap_interval([0.0, 1.0, 1.0, 1.0])
    >>> low, high
    (0.25, 1.0)
    """
    stats = _scipy_stats()
    sample = column(values, "values")
    level = check_number(confidence, "confidence", 0, 1)
    if level in (0, 1):
        raise InvalidParameterError(f"confidence must lie between 0 and 1, as 0.95 does, got {confidence!r}")
    generator = np.random.default_rng(check_integer(seed, "seed", 0))
    # The mean of equal numbers is not always that number to the last bit.
    if (sample == sample[0]).all():
        return float(sample[0]), float(sample[0])
    interval = stats.bootstrap(
        (sample,),
        np.mean,
        confidence_level=level,
        n_resamples=_RESAMPLES,
        batch=_BATCH,
        method="percentile",
        rng=generator,
    ).confidence_interval
    return float(interval.low), float(interval.high)


def paired_test(ours: ArrayLike, theirs: ArrayLike, seed: int = 0) -> float:
    """Two-sided p value that the mean difference over the same queries is chance, in (0, 1].

    Fisher's randomisation test, which flips the sign of each query's difference (recommended for retrieval by Smucker,
    Allan and Carterette, CIKM 2007), by ``scipy.stats.permutation_test``. Exact up to 13 queries; then 9,999 draws, so
    that no p value is below 0.0002.

    Parameters
    ----------
    ours, theirs : array-like of shape (Q,)
        Values of two methods for the same queries in the same order.
    seed : int >= 0, default 0

    Raises
    ------
    InvalidInputError
        One is empty, not one-dimensional, or holds NaN or inf, or the lengths differ.
    InvalidParameterError
        ``seed`` is negative or no integer.

    Examples
    --------
    >>> paired_test([0.9, 0.8, 0.7], [0.5, 0.5, 0.5])
    0.25
    """
    stats = _scipy_stats()
    left, right = paired(ours, theirs)
    generator = np.random.default_rng(check_integer(seed, "seed", 0))
    if len(left) == 1:
        return 1.0
    result = stats.permutation_test(
        (left - right,),
        _mean,
        permutation_type="samples",
        n_resamples=_RESAMPLES,
        batch=_BATCH,
        alternative="two-sided",
        rng=generator,
        vectorized=True,
    )
    return float(result.pvalue)


def _scipy_stats() -> Any:
    try:
        from scipy import stats  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError('intervals and tests need scipy: pip install "setselect[eval]"') from error
    return stats


def _mean(differences: Floats, axis: int = -1) -> Floats:
    means: Floats = differences.mean(axis=axis)
    return means
