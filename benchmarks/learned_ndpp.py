"""The learned NDPP on GeoQuery, MTOP and NL2Bash, learned from coverage and measured by coverage, three seeds.

Coverage is the share of the right answer's structural symbols that the picks' answers contain. Results are cached in
.cache/learned/, so an interrupted run resumes. learned_from_model.py has the same with the feedback and the judgement
of a language model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.common import Block, facts, parser, publish, require, slug, table
from benchmarks.learned.data import FILES, SOURCES
from benchmarks.learned.rows import (
    ABLATED,
    AUTO,
    BEST,
    CACHE,
    LEARNED,
    ORACLE,
    RIVALS,
    SIZES,
    TRAINED_AT,
    UNLEARNED,
    Experiment,
    Teacher,
    cached,
    coverage_of,
    learned,
    unlearned_picks,
)  # fmt: skip

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


# --- tables -----------------------------------------------------------------------------------------

BASE = ["random", *list(UNLEARNED)[:1], "BM25", *list(UNLEARNED)[1:]]
FLAT = "listwise, without the query"

Found = dict[str, list[dict[str, Any]]]


def blocks(found: Found) -> Iterator[Block]:
    """The page's figures: the result of ``work`` for each data set and seed."""
    yield facts([SOURCES[name].file for name in found], ("numpy", "torch", "bm25s"), "0, 1, 2")
    reported, differences = reported_and_true(found)
    yield reported
    error = differences.std(ddof=1) / len(differences) ** 0.5
    start = "Reported minus true, over all "
    yield start, f"{start}{len(differences)} fits: {differences.mean():+.4f} ± {error:.4f}."
    for name, seeds in found.items():
        yield from (f"## {name}", coverage_table(seeds), against(seeds))
        if any(row in ABLATED for row in rows_of(seeds, "fits")):
            yield ablations(seeds)
        yield held_out(seeds)


def rows_of(seeds: Sequence[dict[str, Any]], part: str) -> list[str]:
    return [row for row in seeds[0][part] if all(row in seed[part] for seed in seeds)]


def reported_and_true(found: Found) -> tuple[str, np.ndarray]:
    """The gain that ``fit`` reports beside that on new queries, for each data set, and the differences of all fits."""
    lines, differences = [], []
    for name, seeds in found.items():
        pairs = [gains(seed, BEST) for seed in seeds]
        differences += [reported[0] - true[0] for reported, true in pairs]
        cells = [_pooled(values) for values in zip(*pairs, strict=True)]
        helped = sum(seed["fits"][BEST]["gain"] > seed["fits"][BEST]["error"] for seed in seeds)
        lines.append([name, *cells, f"{np.mean(differences[-len(seeds) :]):+.4f}", f"{helped} of {len(seeds)}"])
    head = ["data set", "reported gain", "gain on new queries", "difference", "`fit` said that learning helped"]
    return table(head, lines), np.array(differences)


