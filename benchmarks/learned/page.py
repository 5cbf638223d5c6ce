"""The page of the learned kernel's tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.learned.data import SOURCES
from benchmarks.learned.rows import ABLATED, LEARNED, SIZES, TRAINED_AT, UNLEARNED
from benchmarks.papers._common import heading, table

BASE = ["random", *list(UNLEARNED)[:1], "BM25", *list(UNLEARNED)[1:]]
BEST = "listwise, NDPP"
ORACLE = "greedy oracle"
JUDGED = "listwise, NDPP, from the judge's answers"
FLAT = "listwise, without the query"

Found = dict[str, list[dict[str, Any]]]


def page(found: Found) -> str:
    """The whole page, from the result of ``work`` for each data set and seed."""
    parts = [
        heading(
            "A kernel learned from feedback, compared with selectors that learn nothing",
            "benchmarks/learned_ndpp.py",
            [SOURCES[name].file for name in found],
            ("numpy", "torch", "bm25s"),
            seed="0, 1, 2",
        ),
        INTRODUCTION,
    ]
    for name, seeds in found.items():
        parts += [f"## {name}\n", coverage_table(seeds), against(seeds), judge_table(seeds)]
        if FLAT in seeds[0]["picks"] and any(row in seeds[0]["picks"] for row in ABLATED):
            parts += ["### The effect of each part\n", ablations(seeds)]
        parts += ["### What `fit` reported\n", held_out(seeds)]
    return "\n".join(parts)


INTRODUCTION = f"""
For test queries that share no question with the pool, examples are selected from the 100 nearest of the pool (BM25 and
random: from all of it). Coverage is the share of the structural symbols of the right answer (functions, intents and
slots, commands and flags, and how they nest) that the answers of the picks contain between them. The figures are means
over three seeds, each with its own pool and test, ± the standard error of the three. Kernels are learned from the pool
alone, from coverage feedback, at k = {TRAINED_AT}, with the defaults of `fit` (on the two larger sets at most 10
epochs). One kernel serves every k. Nothing is tuned on test queries: held-out items of the pool decide which epoch is
kept, and they decided the only setting that was tuned (`sharpness`, on GeoQuery).

The judge is a language model with 0.9 million weights. It was trained for five minutes on prompts from a part that is
in no pool and no test, and it has a built-in copy mechanism, so it uses its examples. It tests the code, and does not
show what a large model would do. It is asked the first 100 queries of each test. Exact: greedy decoding prints the
right answer.
"""


def coverage_table(seeds: Sequence[dict[str, Any]]) -> str:
    """Coverage of every row at every size; the best row is bold, the oracle aside."""
    rows = [row for row in [*BASE, *LEARNED, JUDGED, ORACLE] if row in seeds[0]["coverage"]]
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


def judge_table(seeds: Sequence[dict[str, Any]]) -> str:
    """Log-probability at every size and exact match at the size of training."""
    rows = [row for row in [*BASE, *LEARNED, JUDGED, ORACLE] if row in seeds[0]["verdict"]]
    lines = []
    for row in rows:
        logs = [_cell([_mean(seed, row, k, 0) for seed in seeds], 2) for k in SIZES]
        exact = [_cell([_mean(seed, row, k, 1) for seed in seeds], 3) for k in (4, 16)]
        lines.append([row, *logs, *exact])
    return table(["judge", *(f"log P, k = {k}" for k in SIZES), "exact, k = 4", "exact, k = 16"], lines)


def ablations(seeds: Sequence[dict[str, Any]]) -> str:
    """The objectives without one part each, at the size of training."""
    rows = ["likelihood, NDPP", *(row for row in ABLATED if row.startswith("like")), BEST]
    rows += [*(row for row in ABLATED if row.startswith("list")), FLAT]
    lines = []
    for row in rows:
        coverage = [np.mean(seed["coverage"][row][str(TRAINED_AT)]) for seed in seeds]
        lines.append([row, _cell(coverage, 3), _cell([_mean(seed, row, TRAINED_AT, 0) for seed in seeds], 2)])
    return table([f"k = {TRAINED_AT}", "coverage", "log P of the judge"], lines)


def held_out(seeds: Sequence[dict[str, Any]]) -> str:
    """Feedback on held-out items of the pool: the kept epoch, the last epoch, and NDPP without a kernel."""
    lines = []
    for row in seeds[0]["fits"]:
        fits = [seed["fits"][row] for seed in seeds]
        rivals = [max(value for name, value in one["unlearned"].items() if name[:4] == "NDPP") for one in fits]
        kept, last = [one["feedback"] for one in fits], [one["history"][-1]["feedback"] for one in fits]
        cells = [_cell(values, 3) for values in (kept, last, rivals)]
        epochs = " ".join(f"{one['epoch']}/{len(one['history']) - 1}" for one in fits)
        lines.append([row, *cells, epochs, " ".join(f"{one['temperature']:.2f}" for one in fits)])
    head = [
        "feedback on held-out items",
        "kept epoch",
        "last epoch",
        "NDPP without a kernel",
        "number of the kept / last epoch",
        "temperature",
    ]
    return table(head, lines)


def _mean(seed: dict[str, Any], row: str, k: int, place: int) -> float:
    return float(np.mean([verdict[place] for verdict in seed["verdict"][row][str(k)]]))


def _cell(values: Any, digits: int, *, bold: bool = False, signed: bool = False) -> str:
    values = np.asarray(values, dtype=float)
    error = f" ± {values.std(ddof=1) / len(values) ** 0.5:.{digits}f}" if len(values) > 1 else ""
    mean = f"{values.mean():{'+' if signed else ''}.{digits}f}"
    return f"**{mean}**{error}" if bold else f"{mean}{error}"
