"""The tables of speed.md, and the bounds: what the selectors must reach with numba and in numpy alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.common import Block, table
from benchmarks.racing.contenders import (
    COVERAGE,
    DETERMINANTS,
    LANGCHAIN,
    MMR,
    NDPP_PLAIN,
    NDPP_ROWS,
    NDPP_SKEW,
    NUMPY_ALONE,
    OURS,
    PEERS,
    PYVERSITY,
    PYVERSITY_DPP,
    SETS,
    VRSD,
)
from benchmarks.racing.races import ANY, BATCHES, SIZES, UNIT, Batch, Found, Point, digits

WITH_NUMBA, NUMPY = "with numba", "numpy alone"
_ALL = tuple(Point(*size) for size in SIZES)
# The place of a size, and how many times as fast as pyversity a selection with numba has to be there.
_LEAST = ((0, 1), (1, 1.4), (3, 3), (5, 3))


class Bound(NamedTuple):
    """What one contender must reach in each of ``races``; None where the figure is only stated.

    At points the limits are the least ratio of the time of ``peer`` to the contender's, in batches the most
    microseconds a query.
    """

    contender: str
    races: tuple[Point | Batch, ...]
    numba: float | None
    numpy: float | None
    peer: str = PYVERSITY


BOUNDS = (
    *(Bound(MMR, (_ALL[at],), least, None) for at, least in _LEAST),
    *(Bound(NDPP_PLAIN, (_ALL[at],), least, None, PYVERSITY_DPP) for at, least in _LEAST),
    Bound(COVERAGE, _ALL[3:], 1, None, PYVERSITY_DPP),
    Bound(COVERAGE, _ALL[:3], None, None, PYVERSITY_DPP),
    Bound(VRSD, (_ALL[1],), None, 0.6),
    *(Bound(name, (_ALL[5],), None, 0.8, PYVERSITY_DPP) for name in (NDPP_ROWS, NDPP_SKEW)),
    # Four times what a query took when the loops had an axis for the queries of a batch.
    Bound(MMR, BATCHES[1:], 136, None),
    Bound(NDPP_PLAIN, BATCHES[1:], 176, None),
    *(Bound(name, BATCHES[:1], None, None) for name in (MMR, NDPP_PLAIN)),
)


def verdicts(found: Found) -> Iterator[tuple[str, ...]]:
    """For each bound with numba and in numpy alone: selector, race, case, limit, figure and verdict on the median.

    The race is the worst of the bound's races.
    """
    for bound in BOUNDS:
        in_numpy = NUMPY_ALONE.get(bound.contender)
        cases = [(NUMPY, in_numpy or bound.contender, bound.numpy)]
        if in_numpy:
            cases.insert(0, (WITH_NUMBA, bound.contender, bound.numba))
        in_batches = isinstance(bound.races[0], Batch)
        for case, contender, limit in cases:
            figures = {
                race: found.microseconds(race, contender) if in_batches else found.ratio(race, bound.peer, contender)
                for race in bound.races
            }
            worst = max if in_batches else min
            race = worst(figures, key=lambda race: figures[race].median)
            where = str(race) if len(figures) == 1 else f"{race} (the worst of {len(figures)})"
            unit = "µs a query" if in_batches else "× " + bound.peer.replace("pyversity ", "pyversity's ")
            demand, word = "–", "stated"
            if limit is not None:
                demand = f"at most {limit:g} µs" if in_batches else f"at least {limit:g} ×"
                holds = figures[race].median <= limit if in_batches else figures[race].median >= limit
                word = "holds" if holds else "DOES NOT HOLD"
            name = bound.contender.removeprefix("setselect ")
            yield name, where, case, demand, f"{figures[race]} {unit}", word


def blocks(found: Found) -> Iterator[Block]:
    about = found.about
    machine = about.get("cpu_model_name", about["platform"])
    commit = about.get("setselect", "in a state that changed during the run")
    made = (
        f"Made by `make bench WRITE=1` (`python -m benchmarks.speed`). {machine}, {about['cpu_count']} cores, one BLAS "
        f"thread; {about['versions']}; setselect {commit}."
    )
    yield "Made by ", made
    yield table(("selector", "where", "case", "required", "measured", "verdict"), verdicts(found))
    yield f"## Rows of {UNIT}"
    yield from _times_and_ratios(found, _ALL)
    yield table(_heading(_ALL), _ratios(found, SETS, LANGCHAIN, _ALL))
    yield f"## Rows of {ANY}"
    yield from _times_and_ratios(found, [Point(*size, ANY) for size in SIZES])
    yield _batches(found)
    load = (
        f"Load of the machine before the run: {found.load}. {found.unstable} of the {found.series} series of values "
        "have a\nstandard deviation of at least a tenth of their mean; pyperf calls them unstable."
    )
    yield "Load of the machine before the run", load


def _times_and_ratios(found: Found, points: Sequence[Point]) -> Iterator[str]:
    rows = []
    for contender in (*OURS, *PEERS):
        cells = [_microseconds(found, point, contender) for point in points]
        if any(cell != "–" for cell in cells):
            rows.append((contender, *cells))
    yield table(_heading(points), rows)
    ratios = [*_ratios(found, SETS, PYVERSITY, points), *_ratios(found, DETERMINANTS, PYVERSITY_DPP, points)]
    yield table(_heading(points), ratios)


def _microseconds(found: Found, race: object, contender: str) -> str:
    return digits(found.microseconds(race, contender).median) if found.has(race, contender) else "–"


def _heading(points: Sequence[Point]) -> tuple[str, ...]:
    return ("n, d, k", *(f"{point.n:,}, {point.d}, {point.k}" for point in points))


def _ratios(found: Found, contenders: Iterable[str], peer: str, points: Sequence[Point]) -> list[tuple[str, ...]]:
    return [(ours, *(str(found.ratio(point, peer, ours)) for point in points)) for ours in contenders]


def _batches(found: Found) -> str:
    rows = [
        (f"{batch.n}, {batch.d}, {batch.k}: {name.removeprefix('setselect ')}",
         *(_microseconds(found, batch, contender) for contender in (name, in_numpy)))
        for batch in BATCHES for name, in_numpy in NUMPY_ALONE.items() if found.has(batch, name)
    ]  # fmt: skip
    return table(("n, d, k: selector", WITH_NUMBA, NUMPY), rows)
