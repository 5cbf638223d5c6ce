"""Kernels learned from a language model's feedback, judged by that model: GeoQuery, MTOP and NL2Bash, one seed.

    python benchmarks/learned_from_model.py --write                      # all steps, and the page
    python benchmarks/learned_from_model.py --set mtop --step labels     # one step of one data set
    python benchmarks/learned_from_model.py --queries 10 --items 40      # a trial; nothing is written

The steps are labels (the model scores subsets of the pool), fits (kernels are learned; the model scores the picks for
held-out items after each epoch) and judging (the model scores the picks for new queries). The model is Gemma 3 270M,
which make models installs. Every score is kept in .cache/learned/, so an interrupted run resumes. Each step says
beforehand how long it takes. Kernels that are learned from coverage are those of learned_ndpp.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.learned.data import FILES, SOURCES
from benchmarks.learned.from_model_page import (
    ASKED_AT,
    COVERAGE,
    COVERAGE_SAME,
    FIGURE_AT,
    FIGURE_ROWS,
    KEPT,
    NO_QUERY,
    NOT_LATER,
    SMALL_ONLY,
    SMALL_ONLY_LATER,
    UNLEARNED_ROWS,
    page,
)
from benchmarks.learned.judge import Judge, Recorder
from benchmarks.learned.rows import (
    AUTO,
    BEST,
    CACHE,
    LEARNED,
    ORACLE,
    Experiment,
    Picks,
    Teacher,
    cached,
    coverage_of,
    learned,
    nearest,
    nearest_last,
    report_of,
    say,
    selected,
    slug_of,
    summary_of,
    unlearned_picks,
    without_query,
)
from benchmarks.papers import _language_models as language_models
from benchmarks.papers._common import require
from shared_core import NDPP, LinearKernel
from shared_core.learning import hold_out

SEED = 0
QUERIES = 200
SIZES = (1, 2, 4, 8, 16)
STEPS = ("labels", "fits", "judging")
# All kernels get as many epochs: they have few labels, so an epoch has few steps.
EPOCHS = 30


@dataclass(frozen=True)
class Plan:
    """How many items of the pool get labels (a fifth of these are held out), and how many subsets of each."""

    items: int
    greedy: int
    random: int


PLANS = {"geoquery": Plan(400, 24, 8), "mtop": Plan(300, 16, 6), "nl2bash": Plan(300, 16, 6)}
# As in Table 2 of the paper, one part is left out at a time.
ABLATED: dict[str, dict[str, Any]] = {
    "likelihood, without scoring": {"objective": "likelihood", "share": 1.0},
    "likelihood, without regulariser": {"objective": "likelihood", "alpha": 0.0, "beta": 0.0},
}
# The beginnings of the names of all learned rows.
ALL = ("listwise", "likelihood")
# The data set with all rows; the others have fewer.
FIRST = "geoquery"


class Study:
    """One data set: its experiment, what its kernels are learned from, and the picks of every row."""

    def __init__(self, name: str, judge: Judge, queries: int, plan: Plan) -> None:
        self.name, self.judge = name, judge
        self.experiment = Experiment.load(name, SEED, queries)
        pool, vectors = self.experiment.split.pool, self.experiment.pool
        split = hold_out(pool, vectors, queries=range(min(plan.items, len(pool))), seed=SEED)
        subsets = {"greedy": plan.greedy, "random": plan.random}
        self.teacher = Teacher(self.experiment, judge, split, subsets)
        self.slug = f"model-{name}-{queries}-{plan.items}-{plan.greedy}-{plan.random}"
        self.recipes = LEARNED | ABLATED if name == FIRST else {r: LEARNED[r] for r in LEARNED if r not in NOT_LATER}

    def label(self, only: tuple[str, ...] = ALL) -> None:
        """Have the model score the subsets that the fits are made from."""
        objectives = {self.recipes[row].get("objective") for row in self.recipes if row.startswith(only)}
        for draw, objective in (("greedy", None), ("random", "likelihood")):
            if objective in objectives:
                recorder = Recorder()
                replace(self.teacher, feedback=recorder, _made={}).labels(draw)
                self.judge.verdicts(recorder.pairs, f"{self.name}, {draw} subsets")

    def learn(self, only: tuple[str, ...] = ALL, *, use: bool = False) -> tuple[Picks, dict[str, Any]]:
        """The picks and reports of all learned kernels; with ``use`` of those that are cached."""
        picks: Picks = {}
        fits: dict[str, Any] = {}
        for row, make in self._fits().items():
            if row.startswith(only):
                made = cached(f"{self.slug}-{slug_of(row)}", make, use=use)
                if made is not None:
                    picks |= made["picks"]
                    fits |= {row: made["fit"]}
        return picks, fits

    def _fits(self) -> dict[str, Any]:
        same = replace(self.teacher, feedback=self.experiment.feedback, _made={})
        return {
            COVERAGE: self._from_coverage,
            COVERAGE_SAME: partial(self._fit, COVERAGE_SAME, {}, same),
            **{row: partial(self._fit, row, recipe, self.teacher) for row, recipe in self.recipes.items()},
        }

    def _from_coverage(self) -> dict[str, Any]:
        """The kernel of learned_ndpp.py."""
        slug = f"{self.name}-{SEED}-learned-{slug_of(BEST)}"
        experiment, file = Experiment.load(self.name, SEED), CACHE / f"{slug}.safetensors"
        make = partial(learned, experiment, Teacher.of_coverage(experiment), BEST, LEARNED[BEST], file)
        report = cached(slug, make)["fit"]
        return {"picks": self._picks({COVERAGE: NDPP(LinearKernel.load(file))}), "fit": report}

    def _fit(self, row: str, recipe: dict[str, Any], teacher: Teacher) -> dict[str, Any]:
        prompts = len(teacher.split.held_out) * (EPOCHS + 6) if teacher.feedback is self.judge else 0
        say(f"{self.name}, {row}: fitting; the model scores at most {prompts:,} prompts for held-out items")
        if recipe.get("objective") != "likelihood":
            fitted = teacher.fit(recipe, epochs=EPOCHS)
            selectors = {row: fitted.selector}
        else:
            fitted, last = fit_by_likelihood(teacher, recipe, EPOCHS)
            selectors = {row: NDPP(last)}
            if row == "likelihood, NDPP":
                selectors |= {KEPT: fitted.selector, NO_QUERY: without_query(last)}
        say(f"{self.name}, {row}: {summary_of(fitted)}")
        return {"picks": self._picks(selectors), "fit": report_of(fitted)}

    def _picks(self, selectors: dict[str, NDPP]) -> Picks:
        candidates = nearest(self.experiment)
        return {row: selected(self.experiment, candidates, selector, SIZES) for row, selector in selectors.items()}

    def judged(self, only: tuple[str, ...] = ALL, *, use: bool = False) -> dict[str, Any]:
        """Everything for the page: the model's verdicts and the coverage of all rows, and the reports of the fits."""
        picks, fits = self.learn(only, use=use)
        unlearned = cached(f"{self.slug}-baselines-{slug_of(AUTO)}", partial(unlearned_picks, self.experiment, SIZES))
        left_out = () if self.name == FIRST else NOT_LATER
        picks = {row: unlearned[row] for row in (*UNLEARNED_ROWS, ORACLE) if row not in left_out} | picks
        places = [(row, k) for row in picks for k in self._sizes(row)]
        pairs = [
            (item, nearest_last(self.experiment, place, rows))
            for row, k in places
            for place, (item, rows) in enumerate(zip(self.experiment.split.test, picks[row][str(k)], strict=True))
        ]
        found = iter(self.judge.verdicts(pairs, f"{self.name}, judging {len(places)} rows"))
        verdicts: dict[str, dict[int, np.ndarray]] = {}
        for row, k in places:
            verdicts.setdefault(row, {})[k] = np.array([next(found) for _ in self.experiment.split.test], float)
        coverage = {
            row: {k: np.array(coverage_of(self.experiment, of_row[str(k)])) for k in ASKED_AT}
            for row, of_row in picks.items()
        }
        return {"verdicts": verdicts, "coverage": coverage, "fits": fits, "teacher": self.teacher}

    def _sizes(self, row: str) -> Sequence[int]:
        first = self.name == FIRST
        if first and row in FIGURE_ROWS:
            return FIGURE_AT
        small = (*SMALL_ONLY, *ABLATED) if first else (*SMALL_ONLY, *SMALL_ONLY_LATER)
        return ASKED_AT[:1] if row in small else ASKED_AT


