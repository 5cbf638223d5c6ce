"""Draws docs/assets/reference*.svg and citation*.svg: questions whose texts lead to each other, and two selections.

The first question is one of HotpotQA. The rule book of the second one is made up for the picture.

.venv/bin/python examples/_reference_picture.py
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import _picture
from _hotpotqa import MISSING, hotpotqa
from _picture import ASSETS, PANEL, ROW, Palette, chip, frame, head, verdict
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_setselect import SetSelectRetriever

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever

QUESTION = "Where does Yannick Ferreira Carrasco play home games?"
CITING = "What does a firm need before it opens an account for a client?"
K, HEIGHT, WIDEST = 5, 332, 26
FILES = {name.replace("effect", "reference"): palette for name, palette in _picture.FILES.items()}
CITED_FILES = {name.replace("effect", "citation"): palette for name, palette in _picture.FILES.items()}
NOTE = "HotpotQA. Both texts in colour are needed for the answer. The first one names the second one."
CITED_NOTE = "A made-up rule book. Rule 3.1 says: \u201cA firm opens an account for a client only under Rule 7.2.\u201d"
RULES = {
    "3.1": "A firm opens an account for a client only under Rule 7.2.",
    "3.2": "A firm may close an account of a client on request.",
    "3.3": "A firm opens no second account for the same client.",
    "3.4": "A firm tells each client the number of the account.",
    "3.5": "The client of a closed account may open a new account.",
    "3.6": "A firm charges a client a fee for an account.",
    "5.1": "Fees are stated in the annex.",
    "7.1": "Copies of passports are kept for six years.",
    "7.2": "A firm must see a passport and a proof of residence of the client.",
    "7.3": "Staff are trained every year.",
}


class CountWords(Embeddings):
    """How often a text has each of a few words, which stands in for a model."""

    def embed_query(self, text: str) -> list[float]:
        words = re.findall(r"\w+", text.lower())
        return [words.count(word) + 0.1 for word in ("firm", "account", "client", "opens", "passport", "fee", "year")]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return list(map(self.embed_query, texts))


@dataclass(frozen=True)
class Panel:
    """The titles of one method's picks, whether the answer needs each, and the row of the pick that refers to it."""

    heading: str
    what: str
    titles: list[str]
    needed: list[bool]
    referred_by: list[int | None]


def panels() -> list[Panel]:
    """What the two retrievers select."""
    store, questions = hotpotqa()
    gold = next({*map(str, question["gold"])} for question in questions if question["question"] == QUESTION)
    nearest: BaseRetriever = store.as_retriever(search_kwargs={"k": K})
    best = SetSelectRetriever(vectorstore=store, k=K, scores=True)
    return [
        _read("similarity search", f"the {K} nearest", nearest.invoke(QUESTION), gold),
        _read("setselect", f"the best set of {K}", best.invoke(QUESTION), gold),
    ]


def citing_panels() -> list[Panel]:
    """What the two retrievers select from the rules."""
    store = InMemoryVectorStore(CountWords())
    store.add_documents(
        [
            Document(text, id=number, metadata={"title": f"Rule {number}", "source": "rules", "section": number})
            for number, text in RULES.items()
        ]
    )
    nearest: BaseRetriever = store.as_retriever(search_kwargs={"k": K})
    best = SetSelectRetriever(vectorstore=store, k=K, scores=True)
    return [
        _read("similarity search", f"the {K} nearest", nearest.invoke(CITING), {"3.1", "7.2"}),
        _read("setselect", f"the best set of {K}", best.invoke(CITING), {"3.1", "7.2"}),
    ]


def _read(heading: str, what: str, documents: list[Document], gold: set[str]) -> Panel:
    titles = [document.metadata["title"] for document in documents]
    names = [document.metadata.get("selection_referred_by") for document in documents]
    referred_by = [None if name is None else titles.index(name) for name in names]
    return Panel(heading, what, titles, [document.id in gold for document in documents], referred_by)


def draw(
    shown: list[Panel], palette: Palette, question: str = QUESTION, note: str = NOTE, how: str = "named by"
) -> str:
    """The picture as SVG. Equal selections give equal texts."""
    panels_in_picture = [_panel(panel, palette, how) for panel in shown]
    return frame(question, question, description(shown, how), panels_in_picture, note, HEIGHT, palette)


def description(shown: list[Panel], how: str = "named by") -> str:
    """The picture in words."""
    sentences = []
    for panel in shown:
        sentences.append(f"{panel.heading} ({panel.what}) picks {', '.join(panel.titles)}: {_count(panel)}.")
        for title, row in zip(panel.titles, panel.referred_by, strict=True):
            if row is not None:
                sentences.append(f"{title} is {how} {panel.titles[row]}.")
    return " ".join(sentences)


def _count(panel: Panel) -> str:
    return f"{sum(panel.needed)} of 2 needed texts"


def shorten(title: str) -> str:
    """The title, cut where it would be wider than its box."""
    return title if len(title) <= WIDEST else f"{title[: WIDEST - 1].rstrip()}…"


def _panel(panel: Panel, palette: Palette, how: str) -> list[str]:
    """Heading, picks from top to bottom with an arrow to each to which another one refers, and how many are needed."""
    lines = head(panel.heading, panel.what, HEIGHT - 72, palette)
    blue, orange = palette.parts
    for i, (title, needed) in enumerate(zip(panel.titles, panel.needed, strict=True)):
        colour, weight = (blue, 600) if needed else (palette.faint, 400)
        text = f'font-size="17" font-weight="{weight}" fill="{colour}">{escape(shorten(title))}'
        lines += [*chip(i, text, colour, colour, 1 if needed else 0.4, palette), "</g>"]
    edge = PANEL - 12
    for i, row in enumerate(panel.referred_by):
        if row is not None:
            start, end = (44 + ROW // 2 + (ROW + 4) * at for at in (row, i))
            lines += [
                f'<text x="{edge - 30}" y="{end + 6}" font-size="16" text-anchor="end" fill="{orange}">{how}</text>',
                f'<path d="M{edge} {start}c14 0 14 {end - start} -20 {end - start}m7 -6l-7 6 7 6" fill="none" '
                f'stroke="{orange}" stroke-width="2.5"/>',
            ]
    complete = sum(panel.needed) == 2
    return [*lines, *verdict(240, _count(panel), complete, blue if complete else palette.missed)]


def main() -> None:
    """Write both files."""
    if MISSING:
        sys.exit(MISSING)
    shown = panels()
    for name, palette in FILES.items():
        (ASSETS / name).write_text(draw(shown, palette), encoding="utf-8")
    shown = citing_panels()
    for name, palette in CITED_FILES.items():
        (ASSETS / name).write_text(draw(shown, palette, CITING, CITED_NOTE, "cited by"), encoding="utf-8")


if __name__ == "__main__":
    main()
