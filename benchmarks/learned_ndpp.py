"""The learned NDPP on GeoQuery, MTOP and NL2Bash, learned from coverage and measured by coverage, three seeds.

Coverage is the share of the right answer's structural symbols that the picks' answers contain. Results are cached in
.cache/learned/, so an interrupted run resumes. learned_from_model.py has the same with the feedback and the judgement
of a language model.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import parser, publish, require, slug
from benchmarks.learned.data import FILES, SOURCES
from benchmarks.learned.nothing import fits_to_nothing
from benchmarks.learned.page import blocks
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
    unlearned_picks,
)

SEEDS = (0, 1, 2)
ABLATED_SET = "geoquery"


def recipes_of(name: str) -> dict[str, dict[str, Any]]:
    """The learned rows of a data set, the main one first."""
    rows = {**LEARNED, **(ABLATED if name == ABLATED_SET else {})}
    return {BEST: rows[BEST], **rows}


def work(name: str, seed: int) -> Any:
    """Picks and coverage for a data set and seed; each row is cached."""
    experiment = Experiment.load(name, seed)
    teacher = Teacher.of_coverage(experiment)
    picks: dict[str, Any] = {}
    fits: dict[str, Any] = {}
    # The fits come first: they take the longest.
    for row, recipe in recipes_of(name).items():
        file = f"{name}-{seed}-learned-{slug(row)}"
        made = cached(file, partial(learned, experiment, teacher, row, recipe, CACHE / f"{file}.safetensors"))
        picks |= made["picks"]
        fits[row] = made["fit"]
    picks |= cached(f"{name}-{seed}-baselines-{slug(AUTO)}", partial(unlearned_picks, experiment))
    return {
        "picks": picks,
        "fits": fits,
        "coverage": {
            row: {k: coverage_of(experiment, of_k) for k, of_k in sizes.items()} for row, sizes in picks.items()
        },
    }


def main() -> None:
    made = parser(__doc__, "learned_ndpp.md")
    made.add_argument("--set", choices=list(SOURCES), help="only this data set; no page is written")
    made.add_argument("--threads", type=int, default=0, help="threads of torch; 0: its default")
    options = made.parse_args()
    require(*FILES)
    if options.threads:
        import torch

        torch.set_num_threads(options.threads)
    names = [options.set] if options.set else list(SOURCES)
    found = {name: [work(name, seed) for seed in SEEDS] for name in names}
    figures = blocks(found, cached("nothing-to-learn", fits_to_nothing))
    publish("learned_ndpp.md", figures, options.write and not options.set)


if __name__ == "__main__":
    main()
