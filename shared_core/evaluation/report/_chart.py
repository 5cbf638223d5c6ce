"""The report's charts as SVG that needs no script: their parts, and relevance against redundancy."""

from __future__ import annotations

import math
from collections import Counter
from typing import Literal, NamedTuple

from ..results import Comparison
from ._table import by_method
from ._text import clip, number

COLOURS = 8  # the number of colours in the style sheet
_RADIUS = 5.0
_DASHES = ("none", "7 3", "2 3", "9 3 2 3", "12 4", "4 2 1 2")
_LABEL_SIZES = {"method": 13.0, "end": 11.0}
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


class Box(NamedTuple):
    """A rectangle in the drawing."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """The area that both cover."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return width * height if width > 0 and height > 0 else 0.0


class Point(NamedTuple):
    """One setting; ``mark`` is the SVG path of its marker, which is ``hollow`` if another setting is better in both."""

    label: str
    tip: str
    at: Place
    mark: str
    recommended: bool
    hollow: bool = False


class Curve(NamedTuple):
    """The points of one method, and the line that joins them, or "". ``dash`` distinguishes lines without colour."""

    colour: int
    line: str
    dash: str
    points: list[Point]


class Tick(NamedTuple):
    """A place on an axis."""

    at: float
    text: str


class Label(NamedTuple):
    """A text beside one of its ``anchors``: a method's name, which is always shown, or the end of a sweep."""

    text: str
    colour: int
    kind: Literal["method", "end"]
    anchors: list[Place]
    at: Place = Place(0.0, 0.0)  # the start of its baseline


class Chart(NamedTuple):
    """A drawing of ``width`` by ``height`` pixels, with the axes around ``plot``, and what it shows, in words.

    ``front`` joins the settings that no other beats. ``level`` is a dotted line, explained by
    ``level_text``: few picks that find as much as many. They are empty where there is none.
    """

    name: str
    description: str
    width: int
    height: int
    plot: Box
    x_title: str
    y_title: str
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    curves: list[Curve]
    labels: list[Label]
    front: str = ""
    level: str = ""
    level_text: str = ""


class Scale(NamedTuple):
    """Where the values ``low .. high`` of both axes are in the plot."""

    plot: Box
    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def at(self, x: float, y: float) -> Place:
        """The place of a point."""
        left, top, right, bottom = self.plot
        return Place(
            round(left + (x - self.x_low) / (self.x_high - self.x_low) * (right - left), 1),
            round(bottom - (y - self.y_low) / (self.y_high - self.y_low) * (bottom - top), 1),
        )

    def ticks(self, most_x: int, most_y: int) -> tuple[list[Tick], list[Tick]]:
        """Round numbers on both axes, at most about ``most_x`` and ``most_y``."""
        return (
            [Tick(self.at(x, 0).x, text) for x, text in _round_numbers(self.x_low, self.x_high, most_x)],
            [Tick(self.at(0, y).y, text) for y, text in _round_numbers(self.y_low, self.y_high, most_y)],
        )


def draw_chart(comparison: Comparison, name: str, width: int, height: int) -> Chart | None:
    """Relevance against redundancy in ``width`` by ``height`` pixels; None if no setting has a redundancy."""
    relevance = comparison.relevance
    redundancy = {i: value for i, value in enumerate(comparison.redundancy) if value is not None}
    if not redundancy:
        return None
    settings = comparison.settings
    plot = Box(46, 34, width - 12, height - 46)
    scale = Scale(plot, *padded(list(redundancy.values())), *padded([relevance[i] for i in redundancy]))
    at = {i: scale.at(x, relevance[i]) for i, x in redundancy.items()}
    best = unbeaten(comparison)
    narrow = width < 500
    curves, labels = [], []
    for index, (method, members) in enumerate(by_method(comparison).items()):
        shown = [i for i in members if i in at]
        of_curves = Counter(settings[i].curve for i in shown if settings[i].curve is not None)
        longest = max(of_curves, key=of_curves.__getitem__, default=None)
        curve = [i for i in shown if settings[i].curve == longest] if of_curves[longest] > 1 else []
        swept = sorted((settings[i].parameter or 0.0, i) for i in curve)
        path = [i for _, i in swept]
        single = [i for i in shown if i not in path]
        points = [
            Point(
                settings[i].label,
                f"relevance {number(relevance[i])}, redundancy {number(redundancy[i])}",
                at[i],
                mark(index, at[i]),
                i == comparison.recommendation.setting,
                i not in best,
            )
            for i in path + single
        ]
        line = [at[i] for i in path]
        colour = index % COLOURS
        curves.append(Curve(colour, join(line), dash(index), points))
        if narrow:
            # There is room for the names of the methods only.
            labels += [Label(method, colour, "method", [at[i] for i in shown])] if shown else []
            continue
        if path:
            # "mmr lambda_mult=0.5" is a point of the curve "mmr lambda_mult".
            labels.append(Label(longest or "", colour, "method", line))
            ends = (swept[0], swept[-1])
            labels += [Label(f"{value:g}".replace("-", "−"), colour, "end", [at[i]]) for value, i in ends]
        labels += [Label(("= " if at[i] in [at[j] for j in single if j < i] else "") + settings[i].label, colour, "method", [at[i]]) for i in single]
    # Methods come first, because the ends of sweeps are shown only where they cover nothing.
    labels.sort(key=lambda label: label.kind != "method")
    return Chart(
        name,
        "Relevance against redundancy, with a point for each setting.",
        width,
        height,
        plot,
        "redundancy" if narrow else "redundancy: mean cosine between the picks",
        "relevance" if narrow else "relevance: mean cosine with the query",
        *scale.ticks(4 if narrow else 8, 5),
        curves,
        _place_labels(labels, list(at.values()), plot),
        join(sorted(at[i] for i in best)),
    )


