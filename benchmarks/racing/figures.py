"""Figures out of the measured values: ratios turn by turn, medians, and how they are written."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyperf

from benchmarks.racing.points import Point


@dataclass(frozen=True)
class Spread:
    """The median of some values with their quartiles."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{written(self.median)} ({written(self.low)}–{written(self.high)})"


def spread(values: Sequence[float]) -> Spread:
    """Of one value all three are that value."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(statistics.median(values), low, high)


def ratio(of: pyperf.Benchmark, to: pyperf.Benchmark) -> Spread:
    """How many times as long ``of`` takes as ``to``, turn by turn."""
    return spread([one / other for one, other in turns(of, to)])


def turns(*benchmarks: pyperf.Benchmark) -> Iterator[tuple[float, ...]]:
    """The values of each turn that all had; who is slow runs in the first turn of each process only.

    Raises
    ------
    ValueError
        The benchmarks are not of the same processes.
    """
    for runs in zip(*(benchmark.get_runs() for benchmark in benchmarks), strict=True):
        processes = {run.get_metadata()["process"] for run in runs}
        if len(processes) > 1:
            raise ValueError(f"values of different processes cannot be paired: {sorted(processes)}")
        yield from zip(*(run.values for run in runs), strict=False)


def written(value: float) -> str:
    """Three digits, or all before the point: 0.123, 1.23, 12.3, 1,234.

    >>> [written(value) for value in (0.1234, 1.234, 12.34, 1234.4)]
    ['0.12', '1.23', '12.3', '1,234']
    """
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


class Found:
    """What was measured, by place and contender; ``about`` is the metadata that all values have."""

    def __init__(self, suite: pyperf.BenchmarkSuite) -> None:
        self.about = suite.get_metadata()
        self._grid: dict[tuple[Point, str], pyperf.Benchmark] = {}
        self._end_to_end: dict[str, pyperf.Benchmark] = {}
        for benchmark in suite.get_benchmarks():
            facts = benchmark.get_metadata()
            contender = facts["contender"]
            if "n" in facts:
                point = Point(facts["n"], facts["d"], facts["k"], facts["rows"], facts["lambda_mult"])
                self._grid[point, contender] = benchmark
            else:
                self._end_to_end[contender] = benchmark
        runs = [run for benchmark in suite.get_benchmarks() for run in benchmark.get_runs()]
        self.processes = 1 + max(run.get_metadata()["process"] for run in runs)
        self.turns = max(len(run.values) for run in runs)
        self.contenders = len(suite.get_benchmarks())
        # pyperf's own measure of what is stable.
        self.unstable = sum(
            benchmark.stdev() >= 0.1 * benchmark.mean()
            for benchmark in suite.get_benchmarks()
            if benchmark.get_nvalue() > 1
        )
        # That of the first process: the benchmark itself loads the machine.
        self.load: str = runs[0].get_metadata()["load"]

    def has(self, point: Point, contender: str) -> bool:
        """Whether this one took part there."""
        return (point, contender) in self._grid

    def seconds(self, point: Point, contender: str) -> float:
        """The median of a call."""
        return float(self._grid[point, contender].median())

    def ratio(self, point: Point, of: str, to: str) -> Spread:
        """How many times as long ``of`` takes as ``to``."""
        return ratio(self._grid[point, of], self._grid[point, to])

    def points(self, contender: str) -> list[Point]:
        """Where this one took part."""
        return [point for point, name in self._grid if name == contender]

    def end_to_end(self, *contenders: str) -> list[tuple[float, ...]]:
        """Seconds a query, turn by turn."""
        return list(turns(*(self._end_to_end[name] for name in contenders)))
