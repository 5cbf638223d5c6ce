"""The report's tables: settings by measures, and settings against similarity."""

from __future__ import annotations

from typing import NamedTuple

from ..hybrid_search import HYBRID_SEARCH
from ..results import Comparison, Estimate, Measure, Needs, Setting, counted
from ._text import number

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
    "coverage": "A set of texts that are relevant, cover the words of the query together, and do not repeat each "
    "other. A text that an earlier pick mentions by its title gets a bonus.",
    "ndpp": "A set of texts that are relevant and do not repeat each other.",
    "vrsd": "Texts whose sum points in the direction of the query.",
    "mmr": "Text by text: relevant, and not similar to those before it. A lower lambda_mult weighs repetition more.",
    HYBRID_SEARCH: "Two searches over all documents, one by the words (BM25) and one by the vectors. Reciprocal rank "
    "fusion joins their rankings. It is another search, which needs an index of the words, and selects nothing: there "
    "are no lines of code to paste.",
    "reranker": "The texts with the highest scores of your reranker.",
    "rrf": "The ranks of a text for the sub-questions, added up.",
    "highest cosine": "The texts that are nearest to the query or to one of its sub-questions.",
}


class Cell(NamedTuple):
    """One value and its interval as text, and whether it is the best of its column."""

    mean: str
    interval: str
    best: bool


class Column(NamedTuple):
    """One measure with a cell for each setting; ``queries`` names their number if not all queries allow the measure."""

    measure: Measure
    queries: str | None
    cells: list[Cell]


def method_of(setting: Setting) -> str:
    """The name of the method. Each ranking, such as hybrid search, is a method of its own."""
    return setting.label if setting.method == "ranking" else setting.method


def by_method(comparison: Comparison) -> dict[str, list[int]]:
    """For each method the positions of its settings, methods in the order of their first setting."""
    methods: dict[str, list[int]] = {}
    for position, setting in enumerate(comparison.settings):
        methods.setdefault(method_of(setting), []).append(position)
    return methods


def make_column(comparison: Comparison, measure: Measure) -> Column:
    """The column of a measure."""
    estimates = [comparison.values[position, measure.key] for position in range(len(comparison.settings))]
    best = number((max if measure.higher_is_better else min)(estimate.mean for estimate in estimates))

    def cell(estimate: Estimate) -> Cell:
        mean = number(estimate.mean)
        # The printed digits decide what is best: of two equal figures, both are marked.
        return Cell(mean, f"{number(estimate.low)} – {number(estimate.high)}", mean == best)

    counts = {estimate.queries for estimate in estimates}
    queries = None
    if counts != {comparison.corpus.queries}:
        least, most = min(counts), max(counts)
        queries = counted(most, "query", "queries") if least == most else f"{least:,} to {most:,} queries"
    return Column(measure, queries, [cell(estimate) for estimate in estimates])


def shown_measures(comparison: Comparison) -> list[Measure]:
    """The measures in the order of the table of all settings: the one that decides, those with the same needs, others.

    The others keep their order.
    """
    deciding = comparison.recommendation.measure
    needs = next((one.needs for one in comparison.measures if one.key == deciding), None)
    return sorted(comparison.measures, key=lambda one: (one.needs != needs, one.key != deciding))


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
