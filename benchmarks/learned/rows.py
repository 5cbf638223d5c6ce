"""The rows of the learned kernel's tables: the picks of each method for the test queries of one data set and seed.

Only the oracle, an upper limit, sees the answers of the test queries. Kernels are learned with the defaults of ``fit``
from the pool alone: a fifth of it is held out before labels are drawn, and decides which epoch is kept.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.learned.data import Item, Split, load
from benchmarks.learned.shell import shell_symbols
from benchmarks.papers._common import bm25_scores, embedded
from shared_core import MMR, NDPP, VRSD, Candidates, LinearKernel, SetSelectWarning, TopK
from shared_core.learning import CoverageFeedback, LabelledSubset, fit, hold_out, label, structural_symbols
from shared_core.learning import Split as Halves
from shared_core.selectors.ndpp import AUTO_TEMPERATURE, DEFAULT_RIDGE

SIZES = (2, 4, 8, 16)
TRAINED_AT = 4
FETCH_K = 100
# The larger pools need fewer passes.
EPOCHS = {"geoquery": 30, "mtop": 10, "nl2bash": 10}
# The judge labels so many subsets of each item of GeoQuery.
JUDGED = 32

AUTO = f"NDPP, default: T = {AUTO_TEMPERATURE:g} σ, ridge {DEFAULT_RIDGE:g}"
UNLEARNED: dict[str, Any] = {
    "similarity": TopK(),
    "MMR (λ = 0.5)": MMR(lambda_d=0.5),
    "MMR (λ = 0.75)": MMR(lambda_d=0.75),
    "VRSD": VRSD(),
    "VRSD, refined": VRSD(refine=True),
    "NDPP, linear": NDPP(relevance="linear", ridge=0),
    "NDPP, exponential, T = 0.1": NDPP(relevance="exponential", temperature=0.1, ridge=0),
    AUTO: NDPP(relevance="exponential", temperature="auto", ridge=DEFAULT_RIDGE),
}
# The rows of the selectors that ``fit`` compares its kernel with, by the names that it gives them.
RIVALS = {
    "NDPP()": AUTO,
    "NDPP(relevance='linear', ridge=0.0)": "NDPP, linear",
    "NDPP(relevance='exponential', temperature=0.1, ridge=0.0)": "NDPP, exponential, T = 0.1",
    "VRSD()": "VRSD",
    "TopK()": "similarity",
}
LEARNED: dict[str, dict[str, Any]] = {
    "likelihood, DPP (B = 0)": {"objective": "likelihood", "skew_rank": 0},
    "likelihood, NDPP": {"objective": "likelihood"},
    "listwise, DPP (B = 0)": {"skew_rank": 0},
    "listwise, NDPP, a row per item": {"kernel": "rows"},
    "listwise, NDPP": {},
}
BEST, ORACLE = "listwise, NDPP", "greedy oracle"
# As in Table 2 of the paper, one part is left out at a time. The last two are parts of the listwise objective only.
ABLATED: dict[str, dict[str, Any]] = {
    "likelihood, without scoring": {"objective": "likelihood", "share": 1.0},
    "likelihood, without regulariser": {"objective": "likelihood", "alpha": 0.0, "beta": 0.0},
    "likelihood, over the candidates": {"objective": "likelihood", "normalisation": "candidates", "share": 0.1},
    "listwise, without pull": {"pull": 0.0},
    "listwise, without W_R": {"learn_relevance": False},
    "listwise, random subsets": {"random": True},
}

FROM_JUDGE: dict[str, dict[str, Any]] = {"listwise, NDPP, from the judge's answers": {}}

Picks = dict[str, dict[int, list[list[int]]]]


@dataclass(frozen=True)
class Experiment:
    """A data set's split of one seed, its embeddings, and the measure of coverage."""

    name: str
    seed: int
    split: Split
    pool: np.ndarray
    test: np.ndarray
    feedback: CoverageFeedback

    @classmethod
    def load(cls, name: str, seed: int) -> Experiment:
        """Read and embed a data set."""
        split = load(name, seed)
        pool, test = (embedded([item["question"] for item in part]) for part in (split.pool, split.test))
        symbols = shell_symbols if name == "nl2bash" else structural_symbols
        return cls(name, seed, split, pool, test, CoverageFeedback(symbols=symbols))


def nearest(experiment: Experiment) -> list[np.ndarray]:
    """The candidates of each test query, nearest first."""
    order = np.argsort(
        -(experiment.test.astype(np.float64) @ experiment.pool.astype(np.float64).T), axis=1, kind="stable"
    )
    return list(order[:, :FETCH_K])


def unlearned_picks(experiment: Experiment) -> Picks:
    """The picks of the selectors that learn nothing, and of the oracle."""
    candidates = nearest(experiment)
    picks = {row: selected(experiment, candidates, selector) for row, selector in UNLEARNED.items()}
    picks["random"] = {
        k: [np.random.default_rng([experiment.seed, place]).choice(len(experiment.pool), k, replace=False).tolist()
            for place in range(len(experiment.test))]
        for k in SIZES
    }  # fmt: skip
    picks["BM25"] = bm25(experiment)
    symbols = [experiment.feedback.symbols(item["answer"]) for item in experiment.split.pool]
    wanted_of = [experiment.feedback.symbols(item["answer"]) for item in experiment.split.test]
    whole = [
        greedy(wanted, symbols, rows.tolist(), max(SIZES)) for wanted, rows in zip(wanted_of, candidates, strict=True)
    ]
    picks[ORACLE] = {k: [rows[:k] for rows in whole] for k in SIZES}
    return picks


