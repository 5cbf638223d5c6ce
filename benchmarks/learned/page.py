"""The page of the learned kernel's tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.learned.data import SOURCES
from benchmarks.learned.nothing import EPOCHS, ITEMS
from benchmarks.learned.rows import ABLATED, BEST, LEARNED, ORACLE, RIVALS, SIZES, TRAINED_AT, UNLEARNED
from benchmarks.papers._common import heading, table

BASE = ["random", *list(UNLEARNED)[:1], "BM25", *list(UNLEARNED)[1:]]
FLAT = "listwise, without the query"

Found = dict[str, list[dict[str, Any]]]


def page(found: Found, nothing: Sequence[tuple[float, float]] | None = None) -> str:
    """The whole page: the result of ``work`` for each data set and seed, and of ``fits_to_nothing``."""
    parts = [
        heading(
            "A kernel learned from feedback, compared with selectors that learn nothing",
            "benchmarks/learned_ndpp.py",
            [SOURCES[name].file for name in found],
            ("numpy", "torch", "bm25s"),
            seed="0, 1, 2",
        ),
        INTRODUCTION,
        reported_and_true(found),
        *([] if nothing is None else [where_nothing_is_learned(nothing)]),
    ]
    for name, seeds in found.items():
        parts += [f"## {name}\n", coverage_table(seeds), against(seeds)]
        if any(row in ABLATED for row in rows_of(seeds, "fits")):
            parts += ["### The effect of each part\n", ablations(seeds)]
        parts += ["### What `fit` reported, and what new queries show\n", held_out(seeds)]
        missing = [row for row in LEARNED if row not in rows_of(seeds, "fits")]
        if missing:
            parts += [f"Not run on this data set, for want of time: {'; '.join(missing)}.\n"]
    return "\n".join(parts)


def rows_of(seeds: Sequence[dict[str, Any]], part: str) -> list[str]:
    """The rows that every seed has."""
    return [row for row in seeds[0][part] if all(row in seed[part] for seed in seeds)]


INTRODUCTION = f"""
For test queries that share no question with the pool, examples are selected from the 100 nearest of the pool (BM25 and
random: from all of it). Coverage is the share of the structural symbols of the right answer (functions, intents and
slots, commands and flags, and how they nest) that the answers of the picks contain between them. The figures are means
over three seeds, each with its own pool and test, ± the standard error of the three. Kernels are learned from the pool
alone, from coverage feedback, at k = {TRAINED_AT}, with the defaults of `fit` (on the two larger sets at most 10
epochs). One kernel serves every k. A fifth of the pool is held out before labels are drawn. These items take no part in
training, neither as queries nor as examples; they decide which epoch is kept, and `fit` reports its gain on them. Test
queries are neither trained on nor used to choose anything. Only `sharpness` was ever tuned: on held-out items of
GeoQuery's pools, with an earlier version that still used held-out items as examples in training.

λ is the weight of relevance in MMR. T is the temperature of NDPP, and σ the standard deviation of the candidates'
cosines. The ridge is a number on the diagonal of NDPP's kernel; rows without one have 0.

## The report of `fit`, and the truth

The gain of `{BEST}` at k = {TRAINED_AT} over the selector that learns nothing and is the best on the held-out items of
the pool: as `fit` reports it, on these items, and on the new queries of the test. Both are means of three seeds, ± the
standard error over queries. The report chooses its epoch on the items that it reports on, so some optimism remains; the
last line measures it.
"""


def reported_and_true(found: Found) -> str:
    """The gain that ``fit`` reports beside that on new queries, for each data set."""
    lines, differences = [], []
    for name, seeds in found.items():
        pairs = [gains(seed, BEST) for seed in seeds]
        differences += [reported[0] - true[0] for reported, true in pairs]
        cells = [_pooled(values) for values in zip(*pairs, strict=True)]
        helped = sum(seed["fits"][BEST]["gain"] > seed["fits"][BEST]["error"] for seed in seeds)
        lines.append([name, *cells, f"{np.mean(differences[-len(seeds) :]):+.4f}", f"{helped} of {len(seeds)}"])
    head = ["data set", "reported gain", "gain on new queries", "difference", "`fit` said that learning helped"]
    values = np.array(differences)
    error = values.std(ddof=1) / len(values) ** 0.5
    text = f"Reported minus true, over all {len(values)} fits: {values.mean():+.4f} ± {error:.4f}."
    return f"{table(head, lines)}\n{text}\n"


def where_nothing_is_learned(fits: Sequence[tuple[float, float]]) -> str:
    """How often a fit reports a gain where there is none, and the mean gain."""
    values, errors = np.array(fits).T
    shares = [f"{int((values > times * errors).sum())} of {len(fits)}" for times in (1, 2, 3)]
    rows = [[f"{values.mean():+.4f} ± {values.std(ddof=1) / len(values) ** 0.5:.4f}", f"{errors.mean():.4f}", *shares]]
    head = ["mean reported gain", "mean of its standard errors", "gain above one of them", "above two", "above three"]
    return f"""### Where nothing can be learned

{ITEMS} items with random vectors, and a random feedback for each pair of items, so the true gain is 0.
{len(fits)} fits of {EPOCHS} epochs at k = 2, each with other items, 12 of them held out. What remains is the optimism
of the kept epoch. `fit` says that learning helped where the gain is above one standard error:

{table(head, rows)}"""


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
    head = [
        "k",
        "best without learning",
        f"gain of {BEST}",
        "standard error over all queries",
        "share of the gap to the oracle",
    ]
    return f"{table(head, lines)}"


def ablations(seeds: Sequence[dict[str, Any]]) -> str:
    """The objectives without one part each, at the size of training."""
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
    head = [
        "feedback on held-out items",
        "kept epoch",
        "last epoch",
        "best without learning",
        "reported gain",
        "gain on new queries",
        "number of the kept / last epoch",
        "temperature",
    ]
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