def gains(seed: dict[str, Any], row: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """The gain over the best rival of a fit and its standard error: as the fit reports it, and on new queries."""
    one = seed["fits"][row]
    rival = RIVALS[max(one["unlearned"], key=one["unlearned"].__getitem__)]
    of = seed["coverage"]
    new = np.subtract(of[row][str(TRAINED_AT)], of[rival][str(TRAINED_AT)])
    return (one["gain"], one["error"]), (float(new.mean()), float(new.std(ddof=1) / len(new) ** 0.5))


def coverage_table(seeds: Sequence[dict[str, Any]]) -> str:
    """Coverage of every row at every size; the best row is bold, the oracle aside."""
    known = rows_of(seeds, "coverage")
    rows = [row for row in [*BASE, *LEARNED, ORACLE] if row in known]
    values = {row: [[np.mean(seed["coverage"][row][str(k)]) for seed in seeds] for k in SIZES] for row in rows}
    best = [max(np.mean(values[row][i]) for row in rows if row != ORACLE) for i in range(len(SIZES))]
    lines = []
    for row in rows:
        cells = [_cell(values[row][i], 3, bold=np.mean(values[row][i]) == best[i]) for i in range(len(SIZES))]
        lines.append([row, *cells])
    return table(["coverage", *(f"k = {k}" for k in SIZES)], lines)


def against(seeds: Sequence[dict[str, Any]]) -> str:
    """The gain of the learned kernel over the best row without learning, and the share of the gap to the oracle."""
    lines = []
    for k in SIZES:
        mean = {row: [float(np.mean(seed["coverage"][row][str(k)])) for seed in seeds] for row in [*BASE, BEST, ORACLE]}
        rival = max(BASE, key=lambda row: float(np.mean(mean[row])))
        gain = np.subtract(mean[BEST], mean[rival])
        gap = np.mean(mean[ORACLE]) - np.mean(mean[rival])
        queries = np.concatenate(
            [np.subtract(seed["coverage"][BEST][str(k)], seed["coverage"][rival][str(k)]) for seed in seeds]
        )
        lines.append(
            [f"{k}", rival, _cell(gain, 4, signed=True), f"{queries.std(ddof=1) / len(queries) ** 0.5:.4f}",
             f"{gain.mean() / gap:.0%}"]
        )  # fmt: skip
    gap = "share of the gap to the oracle"
    head = ["k", "best without learning", f"gain of {BEST}", "standard error over all queries", gap]
    return table(head, lines)


def ablations(seeds: Sequence[dict[str, Any]]) -> str:
    rows = ["likelihood, NDPP", *(row for row in ABLATED if row.startswith("like")), BEST]
    rows += [*(row for row in ABLATED if row.startswith("list")), FLAT]
    found = {row: [np.mean(seed["coverage"][row][str(TRAINED_AT)]) for seed in seeds]
             for row in rows if row in rows_of(seeds, "coverage")}  # fmt: skip
    return table([f"k = {TRAINED_AT}", "coverage"], [[row, _cell(values, 3)] for row, values in found.items()])


def held_out(seeds: Sequence[dict[str, Any]]) -> str:
    """Feedback on held-out items of the pool: the kept epoch, the last epoch, the best without learning, the gains."""
    lines = []
    for row in rows_of(seeds, "fits"):
        fits = [seed["fits"][row] for seed in seeds]
        rivals = [max(one["unlearned"].values()) for one in fits]
        kept, last = [one["feedback"] for one in fits], [one["history"][-1]["feedback"] for one in fits]
        cells = [_cell(values, 3) for values in (kept, last, rivals)]
        cells += [_pooled(values) for values in zip(*(gains(seed, row) for seed in seeds), strict=True)]
        epochs = " ".join(f"{one['epoch']}/{len(one['history']) - 1}" for one in fits)
        lines.append([row, *cells, epochs, " ".join(f"{one['temperature']:.2f}" for one in fits)])
    head = ["feedback on held-out items", "kept epoch", "last epoch", "best without learning", "reported gain"]
    head += ["gain on new queries", "number of the kept / last epoch", "temperature"]
    return table(head, lines)


def _pooled(values: Sequence[tuple[float, float]]) -> str:
    """The mean of independent figures, each with its standard error."""
    means, errors = np.array(values).T
    return f"{means.mean():+.4f} ± {(errors**2).sum() ** 0.5 / len(errors):.4f}"


def _cell(values: Any, digits: int, *, bold: bool = False, signed: bool = False) -> str:
    values = np.asarray(values, dtype=float)
    error = f" ± {values.std(ddof=1) / len(values) ** 0.5:.{digits}f}" if len(values) > 1 else ""
    mean = f"{values.mean():{'+' if signed else ''}.{digits}f}"
    return f"**{mean}**{error}" if bold else f"{mean}{error}"


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
    publish("learned_ndpp.md", blocks(found), options.write and not options.set)


if __name__ == "__main__":
    main()
