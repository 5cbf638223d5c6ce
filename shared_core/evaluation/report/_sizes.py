"""What is found with each number of picks: two charts, by the number and by the length of the picks, and a table."""

from __future__ import annotations

from typing import NamedTuple

from ..results import Comparison, Measure, Size, counted
from ._chart import COLOURS, Box, Chart, Curve, Place, Point, Scale, Tick, dash, join, mark, padded
from ._table import by_method
from ._text import number

# Both charts have the width of a phone: two of them fit beside each other on a desk.
_WIDTH, _HEIGHT = 340, 280
_PLOT = Box(40, 34, _WIDTH - 12, _HEIGHT - 46)


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
    keys = [(index % COLOURS, mark(index, Place(10, 10)), dash(index)) for index in range(len(rows))]
    known = precision if (0, precision) in comparison.sizes[0].values else None
    return Sizes(
        measure, name, known, rows, keys, [_draw(comparison, key, name, rows, by) for by in ("texts", "characters")]
    )


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

    most = max(length(size, i) for size in sizes for i in rows)
    scale = Scale(_PLOT, 0.0, 1.04 * most or 1.0, *padded([size.values[i, key].mean for size in sizes for i in rows]))
    curves = []
    for index, i in enumerate(rows):
        points = []
        for size in sizes:
            place, found = scale.at(length(size, i), size.values[i, key].mean), number(size.values[i, key].mean)
            tip = f"{name} {found} with {counted(size.k, 'text')}, {counted(round(size.characters[i]), 'character')}"
            here = i == advice.setting and size.k == comparison.corpus.k
            points.append(Point(comparison.settings[i].label, tip, place, mark(index, place), here))
        curves.append(Curve(index % COLOURS, join([point.at for point in points]), dash(index), points))
    x_ticks, y_ticks = scale.ticks(4, 5)
    if by == "texts":
        x_ticks = []
        for tick in (Tick(scale.at(size.k, 0).x, str(size.k)) for size in sizes):
            if not x_ticks or tick.at - x_ticks[-1].at > 20:
                x_ticks.append(tick)
    chart = Chart(
        by,
        f"{name} against the {'number' if by == 'texts' else 'characters'} of the texts, with a line for each method.",
        _WIDTH,
        _HEIGHT,
        _PLOT,
        "texts" if by == "texts" else "characters of the texts",
        name,
        x_ticks,
        y_ticks,
        curves,
        [],
    )
    if advice.fewer is None:
        return chart
    few, many = (next(size for size in sizes if size.k == k) for k in (advice.fewer.k, advice.fewer.than))
    level = many.values[0, key].mean
    start, end = scale.at(length(many, 0), level), scale.at(length(few, advice.fewer.setting), level)
    text = f"{number(length(few, advice.fewer.setting), 0)} instead of {number(length(many, 0), 0)}"
    path = join([start, end, scale.at(length(few, advice.fewer.setting), few.values[advice.fewer.setting, key].mean)])
    return chart._replace(level=path, level_text=text)
