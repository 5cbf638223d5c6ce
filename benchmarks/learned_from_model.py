"""Kernels learned from a language model's feedback, judged by that model: GeoQuery, MTOP and NL2Bash, one seed.

    python -m benchmarks.learned_from_model --queries 10 --items 40      # a trial; nothing is written

The steps are labels (the model scores subsets of the pool), fits (kernels are learned; the model scores the picks for
held-out items after each epoch) and judging (the model scores the picks for new queries). The model is Gemma 3 270M,
which make models installs. Every score is kept in .cache/learned/, so an interrupted run resumes. Kernels that are
learned from coverage are those of learned_ndpp.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.common import Block, facts, parser, publish, require, say, slug, table, with_interval
from benchmarks.learned.data import FILES, SOURCES
from benchmarks.learned.judge import Judge, Recorder
from benchmarks.learned.rows import (
    AUTO,
    BEST,
    CACHE,
    LEARNED,
    ORACLE,
    TRAINED_AT,
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
)  # fmt: skip
from benchmarks.papers import _language_models as language_models
from shared_core import NDPP, LinearKernel
from shared_core.learning import hold_out

START = "NDPP, exponential, T = 0.1"
UNLEARNED_ROWS = ("random", "BM25", "similarity", "MMR (λ = 0.5)", "VRSD", "NDPP, linear", START, AUTO)
COVERAGE, COVERAGE_SAME = "listwise, NDPP, from coverage", "listwise, NDPP, from the coverage of the same subsets"
DPP, LIKELIHOOD, LIKELIHOOD_DPP = "listwise, DPP (B = 0)", "likelihood, NDPP", "likelihood, DPP (B = 0)"
ROWS_KERNEL = "listwise, NDPP, a row per item"
KEPT = "likelihood, NDPP, epoch chosen by feedback"
NO_QUERY = "likelihood, without adaptation"
ASKED_AT = (4, 8)
# Not judged, or not at k = 8, so that a run takes an hour: on all data sets, and on those after the first.
SMALL_ONLY = (START, "NDPP, linear", KEPT, NO_QUERY)
SMALL_ONLY_LATER = ("random", LIKELIHOOD_DPP)
NOT_LATER = ("BM25", "NDPP, linear", ROWS_KERNEL)
# What the tables are about: the first row minus the second. None: the best row that learns nothing.
QUESTIONS: dict[str, tuple[str, str | None]] = {
    "model's feedback minus coverage": (BEST, COVERAGE),
    "the same, with labels of the same subsets": (BEST, COVERAGE_SAME),
    "with the skew part minus without, listwise": (BEST, DPP),
    "with the skew part minus without, likelihood": (LIKELIHOOD, LIKELIHOOD_DPP),
    "a row per item minus a map": (ROWS_KERNEL, BEST),
    "listwise minus the paper's likelihood": (BEST, LIKELIHOOD),
    "likelihood minus its start, which is not trained": (LIKELIHOOD, START),
    "from the model minus the best that learns nothing": (BEST, None),
    "from coverage minus the best that learns nothing": (COVERAGE, None),
}
# NDPP paper, Table 2, exact match on GeoQuery, by the rows that are nearest to its own.
PAPER_ABLATIONS = {
    LIKELIHOOD: ("full model", "73.21"),
    "likelihood, without scoring": ("w/o scoring", "72.36"),
    "likelihood, without regulariser": ("w/o regularization", "71.43"),
    NO_QUERY: ("w/o adaptation", "71.64"),
}
SEED = 0
QUERIES = 200
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
                self.judge.verdicts(recorder.pairs)

    def learn(self) -> tuple[Picks, dict[str, Any]]:
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
        return {row: selected(self.experiment, candidates, selector, ASKED_AT) for row, selector in selectors.items()}

    def judged(self) -> dict[str, Any]:
        """Everything for the page: the model's verdicts and the coverage of all rows, and the reports of the fits."""
        picks, fits = self.learn()
        unlearned = cached(f"{self.slug}-baselines-{slug(AUTO)}", partial(unlearned_picks, self.experiment, ASKED_AT))
        left_out = () if self.name == FIRST else NOT_LATER
        picks = {row: unlearned[row] for row in (*UNLEARNED_ROWS, ORACLE) if row not in left_out} | picks
        places = [(row, k) for row in picks for k in self._sizes(row)]
        pairs = [
            (item, nearest_last(self.experiment, place, rows))
            for row, k in places
            for place, (item, rows) in enumerate(zip(self.experiment.split.test, picks[row][str(k)], strict=True))
        ]
        say(f"{self.name}, judging {len(places)} rows")
        found = iter(self.judge.verdicts(pairs))
        verdicts: dict[str, dict[int, np.ndarray]] = {}
        for row, k in places:
            verdicts.setdefault(row, {})[k] = np.array([next(found) for _ in self.experiment.split.test], float)
        coverage = {
            row: {k: np.array(coverage_of(self.experiment, of_row[str(k)])) for k in ASKED_AT}
            for row, of_row in picks.items()
        }
        return {"verdicts": verdicts, "coverage": coverage, "fits": fits, "teacher": self.teacher}

    def _sizes(self, row: str) -> Sequence[int]:
        small = (*SMALL_ONLY, *ABLATED) if self.name == FIRST else (*SMALL_ONLY, *SMALL_ONLY_LATER)
        return ASKED_AT[:1] if row in small else ASKED_AT


def fit_by_likelihood(teacher: Teacher, recipe: dict[str, Any], epochs: int) -> tuple[Any, LinearKernel]:
    """The fit, and its kernel after the epoch, at least 1, with the highest likelihood of the held-out best subsets.

    The paper chooses no epoch by feedback; ``fit`` does.
    """
    kernels: list[LinearKernel] = []
    fitted = teacher.fit(recipe, epochs=epochs, on_epoch=lambda epoch, kernel: kernels.append(kernel))
    best = max(fitted.history, key=lambda epoch: epoch.likelihood)
    return fitted, kernels[max(1, best.number)]


