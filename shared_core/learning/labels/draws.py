"""Subsets near the picks of greedy MAP (maximum a posteriori): labels for the decisions that a kernel makes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._validation import FloatArray, as_numeric, check_integer, check_number
from ...candidates import as_unit_rows, working_dtype
from ...errors import InvalidInputError

PATHS = 3
EACH = 32


class GreedyDraws:
    """Draws for :func:`label`: alternatives to each step of greedy MAP, the selection of :class:`NDPP`.

    A path is a greedy selection with the unlearned kernel E Eᵀ (E the unit vectors) and exponential relevance. The
    first path is exact; the others add Gumbel noise to the logarithms of the gains. At each step, several items that
    could come next each give one subset: the picks so far and that item. Half of these items have the largest gains
    with noise, the others are random. So the subsets have 1 to k items, and the subsets of one size show what each next
    item is worth.

    Parameters
    ----------
    vectors : array-like, shape (n, d)
        The pool's embeddings, of any length.
    k : int >= 1
        The size of the sets that the kernel will select.
    subsets : int >= 2 k, optional
        The largest number of subsets of an item; default: 96 for each size.
    temperature : float > 0
        Temperature of the relevance.
    noise : float > 0
        Strength of the noise, on all paths except the first.

    Raises
    ------
    InvalidInputError, InvalidParameterError
        The vectors are not a matrix of numbers, or a parameter is out of its range.

    Examples
    --------
    >>> draw = GreedyDraws([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], k=2)
    >>> sorted(draw(0, np.array([1, 2]), np.random.default_rng(0)))
    [(1,), (1, 2), (2,)]
    """

    def __init__(
        self,
        vectors: ArrayLike,
        k: int,
        subsets: int | None = None,
        *,
        temperature: float = 0.1,
        noise: float = 0.5,
    ) -> None:
        rows = as_numeric(vectors, "vectors")
        if rows.ndim != 2:
            raise InvalidInputError(f"vectors must have shape (n, d), got {rows.shape}")
        self._rows = rows.astype(working_dtype(rows.dtype), copy=False)
        self.k = check_integer(k, "k", 1)
        # A comparison needs two subsets of each size.
        self.subsets = PATHS * EACH * self.k if subsets is None else check_integer(subsets, "subsets", 2 * self.k)
        self.temperature = check_number(temperature, "temperature", 1e-9)
        self.noise = check_number(noise, "noise", 1e-9)

    @property
    def fingerprint(self) -> str:
        """A text that identifies these draws."""
        return f"greedy(k={self.k}, subsets={self.subsets}, temperature={self.temperature}, noise={self.noise})"

    def __call__(self, query: int, candidates: NDArray[np.int64], rng: np.random.Generator) -> list[tuple[int, ...]]:
        """Different subsets of ``candidates`` for one item."""
        unit = as_unit_rows(self._rows[np.concatenate(([query], candidates))].astype(np.float64))
        weights = unit[1:].dot(unit[0]) / self.temperature
        steps = min(self.k, len(candidates))
        # If few subsets are allowed, one whole path is better than the first steps of three.
        paths = max(1, min(PATHS, self.subsets // (2 * steps)))
        each = max(2, self.subsets // (paths * steps))
        sets: dict[frozenset[int], tuple[int, ...]] = {}
        for path in range(paths):
            for places in _path(unit[1:], weights, steps, each, self.noise, rng, exact=path == 0):
                sets.setdefault(frozenset(places), tuple(candidates[places].tolist()))
        return list(sets.values())[: self.subsets]


def _path(
    rows: FloatArray, weights: FloatArray, steps: int, each: int, noise: float, rng: np.random.Generator, *, exact: bool
) -> list[list[int]]:
    sets: list[list[int]] = []
    picks: list[int] = []
    ratios = np.einsum("nd,nd->n", rows, rows)
    explained = np.empty((steps, len(rows)))
    for step in range(steps):
        # A candidate in the span of the picks has ratio 0: it stays possible and comes last.
        scores = np.log(np.maximum(ratios, 1e-12)) + weights
        noisy = scores / noise + rng.gumbel(size=len(rows))
        scores[picks] = noisy[picks] = -np.inf
        order = np.argsort(-noisy, kind="stable")[: len(rows) - step]
        pick = int(scores.argmax()) if exact else int(order[0])
        near, far = order[: each // 2], order[each // 2 :]
        random = rng.choice(far, min(each - len(near), len(far)), replace=False)
        sets += [[*picks, int(place)] for place in dict.fromkeys([pick, *near.tolist(), *random.tolist()])]
        column = rows.dot(rows[pick]) - explained[:step, pick].dot(explained[:step])
        column /= max(ratios[pick], 1e-12) ** 0.5
        explained[step] = column
        ratios -= column * column
        picks.append(pick)
    return sets