def fit_by_likelihood(teacher: Teacher, recipe: dict[str, Any], epochs: int) -> tuple[Any, LinearKernel]:
    """The fit, and its kernel after the epoch with the highest likelihood of the held-out queries' best subsets.

    The paper chooses no epoch by feedback; ``fit`` does.
    """
    from safetensors.torch import load_file

    from shared_core.learning.objectives.factors import LinearFactors

    fitted = teacher.fit(recipe, epochs=epochs)
    epochs = max(1, max(fitted.history, key=lambda epoch: epoch.likelihood).number)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "fit.checkpoint"
        teacher.fit(recipe, epochs=epochs, checkpoint=file)
        start = "now.factors."
        parts = {name.removeprefix(start): part for name, part in load_file(file).items() if name.startswith(start)}
    factors = LinearFactors(teacher.experiment.pool, parts["W_V"], parts["W_B"], np.ones(len(parts["free_rates"])))
    factors.load_state_dict(parts)
    return fitted, replace(factors.to_kernel(), temperature=fitted.kernel.temperature)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=list(SOURCES), help="only this data set")
    parser.add_argument("--step", choices=STEPS, nargs="+", default=list(STEPS), help="only these steps")
    parser.add_argument("--only", choices=ALL, help="only kernels of this objective")
    parser.add_argument("--queries", type=int, default=QUERIES, help=f"test queries of each data set ({QUERIES})")
    parser.add_argument("--items", type=int, help="items of the pool that get labels; default: by data set")
    parser.add_argument("--cached", action="store_true", help="make the page of the fits so far")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/learned_from_model.md")
    parser.add_argument("--threads", type=int, default=0, help="threads of torch; 0: its default")
    options = parser.parse_args()
    require(*FILES)
    if options.threads:
        import torch

        torch.set_num_threads(options.threads)
    model = next(language_models.models(argparse.Namespace(model=None, endpoint=None, batch_size=16, dtype=None)))
    judge = Judge(model, CACHE / f"verdicts-{slug_of(model.key)}.jsonl", say)
    found = {}
    only = (options.only,) if options.only else ALL
    for name in [options.set] if options.set else list(SOURCES):
        plan = PLANS[name] if options.items is None else replace(PLANS[name], items=options.items)
        study = Study(name, judge, options.queries, plan)
        if "labels" in options.step and not options.cached:
            study.label(only)
        if "fits" in options.step and not options.cached:
            study.learn(only)
        if "judging" in options.step:
            found[name] = study.judged(only, use=options.cached)
    if found:
        text = page(found, model.described, judge.tokens, judge.seconds)
        print(text)
        if options.write and len(found) == len(SOURCES):
            target = Path(__file__).with_name("results") / "learned_from_model.md"
            target.write_text(text, encoding="utf-8")
            say(f"written: {target}")


if __name__ == "__main__":
    main()