def unbeaten(comparison: Comparison) -> list[int]:
    """The settings of which no other is better in relevance or redundancy without being worse in the other."""
    figures = {
        i: (round(comparison.relevance[i], 9), -round(value, 9))
        for i, value in enumerate(comparison.redundancy)
        if value is not None
    }
    return [
        i
        for i, (x, y) in figures.items()
        if not any(a >= x and b >= y and (a, b) != (x, y) for a, b in figures.values())
    ]


def join(places: list[Place]) -> str:
    """The path of the line through these places; empty if there are none."""
    return "M" + "L".join(f"{place.x} {place.y}" for place in places) if places else ""


def dash(method: int) -> str:
    """The pattern of the line of a method."""
    return _DASHES[method % len(_DASHES)]


def mark(method: int, at: Place) -> str:
    """The path of the marker of a method."""
    shape = method % len(_SHAPES)
    # Later ones are smaller, so that they do not hide earlier ones at the same place.
    radius = _RADIUS * (1.25 - 0.06 * shape)
    corners = (f"{round(at.x + radius * dx, 1)} {round(at.y + radius * dy, 1)}" for dx, dy in _SHAPES[shape])
    return "M" + "L".join(corners) + "Z"


def padded(values: list[float]) -> tuple[float, float]:
    """The range of an axis that shows these values."""
    low, high = min(values), max(values)
    pad = 0.1 * (high - low) if high - low > 1e-6 else 0.05
    return low - pad, high + pad


def _round_numbers(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """Round numbers within ``low .. high``, at most about ``most``."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    values = [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    return [(value, number(value, digits)) for value in values]


def _place_labels(labels: list[Label], points: list[Place], plot: Box) -> list[Label]:
    """The labels, one after another, each where it covers least; the ends of sweeps only where they cover nothing."""
    # A label may cover a line: its own outline keeps it readable there.
    taken = [Box(x - 7, y - 7, x + 7, y + 7) for x, y in points]
    placed = []
    for label in labels:
        size = _LABEL_SIZES[label.kind]
        text = clip(label.text, max(6, int(0.6 * (plot.right - plot.left) / (0.56 * size))))
        width = 0.56 * size * len(text) + 2
        # The ends of a curve come first, since a name there is clearer than one at its middle.
        order = sorted(range(len(label.anchors)), key=lambda i: min(i, len(label.anchors) - 1 - i))
        boxes = [box for i in order for box in _boxes_beside(label.anchors[i], width, size)]
        covered = [sum(map(box.overlap, taken)) + box.overlap(box) - box.overlap(plot) for box in boxes]
        least = min(covered)
        if label.kind == "method" or least < 1:
            best = boxes[covered.index(least)]
            taken.append(best)
            placed.append(label._replace(text=text, at=Place(round(best.left, 1), round(best.bottom - 0.28 * size, 1))))
    return placed


def _boxes_beside(place: Place, width: float, size: float) -> list[Box]:
    """Boxes for a text around a marker: right, left, above, below, then the corners."""
    x, y = place
    tall, gap = size * 1.15, 14.0
    level, above, below = y - tall / 2, y - gap - tall, y + gap
    corners = [(x + gap, level), (x - gap - width, level), (x - width / 2, above), (x - width / 2, below)]
    corners += [(x + 5, above + 3), (x + 5, below - 3), (x - 5 - width, above + 3), (x - 5 - width, below - 3)]
    return [Box(left, top, left + width, top + tall) for left, top in corners]
