"""Does a set that ends where the gain falls (``min_gain``) find more than a fixed number of texts?

The tasks of benchmarks/regimes.py with all-MiniLM-L6-v2, whose vectors that script keeps in .cache/; at most 10 texts.
For each ``min_gain`` the mean number of texts, and what is found, are compared with a fixed number of texts of the same
mean: between two whole numbers, what is found is interpolated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.common import Block, facts, is_there, parser, publish, say, table
from benchmarks.models import MINILM, PACKAGES
from benchmarks.regimes_methods import search_for
from benchmarks.regimes_tasks import REGIMES, SEED, Regime, development_half, embed_regime, without_copies
from shared_core import Coverage, Selection, Selector, TopK
from shared_core.selection.route import DEFAULT_MIN_K, count_worthwhile

PAGE = "min_gain.md"
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
        sizes = [count_worthwhile(found, SELECTORS[selector], share, least) for found, _ in self.selections[selector]]
        half = self.development == development
        fixed = 100 * np.array([worth for _, worth in self.selections[selector]])[half]
        kept = np.array(sizes)[half]
        return Ended(kept, fixed[np.arange(len(kept)), kept - 1], fixed)


def measure(regime: Regime) -> Measured:
    vectors, queries = embed_regime(regime)
    selections: dict[str, list[tuple[Selection, np.ndarray]]] = {name: [] for name in SELECTORS}
    for case, query in zip(regime.cases, queries, strict=True):
        search = search_for(regime, case, query, vectors)
        for name, selector in SELECTORS.items():
            found = selector.select(search.with_texts, min(MOST, len(search.rows)))
            picks = search.rows[found.indices].tolist()
            worth = [case.worth(picks[:k]) for k in range(1, MOST + 1)]
            selections[name].append((found, np.array(worth)))
    return Measured(development_half(regime.cases), selections)


def summary(measured: dict[str, Measured], selector: str, least: int, development: bool) -> str:
    """For each share the mean of the tasks."""
    rows = []
    for share in SHARES:
        ended = [one.ended(selector, share, least, development) for one in measured.values()]
        sizes, above = [one.sizes.mean() for one in ended], [one.above_fixed for one in ended]
        rows.append([
            f"{share:g}",
            f"{np.mean(sizes):.1f}",
            f"{min(sizes):.1f} to {max(sizes):.1f}",
            f"{np.mean([one.points.mean() for one in ended]):.1f}",
            f"{np.mean(above):+.1f}",
            f"{min(above):+.1f} to {max(above):+.1f}",
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


def blocks(measured: dict[str, Measured]) -> Iterator[Block]:
    files = [file for name in measured for file in REGIMES[name][1]]
    yield facts(files, ["numpy", *PACKAGES[MINILM]], SEED)
    yield summary(measured, "coverage", DEFAULT_MIN_K, False)
    yield summary(measured, "similarity", DEFAULT_MIN_K, False)
    yield by_task(measured)
    for least in LEAST:
        yield summary(measured, "coverage", least, True)


def main() -> None:
    options = parser(__doc__, PAGE).parse_args()
    measured = {}
    for name, (make, files) in REGIMES.items():
        if is_there(*files):
            say(name)
            measured[name] = measure(without_copies(make()))
    publish(PAGE, blocks(measured), options.write)


if __name__ == "__main__":
    main()
