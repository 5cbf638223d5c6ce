"""Random cases, and the table of selectors with their references, for the tests of the core."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import ArrayLike, NDArray

from shared_core import MMR, NDPP, VRSD, Candidates, Coverage, NothingLeftError, Parts, Selection, TopK
from shared_core.candidates import REFERENCE_KINDS, References
from shared_core.selectors.coverage import COVERED, REFERRED, RIDGE, TEMPERATURE, WORDS_IN_RELEVANCE
from shared_core.selectors.ndpp import AUTO_TEMPERATURE, DEFAULT_RIDGE
from tests import oracles
from tests.shared_core.selectors.loops import available_loops, use_loops


@dataclass(frozen=True)
class Case:
    """One query with its candidates. Its text is enough to make it again."""

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
    """One case. Twelve numbers in a row cover both dtypes with all six kinds of data."""
    flavour = FLAVOURS[number // 2 % len(FLAVOURS)]
    n, d = int(rng.integers(1, n_max + 1)), int(rng.integers(1, d_max + 1))
    k = int(rng.integers(1, min(n, k_max) + 1))
    query, vectors = rng.normal(size=d), rng.normal(size=(n, d))
    match flavour:
        case "like text":
            # Embeddings of texts lie in a narrow cone: all cosines are positive, and many are close to each other.
            centre = rng.normal(size=d)
            query, vectors = centre + 0.5 * query, centre + 0.7 * vectors
        case "duplicates":
            # BLAS sums the last rows of a block in another order, so the copies are the last rows.
            copies = int(rng.integers(0, n // 2 + 1))
            if copies:
                vectors[-copies:] = vectors[rng.integers(0, n - copies, size=copies)]
        case "zero rows":
            vectors[rng.random(n) < 0.2] = 0.0
        case "grid":
            # Small whole numbers give ties between different rows, opposite rows and low rank.
            d = int(rng.integers(1, 7))
            vectors = rng.integers(-1, 2, size=(n, d)).astype(np.float64)
            query = rng.integers(-2, 3, size=d) + np.eye(d)[0] * 0.5
        case "unscaled":
            vectors *= np.exp(rng.normal(scale=3, size=(n, 1)))
            query *= 1e3
    dtype = np.float64 if number % 2 == 0 else np.float32
    quality = rng.uniform(-2, 1, size=n)
    return Case(number, flavour, query.astype(dtype), vectors.astype(dtype), k, quality, rng)


def random_cases(seed: int, count: int, **sizes: int) -> Iterator[Case]:
    for number in range(count):
        yield draw(number, np.random.default_rng([seed, number]), **sizes)


def gaussian(seed: int, n: int, d: int, dtype: Any = np.float64) -> tuple[NDArray[Any], NDArray[Any]]:
    """Query and candidates without ties."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=d).astype(dtype), rng.normal(size=(n, d)).astype(dtype)


def draw_relevance(case: Case) -> NDArray[np.float64]:
    """Relevance that somebody gave to the candidates of a case: with ties, with tiny differences, or of any value."""
    rng, n = case.rng, len(case.vectors)
    quarters = rng.integers(-4, 6, size=n) / 4
    match case.number // 2 % 3:
        case 0:
            return quarters
        case 1:
            return quarters + rng.integers(0, 3, size=n) * 1e-9
        case _:
            return rng.uniform(-1, 1.5, size=n)


def draw_conditions(case: Case, wanted: Collection[str] | None = None) -> tuple[int | None, dict[str, Any]]:
    """k, and the wanted conditions of shown, budget, sources and near; None: each in about every third case."""
    rng, n, k = case.rng, len(case.vectors), case.k
    has = {kind for kind in ("shown", "budget", "sources", "near") if wanted is None and rng.random() < 0.35}
    has |= {*(wanted or ())}
    conditions: dict[str, Any] = {}
    if "shown" in has:
        conditions["shown"] = rng.permutation(n)[: rng.integers(0, min(5, n))].tolist()
        k = min(k, n - len(conditions["shown"]))
    if "budget" in has:
        # Quarters, whose sums are exact.
        conditions["costs"], conditions["budget"] = rng.integers(0, 12, size=n) / 4, float(rng.integers(0, 30) / 4)
    if "sources" in has:
        conditions["sources"] = rng.integers(0, n // 8 + 2, size=n).tolist()
        conditions["max_per_source"] = int(rng.integers(1, 4))
    if "near" in has:
        threshold, rows = float(rng.uniform(-0.5, 1)), oracles.unit_rows(case.vectors)
        # A cosine within rounding error of the threshold may be on either side.
        if np.abs(rows @ rows.T - threshold).min() > 1e-5:
            conditions["drop_near_duplicates"] = threshold
            if rng.random() < 0.5:
                conditions["prefer"] = rng.integers(0, 4, size=n).tolist()
    return None if "budget" in has and rng.random() < 0.3 else k, conditions


def condition_on_regular(conditions: dict[str, Any], kernel: NDArray[np.float64]) -> None:
    """Leave out `shown` where the reference of NDPP would divide by a determinant that is 0 or nearly 0."""
    shown = conditions.get("shown")
    if shown and np.linalg.cond(kernel[np.ix_(shown, shown)]) > 1e3:
        del conditions["shown"]


# Values that look like an array and cannot be read as one.
UNUSABLE: dict[str, Callable[[], Any]] = {
    "ragged": lambda: [[1.0, 2.0], [3.0]],
    "masked": lambda: np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]]),
    "sparse tensor": lambda: pytest.importorskip("torch").ones((2, 2)).to_sparse(),
    "tensor without data": lambda: pytest.importorskip("torch").ones((2, 2), device="meta"),
}


