"""The tables of the kernels that are learned from a language model's feedback and judged by that model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.common import Block, facts, table, with_interval
from benchmarks.learned.data import SOURCES
from benchmarks.learned.rows import AUTO, BEST, LEARNED, ORACLE, TRAINED_AT

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
FIGURE_AT = (1, 2, 4, 8, 16)
FIGURE_ROWS = ("random", "similarity", LIKELIHOOD, BEST)
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
Found = Mapping[str, dict[str, Any]]


def blocks(found: Found, model: str, tokens: int, seconds: float) -> Iterator[Block]:
    """The page's figures: what ``Study.judged`` gives for each data set, and the work of the model."""
    files = [SOURCES[name].file for name in found]
    yield facts(files, ("numpy", "torch", "transformers", "bm25s"), 0)
    work = f"The model is {model} It read {tokens:,} tokens in {seconds / 3600:.1f} hours of this machine."
    yield "The model is ", work
    yield sizes_table(found)
    yield answers(found, 0, "log P", 2)
    yield answers(found, 1, "exact match", 3)
    for name, one in found.items():
        yield from (f"## {name}", judged_table(one), fits_table(one))
    if "geoquery" in found and LIKELIHOOD in found["geoquery"]["verdicts"]:
        yield ablations(found["geoquery"])
        yield figure(found["geoquery"])


def sizes_table(found: Found) -> str:
    """The sizes of each data set, and the number of labels."""
    sizes = []
    for name, one in found.items():
        teacher = one["teacher"]
        trained, held_out, pool = (len(part) for part in (teacher.split.trained, teacher.split.held_out,
                                                          teacher.experiment.pool))  # fmt: skip
        queries = len(teacher.experiment.test)
        sizes.append(
            [name, f"{pool:,}", str(trained), str(held_out), str(teacher.subsets["greedy"]),
             str(teacher.subsets["random"]), str(queries)]
        )  # fmt: skip
    head = ["data set", "pool", "labelled items", "held-out items", "subsets of an item, listwise", "likelihood",
            "test queries"]  # fmt: skip
    return table(head, sizes)


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
    """Feedback on held-out items, as the fits report it."""
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
    """The paper's Table 2 beside ours."""
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


def figure(one: dict[str, Any]) -> str:
    """log P and exact match by the number of examples."""
    lines = []
    for row in (row for row in FIGURE_ROWS if row in one["verdicts"]):
        of_row: Mapping[int, np.ndarray] = one["verdicts"][row]
        for place, measure, digits in ((0, "log P", 2), (1, "exact", 3)):
            lines.append([f"{named(row)}: {measure}", *(f"{of_row[k][:, place].mean():.{digits}f}" for k in FIGURE_AT)])
    return table(["row", *(f"k = {k}" for k in FIGURE_AT)], lines)
