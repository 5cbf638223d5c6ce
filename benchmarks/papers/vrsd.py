"""VRSD paper, Tables 1 and 3: how well the sum of the picks points at the question, for each method.

--model all-mpnet-base-v2 takes the paper's own model, after `make models`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Block, best, bm25_scores, facts, is_there, parser, publish, records, say, table
from benchmarks.models import MAX_TOKENS, MINILM, MPNET, PACKAGES, is_installed, unit_vectors
from benchmarks.papers._paper_figures import VRSD_MPNET
from shared_core import select
from shared_core.evaluation.measures import bootstrap_interval, mean_pairwise_cosine, sum_cosine

SEED = 0
# One record of so many is a question; the others are items.
ONE_OF = 5
SETTINGS = ((20, 4), (100, 8))
TOLERANCE = 1e-9
EXPECTED_WINS = 0.85
VRSD, REFINED = "VRSD", "VRSD refined"
# The paper's rows, and one between them that comes closer to VRSD.
PAPER_MMR = {"MMR λ 0": 0.0, "MMR λ 0.5": 0.5, "MMR λ 1": 1.0}
CLOSER_MMR = "MMR λ 0.75"
MMR = {"MMR λ 0": 0.0, "MMR λ 0.5": 0.5, CLOSER_MMR: 0.75, "MMR λ 1": 1.0}
BM25_POOL, BM25_ALL = "BM25, the pool", "BM25, all items"
SELECTORS: dict[str, dict[str, Any]] = {
    "similarity": {"selector": "similarity"},
    **{name: {"selector": "mmr", "lambda_mult": weight} for name, weight in MMR.items()},
    VRSD: {"selector": "vrsd"},
    REFINED: {"selector": "vrsd", "refine": True},
}
METHODS = ("similarity", BM25_POOL, BM25_ALL, *MMR, VRSD, REFINED)

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]
Values = dict[str, Floats]


@dataclass(frozen=True)
class DataSet:
    """``read`` returns a record's question and answer; ``paper`` is the data set of the paper to compare with."""

    title: str
    file: str
    read: Callable[[dict[str, Any]], tuple[str, str]]
    paper: str


def _with_options(record: dict[str, Any]) -> tuple[str, str]:
    options = ". ".join(choice["text"] for choice in record["choices"])
    return f"{record['question']}? The options are: {options}", record["answer"]


OPENBOOKQA = "openbookqa/questions.jsonl"
DATA_SETS = (
    DataSet("OpenBookQA", OPENBOOKQA, lambda r: (r["question"], r["answer"]), "OpenBookQA"),
    DataSet("OpenBookQA, questions with their options", OPENBOOKQA, _with_options, "OpenBookQA"),
    DataSet(
        "ARC-Challenge",
        "arc_challenge/arc_challenge.jsonl",
        lambda r: (r["question"], " ".join(r["answers"])),
        "ARC-DA",
    ),
    DataSet("Puzzle", "puzzle/puzzle.jsonl", lambda r: (r["story"], r["answer"]), "Puzzle"),
)


def win_rate(ours: Floats, theirs: Floats) -> float:
    """Share of the queries where ours is above theirs by more than rounding."""
    return float((ours > theirs + TOLERANCE).mean())


def max_difference(ours: Floats, theirs: Floats) -> float:
    """Largest lead of ours over theirs among the queries; negative if theirs always leads."""
    return float((ours - theirs).max())


