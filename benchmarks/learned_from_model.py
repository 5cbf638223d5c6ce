"""Kernels learned from a language model's feedback, judged by that model: GeoQuery, MTOP and NL2Bash, one seed.

    python benchmarks/learned_from_model.py --queries 10 --items 40      # a trial; nothing is written

The steps are labels (the model scores subsets of the pool), fits (kernels are learned; the model scores the picks for
held-out items after each epoch) and judging (the model scores the picks for new queries). The model is Gemma 3 270M,
which make models installs. Every score is kept in .cache/learned/, so an interrupted run resumes. Kernels that are
learned from coverage are those of learned_ndpp.py.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import parser, publish, require, say, slug
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
    blocks,
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
    selected,
    summary_of,
    unlearned_picks,
    without_query,
)
from benchmarks.papers import _language_models as language_models
from shared_core import NDPP, LinearKernel
from shared_core.learning import hold_out

SEED = 0
QUERIES = 200
SIZES = (1, 2, 4, 8, 16)
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

    def label(self) -> None:
        """Have the model score the subsets that the fits are made from."""
        objectives = {recipe.get("objective") for recipe in self.recipes.values()}
        for draw, objective in (("greedy", None), ("random", "likelihood")):
            if objective in objectives:
                recorder = Recorder()
                replace(self.teacher, feedback=recorder, _made={}).labels(draw)
                self.judge.verdicts(recorder.pairs, f"{self.name}, {draw} subsets")

    def learn(self) -> tuple[Picks, dict[str, Any]]:
        """The picks and reports of all learned kernels."""
        picks: Picks = {}
        fits: dict[str, Any] = {}
        for row, make in self._fits().items():
            made = cached(f"{self.slug}-{slug(row)}", make)
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
        name = f"{self.name}-{SEED}-learned-{slug(BEST)}"
        experiment, file = Experiment.load(self.name, SEED), CACHE / f"{name}.safetensors"
        make = partial(learned, experiment, Teacher.of_coverage(experiment), BEST, LEARNED[BEST], file)
        report = cached(name, make)["fit"]
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

    def judged(self) -> dict[str, Any]:
        """Everything for the page: the model's verdicts and the coverage of all rows, and the reports of the fits."""
        picks, fits = self.learn()
        unlearned = cached(f"{self.slug}-baselines-{slug(AUTO)}", partial(unlearned_picks, self.experiment, SIZES))
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
    made = parser(__doc__, "learned_from_model.md")
    made.add_argument("--set", choices=list(SOURCES), help="only this data set; nothing is written")
    made.add_argument("--queries", type=int, default=QUERIES, help=f"test queries of each data set ({QUERIES})")
    made.add_argument("--items", type=int, help="items of the pool that get labels; default: by data set")
    options = made.parse_args()
    require(*FILES)
    model = language_models.gemma()
    judge = Judge(model, CACHE / f"verdicts-{slug(model.key)}.jsonl", say)
    found = {}
    for name in [options.set] if options.set else list(SOURCES):
        plan = PLANS[name] if options.items is None else replace(PLANS[name], items=options.items)
        study = Study(name, judge, options.queries, plan)
        study.label()
        found[name] = study.judged()
    whole = options.write and not options.set and not options.items and options.queries == QUERIES
    publish("learned_from_model.md", blocks(found, model.described, judge.tokens, judge.seconds), whole)


if __name__ == "__main__":
    main()
