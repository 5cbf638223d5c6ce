"""Does a set that ends where the gain falls (``min_gain``) find more than a fixed number of texts?

The tasks of benchmarks/regimes.py with all-MiniLM-L6-v2, whose vectors that script keeps in .cache/; at most 10 texts.
For each ``min_gain`` the mean number of texts, and what is found, are compared with a fixed number of texts of the same
mean: between two whole numbers, what is found is interpolated.

Data is read from SETSELECT_DATA (default: ../shared/data beside the project) and never copied.

    python benchmarks/min_gain.py            # prints the tables, in about a minute
    python benchmarks/min_gain.py --write    # and writes benchmarks/results/min_gain.md
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.models import MINILM, PACKAGES, embed
from benchmarks.papers._common import ROOT, heading, table
from benchmarks.regimes_methods import FETCH_K, Search
from benchmarks.regimes_tasks import REGIMES, SEED, Regime, is_development, is_there
from shared_core import Coverage, Selection, Selector, TopK
from shared_core.selectors.ending import DEFAULT_MIN_K, count_worthwhile

RESULT = ROOT / "benchmarks" / "results" / "min_gain.md"
MOST = 10
SHARES = (0.8, 0.6, 0.4, 0.2, 0.1, 0.05)
LEAST = (1, 2, 3)
SHOWN = 0.4
SELECTORS: dict[str, Selector] = {"coverage": Coverage(), "similarity": TopK()}


class Ended(NamedTuple):
    """For each question of one half: the number of texts, and the points that these find."""

    sizes: np.ndarray
    points: np.ndarray
    fixed: np.ndarray  # (questions, MOST): the points of each fixed number

    @property
    def above_fixed(self) -> float:
        """Points above a fixed number of texts of the same mean."""
        curve = self.fixed.mean(axis=0)
        return float(self.points.mean() - np.interp(self.sizes.mean(), np.arange(1, MOST + 1), curve))


class Measured(NamedTuple):
    """The gains of each question's set, and the worth of its first texts."""

    development: np.ndarray
    selections: dict[str, list[tuple[Selection, np.ndarray]]]

    def ended(self, selector: str, share: float, least: int, development: bool) -> Ended:
        some = [self.selections[selector][i] for i in np.flatnonzero(self.development == development)]
        sizes = np.array([count_worthwhile(found, SELECTORS[selector], share, least) for found, _ in some])
        fixed = 100 * np.array([worth for _, worth in some])
        return Ended(sizes, fixed[np.arange(len(sizes)), sizes - 1], fixed)


def measure(regime: Regime) -> Measured:
    vectors, queries = embed(regime.texts, MINILM), embed([case.question for case in regime.cases], MINILM, query=True)
    selections: dict[str, list[tuple[Selection, np.ndarray]]] = {name: [] for name in SELECTORS}
    for case, query in zip(regime.cases, queries, strict=True):
        pool = np.arange(len(vectors)) if case.pool is None else case.pool
        rows = pool[np.argsort(-(vectors[pool] @ query), kind="stable")[:FETCH_K]]
        texts, names = [regime.texts[row] for row in rows], None
        if regime.names is not None:
            names = [regime.names[row] for row in rows]
        search = Search(case.question, query, rows, vectors[rows], texts, np.empty(0), names=names)
        for name, selector in SELECTORS.items():
            found = selector.select(search.with_texts, min(MOST, len(rows)))
            picks = rows[found.indices].tolist()
            worth = [case.worth(picks[:k]) for k in range(1, MOST + 1)]
            selections[name].append((found, np.array(worth)))
    return Measured(np.array([is_development(case.question) for case in regime.cases]), selections)


def summary(measured: dict[str, Measured], selector: str, least: int, development: bool) -> str:
    """For each share the mean of the tasks."""
    rows = []
    for share in SHARES:
        ended = [one.ended(selector, share, least, development) for one in measured.values()]
        above = [one.above_fixed for one in ended]
        worst, best = min(above), max(above)
        rows.append([
            f"{share:g}",
            f"{np.mean([one.sizes.mean() for one in ended]):.1f}",
            f"{min(one.sizes.mean() for one in ended):.1f} to {max(one.sizes.mean() for one in ended):.1f}",
            f"{np.mean([one.points.mean() for one in ended]):.1f}",
            f"{np.mean(above):+.1f}",
            f"{worst:+.1f} to {best:+.1f}",
        ])  # fmt: skip
    head = ["`min_gain`", "texts, mean", "of the tasks", "points", "above fixed k", "of the tasks"]
    return table(head, rows)


def by_task(measured: dict[str, Measured]) -> str:
    rows = []
    for name, one in measured.items():
        ended = one.ended("coverage", SHOWN, DEFAULT_MIN_K, False)
        sizes = ended.sizes
        low, high = np.percentile(sizes, [10, 90])
        five, ten = ended.fixed[:, 4].mean(), ended.fixed[:, 9].mean()
        figures = (ended.points.mean(), five, ten)
        shown = [f"{sizes.mean():.1f}", f"{low:.0f} to {high:.0f}", *(f"{figure:.1f}" for figure in figures)]
        rows.append([name, *shown, f"{ended.above_fixed:+.1f}"])
    return table(["task", "texts, mean", "8 of 10 questions", "points", "k = 5", "k = 10", "above fixed k"], rows)


def page(measured: dict[str, Measured]) -> str:
    tests = sum(int((~one.development).sum()) for one in measured.values())
    files = list(dict.fromkeys(file for name in measured for file in REGIMES[name][1]))
    packages = ["numpy", *PACKAGES[MINILM]]
    parts = [
        heading("Sets that end where the gain falls", "benchmarks/min_gain.py", files, packages, SEED),
        f"""With `min_gain`, a set ends before the first text whose gain is below a share of the first gain. `k`, the
most that is selected, is {MOST} here, from {FETCH_K} candidates. The gains of `"coverage"` are logarithms, so there
the share is one of what the most relevant candidate is worth by itself. Is the number of texts that this gives to each
question better than one number for all? *Above fixed k* compares it with a fixed number of texts of the same mean. A
point is what it is in [regimes.md](regimes.md). All figures are means over {len(measured)} tasks and their {tests:,}
questions of the test half, where no half is named.

**What follows.** With 0.4 to 0.8 you get two or three texts. On average over the tasks they find more than two or three
for every question would: a third text gets in if an earlier text names it, or if it has a word of the question that is
missing. Below 0.4 there is no more to gain than by a fixed number. A larger fixed number finds more in every task, for
more tokens. `setselect compare` says how many texts are enough on your documents.
""",
        f"## coverage, at least {DEFAULT_MIN_K} texts (the default of `min_k`)\n",
        summary(measured, "coverage", DEFAULT_MIN_K, False),
        "## similarity, the same\n\nThe share is one of the highest cosine.\n",
        summary(measured, "similarity", DEFAULT_MIN_K, False),
        f"""## By task: coverage, `min_gain={SHOWN:g}`

It fails in two ways. Where the scores are flat (several meanings, many opinions, facts that no word of the question
names), no text is worth much beside the first, and the set ends although more texts would help. Where one text is
right and the search ranks it third or later, the set ends before it.
""",
        by_task(measured),
        "## The development half, where `min_k` was chosen\n",
        *(f"At least {least}:\n\n" + summary(measured, "coverage", least, True) for least in LEAST),
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/min_gain.md")
    options = parser.parse_args(arguments)
    measured = {}
    for name, (make, _) in REGIMES.items():
        if is_there(name):
            print(name, file=sys.stderr)
            measured[name] = measure(make())
    text = page(measured)
    print(text)
    if options.write:
        RESULT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
