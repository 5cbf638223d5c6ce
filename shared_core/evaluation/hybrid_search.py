"""Hybrid search as a row of a comparison: BM25 over the whole corpus and vectors, fused by reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..texts.words import space_words

HYBRID_SEARCH = "hybrid search"
# The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009), as the frameworks have it.
RRF_CONSTANT = 60


class WordIndex:
    """An index of words for BM25 as bm25s has it: lower case, English stop words, no stemming.

    Scripts that put no spaces between words are split into pairs of characters, as :func:`match_words` does it.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s

        self._tokenize = bm25s.tokenize
        tokens = bm25s.tokenize(list(map(space_words, texts)), show_progress=False)
        self._index = bm25s.BM25()
        self._known: Mapping[str, int] = tokens.vocab
        # bm25s cannot make an index without a word.
        if self._known:
            self._index.index(tokens, show_progress=False)

    def best_rows(self, question: str, n: int) -> NDArray[np.intp]:
        """The rows of at most ``n`` texts that have a word of the question, the best first; ties to the lower row."""
        words = self._tokenize(space_words(question), return_ids=False, show_progress=False)[0]
        known = [word for word in words if word in self._known]
        if not known:
            return np.zeros(0, np.intp)
        scores = self._index.get_scores(known)
        least = np.partition(scores, -n)[-n] if n < len(scores) else 0.0
        found = np.flatnonzero((scores >= least) & (scores > 0))
        return found[np.argsort(-scores[found], kind="stable")][:n]


def fuse_rankings(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Reciprocal rank fusion: the sum of 1 / (60 + rank) over the rankings that hold a row, the highest sum first.

    >>> fuse_rankings([[7, 8, 9], [9, 5]])
    [9, 7, 8, 5]
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, row in enumerate(ranking, 1):
            scores[row] = scores.get(row, 0.0) + 1 / (RRF_CONSTANT + rank)
    return sorted(scores, key=lambda row: -scores[row])
