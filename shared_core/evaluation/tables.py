"""The tables of a comparison as text, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..selectors.registry import DEFAULT_SELECTOR
from .results import Comparison, Difference, Estimate, Measure, Size, counted, number, percent


class Cell(NamedTuple):
    """A figure, smaller lines below it, and the id of a query if the figure is about one."""

    text: str
    lines: tuple[str, ...] = ()
    best: bool = False
    query: str | None = None


class Column(NamedTuple):
    """A heading, and smaller lines below it."""

    name: str
    lines: tuple[str, ...] = ()


class Table(NamedTuple):
    """Settings by columns: ``rows`` has the cells of each setting, by its position."""

    columns: list[Column]
    rows: dict[int, list[Cell]]


def tabulate_means(comparison: Comparison, measures: Sequence[Measure]) -> Table:
    """The mean of each setting by each measure, with its interval."""
    columns, cells = [], []
    for measure in measures:
        estimates = [comparison.values[i, measure.key] for i in range(len(comparison.settings))]
        means = [number(estimate.mean) for estimate in estimates]
        # The printed digits decide what is best: of two equal figures, both are marked.
        best = number((max if measure.higher_is_better else min)(estimate.mean for estimate in estimates))
        lines = [f"{'↑ higher' if measure.higher_is_better else '↓ lower'} is better"]
        if measure.most < 1:
            lines.append(f"at most {number(measure.most)}")
        counts = {estimate.queries for estimate in estimates}
        if counts != {comparison.corpus.queries}:
            lines.append(counted(max(counts), "query", "queries"))
        columns.append(Column(measure.name, tuple(lines)))
        intervals = [_interval(estimate) for estimate in estimates]
        cells.append([Cell(mean, (ends,), mean == best) for mean, ends in zip(means, intervals, strict=True)])
    return Table(columns, dict(enumerate(map(list, zip(*cells, strict=True)))))


def tabulate_differences(comparison: Comparison, measure: Measure) -> Table:
    """What each setting gains and loses against similarity by a measure."""
    names = ("Difference", "Worse", "Worst query")
    rows = {
        i: _difference_cells(comparison.differences[i, measure.key], measure.higher_is_better)
        for i in range(1, len(comparison.settings))
    }
    return Table([Column(name) for name in names], rows)


def _difference_cells(to: Difference, higher_is_better: bool) -> list[Cell]:
    better = f"better: {percent(to.better)}"
    mean = Cell(signed(to.mean), (f"{signed(to.low)} to {signed(to.high)}",))
    if to.worst_query is None:
        return [mean, Cell(percent(to.worse), (better,)), Cell("–")]
    loss = -to.worst_loss if higher_is_better else to.worst_loss
    worse = Cell(percent(to.worse), (f"by {number(to.loss)}", better))
    return [mean, worse, Cell(signed(loss), query=to.worst_query)]


def tabulate_replacements(comparison: Comparison) -> Table:
    """How each setting changes what similarity returns."""
    names = ("Results that change", "Texts replaced, mean", "Changed most")
    rows = {}
    for setting, replacement in enumerate(comparison.replacements[1:], 1):
        most = Cell("–")
        if replacement.most:
            query, number_of_texts = replacement.most[0]
            most = Cell(counted(number_of_texts, "text"), query=query)
        rows[setting] = [Cell(percent(replacement.changed)), Cell(number(replacement.replaced, 1)), most]
    return Table([Column(name) for name in names], rows)


def tabulate_sizes(comparison: Comparison) -> tuple[str, Table] | None:
    """What similarity, the best row and the default find with each number of picks; None if only one was tried.

    The measure, whose name comes first, is the one that decides, else relevance.
    """
    key, sizes = comparison.recommendation.measure or "relevance", comparison.sizes
    measure = next((one for one in comparison.measures if one.key == key), None)
    if measure is None or len(sizes) < 2 or (0, key) not in sizes[0].values:
        return None
    default = [i for i, setting in enumerate(comparison.settings) if setting.label == DEFAULT_SELECTOR]
    # Of texts that cover a subtopic, precision counts those that cover any.
    precision = "topic_precision" if measure.needs == "subtopics" else "precision"

    def cell(size: Size, setting: int) -> Cell:
        mean, beside = size.values[setting, key], size.values.get((setting, precision))
        lines = [] if beside is None else [f"precision {number(beside.mean, 2)}"]
        return Cell(number(mean.mean), (_interval(mean), *lines, f"{number(size.characters[setting], 0)} characters"))

    settings = dict.fromkeys([0, comparison.recommendation.best_other or 0, *default])
    rows = {setting: [cell(size, setting) for size in sizes] for setting in settings}
    return measure.name.partition("@")[0], Table([Column(counted(size.k, "text")) for size in sizes], rows)


def _interval(of: Estimate) -> str:
    # A narrow column does not break it.
    return f"{number(of.low)} – {number(of.high)}".replace(" ", "\N{NO-BREAK SPACE}")


def signed(difference: float) -> str:
    """A difference with its sign: ``+0.031``, ``−0.020``; ``0.000`` has none.

    >>> signed(0.031), signed(-0.02), signed(0.0001)
    ('+0.031', '−0.020', '0.000')
    """
    text = number(difference)
    return text if text.strip("−0.") == "" or text.startswith("−") else f"+{text}"