def split(n: int, seed: int = SEED) -> tuple[Indices, Indices]:
    """Rows of ``n`` records that are questions (a random fifth, from ``seed``) and that are items; both ascending."""
    questions = np.sort(np.random.default_rng(seed).choice(n, n // ONE_OF, replace=False))
    return questions, np.setdiff1d(np.arange(n), questions)


def picks(query: Floats, items: Floats, bm25: Floats, size: int, k: int) -> dict[str, Indices]:
    """The picks of each method from the ``size`` items with the highest cosine; ``bm25`` holds one score an item."""
    pool = best(items @ query, size)
    found = {name: pool[select(query, items[pool], k, **how).indices] for name, how in SELECTORS.items()}
    # Among items with equal BM25 scores, the order of the pool (by cosine) decides.
    return found | {BM25_POOL: pool[best(bm25[pool], k)], BM25_ALL: best(bm25, k)}


def judge(queries: Floats, items: Floats, bm25: Sequence[Floats], size: int, k: int) -> tuple[Values, Values]:
    """cos(sum of picks, question) and the picks' mean pairwise cosine: for each method one value a question."""
    aims: dict[str, list[float]] = {name: [] for name in METHODS}
    likeness: dict[str, list[float]] = {name: [] for name in METHODS}
    for query, scores in zip(queries, bm25, strict=True):
        picked = picks(query, items, scores, size, k)
        for name in METHODS:
            aims[name].append(sum_cosine(query, items[picked[name]]))
            likeness[name].append(mean_pairwise_cosine(items[picked[name]]))
    return ({name: np.array(v) for name, v in aims.items()}, {name: np.array(v) for name, v in likeness.items()})


def lines(aims: Values, likeness: Values, paper: dict[str, tuple[str, str, str]] | None) -> str:
    """One setting as a Markdown table; ``paper`` holds mean, win rate and largest difference of each method."""
    head = ["method", "mean", "VRSD wins", "by at most", "refined wins", "by at most", "pairwise cosine"]
    head += ["paper: mean", "VRSD wins", "by at most"] if paper else []
    rows = []
    for name in METHODS:
        row = [name, f"{aims[name].mean():.4f}"]
        for ours in (VRSD, REFINED):
            row += ["", ""] if name == ours else _against(aims[ours], aims[name])
        row.append(f"{likeness[name].mean():.4f}")
        rows.append(row + (list(paper.get(name, ("", "", ""))) if paper else []))
    return table(head, rows)


def _against(ours: Floats, theirs: Floats) -> list[str]:
    return [f"{win_rate(ours, theirs):.1%}", f"{max_difference(ours, theirs):.4f}"]


def weakest(aims: Values) -> tuple[str, float]:
    """The paper's MMR row that VRSD beats on the fewest questions (the first of equals), and the share of those."""
    wins = {name: win_rate(aims[VRSD], aims[name]) for name in PAPER_MMR}
    return min(wins.items(), key=lambda row: row[1])


def worsened(aims: Values) -> int:
    """The number of questions whose cos(sum, question) is lower after refinement than after the greedy pass."""
    return int((aims[REFINED] < aims[VRSD] - TOLERANCE).sum())


def verdict(data_set: DataSet, aims: Values) -> list[str]:
    """A data set's row of the first table: whether VRSD wins more than 85% against every MMR row, with an interval."""
    name, share = weakest(aims)
    low, high = bootstrap_interval(aims[VRSD] > aims[name] + TOLERANCE, seed=SEED)
    holds = "yes" if share > EXPECTED_WINS else "**no**"
    # An answer that another sample of questions could reverse is marked.
    unsure = ", too close to tell" if low <= EXPECTED_WINS <= high else ""
    wins, losses = (int((a > b + TOLERANCE).sum()) for a, b in ((aims[VRSD], aims[name]), (aims[name], aims[VRSD])))
    counts = [f"{wins} of {len(aims[name])} ({share:.1%})", str(len(aims[name]) - wins - losses), str(losses)]
    closer = f"{win_rate(aims[VRSD], aims[CLOSER_MMR]):.1%}"
    shown = [f"{low:.1%} to {high:.1%}", holds + unsure, VRSD_MPNET[data_set.paper][name][1], closer]
    return [data_set.title, name, *counts, *shown]


def sections(data_set: DataSet, model: str) -> Iterator[tuple[str, tuple[int, int], Values]]:
    """A data set's tables, each with its setting and its values of cos(sum, question)."""
    pairs = [data_set.read(record) for record in records(data_set.file)]
    asked, rest = split(len(pairs))
    questions = [pairs[i][0] for i in asked]
    items = [" ".join(pairs[i]) for i in rest]
    queries, vectors = (unit_vectors(texts, model) for texts in (questions, items))
    scores = bm25_scores(items, questions)
    for size, k in SETTINGS:
        aims, likeness = judge(queries, vectors, scores, size, k)
        text = lines(aims, likeness, VRSD_MPNET[data_set.paper] if (size, k) == SETTINGS[0] else None)
        yield text, (size, k), aims


def blocks(model: str, data_sets: Sequence[DataSet]) -> Iterator[Block]:
    files = [data_set.file for data_set in data_sets]
    packages = ["setselect", "numpy", "torch", "sentence-transformers", "bm25s", PACKAGES[model][0]]
    note = f", the first {MAX_TOKENS} tokens of a text, products in bfloat16" if model == MPNET else ""
    yield facts(files, packages, SEED, f"Model: {model}{note}")
    rows, lower, judged, parts = [], [], 0, []
    for data_set in data_sets:
        for text, setting, aims in sections(data_set, model):
            parts.append(text)
            judged += len(aims[VRSD])
            lower += [f"{data_set.title}, k = {setting[1]}: {count}"] if (count := worsened(aims)) else []
            rows += [verdict(data_set, aims)] if setting == SETTINGS[0] else []
        say(data_set.title)
    head = ["data set", "row beaten least", "wins", "equal", "losses", "wins, 95% interval", "more than 85%?", "paper"]
    yield table([*head, f"wins over {CLOSER_MMR}"], rows)
    holds = f"**no** ({'; '.join(lower)})." if lower else f"yes, in each of the {judged:,} selections (within 1e-9)."
    yield "Refined is never below greedy", f"Refined is never below greedy: {holds}"
    yield from parts


def main() -> None:
    made = parser(__doc__, "papers/vrsd.md")
    made.add_argument("--model", default=MINILM, choices=(MINILM, MPNET))
    options = made.parse_args()
    if not is_installed(options.model):
        say(f"skipped: {options.model} is not installed; run make models")
        return
    page = "vrsd.md" if options.model == MINILM else f"vrsd-{options.model}.md"
    there = [data_set for data_set in DATA_SETS if is_there(data_set.file)]
    if there:
        publish(f"papers/{page}", blocks(options.model, there), options.write)


if __name__ == "__main__":
    main()
