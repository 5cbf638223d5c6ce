"""A comparison on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table as ConsoleTable
from rich.text import Text

from ..evaluation.diagnosis import Diagnosis
from ..evaluation.results import Comparison, Measure, clip, counted
from ..evaluation.tables import Table, tabulate_differences, tabulate_means, tabulate_replacements, tabulate_sizes


def show_comparison(show: Console, comparison: Comparison) -> None:
    """Print the tables, and what they say of the best row."""
    facts, advice = comparison.corpus, comparison.recommendation
    documents = "" if facts.documents is None else f"{counted(facts.documents, 'document')}, "
    queries = counted(facts.queries, "query", "queries")
    _print(show, f"{comparison.title}: {documents}{queries}; {facts.k} of the {facts.fetch_k} nearest; {facts.model}")
    labels = max(len(setting.label) for setting in comparison.settings) + 2
    for measures in _fit(comparison.measures, show.width - labels - 3):
        _print_table(show, comparison, tabulate_means(comparison, measures), lines=False)
    deciding = comparison.deciding
    if deciding is not None and len(comparison.settings) > 1:
        _print(show, f"\n{deciding.name} against similarity:")
        _print_table(show, comparison, tabulate_differences(comparison, deciding))
    sizes = tabulate_sizes(comparison)
    if deciding is not None and sizes is not None:
        _print(show, f"\n{sizes[0]} by the number of texts:")
        _print_table(show, comparison, sizes[1], lines=False)
    if deciding is None and len(comparison.settings) > 1:
        _print(show, f"\nTexts of similarity that a setting replaces, of {facts.k}:")
        _print_table(show, comparison, tabulate_replacements(comparison), lines=False)
    _print(show, f"\n{advice.text}")
    for note in comparison.notes:
        _print(show, f"Note: {note}")


def show_diagnosis(show: Console, diagnosis: Diagnosis) -> None:
    """Print what a corpus holds."""
    documents = "" if diagnosis.documents is None else f": {counted(diagnosis.documents, 'document')}"
    _print(show, f"{diagnosis.title}{documents}\n")
    printed = ConsoleTable("what there is", "share", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for finding in diagnosis.findings:
        printed.add_row(Text(finding.name), Text(finding.text))
    show.print(printed)
    _print(show, f"\n{diagnosis.text}")


def _print(show: Console, text: str) -> None:
    show.print(Text(_plain(text)))


def _plain(text: str) -> str:
    """The text with a minus that every encoding has."""
    return text.replace("−", "-")


def _print_table(show: Console, comparison: Comparison, table: Table, *, lines: bool = True) -> None:
    """The table, with the smaller lines of its cells if asked; the best row has an arrow, and is bold."""
    printed = ConsoleTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    printed.add_column("setting", no_wrap=not lines)
    for column in table.columns:
        printed.add_column(column.name, justify="right")
    for setting, of_setting in table.rows.items():
        recommended = setting == comparison.recommendation.setting
        label = f"{'→ ' if recommended else '  '}{comparison.settings[setting].label}"
        cells = []
        for cell in of_setting:
            shown = [_plain(line) for line in (cell.text, *(cell.lines if lines else ()))]
            if cell.query is not None:
                # A long question must not squeeze the figures.
                shown.append(clip(comparison.question(cell.query), 24))
            cells.append(Text("\n".join(shown), "bold" if cell.best else ""))
        printed.add_row(Text(label, "bold" if recommended else ""), *cells)
    show.print(printed)


def _fit(measures: tuple[Measure, ...], width: int) -> Iterator[list[Measure]]:
    """The measures in groups whose columns fit into the width; the words of a name stand below each other."""
    group: list[Measure] = []
    left = width
    for measure in measures:
        needed = max(5, *map(len, measure.name.split())) + 3
        if group and needed > left:
            yield group
            group, left = [], width
        group.append(measure)
        left -= needed
    yield group
