"""Scores that can only fall, brought up to date only where that can change the choice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray
from ..candidates import Candidates
from ._greedy import Scores

# Measured on one core against the full pass, on cones, clusters, copies and vectors of low rank (full pass = 1):
# at λ = 0.75 the front is 0.9 times as fast at n = 500, 1.1-2.4 at 1,000, 2.3-7 at 5,000, 10-18 at 20,000 × 50;
# where novelty weighs as much as relevance or more, 0.6-1.5 at 1,000, 0.6-1.8 at 2,000, 0.9-3 at 5,000, 0.9-9 at
# 20,000: there bounds are loose, and what is below 1 is the price of finding out. Four picks do not earn it back.
FROM_RELEVANT = 1000
FROM_NOVEL = 4000
LEAST_PICKS = 8

# So many candidates come to the front at once; of 128 and 256 neither was faster throughout.
BLOCK = 256
# A front of more than this share of the candidates is cut back to its best, and costs that much memory.
WIDEST = 0.125
# When so large a share has come to the front, one product that brings all candidates up to date is cheaper ...
MOST = 0.5
# ... and when that lasts for fewer picks than these, the full pass is.
LEAST_STEPS = 4


def lazy_pays(n: int, k: int, relevance: float, novelty: float) -> bool:
    """Whether a front (see :class:`Front`) is faster than a full pass for ``k`` of ``n``, by these two weights.

    >>> lazy_pays(100, 10, 0.75, 0.25), lazy_pays(20_000, 50, 0.5, 0.5)
    (False, True)
    """
    return k >= LEAST_PICKS and n >= (FROM_RELEVANT if relevance >= 2 * novelty else FROM_NOVEL)


class Front:
    """The candidates of the highest scores, which are kept up to date, before all others, which wait.

    A score is ``weighted − nearest``, and ``nearest``, the similarity to whatever is picked, can only rise. So what
    a waiting candidate scored when it was last looked at is an upper bound, and where the best score of the front
    is above all of these by more than a tie, no waiting candidate is the next pick, nor its equal.

    Parameters
    ----------
    weighted, nearest : ndarray, shape (n,)
        Up to date; -inf in ``weighted`` is a closed candidate. ``nearest`` is written to.
    novelty : float
        What a cosine weighs in ``nearest``.
    tie : float
        How far apart equal scores may be.
    """

    def __init__(
        self, candidates: Candidates, weighted: Scores, nearest: FloatArray, novelty: float, tie: float
    ) -> None:
        self.candidates = candidates
        self.weighted = weighted
        self.nearest = nearest
        self.novelty = novelty
        self.tie = tie
        n, d = len(candidates), candidates.query.shape[0]
        self.capacity = min(n, max(int(n * WIDEST), 2 * BLOCK))
        self.rows: FloatArray = np.empty((self.capacity, d), candidates.dtype)
        self._begin()

    def best(self) -> tuple[int, float] | None:
        """The open candidate of the highest score, the lowest index of those within a tie of it, and its score.

        None where the full pass is the cheaper way from here on; ``nearest`` is then up to date for all.
        """
        while True:
            scores = self.weighted[self.members] - self.near
            least = scores[scores.argmax()] - self.tie
            if self.ceiling < least:
                break
            if not self._widen(float(least)):
                return None
        equal = (scores >= least).nonzero()[0]
        at = equal[self.members[equal].argmin()] if len(equal) > 1 else equal[0]
        return int(self.members[at]), float(scores[at])

    def add(self, i: int) -> None:
        """Candidate ``i`` is picked: the front takes note now, the others when they are looked at."""
        self.missed.append(i)
        cosines = self.candidates.cosines_of(self.rows[: len(self.members)], self.members, [i], self.novelty)
        np.maximum(self.near, cosines[0], out=self.near)

    def _begin(self) -> None:
        # With all scores up to date.
        self.missed: list[int] = []
        self.came = 0
        self._hold(np.empty(0, np.intp))
        self._admit(self.weighted - self.nearest, BLOCK)

    def _widen(self, least: float) -> bool:
        """Bring to the front whatever may score ``least``; False where a front does not pay."""
        self.nearest[self.members] = self.near
        waiting = self.weighted - self.nearest
        scores = waiting[self.members]
        waiting[self.members] = -np.inf
        # Where all of the front is closed, by a limit say, any block of the others will do to begin with.
        wanted = int(np.count_nonzero(waiting >= least)) if least > -np.inf else 0
        size = max(BLOCK, len(self.members) // 2, wanted)
        if self.came + size <= len(waiting) * MOST:
            if len(self.members) + size > self.capacity and len(self.members) > BLOCK:
                waiting[self.members] = scores
                self._hold(self.members[scores.argpartition(-BLOCK)[-BLOCK:]])
                waiting[self.members] = -np.inf
            if len(self.members) + size <= self.capacity:
                self._admit(waiting, size)
                return True
        steps = len(self.missed)
        self._settle()
        if steps < LEAST_STEPS:
            return False
        self._begin()
        return True

    def _hold(self, members: NDArray[np.intp]) -> None:
        self.members = members
        self.near = self.nearest[members]
        self.candidates.raw_rows(members, out=self.rows[: len(members)])

    def _admit(self, waiting: Scores, size: int) -> None:
        """Let the ``size`` highest of the ``waiting`` come to the front, up to date; -inf does not wait."""
        rest = len(waiting) - size
        if rest > 0:
            order = waiting.argpartition(rest - 1)
            self.ceiling = float(waiting[order[rest - 1]])
            new = order[rest:]
        else:
            self.ceiling = -np.inf
            new = np.arange(len(waiting))
        new = new[waiting[new] > -np.inf]
        held = len(self.members)
        rows = self.candidates.raw_rows(new, out=self.rows[held : held + len(new)])
        near = self.nearest[new]
        if self.missed:
            # What a candidate that was at the front before has seen already does not change a maximum.
            others = self.candidates.cosines_of(rows, new, self.missed, self.novelty).max(axis=0)
            np.maximum(near, others, out=near)
        self.came += len(new)
        self.members = np.concatenate([self.members, new])
        self.near = np.concatenate([self.near, near])

    def _settle(self) -> None:
        """Bring ``nearest`` up to date for all: a product for all picks at once reads each row once."""
        if not self.missed:
            return
        for start in range(0, len(self.nearest), BLOCK):
            part = slice(start, start + BLOCK)
            others = self.candidates.cosines_of(self.candidates.raw_rows(part), part, self.missed, self.novelty).max(
                axis=0
            )
            np.maximum(self.nearest[part], others, out=self.nearest[part])
