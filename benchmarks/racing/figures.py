"""Figures from the measured values: ratios turn by turn, medians, quartiles."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyperf


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
    """The values of each turn in which all benchmarks ran; a slow one ran in the first turn of each process only.

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
        runs = [run for benchmark in benchmarks for run in benchmark.get_runs()]
        self.processes = 1 + max(run.get_metadata()["process"] for run in runs)
        self.turns = max(len(run.values) for run in runs)
        self.series = len(benchmarks)
        # pyperf's own rule for an unstable benchmark.
        self.unstable = sum(b.stdev() >= 0.1 * b.mean() for b in benchmarks if b.get_nvalue() > 1)
        # The load before the first process: the benchmark itself loads the machine.
        self.load: str = runs[0].get_metadata()["load"]

    def has(self, race: object, contender: str) -> bool:
        """Whether this contender took part in this race."""
        return (str(race), contender) in self._benchmarks

    def seconds(self, race: object, contender: str) -> Spread:
        """Seconds a query."""
        return spread(self._benchmarks[str(race), contender].get_values())

    def ratio(self, race: object, of: str, to: str) -> Spread:
        """How many times as long ``of`` takes as ``to``."""
        return ratio(self._benchmarks[str(race), of], self._benchmarks[str(race), to])

    def paired(self, race: object, *contenders: str) -> list[tuple[float, ...]]:
        """Seconds a query of these contenders, turn by turn."""
        return list(paired(*(self._benchmarks[str(race), name] for name in contenders)))
