"""A whole choice in one call of compiled loops, where the selector and the arrays allow it."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import RANGES, UNIT_SLACK, FloatArray, as_column, as_numeric
from ..errors import InvalidInputError
from . import compiled
from ._greedy import tie_of
from .base import Selection, Selector
from .mmr import MMR
from .vrsd import VRSD

_NONE: dict[np.dtype[Any], FloatArray] = {kind: np.empty(0, kind) for kind in RANGES}
_DOUBLE = np.dtype(np.float64)


def select_at_once(
    query: ArrayLike, vectors: NDArray[Any], k: int, selector: Selector, quality: ArrayLike | None = None
) -> Selection | None:
    """What the selector chooses from candidates with nothing but a quality, without candidates being made of them.

    None where numpy or another selector is to choose, or where something is wrong: :class:`Candidates` and the
    selector find the words for the error.

    Raises
    ------
    InvalidInputError
        The query is not made of numbers.

    Examples
    --------
    >>> found = select_at_once([1.0, 0.9], np.array([[1.0, 0.0], [1.0, 0.02], [0.0, 1.0]]), 2, VRSD())
    >>> found is None or found.indices.tolist() == [1, 2]
    True
    """
    # In this order, since those who have no numba, or ask for something else, wait for it too.
    if type(selector) not in (VRSD, MMR) or not compiled.is_there() or not _fits(vectors, k):
        return None
    loops = loops_for(selector, len(vectors), vectors.nbytes, has_quality=quality is not None)
    if loops is None:
        return None
    seen = as_numeric(query, "query")
    if seen.ndim != 1 or len(seen) != vectors.shape[1] or seen.dtype not in RANGES:
        return None
    if not seen.flags.carray:
        seen = seen.copy()
    indices, gains, relevance = np.empty(k, np.int64), np.empty(k), np.empty(k)
    kind = vectors.dtype
    given = seen, vectors, _NONE[kind], *RANGES[kind], UNIT_SLACK[kind], tie_of(kind), indices, gains, relevance
    good = _NONE[_DOUBLE]
    if quality is not None:
        try:
            # Copied, since arrays that cannot be written to would be compiled for anew.
            good = as_column(quality, len(vectors), "quality").copy()
        except InvalidInputError:
            # Not the first thing that is wrong, perhaps.
            return None
    if isinstance(selector, MMR):
        sound = loops.one_marginal(*given, float(selector.lambda_d), float(selector.lambda_b), good)
    else:
        assert isinstance(selector, VRSD)
        sound = (loops.one_refined if selector.refine else loops.one_sum)(*given)
    if not sound:
        return None
    indices.flags.writeable = gains.flags.writeable = relevance.flags.writeable = False
    return Selection(indices, gains, relevance, math.fsum(gains.tolist()), None)


def loops_for(selector: Selector, n: int, nbytes: int, *, has_quality: bool) -> ModuleType | None:
    """The compiled loops, if they make the whole of this selector's choice among ``n`` of so many bytes."""
    # The very classes: a subclass may choose otherwise.
    if type(selector) is MMR:
        weight = selector.lambda_d * (selector.lambda_b if has_quality else 1.0)
        return compiled.loops_for_scores(n, weight, 1 - selector.lambda_d)
    if type(selector) is VRSD:
        return compiled.loops_for_sums(nbytes)
    return None


def _fits(vectors: NDArray[Any], k: int) -> bool:
    # Arrays of other kinds and layouts would each be compiled for.
    return (
        type(vectors) is np.ndarray
        and vectors.ndim == 2
        and vectors.dtype in RANGES
        and vectors.flags.carray
        and vectors.nbytes > 0
        and type(k) is int
        and 1 <= k <= len(vectors)
    )
