"""Races on a grid of sizes: in each turn every contender runs once, one directly after the other; and their figures.

pyperf's own runner measures one benchmark after the other, so that a disturbance of the machine falls on one contender
and not on the next. Here one process runs all contenders of a race. Clock, runs, metadata and file format are pyperf's,
so ``python -m pyperf show``, ``check`` and ``compare_to`` read the result.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyperf

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


Run = Callable[[], object]

# A contender whose call takes longer than this (seconds) runs in the first turn of each process only.
SLOW = 0.3


@dataclass(frozen=True)
class Race:
    """Contenders that take turns. Each call of a contender answers ``inner`` queries."""

    name: str
    runs: Mapping[str, Run]
    inner: int = 1


class Calls(NamedTuple):
    """How many calls of a contender make one value, and how many seconds a call takes."""

    loops: int
    seconds: float


def run(
    races: Iterable[Race],
    *,
    process: int,
    turns: int,
    least: float,
    known: Mapping[str, Calls],
    about: Mapping[str, str],
) -> pyperf.BenchmarkSuite:
    """Values of this process in seconds a query: ``turns`` values of each contender.

    A value takes at least ``least`` seconds where the number of calls is calibrated. ``known`` holds the numbers that
    an earlier process found (see :func:`calls`). ``about`` goes into the metadata.
    """
    # pyperf's metadata of the machine are the same for every contender: they are read once.
    machine = {**pyperf.Run([1.0]).get_metadata(), **about}
    benchmarks = []
    for race in races:
        names = {name: f"{race.name}: {name}" for name in race.runs}
        calls_of = {name: known.get(names[name]) or _calibrate(run, least) for name, run in race.runs.items()}
        for name, values in _measure(race, calls_of, turns).items():
            facts = {"name": names[name], "race": race.name, "contender": name, "process": process, "unit": "second"}
            facts |= {"loops": calls_of[name].loops, "inner_loops": race.inner}
            this = pyperf.Run(values, metadata=machine | facts, collect_metadata=False)
            benchmarks.append(pyperf.Benchmark([this]))
    return pyperf.BenchmarkSuite(benchmarks)


def calls(suite: pyperf.BenchmarkSuite) -> dict[str, Calls]:
    """How the first process ran each contender; the other processes run it in the same way."""
    return {
        benchmark.get_name(): Calls(benchmark.get_loops(), benchmark.median() * benchmark.get_inner_loops())
        for benchmark in suite.get_benchmarks()
    }


def _measure(race: Race, calls_of: Mapping[str, Calls], turns: int) -> dict[str, list[float]]:
    names = list(race.runs)
    values: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(turns):
        # Each turn begins with another contender: no contender always finds what the same other one left in the caches.
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            if turn == 0 or calls_of[name].seconds < SLOW:
                values[name].append(_time(race.runs[name], calls_of[name].loops) / race.inner)
    return values


def _calibrate(run: Run, least: float) -> Calls:
    # The first call may import or compile something.
    run()
    loops, seconds = 1, _time(run, 1)
    while seconds < SLOW:
        # The minimum of several timings: one pause of the machine must not make a fast call look slow.
        seconds = min(seconds, _time(run, loops), _time(run, loops))
        if seconds * loops >= least:
            break
        loops *= 2
    return Calls(loops, seconds)


def _time(run: Run, loops: int) -> float:
    """Seconds a call."""
    each = range(loops)
    start = pyperf.perf_counter()
    for _ in each:
        run()
    return float(pyperf.perf_counter() - start) / loops


@dataclass(frozen=True)
class Spread:
    """The median of some values with their quartiles."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{digits(self.median)} ({digits(self.low)}–{digits(self.high)})"


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles; all three are the value where there is only one."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(statistics.median(values), low, high)


def ratio(of: pyperf.Benchmark, to: pyperf.Benchmark) -> Spread:
    """How many times as long ``of`` takes as ``to``, turn by turn."""
    return spread([one / other for one, other in paired(of, to)])


def paired(*benchmarks: pyperf.Benchmark) -> Iterator[tuple[float, ...]]:
    """The values of each turn in which all benchmarks ran; a slow one ran in the first turn of each process only."""
    for runs in zip(*(benchmark.get_runs() for benchmark in benchmarks), strict=True):
        yield from zip(*(run.values for run in runs), strict=False)


def digits(value: float) -> str:
    """Three digits, or all digits before the point: 0.123, 1.23, 12.3, 1,234.

    >>> [digits(value) for value in (0.1234, 1.234, 12.34, 1234.4)]
    ['0.12', '1.23', '12.3', '1,234']
    """
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


class Found:
    """The measured values by race and contender. A race is given by its name, or by the point that has this name."""

    def __init__(self, suite: pyperf.BenchmarkSuite) -> None:
        benchmarks = suite.get_benchmarks()
        facts = [benchmark.get_metadata() for benchmark in benchmarks]
        self.about = suite.get_metadata()
        self._benchmarks = {(f["race"], f["contender"]): b for f, b in zip(facts, benchmarks, strict=True)}
        self.series = len(benchmarks)
        # pyperf's own rule for an unstable benchmark.
        self.unstable = sum(b.stdev() >= 0.1 * b.mean() for b in benchmarks if b.get_nvalue() > 1)
        # The load before the first process: the benchmark itself loads the machine.
        self.load: str = benchmarks[0].get_runs()[0].get_metadata()["load"]

    def has(self, race: object, contender: str) -> bool:
        """Whether this contender took part in this race."""
        return (str(race), contender) in self._benchmarks

    def microseconds(self, race: object, contender: str) -> Spread:
        """Microseconds a query."""
        return spread([1e6 * value for value in self._benchmarks[str(race), contender].get_values()])

    def ratio(self, race: object, of: str, to: str) -> Spread:
        """How many times as long ``of`` takes as ``to``."""
        return ratio(self._benchmarks[str(race), of], self._benchmarks[str(race), to])
