"""Where the race is run: how many candidates, of how many dimensions, how many picks; and the vectors there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SEED = 0
SIZES = ((20, 384, 4), (100, 768, 10), (200, 1536, 20), (1000, 768, 50), (5000, 384, 50), (20_000, 384, 50))
UNIT, ANY = "unit length", "any length"
LENGTHS = (UNIT, ANY)
# Lazy MMR passes over more candidates the less novelty weighs; no peer's speed depends on it.
LAMBDA, OTHER_LAMBDA = 0.5, 0.75
OTHER_FROM = 5000


@dataclass(frozen=True)
class Point:
    """``k`` of ``n`` candidates of ``d`` dimensions, rows of ``length``, MMR with the weight of relevance."""

    n: int
    d: int
    k: int
    length: str = UNIT
    lambda_mult: float = LAMBDA

    @property
    def size(self) -> tuple[int, int, int]:
        """One of ``SIZES``."""
        return self.n, self.d, self.k

    def __str__(self) -> str:
        return f"n={self.n} d={self.d} k={self.k}, {self.length}, lambda {self.lambda_mult:g}"


POINTS = (
    *(Point(*size, length) for length in LENGTHS for size in SIZES),
    *(Point(*size, length, OTHER_LAMBDA) for length in LENGTHS for size in SIZES if size[0] >= OTHER_FROM),
)


@dataclass(frozen=True, eq=False)
class Data:
    """float32 ``query`` (d,) and ``vectors`` (n, d), and ``scores`` (n,), the cosines of the two."""

    query: np.ndarray
    vectors: np.ndarray
    scores: np.ndarray


def data(point: Point) -> Data:
    """The same for equal points. Embeddings of texts on one subject share a direction: so do these."""
    rng = np.random.default_rng(SEED)
    common = rng.standard_normal(point.d, dtype=np.float32)
    vectors = rng.standard_normal((point.n, point.d), dtype=np.float32) + common
    if point.length == UNIT:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = rng.standard_normal(point.d, dtype=np.float32) + common
    scores = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    return Data(query, vectors, scores)