Grid = tuple[NDArray[np.float64], NDArray[np.float64], int]


@st.composite
def grids(draw_: st.DrawFn, *, n_max: int = 9, d_max: int = 4) -> Grid:
    """Query, candidates and k made of quarters: with ties, zero rows and opposite rows, and without near-ties."""
    n, d = draw_(st.integers(1, n_max)), draw_(st.integers(1, d_max))
    quarters = st.integers(-8, 8).map(lambda x: x / 4)
    query = draw_(hnp.arrays(np.float64, d, elements=quarters).filter(np.any))
    vectors = draw_(hnp.arrays(np.float64, (n, d), elements=quarters))
    return query, vectors, draw_(st.integers(1, n))


def quality_of(vectors: ArrayLike) -> NDArray[np.float64]:
    """A quality that depends on the direction of a row alone, so that copies have the same."""
    rows = oracles.unit_rows(vectors)
    quality: NDArray[np.float64] = np.round((rows * np.cos(np.arange(rows.shape[1]))).sum(axis=1), 3)
    return quality


def parts_of(vectors: ArrayLike) -> dict[str, Any]:
    """Words, values and names that depend on the direction of a row alone, so that copies have the same."""
    rows = oracles.unit_rows(vectors)
    waves = np.cos(np.outer(np.arange(1, 6), 1 + np.arange(rows.shape[1])))
    covered = np.round(np.clip((rows[:, None, :] * waves).sum(axis=2), 0, 1), 2)
    labels = [[None, "a", "b", ["a", "c"]][int(quality * 1000) % 4] for quality in quality_of(vectors)]
    places = quality_of(vectors)
    # A candidate names few others, and itself. Some candidates have one name.
    named = np.round(np.clip(8 * np.cos(np.add.outer(31 * places, 17 * places)) - 6, 0, 1), 2)
    # References of each kind. Each kind has other candidates that belong together.
    kinds = np.arange(len(REFERENCE_KINDS))
    documents = np.floor(np.multiply.outer(20 + 7 * kinds, places)).astype(np.int64)
    of_kind = np.floor(1000 * np.abs(np.subtract.outer(places, 2 * places))).astype(np.int64) % len(kinds)
    references = References(np.float32(named), documents, of_kind)
    words = Parts(covered, np.array([0.7, 1.9, 0.0, 1.2, 0.4]), covered[:, :2] > 0.8)
    return {"words": words, "cover": labels, "references": references}


