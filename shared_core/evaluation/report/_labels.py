"""Names beside curves: where in the picture each covers least."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from ._text import clip

Place = tuple[float, float]
_SIZES = {"method": 13.0, "end": 11.0}


@dataclass(frozen=True)
class Box:
    """A rectangle, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """The area that both cover."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return width * height if width > 0 and height > 0 else 0.0

    def area(self) -> float:
        """Its own area."""
        return (self.right - self.left) * (self.bottom - self.top)

    def holds(self, place: Place) -> bool:
        """Whether the place is inside."""
        return self.left <= place[0] <= self.right and self.top <= place[1] <= self.bottom


@dataclass(frozen=True)
class Label:
    """A text that may stand beside any of ``anchors``; ``x, y`` is the start of its baseline once placed.

    ``kind`` is "method" for a name, which is always printed, or "end" for the value at the end of a sweep, which is
    printed where it covers nothing.
    """

    text: str
    colour: int
    kind: Literal["method", "end"]
    anchors: tuple[Place, ...]
    x: float = 0.0
    y: float = 0.0


def _samples(line: list[Place]) -> list[Place]:
    """Places every few pixels along a line."""
    found: list[Place] = []
    for (x0, y0), (x1, y1) in pairwise(line):
        steps = max(1, math.ceil(math.hypot(x1 - x0, y1 - y0) / 4))
        found += [(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps) for i in range(steps + 1)]
    return found


def _beside(place: Place, width: float, size: float) -> list[Box]:
    """Boxes for a text around a marker: right, left, above, below, then the corners."""
    x, y = place
    tall, gap = size * 1.15, 14.0
    beside_y, above, below = y - tall / 2, y - gap - tall, y + gap
    right, left, centred = x + gap, x - gap - width, x - width / 2
    corners = [(right, beside_y), (left, beside_y), (centred, above), (centred, below)]
    corners += [(x + 5, above + 3), (x + 5, below - 3), (x - 5 - width, above + 3), (x - 5 - width, below - 3)]
    return [Box(start, top, start + width, top + tall) for start, top in corners]


def place_labels(wanted: list[Label], points: list[Place], lines: list[list[Place]], plot: Box) -> tuple[Label, ...]:
    """The labels with their places, one after another where each costs least; the same input gives the same places."""
    markers = [Box(x - 7, y - 7, x + 7, y + 7) for x, y in points]
    ink = [sample for line in lines for sample in _samples(line)]
    taken: list[Box] = []
    placed = []
    for label in wanted:
        size = _SIZES[label.kind]
        text = clip(label.text, max(6, int(0.6 * (plot.right - plot.left) / (0.56 * size))))
        width = 0.56 * size * len(text) + 2
        # Either end of a curve says more about it than its middle.
        order = sorted(range(len(label.anchors)), key=lambda i: min(i, len(label.anchors) - 1 - i))
        best, least = None, math.inf
        for rank, anchor in enumerate(order):
            for turn, box in enumerate(_beside(label.anchors[anchor], width, size)):
                covered = sum(box.overlap(marker) for marker in markers) + 4 * sum(
                    box.overlap(other) for other in taken
                )
                covered += 12 * sum(box.holds(sample) for sample in ink) + 50 * (box.area() - box.overlap(plot))
                cost = covered + 0.5 * turn + 2 * rank
                if cost < least and (label.kind == "method" or covered < 1):
                    best, least = box, cost
        if best is not None:
            taken.append(best)
            placed.append(replace(label, text=text, x=round(best.left, 1), y=round(best.bottom - 0.28 * size, 1)))
    return tuple(placed)
