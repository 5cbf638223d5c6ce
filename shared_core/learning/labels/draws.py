"""Subsets near what greedy MAP picks, for labels that teach a kernel the choices it will have to make."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._validation import as_numeric, check_integer, check_number
from ...candidates import working_dtype
from ...errors import InvalidInputError

PATHS = 3
EACH = 32

Matrix = NDArray[np.float64]


class GreedyDraws:
    """Draws for :func:`label`: what stands beside each step of greedy MAP (CEIL draws near the MAP, too).

    A path is a greedy choice under the unlearned kernel, E Eᵀ with exponential relevance: the first path as it is,
    further ones with Gumbel noise on the logarithms of the gains. At each step the picks so far are drawn together
    with each of several next items: those that the noise puts first, and as many at random. So the subsets have 1 to
    k items, and among those of one size a kernel sees what each next item was worth.

    Parameters
    ----------
    vectors : array-like, shape (n, d)
        The pool's embeddings, of any length.
    k : int >= 1
    subsets : int >= 2 k, optional
        At most so many for an item; by default 96 for each size.
    temperature : float > 0
        Of the relevance.
    noise : float > 0
        Of the paths but the first; the higher, the farther from greedy.

    Raises
    ------
    InvalidInputError, InvalidParameterError
        The vectors are no matrix of numbers, or a parameter is out of its range.

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
        # Two for each size, or there would be nothing to compare.
        self.subsets = PATHS * EACH * self.k if subsets is None else check_integer(subsets, "subsets", 2 * self.k)
        self.temperature = check_number(temperature, "temperature", 1e-9)
        self.noise = check_number(noise, "noise", 1e-9)

    @property
    def fingerprint(self) -> str:
        """What tells these draws from others."""
        return f"greedy(k={self.k}, subsets={self.subsets}, temperature={self.temperature}, noise={self.noise})"

    def __call__(self, query: int, candidates: NDArray[np.int64], rng: np.random.Generator) -> list[tuple[int, ...]]:
        """Subsets of ``candidates`` for one item, none twice."""
        unit = _unit(self._rows[np.concatenate(([query], candidates))])
        weights = unit[1:].dot(unit[0]) / self.temperature
        steps = min(self.k, len(candidates))
        # Few subsets are better spent on one path to its end than on the beginning of three.
        paths = max(1, min(PATHS, self.subsets // (2 * steps)))
        each = max(2, self.subsets // (paths * steps))
        found: dict[frozenset[int], tuple[int, ...]] = {}
        for path in range(paths):
            for places in _path(unit[1:], weights, steps, each, self.noise, rng, exact=path == 0):
                found.setdefault(frozenset(places), tuple(candidates[places].tolist()))
        return list(found.values())[: self.subsets]


def _path(
    rows: Matrix, weights: Matrix, steps: int, each: int, noise: float, rng: np.random.Generator, *, exact: bool
) -> list[list[int]]:
    sets: list[list[int]] = []
    picks: list[int] = []
    ratios = np.einsum("nd,nd->n", rows, rows)
    explained = np.empty((steps, len(rows)))
    for step in range(steps):
        # What lies in the span of the picks has ratio 0: possible still, and last.
        scores = np.log(np.maximum(ratios, 1e-12)) + weights
        noisy = scores / noise + rng.gumbel(size=len(rows))
        scores[picks] = noisy[picks] = -np.inf
        order = np.argsort(-noisy, kind="stable")[: len(rows) - step]
        pick = int(scores.argmax()) if exact else int(order[0])
        near, far = order[: each // 2], order[each // 2 :]
        some = rng.choice(far, min(each - len(near), len(far)), replace=False)
        sets += [[*picks, int(place)] for place in dict.fromkeys([pick, *near.tolist(), *some.tolist()])]
        column = rows.dot(rows[pick]) - explained[:step, pick].dot(explained[:step])
        column /= max(ratios[pick], 1e-12) ** 0.5
        explained[step] = column
        ratios -= column * column
        picks.append(pick)
    return sets


def _unit(rows: NDArray[np.floating]) -> Matrix:
    wide = rows.astype(np.float64)
    lengths = np.sqrt(np.einsum("nd,nd->n", wide, wide))[:, None]
    wide /= np.where(lengths > 0, lengths, 1)
    return wide
