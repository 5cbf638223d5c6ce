"""Draws the picture of the documentation, docs/assets/effect.svg and effect-dark.svg, from what the demo selects.

.venv/bin/python examples/_picture.py
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from _minilm import Docs, faiss_store, minilm, numpy_docs
from demo import FETCH_K, QUESTIONS, REPEAT, K, Picks, measure, through_langchain

if TYPE_CHECKING:
    from langchain_community.vectorstores import FAISS

ASSETS = Path(__file__).resolve().parent.parent / "docs" / "assets"
QUESTION = QUESTIONS[1]
# The question asks for two things. The methods get the whole question; its parts serve for the colours only.
PARTS = QUESTION.split(" and ")
# Method of the demo, heading, what the method picks.
PANELS = (("similarity", "similarity search", f"the {K} nearest"), ("coverage", "setselect", f"the best set of {K}"))

WIDTH, HEIGHT, PANEL, ROW = 640, 356, 308, 32
SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"


@dataclass(frozen=True)
class Palette:
    """Colours on a light or on a dark page; the background of the picture is transparent."""

    text: str
    faint: str
    panel: str
    chip: str
    parts: tuple[str, str]
    missed: str


FILES = {
    "effect.svg": Palette("#1f2328", "#59636e", "#f6f8fa", "#ffffff", ("#0969da", "#bc4c00"), "#cf222e"),
    "effect-dark.svg": Palette("#f0f6fc", "#9198a1", "#151b23", "#212830", ("#58a6ff", "#f0883e"), "#ff7b72"),
}


@dataclass(frozen=True)
class Panel:
    """One method's picks, and for each pick the part of the question with the higher cosine: 0 or 1."""

    heading: str
    what: str
    picks: Picks
    part: list[int]


def panels(docs: Docs, store: FAISS) -> list[Panel]:
    """What the two methods of the picture select."""
    query, parts = minilm().embed_query(QUESTION), np.array([minilm().embed_query(part) for part in PARTS])
    found = []
    for method, heading, what in PANELS:
        picks = measure(docs, query, *through_langchain(store, QUESTION, method))
        vectors = docs.vectors[[docs.names.index(name) for name in picks.names]]
        found.append(Panel(heading, what, picks, (vectors @ parts.T).argmax(axis=1).tolist()))
    return found


def draw(shown: list[Panel], palette: Palette) -> str:
    """The picture as SVG. Equal selections give equal texts."""
    coloured = [f'<tspan fill="{c}">{escape(p)}</tspan>' for p, c in zip(PARTS, palette.parts, strict=True)]
    note = f"NumPy’s docstrings. setselect picks from the {FETCH_K} nearest. ≈ nearly repeats an earlier pick."
    panels = [_panel(panel, palette) for panel in shown]
    return frame(QUESTION, " and ".join(coloured), description(shown), panels, note, HEIGHT, palette)


def frame(
    question: str, heading: str, description: str, panels: list[list[str]], note: str, height: int, palette: Palette
) -> str:
    """A picture of two panels side by side, below the question and above a note."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH * 5 // 4}" '
        f'height="{height * 5 // 4}" role="img" aria-labelledby="title desc" '
        f'font-family="{SANS}" fill="{palette.text}">',
        f'<title id="title">What similarity search and setselect pick for “{escape(question)}”</title>',
        f'<desc id="desc">{escape(description)}</desc>',
        f'<text x="{WIDTH // 2}" y="26" font-size="17" font-weight="600" text-anchor="middle">“{heading}”</text>',
    ]
    for i, panel in enumerate(panels):
        lines += [f'<g transform="translate({i * (WIDTH - PANEL)} 44)">', *panel, "</g>"]
    lines += [
        f'<text x="{WIDTH // 2}" y="{height - 8}" font-size="13" text-anchor="middle" fill="{palette.faint}">'
        f"{note}</text>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def description(shown: list[Panel]) -> str:
    """The picture in words."""
    sentences = []
    for panel in shown:
        names = ", ".join(_short(name) for name in panel.picks.names)
        counts = " and ".join(f"{panel.part.count(i)} nearer to “{part}”" for i, part in enumerate(PARTS))
        repeats = f"{sum(panel.picks.repeats)} of {K} nearly repeat an earlier pick (cosine of {REPEAT} or more)"
        sentences.append(f"{panel.heading} ({panel.what}) picks {names}: {counts}; {repeats}.")
    return " ".join(sentences)


def _panel(panel: Panel, palette: Palette) -> list[str]:
    """Heading, picks from top to bottom, and for each part of the question whether a pick belongs to it."""
    lines = head(panel.heading, panel.what, 284, palette)
    for i, (name, repeats, part) in enumerate(zip(panel.picks.names, panel.picks.repeats, panel.part, strict=True)):
        colour = palette.faint if repeats else palette.parts[part]
        text = f'font-size="18" font-family="{MONO}" fill="{colour}">{escape(_short(name))}'
        lines += chip(i, text, colour, palette.parts[part], 0.4 if repeats else 1, palette)
        if repeats:
            lines.append(
                f'<text x="{PANEL - 34}" y="22" font-size="16" text-anchor="end" fill="{colour}">≈ repeats</text>'
            )
        lines.append("</g>")
    for i, part in enumerate(PARTS):
        covered = i in panel.part
        lines += verdict(240 + 24 * i, part, covered, palette.parts[i] if covered else palette.missed)
    return lines


def head(heading: str, what: str, height: int, palette: Palette) -> list[str]:
    """The ground of a panel and its heading."""
    return [
        f'<rect width="{PANEL}" height="{height}" rx="10" fill="{palette.panel}"/>',
        f'<text x="14" y="29" font-size="17" font-weight="700">{heading}'
        f'<tspan font-weight="400" font-size="16" fill="{palette.faint}" dx="8">{what}</tspan></text>',
    ]


def chip(row: int, text: str, border: str, bar: str, opacity: float, palette: Palette) -> list[str]:
    """A pick: its box, the bar on the left, and its name. The group stays open for what else belongs to the pick."""
    return [
        f'<g transform="translate(12 {44 + row * (ROW + 4)})">',
        f'<rect width="{PANEL - 24}" height="{ROW}" rx="5" fill="{palette.chip}" stroke="{border}" '
        f'stroke-opacity="0.4"/>',
        f'<rect width="6" height="{ROW}" rx="3" fill="{bar}" opacity="{opacity}"/>',
        f'<text x="18" y="22" {text}</text>',
    ]


def verdict(y: int, text: str, holds: bool, colour: str) -> list[str]:
    """A line with a tick or a cross."""
    mark = "M0 5l5 5 9-10" if holds else "M1 0l10 10M11 0l-10 10"
    return [
        f'<path d="{mark}" transform="translate(16 {y - 1})" fill="none" stroke="{colour}" stroke-width="3"/>',
        f'<text x="40" y="{y + 9}" font-size="16" fill="{colour}">{escape(text)}</text>',
    ]


def _short(name: str) -> str:
    return name.removeprefix("numpy.")


def main() -> None:
    """Write both files."""
    docs = numpy_docs()
    shown = panels(docs, faiss_store(docs))
    for name, palette in FILES.items():
        (ASSETS / name).write_text(draw(shown, palette), encoding="utf-8")


if __name__ == "__main__":
    main()
