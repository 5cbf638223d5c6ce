"""The constants of the default: what each of them adds on the development half of the tasks of benchmarks/regimes.py.

The rule, written before the search: the highest mean over the kinds of corpora of what the default adds to similarity,
with no task below −0.5 unless it was below before; a difference of less than 0.1 goes to the simpler setting, and what
brings less than 0.3 goes. A run takes ten minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Block, facts, is_there, parser, publish, say, skip, table
from benchmarks.models import MINILM, PACKAGES
from benchmarks.regimes_methods import (
    DEFAULT,
    HYBRID,
    KEYWORDS,
    METHODS,
    SIMILARITY,
    Corpus,
    Method,
    Search,
    hybrid,
    objective,
    search_for,
    sum_of_scores,
    with_keyword_search,
)
from benchmarks.regimes_tasks import KINDS, SEED, WINDOWS, Picks, Regime, embed_regime, is_development, without_copies
from benchmarks.regimes_tasks import REGIMES as TASKS
from shared_core.texts.word_index import WordIndex
from shared_core.texts.words import Text

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


MEANS = ["mean of the kinds", "overlapping windows", "lowest"]


class Measured(NamedTuple):
    """Points, the mean over k and the questions of one half of a task: of similarity, and what each method adds."""

    similarity: float
    added: dict[str, float]


def measure(regime: Regime, methods: Mapping[str, Method]) -> Measured:
    """Points of one half of a task."""
    regime = regime._replace(cases=[case for case in regime.cases if is_development(case.question)])
    vectors, queries = embed_regime(regime)
    corpus = Corpus(regime, vectors, list(map(Text, regime.texts)), WordIndex(regime.texts))
    worth: dict[str, list[float]] = {name: [] for name in (SIMILARITY, *methods)}
    for case, query in zip(regime.cases, queries, strict=True):
        search = corpus.with_words(search_for(regime, case, query, vectors), case)
        for name, values in worth.items():
            picks = search.rows.tolist() if name == SIMILARITY else methods[name](search, max(regime.ks))
            # Every method is greedy: the first k of a larger set are the set of k.
            values.append(float(np.mean([case.worth(picks[:k]) for k in regime.ks])))
    means = {name: 100 * float(np.mean(values)) for name, values in worth.items()}
    base = means.pop(SIMILARITY)
    return Measured(base, {name: mean - base for name, mean in means.items()})


def means_of(measured: Mapping[str, Measured], method: str) -> list[str]:
    """The cells of MEANS: the mean over the kinds of corpora and questions, that of windows, and the lowest figure."""
    added = {name: one.added[method] for name, one in measured.items()}
    kinds = [[added[name] for name in names if name in added] for names in (*KINDS.values(), WINDOWS)]
    *means, windows = (float(np.mean(values)) if values else None for values in kinds)
    worst = min(added, key=added.__getitem__)
    mean = np.mean([value for value in means if value is not None])
    return [f"{mean:+.2f}", "" if windows is None else f"{windows:+.2f}", f"{added[worst]:+.1f}: {worst}"]


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


def blocks(measured: dict[str, Measured], methods: Iterable[str]) -> Iterator[Block]:
    files = [file for name in measured for file in TASKS[name][1]]
    yield facts(files, ["numpy", *PACKAGES[MINILM]], SEED)
    yield summary_table(measured, methods)
    yield task_table(measured)


def main() -> None:
    options = parser(__doc__, PAGE)
    options.add_argument("--tasks", nargs="*", choices=TASKS, help="only these tasks; no page is written")
    arguments = options.parse_args()
    if arguments.tasks:
        skip("the other tasks")
    methods, measured = settings(), {}
    for name, (make, files) in TASKS.items():
        if name in (arguments.tasks or TASKS) and is_there(*files):
            measured[name] = measure(without_copies(make()), methods)
            say(name)
    if measured:
        publish(PAGE, blocks(measured, methods), arguments.write)


if __name__ == "__main__":
    main()
