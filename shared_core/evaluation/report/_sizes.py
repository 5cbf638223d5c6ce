"""What is found with each number of picks: two charts as SVG that needs no script, and the rows of a table."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..results import Comparison, Measure, Size, counted, number
from ._methods import by_method

# Both charts have the width of a phone: two of them fit beside each other on a desk.
WIDTH, HEIGHT = 340, 280
LEFT, TOP, RIGHT, BOTTOM = 40, 34, WIDTH - 12, HEIGHT - 46
_COLOURS = 8  # the number of colours in the style sheet
_RADIUS = 5.0
_DASHES = ("none", "7 3", "2 3", "9 3 2 3", "12 4", "4 2 1 2")
# The markers of the methods: corners around a circle of radius 1; the first has so many that it is a circle.
_SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    tuple((math.sin(turn * math.tau / 24), -math.cos(turn * math.tau / 24)) for turn in range(24)),
    ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
    ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    ((0, -1.2), (1.1, 0.85), (-1.1, 0.85)),
    ((0, 1.2), (1.1, -0.85), (-1.1, -0.85)),
    tuple((1.2 * math.sin(turn * math.tau / 5), -1.2 * math.cos(turn * math.tau / 5)) for turn in range(5)),
    ((-1.2, -0.5), (1.2, -0.5), (1.2, 0.5), (-1.2, 0.5)),
    ((-0.5, -1.2), (0.5, -1.2), (0.5, 1.2), (-0.5, 1.2)),
)


class Place(NamedTuple):
    """A place in the drawing, in pixels; y increases downwards."""

    x: float
    y: float


class Point(NamedTuple):
    """One setting with one number of picks; ``mark`` is the SVG path of its marker."""

    label: str
    tip: str
    at: Place
    mark: str
    recommended: bool


class Curve(NamedTuple):
    """The points of one setting, and the line that joins them. ``dash`` distinguishes lines without colour."""

    colour: int
    line: str
    dash: str
    points: list[Point]


class Chart(NamedTuple):
    """A drawing by the number of texts or their characters; ticks are places on an axis with their texts.

    ``level`` is a dotted line, explained by ``level_text``: few picks that find as much as many, if there are such.
    """

    name: str
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    curves: list[Curve]
    level: str = ""
    level_text: str = ""


class Sizes(NamedTuple):
    """The part of the report on the number of picks: ``rows`` are positions of settings, one of each method.

    ``name`` is that of the measure without "@5", ``precision`` the key of the measure beside it, ``keys`` the colour,
    marker and dash of each row.
    """

    measure: Measure
    name: str
    precision: str | None
    rows: list[int]
    keys: list[tuple[int, str, str]]
    charts: list[Chart]


def show_sizes(comparison: Comparison) -> Sizes | None:
    """Its charts show the measure that decides, else relevance; None if fewer than two numbers of picks were tried."""
    key = comparison.recommendation.measure or "relevance"
    measure = next((one for one in comparison.measures if one.key == key), None)
    if measure is None or len(comparison.sizes) < 2 or (0, key) not in comparison.sizes[0].values:
        return None
    rows = _one_of_each_method(comparison)
    name = measure.name.split("@")[0]
    # Of texts that cover a subtopic, precision counts those that cover any.
    precision = "topic_precision" if measure.needs == "subtopics" else "precision"
    # The marker of each row, as in the charts, in the middle of 20 by 20 pixels.
    keys = [(i % _COLOURS, _mark(i, Place(10, 10)), _DASHES[i % len(_DASHES)]) for i in range(len(rows))]
    charts = [_draw(comparison, key, name, rows, by) for by in ("texts", "characters")]
    known = precision if (0, precision) in comparison.sizes[0].values else None
    return Sizes(measure, name, known, rows, keys, charts)


def _one_of_each_method(comparison: Comparison) -> list[int]:
    """For each method the setting that the recommendation names, else its first."""
    advice = comparison.recommendation
    named = (advice.setting, advice.fewer and advice.fewer.setting, advice.runner_up)
    return [
        next((one for one in named if one in members), members[0]) or 0 for members in by_method(comparison).values()
    ]


def _draw(comparison: Comparison, key: str, name: str, rows: list[int], by: str) -> Chart:
    sizes, advice = comparison.sizes, comparison.recommendation

    def length(size: Size, setting: int) -> float:
        return size.k if by == "texts" else size.characters[setting]

    longest = 1.04 * max(length(size, i) for size in sizes for i in rows) or 1.0
    means = [size.values[i, key].mean for size in sizes for i in rows]
    pad = 0.1 * (max(means) - min(means)) if max(means) - min(means) > 1e-6 else 0.05
    low, high = min(means) - pad, max(means) + pad

    def place(x: float, y: float) -> Place:
        across, up = x / longest * (RIGHT - LEFT), (y - low) / (high - low) * (BOTTOM - TOP)
        return Place(round(LEFT + across, 1), round(BOTTOM - up, 1))

    curves = []
    for index, i in enumerate(rows):
        points = []
        for size in sizes:
            mean = size.values[i, key].mean
            at = place(length(size, i), mean)
            characters = counted(round(size.characters[i]), "character")
            tip = f"{name} {number(mean)} with {counted(size.k, 'text')}, {characters}"
            here = i == advice.setting and size.k == comparison.corpus.k
            points.append(Point(comparison.settings[i].label, tip, at, _mark(index, at), here))
        line = _join([point.at for point in points])
        curves.append(Curve(index % _COLOURS, line, _DASHES[index % len(_DASHES)], points))
    if by == "texts":
        x_ticks: list[tuple[float, str]] = []
        for size in sizes:
            if not x_ticks or place(size.k, 0).x - x_ticks[-1][0] > 20:
                x_ticks.append((place(size.k, 0).x, str(size.k)))
    else:
        x_ticks = [(place(value, 0).x, text) for value, text in _round_numbers(0.0, longest, 4)]
    y_ticks = [(place(0, value).y, text) for value, text in _round_numbers(low, high, 5)]
    chart = Chart(by, x_ticks, y_ticks, curves)
    if advice.fewer is None:
        return chart
    few, many = (next(size for size in sizes if size.k == k) for k in (advice.fewer.k, advice.fewer.than))
    level, setting = many.values[0, key].mean, advice.fewer.setting
    left, right = length(few, setting), length(many, 0)
    path = _join([place(right, level), place(left, level), place(left, few.values[setting, key].mean)])
    return chart._replace(level=path, level_text=f"{number(left, 0)} instead of {number(right, 0)}")


def _join(places: list[Place]) -> str:
    """The path of the line through these places."""
    return "M" + "L".join(f"{place.x} {place.y}" for place in places)


def _mark(method: int, at: Place) -> str:
    """The path of the marker of a method."""
    shape = method % len(_SHAPES)
    # Later ones are smaller, so that they do not hide earlier ones at the same place.
    radius = _RADIUS * (1.25 - 0.06 * shape)
    return _join([Place(round(at.x + radius * dx, 1), round(at.y + radius * dy, 1)) for dx, dy in _SHAPES[shape]]) + "Z"


def _round_numbers(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """Round numbers within ``low .. high``, at most about ``most``."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    values = [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    return [(value, number(value, digits)) for value in values]
