"""Turns: in each one, every contender of a race runs once, one right after the other.

pyperf's own runner gives each benchmark its processes one after the other, so that what the machine does meanwhile
falls on one contender and not on the next. Here a process holds all of a race; clock, runs, metadata and file are
pyperf's, so that ``python -m pyperf show``, ``check`` and ``compare_to`` work on what comes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyperf

from benchmarks.racing.contenders import Run

# A call that takes longer than this (seconds) runs in the first turn of each process only.
SLOW = 0.3


@dataclass(frozen=True)
class Race:
    """Contenders that take turns; each call of one of them does the same thing ``inner`` times."""

    name: str
    runs: Mapping[str, Run]
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
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
    """Values of this process: ``turns`` of each contender, of at least ``least`` seconds where it is calibrated.

    ``known`` has what an earlier process found (see :func:`calls`), ``about`` goes into the metadata.
    """
    # What pyperf knows of the machine does not change from contender to contender.
    machine = {**pyperf.Run([1.0]).get_metadata(), **about}
    benchmarks = []
    for race in races:
        names = {name: f"{race.name}: {name}" for name in race.runs}
        found = {
            name: _warm(run, known[names[name]]) if names[name] in known else _calibrated(run, least)
            for name, run in race.runs.items()
        }
        for name, values in _values(race, found, turns).items():
            facts = {"name": names[name], "contender": name, "process": process, "unit": "second"}
            facts |= {"loops": found[name].loops, "inner_loops": race.inner, **race.facts}
            this = pyperf.Run(values, metadata=machine | facts, collect_metadata=False)
            benchmarks.append(pyperf.Benchmark([this]))
    return pyperf.BenchmarkSuite(benchmarks)


def calls(suite: pyperf.BenchmarkSuite) -> dict[str, Calls]:
    """How the first process ran each contender, so that the others run it alike."""
    return {
        benchmark.get_name(): Calls(benchmark.get_loops(), benchmark.median() * benchmark.get_inner_loops())
        for benchmark in suite.get_benchmarks()
    }


def _values(race: Race, found: Mapping[str, Calls], turns: int) -> dict[str, list[float]]:
    names = list(race.runs)
    values: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(turns):
        # Each goes first once in a while, so that none always finds what the same one left in the caches.
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            if turn == 0 or found[name].seconds < SLOW:
                values[name].append(_timed(race.runs[name], found[name].loops) / race.inner)
    return values


def _calibrated(run: Run, least: float) -> Calls:
    # The first call may import or compile something.
    run()
    loops, seconds = 1, _timed(run, 1)
    while seconds < SLOW:
        # One pause of the machine's must not pass for many calls: so few would be all that each value is made of.
        seconds = min(seconds, _timed(run, loops), _timed(run, loops))
        if seconds * loops >= least:
            break
        loops *= 2
    return Calls(loops, seconds)


def _warm(run: Run, calls: Calls) -> Calls:
    if calls.seconds < SLOW:
        run()
    return calls


def _timed(run: Run, loops: int) -> float:
    """Seconds a call."""
    each = range(loops)
    start = pyperf.perf_counter()
    for _ in each:
        run()
    return float(pyperf.perf_counter() - start) / loops
