"""The drawing for the README: how many times as fast as each peer setselect is, by the number of candidates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.racing.contenders import (
    HAYSTACK,
    LANGCHAIN,
    LANGCHAIN_LISTS,
    LLAMAINDEX,
    MMR,
    MMR_NUMPY,
    PYVERSITY,
    VRSD,
)
from benchmarks.racing.races import SIZES, Found, Point


@dataclass(frozen=True)
class Palette:
    """Colours on a light or on a dark background; the background itself is transparent."""

    text: str
    faint: str
    lines: tuple[str, ...]


LIGHT = Palette("#1f2328", "#d1d9e0", ("#8250df", "#bc4c00", "#1a7f37", "#bc4c00", "#0969da", "#0969da", "#0969da"))
DARK = Palette("#e6edf3", "#3d444d", ("#bc8cff", "#f0883e", "#56d364", "#f0883e", "#58a6ff", "#58a6ff", "#58a6ff"))
# Our contender, the peer, the label and the style of the line; from the highest line to the lowest.
LINES = (
    (MMR, HAYSTACK, "Haystack's MMR", "-"),
    (MMR, LANGCHAIN_LISTS, "LangChain's MMR, Python lists", ":"),
    (MMR, LLAMAINDEX, "LlamaIndex's MMR", "-"),
    (MMR, LANGCHAIN, "LangChain's MMR, float32 arrays", "-"),
    (MMR, PYVERSITY, "pyversity's MMR", "-"),
    (MMR_NUMPY, PYVERSITY, "the same; setselect in numpy alone", "--"),
    (VRSD, PYVERSITY, "the same; setselect's VRSD", ":"),
)


def plot(path: Path, found: Found, palette: Palette) -> None:
    """Write an SVG. Equal figures give equal files."""
    import matplotlib
    from matplotlib.figure import Figure

    points = [Point(*size) for size in SIZES]
    look: dict[Any, Any] = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), palette.text)
    look |= {"axes.edgecolor": palette.faint, "svg.hashsalt": "setselect", "svg.fonttype": "none"}
    with matplotlib.rc_context(look):
        figure = Figure(figsize=(8, 4.6), layout="constrained")
        axes = figure.subplots()
        axes.set(xscale="log", yscale="log")
        for (ours, peer, name, style), colour in zip(LINES, palette.lines, strict=True):
            both = [point for point in points if found.has(point, ours) and found.has(point, peer)]
            if not both:
                continue
            times = [found.ratio(point, peer, ours) for point in both]
            sizes, medians = [point.n for point in both], [ratio.median for ratio in times]
            spreads = np.abs([(ratio.low - ratio.median, ratio.high - ratio.median) for ratio in times]).T
            style_of: Any = {"fmt": style, "color": colour, "marker": "o", "markersize": 4, "capsize": 2}
            axes.errorbar(sizes, medians, yerr=spreads, label=name, **style_of)
        axes.axhline(1, color=palette.text, linewidth=0.8)
        axes.set_xticks([point.n for point in points], [_tick(point) for point in points], fontsize=8)
        axes.minorticks_off()
        ticks = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
        low, high = axes.get_ylim()
        shown = [tick for tick in ticks if low <= tick <= high]
        axes.set_yticks(shown, [f"{tick:,g} ×" for tick in shown], fontsize=8)
        axes.grid(color=palette.faint, linewidth=0.5)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("candidates, their dimensions, picks")
        axes.set_title("How many times as fast setselect's MMR is as", loc="left", fontsize=11)
        figure.legend(loc="outside right upper", frameon=False, fontsize=8)
        figure.savefig(path, format="svg", transparent=True, metadata={"Date": None})


def _tick(point: Point) -> str:
    return f"{point.n:,}\n{point.d}-d\nk = {point.k}"
