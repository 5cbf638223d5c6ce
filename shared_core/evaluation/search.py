"""The searches of a comparison: exact search by vectors, and what ranks candidates by cosine and words together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import as_numeric
from ..candidates import as_unit_rows
from ..errors import InvalidInputError

HYBRID_SEARCH, SUM_OF_SCORES = "hybrid search", "sum of scores"
# The weight of BM25 in the sum of scores: the one that the benchmarks choose.
_WORDS = 0.7
# The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009), as the frameworks have it.
_RRF_CONSTANT = 60
# Cosines that exact search holds in memory together: 64 MB.
_BLOCK = 16_000_000


def as_vectors(
    embed: Callable[[list[str]], ArrayLike] | ArrayLike, texts: list[str], what: str
) -> NDArray[np.floating]:
    """One vector for each text, shape (n, d): made by ``embed``, or ``embed`` itself after a check."""
    array = as_numeric(embed(texts) if callable(embed) else embed, f"vectors of {what}")
    if array.ndim != 2 or len(array) != len(texts) or not array.shape[1]:
        raise InvalidInputError(f"vectors of {what} must have shape ({len(texts)}, d), got {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise InvalidInputError(f"vectors of {what}: row {bad[0]} holds NaN or inf")
    rows: NDArray[np.floating] = array if array.dtype.kind == "f" else array.astype(np.float64)
    return rows


def nearest_rows(queries: NDArray[np.floating], rows: NDArray[np.floating], fetch_k: int) -> NDArray[np.intp]:
    """(Q, fetch_k): the rows of the highest cosine, best first; equal cosines go to the lower row."""
    # A zero query gets the first rows here. judge() refuses it later, and names its id.
    unit, unit_queries = (as_unit_rows(each, copy=False).astype(np.float32, copy=False) for each in (rows, queries))
    blocks = []
    step = max(1, _BLOCK // len(unit))
    for start in range(0, len(unit_queries), step):
        cosines = unit_queries[start : start + step] @ unit.T
        # A partition alone would take any of the rows that tie for the last place.
        last = np.partition(cosines, -fetch_k, axis=1)[:, -fetch_k, None]
        above, tied = cosines > last, cosines == last
        taken = above | (tied & (tied.cumsum(axis=1) <= fetch_k - above.sum(axis=1, keepdims=True)))
        near = np.nonzero(taken)[1].reshape(len(cosines), fetch_k)
        order = np.argsort(-np.take_along_axis(cosines, near, axis=1), axis=1, kind="stable")
        blocks.append(np.take_along_axis(near, order, axis=1))
    return np.concatenate(blocks)


def fuse_rankings(rankings: Sequence[Sequence[int]]) -> dict[int, float]:
    """Reciprocal rank fusion: for each row the sum of 1 / (60 + rank) over the rankings, the highest sum first.

    >>> list(fuse_rankings([[7, 8, 9], [9, 5]]))
    [9, 7, 8, 5]
    """
    sums: dict[int, float] = {}
    for ranking in rankings:
        for rank, row in enumerate(ranking, 1):
            sums[row] = sums.get(row, 0.0) + 1 / (_RRF_CONSTANT + rank)
    return dict(sorted(sums.items(), key=lambda of_row: -of_row[1]))


def rank_with_words(cosines: NDArray[np.floating], bm25: ArrayLike) -> dict[str, list[int]]:
    """What needs no selection: candidates by reciprocal ranks, and by the sum of both scores in standard deviations.

    >>> rank_with_words(np.array([0.9, 0.8, 0.1]), [0.0, 2.0, 3.0])
    {'hybrid search': [1, 2, 0], 'sum of scores': [1, 0, 2]}
    """
    words = np.asarray(bm25, np.float64)
    by_words = [row for row in np.argsort(-words, kind="stable").tolist() if words[row] > 0]
    total = _standardise(cosines.astype(np.float64)) + _WORDS * _standardise(words)
    fused = fuse_rankings([np.argsort(-cosines, kind="stable").tolist(), by_words])
    return {HYBRID_SEARCH: [*fused], SUM_OF_SCORES: np.argsort(-total.round(9), kind="stable").tolist()}


def _standardise(values: NDArray[np.float64]) -> NDArray[np.float64]:
    spread = float(values.std())
    scaled: NDArray[np.float64] = (values - values.mean()) / (spread if spread > 1e-12 else 1.0)
    return scaled
