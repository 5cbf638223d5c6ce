"""A piece of a batch chosen at once by compiled loops, where the selector and the candidates allow it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import RANGES, UNIT_SLACK, FloatArray, read_only, working_dtype
from ..selectors._greedy import tie_of
from ..selectors.at_once import loops_for
from ..selectors.base import Selector
from ..selectors.mmr import MMR
from ..selectors.vrsd import VRSD
from ._blocks import Block

# So much of the candidates is turned into the working type at a time, where they are of another.
CONVERTED = 4 << 20


def choose_piece(
    selector: Selector, block: Block, piece: range, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], list[int]] | None:
    """Indices, gains and relevance (b, k) of the queries in ``piece``, and which of these b rows are left open.

    None where numpy or another selector is to choose. Left open is every query with a length out of range or a bad
    number: :meth:`Selector.select` knows what to do with it, or finds the words for the error.
    """
    n, d = block.shape
    if not 1 <= k <= n or not d or block.queries.shape[1:] != (d,):
        return None
    loops = loops_for(selector, n, n * d * block.dtype.itemsize, has_quality=block.has_quality)
    if loops is None:
        return None
    indices = np.empty((len(piece), k), np.int64)
    gains, relevance = np.empty(indices.shape), np.empty(indices.shape)
    odd = np.zeros(len(piece), np.bool_)
    step = len(piece)
    if block.vectors is not None:
        step = max(1, CONVERTED // (block.dtype.itemsize * block.vectors[0].size))
    for start in range(0, len(piece), step):
        part = slice(start, min(start + step, len(piece)))
        of = slice(piece.start + part.start, piece.start + part.stop)
        given_rows, inverse = _rows(block, of)
        rows = _working(given_rows)
        queries = _working(block.queries[of], rows.dtype)
        least, most = RANGES[rows.dtype]
        given = queries, rows, inverse.astype(rows.dtype), least, most, UNIT_SLACK[rows.dtype], tie_of(rows.dtype)
        found = indices[part], gains[part], relevance[part], odd[part]
        if isinstance(selector, MMR):
            loops.many_marginal(*given, *found, float(selector.lambda_d), float(selector.lambda_b), _quality(block, of))
        else:
            assert isinstance(selector, VRSD)
            many = loops.many_refined if selector.refine else loops.many_sums
            many(*given, *found)
            if block.quality is not None:
                # Of no use to VRSD, and no less refused for that.
                found[-1][:] |= ~np.isfinite(block.quality[of]).all(axis=1)
    return indices, gains, relevance, odd.nonzero()[0].tolist()


def _working(given: NDArray[Any], dtype: np.dtype[Any] | None = None) -> FloatArray:
    # Overflow on the way to float32 is found in the loops, as inf.
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(given, working_dtype(given.dtype) if dtype is None else dtype)
    # The loops are compiled for arrays that are not written to, as candidates are; the caller's own stays as it is.
    return read_only(rows[:])


def _rows(block: Block, of: slice) -> tuple[NDArray[Any], NDArray[Any]]:
    """(queries or 1, n, d) rows, and one over their lengths where that is known already."""
    if block.shared is not None:
        rows, inverse = block.shared.rows_and_inverse()
        return rows[None], inverse
    assert block.vectors is not None
    return block.vectors[of], np.empty(0)


def _quality(block: Block, of: slice) -> NDArray[np.float64]:
    if block.shared is None:
        return np.empty((0, 1)) if block.quality is None else block.quality[of].astype(np.float64)
    return np.empty((0, 1)) if block.shared.quality is None else block.shared.quality[None]
