"""The report's picture: relevance against redundancy, drawn here so that it is there without a script."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..results import Comparison
from ._labels import Box, Label, place_labels
from ._table import by_method
from ._text import number, parameter

# Corners of the markers on a circle of radius 1, by method; a circle is drawn where there are none.
_SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
    ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    ((0, -1.2), (1.1, 0.85), (-1.1, 0.85)),
    ((0, 1.2), (1.1, -0.85), (-1.1, -0.85)),
    tuple((1.2 * math.sin(turn * math.tau / 5), -1.2 * math.cos(turn * math.tau / 5)) for turn in range(5)),
    ((-1.2, -0.5), (1.2, -0.5), (1.2, 0.5), (-1.2, 0.5)),
    ((-0.5, -1.2), (0.5, -1.2), (0.5, 1.2), (-0.5, 1.2)),
)
_DASHES = ("none", "7 3", "2 3", "9 3 2 3")
_RADIUS = 5.0
COLOURS = 8  # as many as the style sheet has


@dataclass(frozen=True)
class Point:
    """One setting in the picture; ``mark`` is an SVG path."""

    label: str
    tip: str
    x: float
    y: float
    mark: str
    recommended: bool


@dataclass(frozen=True)
class Curve:
    """One method; ``line`` is empty where nothing is swept. ``dash`` tells lines apart without colour."""

    method: str
    colour: int
    line: str
    dash: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Tick:
    """A place on an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Chart:
    """A drawing of ``width`` by ``height`` pixels, with the plot between ``left, top`` and ``right, bottom``."""

    name: str
    width: int
    height: int
    plot: Box
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    curves: tuple[Curve, ...]
    labels: tuple[Label, ...]


def mark(method: int, x: float, y: float, radius: float) -> str:
    """The path of the marker of the ``method``-th method around ``x, y``."""
    corners = _SHAPES[method % len(_SHAPES)]
    if not corners:
        left, across = round(x - radius, 1), round(2 * radius, 1)
        arc = f"a{radius} {radius} 0 1 0"
        return f"M{left} {round(y, 1)}{arc} {across} 0{arc} {-across} 0Z"
    return "M" + "L".join(f"{round(x + radius * dx, 1)} {round(y + radius * dy, 1)}" for dx, dy in corners) + "Z"


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers within ``low .. high``, at most about ``most`` of them.

    Examples
    --------
    >>> [round(tick, 2) for tick in ticks(0.31, 0.52, 5)]
    [0.35, 0.4, 0.45, 0.5]
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _padded(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    pad = 0.1 * (high - low) if high - low > 1e-6 else 0.05
    return low - pad, high + pad


def _ticks(low: float, high: float, most: int, start: float, end: float) -> tuple[Tick, ...]:
    found = ticks(low, high, most)
    step = found[1] - found[0] if len(found) > 1 else 0.1
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return tuple(Tick(round(start + (at - low) / (high - low) * (end - start), 1), number(at, digits)) for at in found)


def _sweeps(comparison: Comparison, at: dict[int, tuple[float, float]]) -> dict[str, list[int]]:
    """For each method the settings that make its curve, by their parameter; empty where there are not two."""
    sweeps = {}
    for method, members in by_method(comparison).items():
        swept = [(value, i) for i in members if i in at and (value := comparison.settings[i].parameter) is not None]
        sweeps[method] = [i for _, i in sorted(swept)] if len(swept) > 1 else []
    return sweeps


def chart(comparison: Comparison, name: str, width: int, height: int) -> Chart | None:
    """The picture in ``width`` by ``height`` pixels; None where no setting has a redundancy."""
    relevance, redundancy = comparison.relevance, comparison.redundancy
    shown = {i: (x, relevance[i]) for i, x in enumerate(redundancy) if x is not None}
    if not shown:
        return None
    narrow = width < 500
    plot = Box(40, 34, width - 12, height - 46)
    (x_low, x_high), (y_low, y_high) = (_padded([place[axis] for place in shown.values()]) for axis in (0, 1))
    at = {
        i: (
            round(plot.left + (x - x_low) / (x_high - x_low) * (plot.right - plot.left), 1),
            round(plot.bottom - (y - y_low) / (y_high - y_low) * (plot.bottom - plot.top), 1),
        )
        for i, (x, y) in shown.items()
    }
    curves, wanted = [], []
    sweeps = _sweeps(comparison, at)
    for index, (method, members) in enumerate(by_method(comparison).items()):
        path, colour = sweeps[method], index % COLOURS
        single = [i for i in members if i in at and i not in path]
        points = tuple(
            Point(
                comparison.settings[i].label,
                f"relevance {number(relevance[i])}, redundancy {number(shown[i][0])}",
                *at[i],
                mark(index, *at[i], _RADIUS),
                i == comparison.recommendation.setting,
            )
            for i in path + single
        )
        line = "M" + "L".join(f"{at[i][0]} {at[i][1]}" for i in path) if path else ""
        curves.append(Curve(method, colour, line, _DASHES[index % len(_DASHES)], points))
        if path:
            wanted.append(Label(method, colour, "method", tuple(at[i] for i in path)))
            ends = [(comparison.settings[i].parameter or 0.0, at[i]) for i in (path[0], path[-1])]
            wanted += [Label(parameter(value), colour, "end", (place,)) for value, place in ends]
        wanted += [Label(comparison.settings[i].label, colour, "method", (at[i],)) for i in single]
    # Labels of methods come first: what there is no room for are then the ends of sweeps.
    wanted.sort(key=lambda label: label.kind != "method")
    lines = [[at[i] for i in path] for path in sweeps.values()]
    return Chart(
        name,
        width,
        height,
        plot,
        _ticks(x_low, x_high, 4 if narrow else 8, plot.left, plot.right),
        _ticks(y_low, y_high, 5, plot.bottom, plot.top),
        tuple(curves),
        place_labels(wanted, list(at.values()), lines, plot),
    )
