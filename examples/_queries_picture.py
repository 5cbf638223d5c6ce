"""Draws docs/assets/queries.svg and queries-dark.svg: a question of 2WikiMultihopQA with two sub-questions, and what
reciprocal rank fusion and setselect make of them.

.venv/bin/python examples/_queries_picture.py
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import _picture
from _hotpotqa import WIKI, read_set, what_is_missing
from _picture import ASSETS, PANEL, Palette, chip, frame, head, verdict
from _reference_picture import shorten
from langchain_classic.retrievers import EnsembleRetriever

from langchain_setselect import SetSelectCompressor, SetSelectRetriever

if TYPE_CHECKING:
    from langchain_core.documents import Document

QUESTION = "Was Kurt Szilier or Lee Zeldin born first?"
# The parts of the question that its sub-questions are about.
NAMES = ("Kurt Szilier", "Lee Zeldin")
# Each query fetches its share of 50 candidates, for both methods.
K, EACH, HEIGHT = 5, 17, 356
MISSING = what_is_missing(WIKI)
FILES = {name.replace("effect", "queries"): palette for name, palette in _picture.FILES.items()}


@dataclass(frozen=True)
class Panel:
    """The titles of one method's picks, whether the answer needs each, and the query that each serves best.

    Query 0 is the question, 1 and 2 are the sub-questions.
    """

    heading: str
    what: str
    titles: list[str]
    needed: list[bool]
    serves: list[int]


def panels() -> tuple[list[str], list[Panel]]:
    """The sub-questions, and what the two methods select."""
    store, questions = read_set(WIKI)
    found = next(question for question in questions if question["question"] == QUESTION)
    gold, sub_questions = {*map(str, found["gold"])}, found["sub_questions"]
    queries = [QUESTION, *sub_questions]
    nearest = store.as_retriever(search_kwargs={"k": EACH})
    lists = [nearest.invoke(query) for query in queries]
    fused = EnsembleRetriever(retrievers=[nearest] * 3, weights=[1 / 3] * 3).weighted_reciprocal_rank(lists)
    # Plain similarity over all candidates says which query each of them serves best.
    reads = SetSelectCompressor(
        vectorstore=store, k=len(fused), search_type="similarity", queries=sub_questions, scores=True
    )
    every = reads.compress_documents(fused, QUESTION)
    served = {document.id: queries.index(document.metadata["selection_serves"]) for document in every}
    best = SetSelectRetriever(vectorstore=store, k=K).invoke(QUESTION, queries=sub_questions)

    def panel(heading: str, what: str, picks: list[Document]) -> Panel:
        titles = [document.metadata["title"] for document in picks]
        needed = [document.id in gold for document in picks]
        return Panel(heading, what, titles, needed, [served[document.id] for document in picks])

    return sub_questions, [
        panel("rank fusion", f"the first {K}", fused[:K]),
        panel("setselect", f"the best set of {K}", best),
    ]


def draw(sub_questions: list[str], shown: list[Panel], palette: Palette) -> str:
    """The picture as SVG. Equal selections give equal texts."""
    heading = escape(QUESTION)
    for name, colour in zip(NAMES, palette.parts, strict=True):
        heading = heading.replace(name, f'<tspan fill="{colour}">{name}</tspan>')
    note = "2WikiMultihopQA. Bold: needed. Colour: the query that a text serves best; grey: the question."
    drawn = [_panel(panel, sub_questions, palette) for panel in shown]
    words, methods = description(sub_questions, shown), "rank fusion and setselect"
    return frame(QUESTION, heading, words, drawn, note, HEIGHT, palette, methods)


def description(sub_questions: list[str], shown: list[Panel]) -> str:
    """The picture in words."""
    queries = ["the question", *(f"“{query}”" for query in sub_questions)]
    sentences = []
    for panel in shown:
        picks = ", ".join(
            f"{title} ({'needed, ' if needed else ''}for {queries[query]})"
            for title, needed, query in zip(panel.titles, panel.needed, panel.serves, strict=True)
        )
        sentences.append(f"{panel.heading} ({panel.what}) picks {picks}: {sum(panel.needed)} of 2 needed texts.")
    return " ".join(sentences)


def _panel(panel: Panel, sub_questions: list[str], palette: Palette) -> list[str]:
    """Heading, picks from top to bottom, and for each sub-question whether its text is there."""
    lines = head(panel.heading, panel.what, HEIGHT - 72, palette)
    colours = (palette.faint, *palette.parts)
    for i, (title, needed, query) in enumerate(zip(panel.titles, panel.needed, panel.serves, strict=True)):
        colour = colours[query]
        text = f'font-size="17" font-weight="{700 if needed else 400}" fill="{colour}">{escape(shorten(title))}'
        lines += chip(i, text, colour, colour, 1 if needed else 0.4, palette)
        if needed:
            lines.append(
                f'<path d="M0 5l5 5 9-10" transform="translate({PANEL - 48} 12)" fill="none" stroke="{colour}" '
                'stroke-width="3"/>'
            )
        lines.append("</g>")
    there = [title for title, needed in zip(panel.titles, panel.needed, strict=True) if needed]
    for i, (asked, colour) in enumerate(zip(sub_questions, palette.parts, strict=True)):
        answered = any(title in asked for title in there)
        lines += verdict(240 + 24 * i, asked, answered, colour if answered else palette.missed)
    return lines


def main() -> None:
    """Write both files."""
    if MISSING:
        sys.exit(MISSING)
    sub_questions, shown = panels()
    for name, palette in FILES.items():
        (ASSETS / name).write_text(draw(sub_questions, shown, palette), encoding="utf-8")


if __name__ == "__main__":
    main()
