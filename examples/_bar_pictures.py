"""Draws pictures of figures in benchmarks/results, for three pages: learning, reranking, and when diversity hurts.

Each is an SVG for light and one for dark pages in docs/assets, narrow enough for a telephone. The page has the picture
in words (``Chart.in_words``) as its alternative text.

.venv/bin/python examples/_bar_pictures.py
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

import _picture
from _picture import ASSETS, SANS, Palette

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
WIDTH, MARGIN, LINE, HEADING, BAR = 360, 6, 22, 34, 12
# A label that is wider than this stands above its bar, a shorter one beside it.
BESIDE, BESIDE_WIDTH = 7, 64
VALUE_WIDTH = 58


@dataclass(frozen=True)
class Bar:
    """A difference in points, and its 95 % interval where there is one."""

    label: str
    value: float
    interval: tuple[float, float] | None = None

    @property
    def shown(self) -> str:
        # The pages have decimal figures: 0.95 is rounded up, although the nearest binary number is below it.
        return f"{self.value + 1e-9:+.1f}".replace("-", "−")

    @property
    def may_be_chance(self) -> bool:
        return self.interval is not None and self.interval[0] <= 0 <= self.interval[1]


@dataclass(frozen=True)
class Chart:
    """Groups of bars under a heading and the lines that explain it."""

    heading: str
    about: tuple[str, ...]
    groups: dict[str, list[Bar]]

    @property
    def in_words(self) -> str:
        """Everything that the picture shows."""
        groups = (
            f"{name}: {'; '.join(f'{bar.label} {bar.shown}' for bar in bars)}." for name, bars in self.groups.items()
        )
        return f"{self.heading}, in {' '.join(self.about)}. {' '.join(groups)}"


# --- figures ----------------------------------------------------------------------------------------


def read_table(page: str, head: str) -> tuple[list[str], dict[str, list[str]]]:
    """The first table whose head begins with ``head``: its columns, and the cells of each row by the first one."""
    lines = page[page.index(f"\n| {head}") + 1 :].split("\n\n")[0].splitlines()
    columns, _, *rows = ([cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines)
    return columns[1:], {name: cells for name, *cells in rows}


def read(name: str) -> str:
    return (RESULTS / name).read_text(encoding="utf-8")


def numbers(cell: str) -> list[float]:
    """The numbers of a cell.

    >>> numbers("-6.4 [-8.6, -4.4]")
    [-6.4, -8.6, -4.4]
    """
    return [float(number) for number in re.findall(r"[-+]?\d+\.\d+", cell)]


def learning() -> Chart:
    """What learning adds at each k, in hundredths of the coverage."""
    page, groups = read("learned_ndpp.md"), {}
    for name, title in (("geoquery", "GeoQuery"), ("mtop", "MTOP"), ("nl2bash", "NL2Bash")):
        _, rows = read_table(page.split(f"\n## {name}\n")[1], "k | best without learning")
        groups[title] = []
        for k, (_, gain, error, _) in rows.items():
            mean, spread = 100 * numbers(gain)[0], 1.96 * 100 * float(error)
            groups[title].append(Bar(f"k = {k}", mean, (mean - spread, mean + spread)))
    about = ("points of coverage more than", "the best selector without learning")
    return Chart("What a learned kernel adds", about, groups)


def reranking() -> Chart:
    """What a selection from the candidates of hybrid search finds more than their first five."""
    page, groups = read("given_relevance.md"), {}
    shown = {
        "setselect; cosine": "the default, by the cosine",
        "setselect; fused, minmax": "the default, by the fused scores",
        "NDPP, T 0.1; fused, minmax": "NDPP, T = 0.1, by the fused scores",
        "MMR λ 0.75; fused, minmax": "MMR, λ = 0.75, by the fused scores",
    }
    for name in ("SciFact", "HotpotQA, overlapping windows", "Perspectrum"):
        columns, rows = read_table(page.split(f"\n## {name}, k = 5\n")[1], "method; relevance")
        column = columns.index("− hybrid, no selection")
        groups[name] = []
        for row, label in shown.items():
            mean, low, high = numbers(rows[row][column])
            groups[name].append(Bar(label, mean, (low, high)))
    return Chart("Selection after hybrid search", ("points more than", "the first 5 texts of hybrid search"), groups)


def losses() -> Chart:
    """The three tasks in which each method loses most to similarity."""
    columns, rows = read_table(read("regimes.md"), "regime | similarity")
    tasks = {name.replace("paragraphs stored", "stored"): cells for name, cells in rows.items() if name != "worst"}
    groups = {}
    for method in ("MMR λ 0.5", "hybrid search", "sum of scores", "setselect"):
        column = columns.index(method)
        bars = sorted((Bar(name, float(cells[column])) for name, cells in tasks.items()), key=lambda bar: bar.value)
        lost = sum(bar.value < 0 for bar in bars)
        groups[f"{method}: less in {lost} of {len(bars)} tasks"] = bars[:3]
    return Chart(
        "Where each method loses most", ("points against similarity,", "the three worst tasks of each"), groups
    )


CHARTS = {"learning": learning, "reranking": reranking, "losses": losses}


# --- drawing ----------------------------------------------------------------------------------------


def draw(chart: Chart, palette: Palette) -> str:
    """The picture as SVG. Equal figures give equal texts."""
    bars = [bar for some in chart.groups.values() for bar in some]
    ends = [0.0, *(end for bar in bars for end in (bar.value, *(bar.interval or ())))]
    low, high = min(ends), max(ends)
    beside = max(len(bar.label) for bar in bars) <= BESIDE
    left = MARGIN + (BESIDE_WIDTH if beside else 0)
    scale = (WIDTH - MARGIN - left - (VALUE_WIDTH if beside else 0)) / (high - low)

    def x(value: float) -> str:
        return f"{left + (value - low) * scale:.1f}"

    body, y = [], 24
    body.append(f'<text x="{MARGIN}" y="{y}" font-size="18" font-weight="700">{escape(chart.heading)}</text>')
    for line in chart.about:
        y += 20
        body.append(f'<text x="{MARGIN}" y="{y}" font-size="15" fill="{palette.faint}">{escape(line)}</text>')
    y += 6
    for name, some in chart.groups.items():
        y += HEADING
        body.append(f'<text x="{MARGIN}" y="{y - 6}" font-size="16" font-weight="600">{escape(name)}</text>')
        for bar in some:
            colour = palette.faint if bar.may_be_chance else palette.parts[0] if bar.value > 0 else palette.missed
            if not beside:
                y += LINE - 4
            middle = y + LINE // 2
            text = middle + 5 if beside else y - 2
            body += [
                f'<text x="{MARGIN}" y="{text}" font-size="15">{escape(bar.label)}</text>',
                f'<text x="{WIDTH - MARGIN}" y="{text}" font-size="15" font-weight="600" text-anchor="end" '
                f'fill="{colour}">{bar.shown}</text>',
                f'<rect x="{x(min(bar.value, 0))}" y="{middle - BAR / 2:g}" width="{abs(bar.value) * scale:.1f}" '
                f'height="{BAR}" rx="2" fill="{colour}"/>',
            ]
            body.append(f'<path d="M{x(0)} {y}v{LINE}" stroke="{palette.faint}"/>')
            if bar.interval is not None:
                start, end = map(x, bar.interval)
                body.append(
                    f'<path d="M{start} {middle}H{end}M{start} {middle - 4}v8M{end} {middle - 4}v8" '
                    f'stroke="{palette.text}" stroke-width="1.5"/>'
                )
            y += LINE
    if any(bar.interval for bar in bars):
        y += 24
        note = "line: 95 % interval; grey: may be chance"
        body.append(f'<text x="{MARGIN}" y="{y}" font-size="14" fill="{palette.faint}">{note}</text>')
    height = y + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH * 5 // 4}" '
        f'height="{height * 5 // 4}" role="img" aria-labelledby="title desc" '
        f'font-family="{SANS}" fill="{palette.text}">',
        f'<title id="title">{escape(chart.heading)}</title>',
        f'<desc id="desc">{escape(chart.in_words)}</desc>',
        *body,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def files(name: str) -> dict[Path, Palette]:
    """The files of a picture."""
    return {ASSETS / file.replace("effect", name): palette for file, palette in _picture.FILES.items()}


def main() -> None:
    """Write all files, and print the alternative texts for the pages."""
    for name, make in CHARTS.items():
        chart = make()
        for path, palette in files(name).items():
            path.write_text(draw(chart, palette), encoding="utf-8")
        print(f"{name}: {escape(chart.in_words)}")


if __name__ == "__main__":
    main()
