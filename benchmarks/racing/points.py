"""The points of the grid (candidates, dimensions, picks, lengths of the rows) and the random vectors at each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SEED = 0
SIZES = ((20, 384, 4), (100, 768, 10), (200, 1536, 20), (1000, 768, 50), (5000, 384, 50), (20_000, 384, 50))
UNIT, ANY = "unit length", "any length"
LENGTHS = (UNIT, ANY)
# The weight of relevance in every MMR: λ of LangChain and LlamaIndex, 1 - diversity of pyversity.
LAMBDA = 0.5


@dataclass(frozen=True)
class Point:
    """``k`` of ``n`` candidates of ``d`` dimensions with rows of ``length``."""

    n: int
    d: int
    k: int
    length: str = UNIT

    @property
    def size(self) -> tuple[int, int, int]:
        """One of ``SIZES``."""
        return self.n, self.d, self.k

    def __str__(self) -> str:
        return f"n={self.n} d={self.d} k={self.k}, {self.length}"


POINTS = tuple(Point(*size, length) for length in LENGTHS for size in SIZES)


@dataclass(frozen=True)
class Batch:
    """``k`` of ``n`` candidates of ``d`` dimensions for each of ``queries``; every query has its own candidates."""

    queries: int
    n: int
    d: int
    k: int

    def __str__(self) -> str:
        return f"batch of {self.queries}, n={self.n} d={self.d} k={self.k}"


BATCHES = (Batch(1000, 20, 384, 4), Batch(200, 100, 768, 10))


@dataclass(frozen=True, eq=False)
class Data:
    """float32 ``query`` (d,) and ``vectors`` (n, d), and ``scores`` (n,), the cosines of the two."""

    query: np.ndarray
    vectors: np.ndarray
    scores: np.ndarray


def data(point: Point) -> Data:
    """Equal points give equal data. All vectors share a direction, as embeddings of texts on one subject do."""
    rng = np.random.default_rng(SEED)
    common = rng.standard_normal(point.d, dtype=np.float32)
    vectors = rng.standard_normal((point.n, point.d), dtype=np.float32) + common
    if point.length == UNIT:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = rng.standard_normal(point.d, dtype=np.float32) + common
    scores = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    return Data(query, vectors, scores)


def batch_data(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """float32 queries (Q, d) and unit rows (Q, n, d), with a common direction as in :func:`data`."""
    rng = np.random.default_rng(SEED)
    common = rng.standard_normal(batch.d, dtype=np.float32)
    vectors = rng.standard_normal((batch.queries, batch.n, batch.d), dtype=np.float32) + common
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    return rng.standard_normal((batch.queries, batch.d), dtype=np.float32) + common, vectors
