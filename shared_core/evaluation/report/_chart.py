"""What is found with each number of picks, as an SVG chart that needs no script."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..results import Comparison, Measure, counted, number

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 300, 44, 30, 628, 262
_COLOURS = 8  # the number of colours in the style sheet
# Lines differ without colour too.
_DASHES = ("none", "7 3", "2 3", "9 3 2 3", "12 4", "4 2 1 2")


class Point(NamedTuple):
    """One row with one number of picks, in pixels; y increases downwards."""

    x: float
    y: float
    tip: str


class Curve(NamedTuple):
    """The points of one row, the path of the line through them, and how it looks."""

    row: int
    colour: int
    dash: str
    line: str
    points: list[Point]


class Sizes(NamedTuple):
    """The part of the page on the number of picks: the measure, its name without "@5", and the chart.

    ``precision`` is the key of the measure beside it in the table. Ticks are places on an axis with their texts.
    """

    measure: Measure
    name: str
    precision: str | None
    curves: list[Curve]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]


def draw_sizes(comparison: Comparison, rows: list[int]) -> Sizes | None:
    """The chart of these rows by the measure that decides, else relevance; None if one number of picks was tried."""
    key = comparison.recommendation.measure or "relevance"
    measure = next((one for one in comparison.measures if one.key == key), None)
    sizes = comparison.sizes
    if measure is None or len(sizes) < 2 or (0, key) not in sizes[0].values:
        return None
    name = measure.name.split("@")[0]
    means = [size.values[row, key].mean for size in sizes for row in rows]
    pad = max(0.1 * (max(means) - min(means)), 0.01)
    low, high, longest = min(means) - pad, max(means) + pad, 1.04 * sizes[-1].k

    def across(k: float) -> float:
        return round(LEFT + k / longest * (RIGHT - LEFT), 1)

    def up(value: float) -> float:
        return round(BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP), 1)

    curves = []
    for place, row in enumerate(rows):
        points = []
        for size in sizes:
            mean, label = size.values[row, key].mean, comparison.settings[row].label
            characters = counted(round(size.characters[row]), "character")
            tip = f"{label}: {name} {number(mean)} with {counted(size.k, 'text')}, {characters}"
            points.append(Point(across(size.k), up(mean), tip))
        line = "M" + "L".join(f"{point.x} {point.y}" for point in points)
        curves.append(Curve(row, place % _COLOURS, _DASHES[place % len(_DASHES)], line, points))
    # Of texts that cover a subtopic, precision counts those that cover any.
    precision = "topic_precision" if measure.needs == "subtopics" else "precision"
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    step *= next(factor for factor in (1, 2, 5) if (high - low) / (factor * step) <= 6)
    values = [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return Sizes(
        measure,
        name,
        precision if (0, precision) in sizes[0].values else None,
        curves,
        [(across(size.k), str(size.k)) for size in sizes],
        [(up(value), number(value, digits)) for value in values],
    )
