"""The learned NDPP on GeoQuery, MTOP and NL2Bash, learned from coverage and measured by coverage, three seeds.

    python benchmarks/learned_ndpp.py --set geoquery    # learns and measures one data set
    python benchmarks/learned_ndpp.py --write           # all three, and writes benchmarks/results/learned_ndpp.md
    python benchmarks/learned_ndpp.py --cached --write  # the page of the results so far; it says what is missing

Coverage is the share of the right answer's structural symbols that the picks' answers contain. Results are cached in
.cache/learned/, so an interrupted run resumes; --fresh computes them again. learned_from_model.py has the same with the
feedback and the judgement of a language model.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.learned.data import FILES, SOURCES
from benchmarks.learned.rows import (
    ABLATED,
    AUTO,
    BEST,
    CACHE,
    LEARNED,
    Experiment,
    Teacher,
    cached,
    coverage_of,
    learned,
    say,
    slug_of,
    unlearned_picks,
)
from benchmarks.papers._common import require

SEEDS = (0, 1, 2)
ABLATED_SET = "geoquery"


def recipes_of(name: str) -> dict[str, dict[str, Any]]:
    """The learned rows of a data set, the main one first."""
    rows = {**LEARNED, **(ABLATED if name == ABLATED_SET else {})}
    return {BEST: rows[BEST], **rows}


def work(name: str, seed: int, only: list[str] | None = None, *, fresh: bool = False, use: bool = False) -> Any:
    """Picks and coverage for a data set and seed; each row is cached.

    With ``only``, no other rows are learned; with ``use``, nothing is computed that is not cached.
    """
    experiment = Experiment.load(name, seed)
    teacher = Teacher.of_coverage(experiment)
    picks: dict[str, Any] = {}
    fits: dict[str, Any] = {}
    # The fits come first: they take the longest.
    for row, recipe in recipes_of(name).items():
        if only is not None and row not in only:
            continue
        slug = f"{name}-{seed}-learned-{slug_of(row)}"
        make = partial(learned, experiment, teacher, row, recipe, CACHE / f"{slug}.safetensors")
        made = cached(slug, make, fresh=fresh, use=use)
        if made is not None:
            picks |= made["picks"]
            fits[row] = made["fit"]
    picks |= cached(f"{name}-{seed}-baselines-{slug_of(AUTO)}", partial(unlearned_picks, experiment), fresh=fresh)
    return {
        "picks": picks,
        "fits": fits,
        "coverage": {
            row: {k: coverage_of(experiment, of_k) for k, of_k in sizes.items()} for row, sizes in picks.items()
        },
    }


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
