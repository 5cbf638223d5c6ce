"""The report's table: settings by measures, ready to print."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from ..results import Comparison, Estimate, Measure, Needs
from ._text import counted, digits_for, number

_TITLES: dict[Needs, str] = {
    "nothing": "From the vectors alone",
    "gold": "Against gold documents",
    "subtopics": "Against subtopics",
    "perspectives": "Against perspectives",
    "answers": "Against answers",
}
WHISKER = 64  # width of the little interval in a cell


@dataclass(frozen=True)
class Cell:
    """One value: its digits, whether no other in the column is better, and its interval as text and to scale."""

    mean: str
    interval: str
    best: bool
    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Row:
    """One setting."""

    label: str
    selector: str
    recommended: bool
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class Group:
    """The settings of one method."""

    method: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Column:
    """One measure; ``queries`` says over how many it is a mean where that is not all of them."""

    name: str
    description: str
    higher_is_better: bool
    queries: str | None


@dataclass(frozen=True)
class Span:
    """A heading over neighbouring columns that need the same of the queries."""

    title: str
    columns: int


@dataclass(frozen=True)
class Table:
    """Everything that the template needs for the table."""

    spans: tuple[Span, ...]
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]


def by_method(comparison: Comparison) -> dict[str, list[int]]:
    """Positions of the settings under their method, methods in the order in which they first occur."""
    methods: dict[str, list[int]] = {}
    for position, setting in enumerate(comparison.settings):
        methods.setdefault(setting.method, []).append(position)
    return methods


def _cells(comparison: Comparison, measure: Measure) -> list[Cell | None]:
    found = [comparison.values.get((position, measure.key)) for position in range(len(comparison.settings))]
    present = [estimate for estimate in found if estimate is not None]
    if not present:
        return [None] * len(found)
    digits = digits_for([bound for estimate in present for bound in (estimate.low, estimate.high)])
    best = (max if measure.higher_is_better else min)(estimate.mean for estimate in present)
    low, high = min(estimate.low for estimate in present), max(estimate.high for estimate in present)
    scale = (WHISKER - 8) / (high - low) if high > low else 0.0

    def cell(estimate: Estimate) -> Cell:
        at = [round(4 + (bound - low) * scale, 1) for bound in (estimate.low, estimate.mean, estimate.high)]
        interval = f"{number(estimate.low, digits)} – {number(estimate.high, digits)}"
        # Printed digits decide: two equal figures of which one is marked would only puzzle.
        is_best = number(estimate.mean, digits) == number(best, digits)
        return Cell(number(estimate.mean, digits), interval, is_best, at[0], at[1], at[2])

    return [None if estimate is None else cell(estimate) for estimate in found]


def _column(comparison: Comparison, measure: Measure) -> Column:
    counts = {estimate.queries for (_, key), estimate in comparison.values.items() if key == measure.key}
    queries = None
    if counts and counts != {comparison.corpus.queries}:
        least, most = min(counts), max(counts)
        queries = counted(most, "query", "queries") if least == most else f"{least:,} to {most:,} queries"
    return Column(measure.name, measure.description, measure.higher_is_better, queries)


def table(comparison: Comparison) -> Table:
    """The table of ``comparison``: rows grouped by method, the best value of each column known."""
    columns = [_cells(comparison, measure) for measure in comparison.measures]

    def row(position: int) -> Row:
        setting = comparison.settings[position]
        recommended = position == comparison.recommendation.setting
        return Row(setting.label, setting.selector, recommended, tuple(column[position] for column in columns))

    spans = groupby(comparison.measures, key=lambda measure: measure.needs)
    return Table(
        tuple(Span(_TITLES[needs], len(list(members))) for needs, members in spans),
        tuple(_column(comparison, measure) for measure in comparison.measures),
        tuple(
            Group(method, tuple(row(position) for position in positions))
            for method, positions in by_method(comparison).items()
        ),
    )
