"""The bounds on speed: what the selectors must reach with numba and in numpy alone, and whether they reach it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.racing.contenders import (
    COVERAGE,
    MMR,
    NDPP_PLAIN,
    NDPP_ROWS,
    NDPP_SKEW,
    NUMPY_ALONE,
    PYVERSITY,
    PYVERSITY_DPP,
    VRSD,
)
from benchmarks.racing.figures import Found, Spread
from benchmarks.racing.points import ANY, BATCHES, SIZES, Batch, Point

WITH_NUMBA, NUMPY = "with numba", "numpy alone"
_SEARCH = Point(100, 768, 10)
_UP_TO_1000 = tuple(Point(*size) for size in SIZES if size[0] <= 1000)
_LARGEST = Point(20_000, 384, 50)


@dataclass(frozen=True)
class Bound:
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
    Bound(MMR, (_SEARCH,), 3, 1.2),
    Bound(VRSD, (_SEARCH,), 2, 0.6),
    Bound(MMR, _UP_TO_1000, 1, None),
    Bound(VRSD, _UP_TO_1000, 1, None),
    Bound(MMR, (_LARGEST,), 8, None),
    Bound(COVERAGE, tuple(Point(*size) for size in SIZES), 1, None, PYVERSITY_DPP),
    Bound(NDPP_PLAIN, _UP_TO_1000, 1.5, 0.8, PYVERSITY_DPP),
    Bound(NDPP_ROWS, _UP_TO_1000, 1.5, 0.8, PYVERSITY_DPP),
    Bound(NDPP_SKEW, _UP_TO_1000, 1.5, 0.8, PYVERSITY_DPP),
    Bound(NDPP_PLAIN, (_LARGEST,), 3, 0.8, PYVERSITY_DPP),
    Bound(NDPP_ROWS, (_LARGEST,), 3, 0.8, PYVERSITY_DPP),
    Bound(NDPP_SKEW, (_LARGEST,), 3, 0.8, PYVERSITY_DPP),
    Bound(MMR, (Point(*_SEARCH.size, ANY),), None, None),
    Bound(VRSD, (Point(*_SEARCH.size, ANY),), None, None),
    Bound(MMR, BATCHES[:1], 10, None),
    Bound(VRSD, BATCHES[:1], 10, None),
    Bound(NDPP_PLAIN, BATCHES[:1], 10, None),
)


@dataclass(frozen=True)
class Verdict:
    """A bound with numba or in numpy alone; ``measured`` is the figure of ``race``, the worst of the bound's races."""

    bound: Bound
    case: str
    limit: float | None
    race: Point | Batch
    measured: Spread

    @property
    def where(self) -> str:
        """The race, and of how many it is the worst."""
        races = len(self.bound.races)
        return str(self.race) if races == 1 else f"{self.race} (the worst of {races})"

    @property
    def figure(self) -> str:
        """The measured figure with its unit."""
        peer = self.bound.peer.replace("pyversity ", "pyversity's ")
        return f"{self.measured} µs a query" if isinstance(self.race, Batch) else f"{self.measured} × {peer}"

    @property
    def demand(self) -> str:
        """The limit in words, "" where there is none."""
        if self.limit is None:
            return ""
        return f"at most {self.limit:g} µs" if isinstance(self.race, Batch) else f"at least {self.limit:g} ×"

    @property
    def word(self) -> str:
        """Whether the median is within the limit."""
        if self.limit is None:
            return "stated"
        holds = self.measured.median <= self.limit
        if isinstance(self.race, Point):
            holds = self.measured.median >= self.limit
        return "holds" if holds else "DOES NOT HOLD"

    def __str__(self) -> str:
        demand = f", required: {self.demand}" if self.demand else ""
        return f"{self.word}: {self.bound.contender}, {self.case}, {self.where}: {self.figure}{demand}"


def verdicts(found: Found) -> Iterator[Verdict]:
    """Each bound with numba and in numpy alone; the median decides."""
    for bound in BOUNDS:
        cases = ((WITH_NUMBA, bound.contender, bound.numba), (NUMPY, NUMPY_ALONE[bound.contender], bound.numpy))
        for case, contender, limit in cases:
            figures = {race: _measured(found, race, bound.peer, contender) for race in bound.races}
            # The slowest batch, or the point with the smallest ratio.
            worst = max if isinstance(bound.races[0], Batch) else min
            race = worst(figures, key=lambda race: figures[race].median)
            yield Verdict(bound, case, limit, race, figures[race])


def _measured(found: Found, race: Point | Batch, peer: str, contender: str) -> Spread:
    if isinstance(race, Point):
        return found.ratio(race, peer, contender)
    seconds = found.seconds(race, contender)
    return Spread(*(1e6 * value for value in (seconds.median, seconds.low, seconds.high)))