def selected(experiment: Experiment, candidates: Sequence[np.ndarray], selector: Any) -> dict[int, list[list[int]]]:
    """Rows of the pool that a selector selects for each test query, at each size."""
    made = [
        Candidates(query, experiment.pool[rows], ids=rows.tolist())
        for query, rows in zip(experiment.test, candidates, strict=True)
    ]
    return {
        k: [rows[selector.select(c, k).indices].tolist() for rows, c in zip(candidates, made, strict=True)]
        for k in SIZES
    }


def bm25(experiment: Experiment) -> dict[int, list[list[int]]]:
    """The first k by BM25; items that share no word with the query come last, in their order."""
    texts, queries = ([item["question"] for item in part] for part in (experiment.split.pool, experiment.split.test))
    found = [np.argsort(-scores, kind="stable").tolist() for scores in bm25_scores(texts, queries)]
    return {k: [order[:k] for order in found] for k in SIZES}


def greedy(wanted: frozenset[Any], symbols: Sequence[frozenset[Any]], rows: list[int], k: int) -> list[int]:
    """Greedily, the rows that cover most of the right answer's symbols; ties go to the nearer row.

    >>> greedy(frozenset("ab"), [frozenset("a"), frozenset("ab")], [0, 1], 1)
    [1]
    """
    left, picks, covered = list(rows), [], frozenset()
    for _ in range(min(k, len(left))):
        best = max(left, key=lambda row: len((symbols[row] - covered) & wanted))
        picks.append(best)
        covered |= symbols[best]
        left.remove(best)
    return picks


def halves(experiment: Experiment) -> Halves:
    """The pool in two parts: what is trained on, and the held-out queries that choose the epoch."""
    return hold_out(experiment.split.pool, experiment.pool, seed=experiment.seed)


@cache
def labels(name: str, seed: int, draw: str) -> list[LabelledSubset]:
    """The items of the pool as training items, labelled by coverage; random subsets also for the held-out queries."""
    experiment = Experiment.load(name, seed)
    split = halves(experiment)
    return label(
        experiment.split.pool, experiment.pool, experiment.feedback, k=TRAINED_AT, candidates=FETCH_K, draw=draw,
        queries=split.labelled(draw == "greedy"), examples=split.examples, seed=seed,
    )  # fmt: skip


def learned(
    experiment: Experiment,
    row: str,
    recipe: dict[str, Any],
    say: Callable[[str], object],
    file: Path,
    judge: Any = None,
) -> dict[str, Any]:
    """The picks of a kernel learned by this recipe, and the report of its fit; a ``judge`` labels the subsets.

    The kernel is saved as ``file``.
    """
    split = halves(experiment)
    options = {"epochs": EPOCHS[experiment.name], **recipe}
    random = options.pop("random", False) or options.get("objective") == "likelihood"
    feedback: Any = experiment.feedback
    if judge is None:
        given = labels(experiment.name, experiment.seed, "random" if random else "greedy")
    else:
        feedback = judge.feedback
        given = label(
            experiment.split.pool, experiment.pool, feedback, k=TRAINED_AT, candidates=FETCH_K, draw="greedy",
            subsets=JUDGED, queries=split.trained, examples=split.examples, seed=experiment.seed,
        )  # fmt: skip
    with warnings.catch_warnings():
        # The table shows whether learning helped.
        warnings.simplefilter("ignore", SetSelectWarning)
        fitted = fit(
            experiment.split.pool,
            experiment.pool,
            feedback,
            given,
            split=split,
            k=TRAINED_AT,
            fetch_k=FETCH_K,
            seed=experiment.seed,
            **options,
        )
    epochs = f"epoch {fitted.epoch} of {len(fitted.history) - 1}"
    say(f"{experiment.name} {experiment.seed}, {row}: {epochs}, {fitted.gain:+.4f} on held-out items")
    file.parent.mkdir(parents=True, exist_ok=True)
    fitted.kernel.save(file)
    candidates = nearest(experiment)
    picks = {row: selected(experiment, candidates, fitted.selector)}
    if row == "listwise, NDPP":
        # A constant relevance: the kernel alone, among the same candidates.
        flat = replace(fitted.kernel, W_R=None, temperature=1e9)
        picks["listwise, without the query"] = selected(experiment, candidates, NDPP(flat))
    return {"picks": picks, "fit": report_of(fitted)}


def report_of(fitted: Any) -> dict[str, Any]:
    """The cached part of a fit."""
    return {
        "epoch": fitted.epoch,
        "feedback": fitted.feedback,
        "unlearned": dict(fitted.unlearned),
        "gain": fitted.gain,
        "error": fitted.standard_error,
        "history": [asdict(epoch) for epoch in fitted.history],
        "temperature": fitted.kernel.temperature,
        "linear": isinstance(fitted.kernel, LinearKernel),
    }


def nearest_last(experiment: Experiment, place: int, rows: Sequence[int]) -> list[Item]:
    """The picked items in the order in which the language model reads them."""
    near = experiment.pool[list(rows)] @ experiment.test[place]
    return [experiment.split.pool[rows[i]] for i in np.argsort(near, kind="stable")]
