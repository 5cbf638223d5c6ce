"""Races: in each turn every contender of a race runs once, one directly after the other.

pyperf's own runner measures one benchmark after the other, so that a disturbance of the machine falls on one contender
and not on the next. Here one process runs all contenders of a race. Clock, runs, metadata and file format are pyperf's,
so ``python -m pyperf show``, ``check`` and ``compare_to`` read the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyperf

Run = Callable[[], object]

# A contender whose call takes longer than this (seconds) runs in the first turn of each process only.
SLOW = 0.3


@dataclass(frozen=True)
class Race:
    """Contenders that take turns. Each call of a contender answers ``inner`` queries."""

    name: str
    runs: Mapping[str, Run]
    inner: int = 1


@dataclass(frozen=True)
class Calls:
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
        calls_of = {
            name: _warm_up(run, known[names[name]]) if names[name] in known else _calibrate(run, least)
            for name, run in race.runs.items()
        }
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


def _warm_up(run: Run, calls: Calls) -> Calls:
    if calls.seconds < SLOW:
        run()
    return calls


def _time(run: Run, loops: int) -> float:
    """Seconds a call."""
    each = range(loops)
    start = pyperf.perf_counter()
    for _ in each:
        run()
    return float(pyperf.perf_counter() - start) / loops
