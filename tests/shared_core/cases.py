"""Random cases and the pairs of selector and reference that the tests of the core share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from shared_core import MMR, NDPP, VRSD, Candidates, TopK
from tests import oracles


@dataclass(frozen=True)
class Case:
    """One query with its candidates; `str` of it is enough to find it again."""

    number: int
    flavour: str
    query: NDArray[Any]
    vectors: NDArray[Any]
    k: int
    quality: NDArray[np.float64]
    rng: np.random.Generator

    @property
    def candidates(self) -> Candidates:
        return Candidates(self.query, self.vectors)

    def __str__(self) -> str:
        n, d = self.vectors.shape
        return f"case {self.number} ({self.flavour}, n={n}, d={d}, k={self.k}, {self.vectors.dtype})"


FLAVOURS = ("gaussian", "like text", "duplicates", "zero rows", "grid", "unscaled")


def draw(number: int, rng: np.random.Generator, *, n_max: int = 60, d_max: int = 64, k_max: int = 12) -> Case:
    """One case: both dtypes in turn, six kinds of data in turn, every size up to the limits."""
    flavour = FLAVOURS[number // 2 % len(FLAVOURS)]
    n, d = int(rng.integers(1, n_max + 1)), int(rng.integers(1, d_max + 1))
    k = int(rng.integers(1, min(n, k_max) + 1))
    query, vectors = rng.normal(size=d), rng.normal(size=(n, d))
    match flavour:
        case "like text":
            # Text embeddings sit in a narrow cone: all cosines positive, many of them close.
            centre = rng.normal(size=d)
            query, vectors = centre + 0.5 * query, centre + 0.7 * vectors
        case "duplicates":
            # The last rows of a block are the ones that BLAS sums in another order.
            copies = int(rng.integers(0, n // 2 + 1))
            if copies:
                vectors[-copies:] = vectors[rng.integers(0, n - copies, size=copies)]
        case "zero rows":
            vectors[rng.random(n) < 0.2] = 0.0
        case "grid":
            # Small whole numbers bring ties between different rows, opposite rows and low rank.
            d = int(rng.integers(1, 7))
            vectors = rng.integers(-1, 2, size=(n, d)).astype(np.float64)
            query = rng.integers(-2, 3, size=d) + np.eye(d)[0] * 0.5
        case "unscaled":
            vectors *= np.exp(rng.normal(scale=3, size=(n, 1)))
            query *= 1e3
    dtype = np.float64 if number % 2 == 0 else np.float32
    quality = rng.uniform(-2, 1, size=n)
    return Case(number, flavour, query.astype(dtype), vectors.astype(dtype), k, quality, rng)


def random_cases(seed: int, count: int = 1000) -> Iterator[Case]:
    for number in range(count):
        yield draw(number, np.random.default_rng([seed, number]))


def gaussian(seed: int, n: int, d: int, dtype: Any = np.float64) -> tuple[NDArray[Any], NDArray[Any]]:
    """Query and candidates between which there are no ties."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=d).astype(dtype), rng.normal(size=(n, d)).astype(dtype)


# What looks like an array and cannot be read as one.
UNUSABLE: dict[str, Any] = {
    "ragged": [[1.0, 2.0], [3.0]],
    "masked": np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]]),
    "requires grad": torch.ones((2, 2), requires_grad=True),
    "bfloat16": torch.ones((2, 2), dtype=torch.bfloat16),
}


@st.composite
def grids(draw_: st.DrawFn, *, n_max: int = 9, d_max: int = 4) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Query, candidates and k out of quarters: ties, zero rows and opposite rows, and never almost a tie."""
    n, d = draw_(st.integers(1, n_max)), draw_(st.integers(1, d_max))
    quarters = st.integers(-8, 8).map(lambda x: x / 4)
    query = draw_(hnp.arrays(np.float64, d, elements=quarters).filter(np.any))
    vectors = draw_(hnp.arrays(np.float64, (n, d), elements=quarters))
    return query, vectors, draw_(st.integers(1, n))


@dataclass(frozen=True)
class Pair:
    """A selector and the reference that answers the same question."""

    name: str
    selector: Any
    reference: Callable[..., oracles.Reference]
    refined: bool = False

    def check(self, case: Case, quality: bool = False, **conditions: Any) -> Any:
        """Select and compare with the reference; `conditions` are k, costs, budget, shown."""
        k = conditions.pop("k", case.k)
        costs = conditions.pop("costs", None)
        extra = {"quality": case.quality} if quality else {}
        candidates = Candidates(case.query, case.vectors, costs=costs, **extra)
        actual = self.selector.select(candidates, k, **conditions)
        expected = self.reference(case.query, case.vectors, k, costs=costs, **extra, **conditions)
        about = f"{self.name}, {case}, k={k}, {conditions}"
        if self.refined:
            oracles.assert_refined(actual, expected, case.query, case.vectors, about, k=k, costs=costs, **conditions)
        else:
            oracles.assert_agrees(actual, expected, about)
        return actual


def _exponential(*args: Any, **conditions: Any) -> oracles.Reference:
    return oracles.ndpp_greedy(*args, relevance="exponential", temperature=0.1, **conditions)


TOP_K = Pair("TopK", TopK(), oracles.top_k)
VRSD_GREEDY = Pair("VRSD", VRSD(), oracles.vrsd)
VRSD_REFINED = Pair("VRSD refined", VRSD(refine=True), oracles.vrsd_refined, refined=True)
MMR_PLAIN = Pair("MMR", MMR(), oracles.mmr)
NDPP_LINEAR = Pair("NDPP linear", NDPP(), oracles.ndpp_greedy)
NDPP_EXPONENTIAL = Pair("NDPP exponential", NDPP(relevance="exponential"), _exponential)

PAIRS = (TOP_K, VRSD_GREEDY, VRSD_REFINED, MMR_PLAIN, NDPP_LINEAR, NDPP_EXPONENTIAL)
GREEDY_PAIRS = tuple(pair for pair in PAIRS if not pair.refined)


def names(pair: Pair) -> str:
    return pair.name