@dataclass(frozen=True)
class Pair:
    """A selector, and the reference that answers the same question."""

    name: str
    selector: Any
    reference: Callable[..., oracles.Reference]
    refined: bool = False
    with_quality: bool = False
    with_parts: bool = False

    @property
    def takes_relevance(self) -> bool:
        """Whether the selector takes relevance that is given in place of the cosine."""
        return bool(self.selector.capabilities.relevance)

    def columns(self, vectors: ArrayLike) -> dict[str, Any]:
        """What the selector reads of the candidates besides their vectors."""
        quality = {"quality": quality_of(vectors)} if self.with_quality else {}
        return quality | parts_of(vectors) if self.with_parts else quality

    def candidates(self, query: ArrayLike, vectors: ArrayLike, **more: Any) -> Candidates:
        return Candidates(query, vectors, **self.columns(vectors) | more)

    def select(
        self, query: Any, vectors: Any, k: int | None, *, budget: float | None = None, shown: Any = (), **more: Any
    ) -> Selection:
        """The selection; ``more`` is what :class:`Candidates` take."""
        candidates = self.candidates(query, vectors, **more)
        selection: Selection = self.selector.select(candidates, k, budget=budget, shown=shown)
        return selection

    def expected(self, query: ArrayLike, vectors: ArrayLike, k: int | None, **conditions: Any) -> oracles.Reference:
        """The reference's answer; ``conditions`` are budget, shown and what :class:`Candidates` take."""
        return self.reference(query, vectors, k, **self.columns(vectors) | conditions)

    def assert_agrees(
        self, actual: Selection, expected: oracles.Reference, query: Any, vectors: Any, k: int | None,
        about: Any = "", **conditions: Any,
    ) -> None:  # fmt: skip
        told = f"{self.name}, {about}, k={k}"
        if self.refined:
            oracles.assert_refined(actual, expected, query, vectors, told, k=k, **conditions)
        else:
            oracles.assert_agrees(actual, expected, told)

    def check(
        self, query: ArrayLike, vectors: ArrayLike, k: int | None, about: Any = "", **conditions: Any
    ) -> Selection | None:
        """Select with the loops of numpy and with the compiled ones, and compare with the reference; None: nothing."""
        expected = self.expected(query, vectors, k, **conditions)
        actual = None
        for way in available_loops():
            with use_loops(way):
                if not expected.picks:
                    with pytest.raises(NothingLeftError):
                        self.select(query, vectors, k, **conditions)
                    continue
                actual = self.select(query, vectors, k, **conditions)
            self.assert_agrees(actual, expected, query, vectors, k, f"{way}, {about}", **conditions)
            if self.with_parts:
                references = conditions.get("references", self.columns(vectors)["references"])
                shown = conditions.get("shown", ())
                oracles.assert_referred_by(actual.referred_by, references, actual.indices.tolist(), shown)
            if self.selector.capabilities.log_gains:
                given = self.reference.keywords | self.columns(vectors) | conditions
                oracles.assert_shares(actual.shares, actual.indices.tolist(), query, vectors, **given)
        return actual


def same(a: Selection, b: Selection) -> bool:
    """Equal to the last bit."""
    return all(
        np.array_equal(getattr(a, field.name), getattr(b, field.name)) for field in dataclasses.fields(Selection)
    )


def assert_alike(a: Selection, b: Selection, rtol: float = 1e-6, atol: float = 1e-12) -> None:
    """The same picks, and gains that are equal up to rounding."""
    assert a.indices.tolist() == b.indices.tolist()
    np.testing.assert_allclose(a.gains, b.gains, rtol=rtol, atol=atol)


def names(pair: Pair) -> str:
    return pair.name


TOP_K = Pair("similarity", TopK(), oracles.top_k)
VRSD_GREEDY = Pair("VRSD", VRSD(), oracles.vrsd)
VRSD_REFINED = Pair("VRSD refined", VRSD(refine=True), oracles.vrsd_refined, refined=True)
_mmr = functools.partial(oracles.mmr, lambda_mult=0.75, lambda_b=0.5)
MMR_PLAIN = Pair("MMR", MMR(lambda_mult=0.75, lambda_b=0.5), _mmr)
MMR_QUALITY = Pair("MMR with quality", MMR(lambda_mult=0.75, lambda_b=0.5), _mmr, with_quality=True)
# The kernel of the paper, whose rank can be used up.
NDPP_LINEAR = Pair("NDPP linear", NDPP(relevance_mapping="linear", ridge=0), oracles.ndpp_greedy)
_auto = functools.partial(oracles.ndpp_greedy, kind="auto", c=AUTO_TEMPERATURE, ridge=DEFAULT_RIDGE)
NDPP_AUTO = Pair("NDPP", NDPP(), _auto)
_coverage = functools.partial(oracles.coverage, c=TEMPERATURE, h=WORDS_IN_RELEVANCE, w=COVERED, ridge=RIDGE)
COVERAGE = Pair("Coverage", Coverage(), _coverage)
COVERAGE_PARTS = Pair(
    "Coverage of words, values and names",
    Coverage(word_weight=0.5, cover_weight=0.2, reference_weight=0.5, neighbour_weight=0.5),
    functools.partial(_coverage, word_weight=0.5, cover_weight=0.2, bridge=0.5 * REFERRED[0]),
    with_parts=True,
)

# One entry for each registered selector. An entry is all that a new selector needs to be tested with the others.
REGISTERED: dict[str, tuple[Pair, ...]] = {
    "similarity": (TOP_K,),
    "vrsd": (VRSD_GREEDY, VRSD_REFINED),
    "mmr": (MMR_PLAIN, MMR_QUALITY),
    "ndpp": (NDPP_LINEAR, NDPP_AUTO),
    "coverage": (COVERAGE, COVERAGE_PARTS),
}
PAIRS = tuple(pair for pairs in REGISTERED.values() for pair in pairs)
RELEVANCE_PAIRS = tuple(pair for pair in PAIRS if pair.takes_relevance)
# The selectors whose first j picks do not depend on the number of picks.
GREEDY_PAIRS = tuple(pair for pair in PAIRS if not pair.refined)
