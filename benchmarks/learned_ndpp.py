"""The learned NDPP on GeoQuery, MTOP and NL2Bash: coverage, log-probability and exact match, three seeds.

    python benchmarks/learned_ndpp.py --set geoquery    # learns and measures one data set
    python benchmarks/learned_ndpp.py --write           # all three, and writes benchmarks/results/learned_ndpp.md
    python benchmarks/learned_ndpp.py --cached --write  # the page of the results so far; it says what is missing

Coverage is the share of the right answer's structural symbols that the picks' answers contain. Kernels are learned from
coverage, and GeoQuery's also from the answers of a small language model (see benchmarks/learned/judge.py), which judges
some of the rows. Results are cached in .cache/learned/, so an interrupted run resumes; --fresh computes them again.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.learned.data import FILES, SOURCES
from benchmarks.learned.judge import CACHE, Judge
from benchmarks.learned.judge import judge as trained_judge
from benchmarks.learned.rows import (
    ABLATED,
    AUTO,
    BEST,
    FROM_JUDGE,
    LEARNED,
    ORACLE,
    Experiment,
    learned,
    nearest_last,
    unlearned_picks,
)
from benchmarks.papers._common import require

SEEDS = (0, 1, 2)
# The language model is asked so many queries of each test, about these rows and sizes. Coverage is measured on all.
ASKED = 100
ASKED_AT = ("2", "4", "8")
ASKED_ABOUT = ("similarity", "MMR (λ = 0.5)", "VRSD", "NDPP, linear", AUTO, BEST, *FROM_JUDGE, ORACLE)
JUDGED_SET = "geoquery"


def recipes_of(name: str) -> dict[str, dict[str, Any]]:
    """The learned rows of a data set, the main one first."""
    rows = {**LEARNED, **(ABLATED | FROM_JUDGE if name == JUDGED_SET else {})}
    return {BEST: rows[BEST], **rows}


def work(name: str, seed: int, only: list[str] | None = None, *, fresh: bool = False, use: bool = False) -> Any:
    """Picks, coverage and the judge's scores for a data set and seed; each row is cached.

    With ``only``, no other rows are learned; with ``use``, nothing is computed that is not cached.
    """
    experiment = Experiment.load(name, seed)
    settings = {"fresh": fresh, "use": use}
    picks: dict[str, Any] = {}
    fits: dict[str, Any] = {}
    # The fits come first: they take the longest.
    for row, recipe in recipes_of(name).items():
        slug = f"{name}-{seed}-learned-{_slug(row)}"
        if only is not None and row not in only:
            continue
        given = judge() if row in FROM_JUDGE and not use else None
        file = CACHE / f"{slug}.safetensors"
        made = cached(slug, partial(learned, experiment, row, recipe, say, file, given), **settings)
        if made is not None:
            picks |= made["picks"]
            fits[row] = made["fit"]
    picks |= cached(f"{name}-{seed}-baselines-{_slug(AUTO)}", partial(unlearned_picks, experiment), fresh=fresh)
    verdicts = {
        row: cached(f"{name}-{seed}-verdict-{_slug(row)}", partial(verdict, experiment, sizes), **settings)
        for row, sizes in picks.items()
        if row in ASKED_ABOUT
    }
    return {
        "picks": picks,
        "fits": fits,
        "coverage": {row: {k: coverage(experiment, of_k) for k, of_k in sizes.items()} for row, sizes in picks.items()},
        "verdict": {row: found for row, found in verdicts.items() if found is not None},
    }


def _slug(row: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", row.lower().replace("λ", "lambda")).strip("-")


def cached(name: str, make: Callable[[], Any], *, fresh: bool = False, use: bool = False) -> Any:
    """The result of ``make`` after a round trip through JSON, cached under .cache/learned/.

    With ``use`` it is None if it is not cached.
    """
    file = CACHE / f"{name}.json"
    if use and not file.exists():
        return None
    if fresh or not file.exists():
        began = time.perf_counter()
        made = json.dumps(make())
        CACHE.mkdir(parents=True, exist_ok=True)
        file.write_text(made, encoding="utf-8")
        say(f"{name}: {time.perf_counter() - began:.0f} s")
    return json.loads(file.read_text(encoding="utf-8"))


def coverage(experiment: Experiment, picks: list[list[int]]) -> list[float]:
    """The coverage of each test query's picks."""
    return experiment.feedback.score(
        [
            (item, [experiment.split.pool[row] for row in rows])
            for item, rows in zip(experiment.split.test, picks, strict=True)
        ]
    )


def verdict(experiment: Experiment, sizes: dict[str, list[list[int]]]) -> dict[str, list[tuple[float, float]]]:
    """Log-probability and exact match of the first ``ASKED`` queries at the sizes ``ASKED_AT``."""
    found = {}
    for k in ASKED_AT:
        picks = sizes[k]
        pairs = [(experiment.split.test[i], nearest_last(experiment, i, rows)) for i, rows in enumerate(picks[:ASKED])]
        found[k] = [(log, float(exact)) for log, exact in judge().score(pairs)]
    return found


@cache
def judge() -> Judge:
    """The language model, loaded once."""
    return trained_judge()


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=list(SOURCES), help="only this data set; no page is written")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--only", nargs="+", metavar="ROW", help="learn only these rows of the tables")
    parser.add_argument("--fresh", action="store_true", help="compute cached results again")
    parser.add_argument("--cached", action="store_true", help="compute no row that is not cached")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/learned_ndpp.md")
    parser.add_argument("--threads", type=int, default=0, help="threads of torch; 0: its default")
    options = parser.parse_args()
    require(*FILES)
    if options.threads:
        import torch

        torch.set_num_threads(options.threads)
    names = [options.set] if options.set else list(SOURCES)
    found = {
        name: [work(name, seed, options.only, fresh=options.fresh, use=options.cached) for seed in options.seeds]
        for name in names
    }
    from benchmarks.learned.nothing import fits_to_nothing
    from benchmarks.learned.page import page

    text = page(found, cached("nothing-to-learn", fits_to_nothing, fresh=options.fresh, use=options.cached))
    print(text)
    if options.write and not options.set:
        target = Path(__file__).with_name("results") / "learned_ndpp.md"
        target.write_text(text, encoding="utf-8")
        say(f"written: {np.str_(target)}")


if __name__ == "__main__":
    main()
