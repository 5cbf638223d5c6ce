"""What the speed is held to: each line says what was asked, what was found, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.racing.contenders import (
    LANGCHAIN,
    MMR,
    MMR_NUMPY,
    NDPP_ROWS,
    PYVERSITY,
    PYVERSITY_DPP,
    REFINED,
    REFINED_NUMPY,
    VRSD,
    VRSD_NUMPY,
)
from benchmarks.racing.figures import Found, Spread
from benchmarks.racing.points import Point

SEARCHED = (100, 768, 10)
LARGEST = (20_000, 384, 50)


def checked(found: Found) -> Iterator[str]:
    """Lines; the median decides. Where a demand holds at all its places, there is one line with the worst."""
    for contender in (MMR, MMR_NUMPY, VRSD, VRSD_NUMPY):
        points = found.points(contender)
        searched = [point for point in points if point.size == SEARCHED]
        yield from _lines(found, contender, AsFastAs(PYVERSITY, 1.6), searched)
        yield from _lines(found, contender, AsFastAs(LANGCHAIN, 25), searched)
        yield from _lines(found, contender, AsFastAs(PYVERSITY, 1), points)
    for contender in (MMR, MMR_NUMPY):
        largest = [point for point in found.points(contender) if point.size == LARGEST]
        yield from _lines(found, contender, AsFastAs(PYVERSITY, 8), largest)
    for contender, other in ((REFINED, VRSD), (REFINED_NUMPY, VRSD_NUMPY)):
        yield from _lines(found, contender, TimeOf(other, 3), found.points(contender))
    yield from _lines(found, NDPP_ROWS, TimeOf(PYVERSITY_DPP, 2), found.points(NDPP_ROWS))


@dataclass(frozen=True)
class AsFastAs:
    """At least so many times as fast as another contender."""

    other: str
    times: float

    def found(self, found: Found, point: Point, contender: str) -> Spread:
        return found.ratio(point, self.other, contender)

    def room(self, ratio: Spread) -> float:
        """1 where it just holds, more where it holds with ease."""
        return ratio.median / self.times

    def __str__(self) -> str:
        return f"times as fast as {self.other}, asked for at least {self.times:g}"


@dataclass(frozen=True)
class TimeOf:
    """At most so many times the time of another contender."""

    other: str
    times: float

    def found(self, found: Found, point: Point, contender: str) -> Spread:
        return found.ratio(point, contender, self.other)

    def room(self, ratio: Spread) -> float:
        """1 where it just holds, more where it holds with ease."""
        return self.times / ratio.median

    def __str__(self) -> str:
        return f"times the time of {self.other}, asked for at most {self.times:g}"


def _lines(found: Found, contender: str, demand: AsFastAs | TimeOf, points: Sequence[Point]) -> Iterator[str]:
    if not points:
        return
    ratios = {point: demand.found(found, point, contender) for point in points}
    failed = [point for point in points if demand.room(ratios[point]) < 1]
    worst = min(points, key=lambda point: demand.room(ratios[point]))
    for point in failed or [worst]:
        of = f", the worst of {len(points)}" if not failed else ""
        verdict = "DOES NOT HOLD" if failed else "holds"
        yield f"{verdict}: {contender}, {point}{of}: {ratios[point]} {demand}"
