"""The constants of the default: what each of them adds on the development half of the tasks of benchmarks/regimes.py.

The rule, written before the search: the highest mean over the families of tasks of what the default adds to
similarity, with no task below −0.5 unless it was below before. A run takes ten minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import Block, facts, is_there, parser, publish, say, skip, table
from benchmarks.development import MEANS, Measured, means_of, measure
from benchmarks.models import MINILM, PACKAGES
from benchmarks.regimes_methods import DEFAULT, METHODS, Method, Search, objective
from benchmarks.regimes_tasks import REGIMES, SEED, STORED_THREE_TIMES, Picks
from shared_core.texts.references import find_references

TASKS = REGIMES | STORED_THREE_TIMES
PAGE = "constants.md"
# A task may lose this much, or what it lost before.
LEAST = -0.5
BEFORE, CHOSEN, HEADINGS = "before", "the default", "headings are names"
# What differs from the default, which has h = 0.4, w = 8, b = 4, T = 1.
CHANGED: dict[str, dict[str, Any]] = {
    "idf in the relevance": {"in_relevance": 0},
    "the square of the reliability": {"in_relevance": 2},
    "reliability in the coverage too": {"in_coverage": 1},
    "… h = 0.5, w = 6, b = 3": {"in_coverage": 1, "h": 0.5, "w": 6, "b": 3},
    "… h = 0.35, w = 7, b = 3.5": {"in_coverage": 1, "h": 0.35, "w": 7, "b": 3.5},
    "reliability in the coverage alone": {"in_coverage": 1, "in_relevance": 0},
    "a bonus by relevance": {"gate": 2},
    "a bonus for two picks at most": {"most": 2},
    **{f"h = {h}": {"h": h} for h in (0.25, 0.3, 0.35, 0.45, 0.5, 0.6)},
    **{f"w = {w}": {"w": w} for w in (6, 7, 9, 10)},
    **{f"b = {b}": {"b": b} for b in (0, 3, 3.5, 4.5, 5)},
    **{f"T = {t}": {"t": t} for t in (0.8, 0.9, 1.1, 1.25)},
}


def with_headings(method: Method) -> Method:
    """The method where a title such as "Get started" is a name."""

    def select(search: Search, k: int) -> Picks:
        search = replace(search)
        with patch("shared_core.texts.references.is_proper", bool):
            search.__dict__["references"] = find_references(search.texts, search.names)
        return method(search, k)

    return select


def settings() -> dict[str, Method]:
    return {
        BEFORE: with_headings(objective(h=0.25, in_relevance=0)),
        CHOSEN: METHODS[DEFAULT],
        HEADINGS: with_headings(objective()),
        **{label: objective(**constants) for label, constants in CHANGED.items()},
    }


def summary_table(measured: dict[str, Measured], methods: Iterable[str]) -> str:
    """For each setting its means, and the tasks that break the rule."""
    rows = []
    for setting in methods:
        breaks = [n for n, one in measured.items() if one.added[setting] < min(LEAST, one.added[BEFORE])]
        rows.append([setting, *means_of(measured, setting), ", ".join(breaks)])
    return table(["setting", *MEANS, "breaks the rule"], rows)


def task_table(measured: dict[str, Measured]) -> str:
    rows = [
        [name, f"{one.similarity:.1f}", *(f"{one.added[setting]:+.1f}" for setting in (BEFORE, HEADINGS, CHOSEN))]
        for name, one in measured.items()
    ]
    return table(["task", "similarity", BEFORE, HEADINGS, CHOSEN], rows)


def blocks(measured: dict[str, Measured], methods: Iterable[str], model: str) -> Iterator[Block]:
    files = [file for name in measured for file in TASKS[name][1]]
    yield facts(files, ["numpy", *PACKAGES[model]], SEED)
    yield summary_table(measured, methods)
    yield task_table(measured)


def main() -> None:
    options = parser(__doc__, PAGE)
    options.add_argument("--tasks", nargs="*", choices=TASKS, help="only these tasks; no page is written")
    options.add_argument("--model", choices=PACKAGES, default=MINILM, help="with another one no page is written")
    arguments = options.parse_args()
    if arguments.tasks or arguments.model != MINILM:
        skip("the other tasks or the page's model")
    methods, measured = settings(), {}
    for name, (make, files) in TASKS.items():
        if name in (arguments.tasks or TASKS) and is_there(*files):
            measured[name] = measure(make(), methods, arguments.model)
            say(name)
    if measured:
        publish(PAGE, blocks(measured, methods, arguments.model), arguments.write)


if __name__ == "__main__":
    main()
