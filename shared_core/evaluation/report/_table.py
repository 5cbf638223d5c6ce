"""The report's tables: settings by measures, and settings against similarity."""

from __future__ import annotations

from typing import NamedTuple

from ..results import Comparison, Estimate, Measure, Needs
from ._text import counted, number

TITLES: dict[Needs, str] = {
    "nothing": "From the vectors alone",
    "gold": "Against gold documents",
    "subtopics": "Against subtopics",
    "perspectives": "Against perspectives",
    "answers": "Against answers",
}
# What the methods do, for readers who have not met them.
METHODS = {
    "similarity": "The texts that are nearest to the query.",
    "coverage": "A set of texts that are relevant, cover the words of the query together, do not repeat each other and "
    "name each other.",
    "ndpp": "A set of texts that are relevant and do not repeat each other.",
    "vrsd": "Texts whose sum points in the direction of the query.",
    "mmr": "Text by text: relevant, and not similar to those before it. A lower lambda_mult weighs repetition more.",
    "ranking": "The first texts of another ranking, such as hybrid search: by vectors and by words (BM25).",
    "reranker": "The texts with the highest scores of your reranker.",
    "rrf": "The ranks of a text for the sub-questions, added up.",
    "highest cosine": "The texts that are nearest to the query or to one of its sub-questions.",
}
WHISKER = 64  # width in pixels of the drawing of an interval


class Cell(NamedTuple):
    """One value: as text, whether it is the best of its column, and the places of its interval in the drawing."""

    mean: str
    interval: str
    best: bool
    low: float
    middle: float
    high: float


class Column(NamedTuple):
    """One measure with a cell for each setting; ``queries`` names their number if not all queries allow the measure."""

    measure: Measure
    queries: str | None
    cells: list[Cell]


def by_method(comparison: Comparison) -> dict[str, list[int]]:
    """For each method the positions of its settings, methods in the order of their first setting."""
    methods: dict[str, list[int]] = {}
    for position, setting in enumerate(comparison.settings):
        methods.setdefault(setting.method, []).append(position)
    return methods


def make_column(comparison: Comparison, measure: Measure) -> Column:
    """The column of a measure."""
    estimates = [comparison.values[position, measure.key] for position in range(len(comparison.settings))]
    best = number((max if measure.higher_is_better else min)(estimate.mean for estimate in estimates))
    low, high = min(estimate.low for estimate in estimates), max(estimate.high for estimate in estimates)
    scale = (WHISKER - 8) / (high - low) if high > low else 0.0

    def cell(estimate: Estimate) -> Cell:
        places = (round(4 + (bound - low) * scale, 1) for bound in (estimate.low, estimate.mean, estimate.high))
        mean = number(estimate.mean)
        # The printed digits decide what is best: of two equal figures, both are marked.
        return Cell(mean, f"{number(estimate.low)} – {number(estimate.high)}", mean == best, *places)

    counts = {estimate.queries for estimate in estimates}
    queries = None
    if counts != {comparison.corpus.queries}:
        least, most = min(counts), max(counts)
        queries = counted(most, "query", "queries") if least == most else f"{least:,} to {most:,} queries"
    return Column(measure, queries, [cell(estimate) for estimate in estimates])


def compared_measures(comparison: Comparison) -> list[Measure]:
    """The measures by which settings are compared with similarity: the one that decides, the others, those by cosine.

    There are none if similarity is the only setting.
    """
    if len(comparison.settings) == 1:
        return []
    deciding = comparison.recommendation.measure
    return sorted(comparison.measures, key=lambda one: (one.key != deciding, one.needs == "nothing"))


def signed(difference: float) -> str:
    """A difference with its sign: ``+0.031``, ``−0.020``; ``0.000`` has none."""
    text = number(difference)
    return text if text.strip("−0.") == "" or text.startswith("−") else f"+{text}"
