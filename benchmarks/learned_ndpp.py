"""The learned NDPP on GeoQuery, MTOP and NL2Bash: coverage, log-probability and exact match, three seeds.

    python benchmarks/learned_ndpp.py --set geoquery    # learns and measures one data set
    python benchmarks/learned_ndpp.py --write           # all three, and writes benchmarks/results/learned_ndpp.md

Coverage is the share of the right answer's structural symbols that the picks' answers contain. Kernels are learned from
coverage, and GeoQuery's also from the answers of a small language model (see benchmarks/learned/judge.py), which judges
all rows. Results are cached in .cache/learned/, so an interrupted run resumes; --fresh computes them again.
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
from benchmarks.learned.rows import ABLATED, FROM_JUDGE, LEARNED, Experiment, learned, nearest_last, unlearned_picks
from benchmarks.papers._common import require

SEEDS = (0, 1, 2)
# The language model is asked so many queries of each test; coverage is measured on all queries.
ASKED = 100
JUDGED_SET = "geoquery"


def work(name: str, seed: int, fresh: bool) -> dict[str, Any]:
    """Picks, coverage and the judge's scores for a data set and seed; each row is cached."""
    experiment = Experiment.load(name, seed)
    picks, fits = dict(cached(f"{name}-{seed}-baselines", fresh, lambda: unlearned_picks(experiment))), {}
    recipes = {**LEARNED, **(ABLATED | FROM_JUDGE if name == JUDGED_SET else {})}
    for row, recipe in recipes.items():
        given = judge() if row in FROM_JUDGE else None
        made = cached(
            f"{name}-{seed}-learned-{_slug(row)}", fresh, partial(learned, experiment, row, recipe, say, given)
        )
        picks |= made["picks"]
        fits[row] = made["fit"]
    return {
        "picks": picks,
        "fits": fits,
        "coverage": {row: {k: coverage(experiment, of_k) for k, of_k in sizes.items()} for row, sizes in picks.items()},
        "verdict": {
            row: cached(f"{name}-{seed}-verdict-{_slug(row)}", fresh, partial(verdict, experiment, sizes))
            for row, sizes in picks.items()
        },
    }


def _slug(row: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", row.lower().replace("λ", "lambda")).strip("-")


def cached(name: str, fresh: bool, make: Callable[[], Any]) -> Any:
    """The result of ``make`` after a round trip through JSON, cached under .cache/learned/."""
    file = CACHE / f"{name}.json"
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
    """Log-probability and exact match of the first ``ASKED`` queries at each size."""
    found = {}
    for k, picks in sizes.items():
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
    parser.add_argument("--fresh", action="store_true", help="compute cached results again")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/learned_ndpp.md")
    parser.add_argument("--threads", type=int, default=0, help="threads of torch; 0: its default")
    options = parser.parse_args()
    require(*FILES)
    if options.threads:
        import torch

        torch.set_num_threads(options.threads)
    names = [options.set] if options.set else list(SOURCES)
    found = {name: [work(name, seed, options.fresh) for seed in options.seeds] for name in names}
    from benchmarks.learned.page import page

    text = page(found)
    print(text)
    if options.write and not options.set:
        target = Path(__file__).with_name("results") / "learned_ndpp.md"
        target.write_text(text, encoding="utf-8")
        say(f"written: {np.str_(target)}")


if __name__ == "__main__":
    main()