# --- tables -----------------------------------------------------------------------------------------

Found = Mapping[str, dict[str, Any]]


def blocks(found: Found, model: str) -> Iterator[Block]:
    files = [SOURCES[name].file for name in found]
    yield facts(files, ("numpy", "torch", "transformers", "bm25s"), 0)
    yield "The model is ", f"The model is {model}"
    yield answers(found, 0, "log P", 2)
    yield answers(found, 1, "exact match", 3)
    for name, one in found.items():
        yield from (f"## {name}", judged_table(one), fits_table(one))
    if "geoquery" in found and LIKELIHOOD in found["geoquery"]["verdicts"]:
        yield ablations(found["geoquery"])


def answers(found: Found, place: int, measure: str, digits: int) -> str:
    """Each question at each k: the difference in one measure (0: log P, 1: exact match) for each data set."""
    lines = []
    for question, (one, other) in QUESTIONS.items():
        for k in ASKED_AT:
            cells = []
            for result in found.values():
                known = result["verdicts"]
                rival = other or best_unlearned(known, k)
                cells.append(
                    difference(known[one][k][:, place], known[rival][k][:, place], digits)
                    if k in known.get(one, {}) and k in known.get(rival, {})
                    else "not run"
                )
            lines.append([f"{question}, k = {k}", *cells])
    return table([measure, *found], lines)


def best_unlearned(verdicts: Mapping[str, Mapping[int, np.ndarray]], k: int) -> str:
    """The row that learns nothing with the highest log P."""
    rows = [row for row in UNLEARNED_ROWS if k in verdicts.get(row, {})]
    return max(rows, key=lambda row: float(verdicts[row][k][:, 0].mean()))


def difference(one: np.ndarray, other: np.ndarray, digits: int) -> str:
    """The mean difference and its interval; bold if the interval leaves out 0."""
    return with_interval(one - other, digits, bold="mean")


def named(row: str) -> str:
    """The row's name in the tables."""
    return f"{row}, from the model" if row in (*LEARNED, KEPT) else row


def judged_table(one: dict[str, Any]) -> str:
    """log P, its difference to similarity, exact match and coverage of every row, at each k."""
    known = one["verdicts"]
    order = [*UNLEARNED_ROWS, COVERAGE, COVERAGE_SAME, LIKELIHOOD_DPP, LIKELIHOOD, KEPT, DPP, ROWS_KERNEL, BEST, ORACLE]
    lines = []
    for row in (row for row in order if row in known):
        cells = []
        for k in ASKED_AT:
            if k not in known[row]:
                cells += [""] * 3
                continue
            logs, exact = known[row][k].T
            far = "" if row == "similarity" else difference(logs, known["similarity"][k][:, 0], 2)
            cells += [f"{logs.mean():.2f}", far, f"{exact.mean():.3f}"]
        lines.append([named(row), *cells, f"{one['coverage'][row][TRAINED_AT].mean():.3f}"])
    head = [f"{text}, k = {k}" for k in ASKED_AT for text in ("log P", "minus similarity", "exact")]
    return table(["row", *head, f"coverage, k = {TRAINED_AT}"], lines)


def fits_table(one: dict[str, Any]) -> str:
    lines = []
    for row, fit in one["fits"].items():
        rival = max(fit["unlearned"], key=fit["unlearned"].__getitem__)
        lines.append(
            [named(row), f"{fit['feedback']:.3f}", f"{fit['history'][-1]['feedback']:.3f}",
             f"{fit['unlearned'][rival]:.3f}, {rival}", f"{fit['gain']:+.3f} ± {fit['error']:.3f}",
             f"{fit['epoch']} / {len(fit['history']) - 1}"]
        )  # fmt: skip
    head = ["held-out items", "kept epoch", "last epoch", "best that learns nothing", "gain ± standard error",
            "kept / last epoch"]  # fmt: skip
    return table(head, lines)


def ablations(one: dict[str, Any]) -> str:
    known = one["verdicts"]
    lines = []
    for row, (theirs, exact) in PAPER_ABLATIONS.items():
        if row in known:
            logs, ours = known[row][TRAINED_AT].T
            far = "" if row == LIKELIHOOD else difference(logs, known[LIKELIHOOD][TRAINED_AT][:, 0], 2)
            lines.append([theirs, exact, f"{100 * ours.mean():.1f}", f"{logs.mean():.2f}", far])
    return table(
        ["row", "paper, exact match", f"here, exact match, k = {TRAINED_AT}", "log P", "minus the full model"], lines
    )


def main() -> None:
    made = parser(__doc__, "learned_from_model.md")
    made.add_argument("--set", choices=list(SOURCES), help="only this data set; nothing is written")
    made.add_argument("--queries", type=int, default=QUERIES, help=f"test queries of each data set ({QUERIES})")
    made.add_argument("--items", type=int, help="items of the pool that get labels; default: by data set")
    options = made.parse_args()
    require(*FILES)
    model = language_models.gemma()
    judge = Judge(model, CACHE / f"verdicts-{slug(model.key)}.jsonl")
    found = {}
    for name in [options.set] if options.set else list(SOURCES):
        plan = PLANS[name] if options.items is None else replace(PLANS[name], items=options.items)
        study = Study(name, judge, options.queries, plan)
        study.label()
        found[name] = study.judged()
    whole = options.write and not options.set and not options.items and options.queries == QUERIES
    publish("learned_from_model.md", blocks(found, model.described), whole)


if __name__ == "__main__":
    main()
