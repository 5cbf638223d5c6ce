"""The constants of the default: what each of them adds on the development half of the tasks of benchmarks/regimes.py.

The rule, written before the search: the highest mean over the kinds of corpora of what the default adds to similarity,
with no task below −0.5 unless it was below before; a difference of less than 0.1 goes to the simpler setting, and what
brings less than 0.3 goes. A run takes ten minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import Block, facts, is_there, parser, publish, say, skip, table
from benchmarks.development import MEANS, Measured, means_of, measure
from benchmarks.models import MINILM, PACKAGES
from benchmarks.regimes_methods import (
    DEFAULT,
    HYBRID,
    KEYWORDS,
    METHODS,
    Method,
    Search,
    hybrid,
    objective,
    sum_of_scores,
    with_keyword_search,
)
from benchmarks.regimes_tasks import REGIMES as TASKS
from benchmarks.regimes_tasks import SEED, Picks, without_copies

PAGE = "constants.md"
# A task may lose this much, or what it lost before.
LEAST = -0.5
BEFORE, CHOSEN = "before", "the default"
# What differs from the default.
CHANGED: dict[str, dict[str, Any]] = {
    **{f"α = {a:g}": {"ridge": a} for a in (0.05, 0.3, 1, 2)},
    "no determinant": {"ridge": 1e6},
    **{f"T = {t}": {"t": t} for t in (0.4, 0.6, 0.8, 1)},
    **{f"h = {h}": {"h": h} for h in (0, 0.3, 0.4, 0.7, 1)},
    **{f"w = {w}": {"w": w} for w in (0, 4, 6, 12)},
    **{f"b = {b}": {"b": b} for b in (0, 4, 6)},
    "a bonus whatever the relevance": {"gate": 0},
    "a bonus by relevance, slope 2": {"gate": 2},
    "words by their reliability": {"reliable": True},
    "the square of the idf": {"power": 2},
}
EARLIER: dict[str, Any] = {"ridge": 0.05, "t": 1, "h": 0.4, "b": 4, "gate": 0, "reliable": True}
# Where the best texts by words join the candidates, words weigh by their frequency in the corpus too.
WORDS_ALONE = f"{KEYWORDS}, words weigh by the candidates alone"


def by_candidates_alone(method: Method) -> Method:
    def select(search: Search, k: int) -> Picks:
        assert search.joined is not None
        return method(replace(search.joined, weigh=None), k)

    return select


def settings() -> dict[str, Method]:
    near = {
        BEFORE: objective(**EARLIER),
        CHOSEN: METHODS[DEFAULT],
        **{label: objective(**constants) for label, constants in CHANGED.items()},
    }
    joined = {f"{KEYWORDS}, {label}": with_keyword_search(method) for label, method in near.items() if label != BEFORE}
    return {
        **{f"sum of scores, h = {h}": sum_of_scores(h) for h in (0.5, 0.7, 1.0)},
        HYBRID: hybrid,
        **near,
        f"{KEYWORDS}, {BEFORE}": by_candidates_alone(near[BEFORE]),
        WORDS_ALONE: by_candidates_alone(METHODS[DEFAULT]),
        **joined,
    }


def summary_table(measured: dict[str, Measured], methods: Iterable[str]) -> str:
    """For each setting its means, and the tasks that break the rule."""
    rows = []
    for setting in methods:
        before = f"{KEYWORDS}, {BEFORE}" if setting.startswith(KEYWORDS) else BEFORE
        breaks = [n for n, one in measured.items() if one.added[setting] < min(LEAST, one.added[before])]
        rows.append([setting, *means_of(measured, setting), ", ".join(breaks)])
    return table(["setting", *MEANS, "breaks the rule"], rows)


def task_table(measured: dict[str, Measured]) -> str:
    shown = ("sum of scores, h = 0.7", BEFORE, CHOSEN, f"{KEYWORDS}, {BEFORE}", f"{KEYWORDS}, {CHOSEN}")
    rows = [
        [name, f"{one.similarity:.1f}", *(f"{one.added[setting]:+.1f}" for setting in shown)]
        for name, one in measured.items()
    ]
    return table(["task", "similarity", *shown], rows)


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
            measured[name] = measure(without_copies(make()), methods, model=arguments.model)
            say(name)
    if measured:
        publish(PAGE, blocks(measured, methods, arguments.model), arguments.write)


if __name__ == "__main__":
    main()
