"""The learned NDPP on GeoQuery, MTOP and NL2Bash: coverage, log-probability and exact match, three seeds.

    python benchmarks/learned_ndpp.py --set geoquery    # learn and measure one data set (resumes from .cache/learned/)
    python benchmarks/learned_ndpp.py --write           # all three, and benchmarks/results/learned_ndpp.md

Coverage is the share of the right answer's structural symbols that the picks' answers have; kernels are learned from
it, and GeoQuery's once more from the answers of a small language model (see benchmarks/learned/judge.py), which judges
all rows. What is done is kept in .cache/learned/; --fresh does it again.
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
from benchmarks.learned.rows import ABLATED, FROM_JUDGE, LEARNED, Ground, learned, nearest_last, unlearned_picks
from benchmarks.papers._common import require

SEEDS = (0, 1, 2)
# Queries of each test that the language model is asked; coverage is measured on all.
ASKED = 100
JUDGED_SET = "geoquery"


def work(name: str, seed: int, fresh: bool) -> dict[str, Any]:
    """Picks, coverage and the judge's verdict for a data set and seed, row by row from the cache."""
    ground = Ground.of(name, seed)
    picks, said = dict(cached(f"{name}-{seed}-unlearned", fresh, lambda: unlearned_picks(ground))), {}
    recipes = {**LEARNED, **(ABLATED | FROM_JUDGE if name == JUDGED_SET else {})}
    for row, recipe in recipes.items():
        given = judge() if row in FROM_JUDGE else None
        made = cached(f"{name}-{seed}-{_slug(row)}", fresh, partial(learned, ground, row, recipe, say, given))
        picks |= made["picks"]
        said[row] = made["said"]
    return {
        "picks": picks,
        "said": said,
        "coverage": {row: {k: coverage(ground, chosen) for k, chosen in sizes.items()} for row, sizes in picks.items()},
        "verdict": {
            row: cached(f"{name}-{seed}-verdict-{_slug(row)}", fresh, partial(verdict, ground, sizes))
            for row, sizes in picks.items()
        },
    }


def _slug(row: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", row.lower().replace("λ", "lambda")).strip("-")


def cached(name: str, fresh: bool, make: Callable[[], Any]) -> Any:
    """What ``make`` gives, as JSON gives it back, kept under .cache/learned/."""
    file = CACHE / f"{name}.json"
    if fresh or not file.exists():
        began = time.perf_counter()
        made = json.dumps(make())
        CACHE.mkdir(parents=True, exist_ok=True)
        file.write_text(made, encoding="utf-8")
        say(f"{name}: {time.perf_counter() - began:.0f} s")
    return json.loads(file.read_text(encoding="utf-8"))


def coverage(ground: Ground, chosen: list[list[int]]) -> list[float]:
    """Of each test query's picks."""
    return ground.feedback.score(
        [(item, [ground.split.pool[row] for row in rows]) for item, rows in zip(ground.split.test, chosen, strict=True)]
    )


def verdict(ground: Ground, sizes: dict[str, list[list[int]]]) -> dict[str, list[tuple[float, float]]]:
    """Log-probability and exact match of the first ``ASKED`` queries at each size."""
    found = {}
    for k, chosen in sizes.items():
        pairs = [(ground.split.test[i], nearest_last(ground, i, rows)) for i, rows in enumerate(chosen[:ASKED])]
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
    parser.add_argument("--set", choices=list(SOURCES), help="only this data set; nothing is written")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--fresh", action="store_true", help="do again what is in the cache")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/learned_ndpp.md")
    parser.add_argument("--threads", type=int, default=0, help="torch threads; by default its own choice")
    asked = parser.parse_args()
    require(*FILES)
    if asked.threads:
        import torch

        torch.set_num_threads(asked.threads)
    names = [asked.set] if asked.set else list(SOURCES)
    found = {name: [work(name, seed, asked.fresh) for seed in asked.seeds] for name in names}
    from benchmarks.learned.page import page

    text = page(found)
    print(text)
    if asked.write and not asked.set:
        target = Path(__file__).with_name("results") / "learned_ndpp.md"
        target.write_text(text, encoding="utf-8")
        say(f"written: {np.str_(target)}")


if __name__ == "__main__":
    main()
