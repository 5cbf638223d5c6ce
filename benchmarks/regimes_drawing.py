"""The drawing of benchmarks/results/regimes.md: the table of its summary, points more or less than similarity."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from benchmarks.common import RESULTS
from benchmarks.racing.plot import DARK, LIGHT, Palette

# The column of the page, its name in the drawing, and its marker. The default is drawn last, over the others.
METHODS = (
    ("MMR λ 0.5", "MMR, λ = 0.5", "v"),
    ("sum of scores", "sum of scores, a second index", "D"),
    ("keyword_search", "keyword_search, a second index", "s"),
    ("setselect", "setselect", "o"),
)
# Further losses are drawn at this value, with the figure beside the marker.
LOWEST = -12.0


def points(page: str) -> dict[str, dict[str, float]]:
    """The points that each method adds, by kind of corpus and question; the last one is the mean of the kinds."""
    part = page.split("## Points more than similarity")[1].split("\n## ")[0].split("\n- ")[0]
    head, _, *rows = (
        [cell.strip(" *") for cell in line.split("|")[1:-1]] for line in part.splitlines() if line[:1] == "|"
    )
    columns = {column: head.index(column) for column, _, _ in METHODS}
    # The interval of a figure stands behind it.
    added = {row[0]: {name: float(row[at].split()[0].strip("*")) for name, at in columns.items()} for row in rows}
    return {kind: worth for kind, worth in added.items() if kind != "worst task"}


def in_words(added: dict[str, dict[str, float]]) -> str:
    """The figures of the drawing, which its file holds as its description."""
    return "; ".join(
        f"{group}: " + ", ".join(f"{name} {worth[column]:+.1f}" for column, name, _ in METHODS)
        for group, worth in added.items()
    )


def draw(path: Path, added: dict[str, dict[str, float]], palette: Palette) -> None:
    """Write an SVG. Equal figures give equal files."""
    colours = (palette.lines[1], palette.lines[2], palette.lines[0], palette.lines[4])
    look = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), palette.text)
    with matplotlib.rc_context({**look, "svg.hashsalt": "setselect", "svg.fonttype": "none"}):
        # A phone shows the drawing at two thirds of this width: names stand above their rows, in letters of 12 points.
        figure = Figure(figsize=(5, 9.2), layout="constrained")
        axes = figure.subplots()
        write = partial(axes.annotate, textcoords="offset points", va="center", fontsize=12)
        for (column, name, marker), colour in zip(METHODS, colours, strict=True):
            worth = [row[column] for row in added.values()]
            axes.plot(
                [max(value, LOWEST) for value in worth],
                range(len(worth)),
                marker,
                color=colour,
                markersize=8,
                label=name,
            )
            for row, value in enumerate(worth):
                if value < LOWEST:
                    text = f"{value:.1f}".replace("-", "−")
                    write(text, (LOWEST, row), (8, 0), color=colour)
        for row, group in enumerate(added):
            write(group, (LOWEST, row), (-6, 16))
        rows = range(len(added))
        axes.hlines(rows, LOWEST, axes.get_xlim()[1], palette.faint, linewidth=1, zorder=1)
        axes.vlines([0] * len(added), [row - 0.22 for row in rows], [row + 0.22 for row in rows], palette.text)
        axes.axhline(len(added) - 1.68, color=palette.text, linewidth=1)
        axes.set_ylim(len(added) - 0.6, -0.75)
        axes.set_xlim(LOWEST - 1)
        axes.set_yticks([])
        axes.tick_params(length=0, labelsize=12)
        axes.grid(axis="x", color=palette.faint, linewidth=0.5)
        axes.set_axisbelow(True)
        axes.spines[:].set_visible(False)
        axes.set_xlabel("points of 100 more than similarity", fontsize=12)
        figure.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=12, handletextpad=0.1, columnspacing=1)
        figure.savefig(path, format="svg", transparent=True, metadata={"Date": None, "Description": in_words(added)})


def main() -> None:
    added = points((RESULTS / "regimes.md").read_text(encoding="utf-8"))
    draw(RESULTS / "regimes.svg", added, LIGHT)
    draw(RESULTS / "regimes-dark.svg", added, DARK)
