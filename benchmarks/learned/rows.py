"""The rows of the learned kernel's tables: who picks which examples for the test queries of one data set and seed.

Nothing here looks at the test queries' answers but the oracle, which is there as the limit. Kernels are learned with
the defaults of ``fit`` from the pool alone; what epochs are kept is decided on items of the pool that were held out.
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
from benchmarks.papers._common import embedded
from shared_core import MMR, NDPP, VRSD, Candidates, LinearKernel, SetSelectWarning, TopK
from shared_core.learning import CoverageFeedback, LabelledSubset, fit, label, structural_symbols

SIZES = (2, 4, 8, 16)
TRAINED_AT = 4
FETCH_K = 100
# The larger pools teach as much in fewer passes.
EPOCHS = {"geoquery": 30, "mtop": 10, "nl2bash": 10}
# Subsets that the judge labels of each item of GeoQuery.
JUDGED = 32

UNLEARNED: dict[str, Any] = {
    "similarity": TopK(),
    "MMR (λ = .5)": MMR(lambda_d=0.5),
    "MMR (λ = .75)": MMR(lambda_d=0.75),
    "VRSD": VRSD(),
    "VRSD, refined": VRSD(refine=True),
    "NDPP, no kernel": NDPP(),
    "NDPP, no kernel, exponential": NDPP(relevance="exponential"),
}
LEARNED: dict[str, dict[str, Any]] = {
    "likelihood, DPP (B = 0)": {"objective": "likelihood", "skew_rank": 0},
    "likelihood, NDPP": {"objective": "likelihood"},
    "listwise, DPP (B = 0)": {"skew_rank": 0},
    "listwise, NDPP, a row per item": {"kernel": "rows"},
    "listwise, NDPP": {},
}
# Table 2 of the paper takes parts away one at a time; the last two are what the listwise objective adds.
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
class Ground:
    """A data set's split of one seed, embedded, with what measures coverage."""

    name: str
    seed: int
    split: Split
    pool: np.ndarray
    test: np.ndarray
    feedback: CoverageFeedback

    @classmethod
    def of(cls, name: str, seed: int) -> Ground:
        """Load and embed it."""
        split = load(name, seed)
        pool, test = (embedded([item["question"] for item in part]) for part in (split.pool, split.test))
        symbols = shell_symbols if name == "nl2bash" else structural_symbols
        return cls(name, seed, split, pool, test, CoverageFeedback(symbols=symbols))


def nearest(ground: Ground) -> list[np.ndarray]:
    """The candidates of each test query, nearest first."""
    order = np.argsort(-(ground.test.astype(np.float64) @ ground.pool.astype(np.float64).T), axis=1, kind="stable")
    return list(order[:, :FETCH_K])


def unlearned_picks(ground: Ground) -> Picks:
    """What needs no learning, the oracle among it."""
    candidates = nearest(ground)
    picks = {row: selected(ground, candidates, selector) for row, selector in UNLEARNED.items()}
    picks["random"] = {
        k: [np.random.default_rng([ground.seed, place]).choice(len(ground.pool), k, replace=False).tolist()
            for place in range(len(ground.test))]
        for k in SIZES
    }  # fmt: skip
    picks["BM25"] = bm25(ground)
    symbols = [ground.feedback.symbols(item["answer"]) for item in ground.split.pool]
    asked = [ground.feedback.symbols(item["answer"]) for item in ground.split.test]
    whole = [greedy(wanted, symbols, rows.tolist(), max(SIZES)) for wanted, rows in zip(asked, candidates, strict=True)]
    picks["greedy oracle"] = {k: [rows[:k] for rows in whole] for k in SIZES}
    return picks


def selected(ground: Ground, candidates: Sequence[np.ndarray], selector: Any) -> dict[int, list[list[int]]]:
    """Rows of the pool that a selector picks for each test query, at each size."""
    made = [
        Candidates(query, ground.pool[rows], ids=rows.tolist())
        for query, rows in zip(ground.test, candidates, strict=True)
    ]
    return {
        k: [rows[selector.select(c, k).indices].tolist() for rows, c in zip(candidates, made, strict=True)]
        for k in SIZES
    }


def bm25(ground: Ground) -> dict[int, list[list[int]]]:
    """The first k of bm25s with its defaults; where fewer share a word with the query, the first others."""
    import bm25s

    texts, queries = ([item["question"] for item in part] for part in (ground.split.pool, ground.split.test))
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    found = []
    for words in bm25s.tokenize(queries, stopwords="en", return_ids=False, show_progress=False):
        found.append(np.argsort(-np.asarray(index.get_scores(words), dtype=np.float64), kind="stable").tolist())
    return {k: [order[:k] for order in found] for k in SIZES}


def greedy(wanted: frozenset[Any], symbols: Sequence[frozenset[Any]], rows: list[int], k: int) -> list[int]:
    """What covers most of the right answer's symbols, one after the other; ties to the nearer.

    >>> greedy(frozenset("ab"), [frozenset("a"), frozenset("ab")], [0, 1], 1)
    [1]
    """
    left, chosen, covered = list(rows), [], frozenset()
    for _ in range(min(k, len(left))):
        best = max(left, key=lambda row: len((symbols[row] - covered) & wanted))
        chosen.append(best)
        covered |= symbols[best]
        left.remove(best)
    return chosen


@cache
def labels(name: str, seed: int, draw: str) -> list[LabelledSubset]:
    """The pool's own items as training items, labelled by coverage."""
    ground = Ground.of(name, seed)
    return label(
        ground.split.pool, ground.pool, ground.feedback, k=TRAINED_AT, candidates=FETCH_K, draw=draw, seed=seed
    )


def learned(
    ground: Ground, row: str, recipe: dict[str, Any], say: Callable[[str], object], judge: Any = None
) -> dict[str, Any]:
    """Picks of a kernel learned by this recipe, and what ``fit`` said of it; from the judge's answers, if given one."""
    options = {"epochs": EPOCHS[ground.name], **recipe}
    random = options.pop("random", False) or options.get("objective") == "likelihood"
    feedback: Any = ground.feedback
    if judge is None:
        given = labels(ground.name, ground.seed, "random" if random else "greedy")
    else:
        feedback = judge.feedback
        given = label(
            ground.split.pool, ground.pool, feedback, k=TRAINED_AT, candidates=FETCH_K, draw="greedy",
            subsets=JUDGED, seed=ground.seed,
        )  # fmt: skip
    with warnings.catch_warnings():
        # That learning did not help stands in the table.
        warnings.simplefilter("ignore", SetSelectWarning)
        fitted = fit(
            ground.split.pool, ground.pool, feedback, given, k=TRAINED_AT, fetch_k=FETCH_K, seed=ground.seed, **options
        )
    epochs = f"epoch {fitted.epoch} of {len(fitted.history) - 1}"
    say(f"{ground.name} {ground.seed}, {row}: {epochs}, {fitted.gain:+.4f} on held-out items")
    candidates = nearest(ground)
    picks = {row: selected(ground, candidates, fitted.selector)}
    if row == "listwise, NDPP":
        # R to the power of 0: the kernel alone, among the same candidates.
        flat = replace(fitted.kernel, W_R=None, temperature=1e9)
        picks["listwise, without the query"] = selected(ground, candidates, NDPP(flat))
    return {"picks": picks, "said": told(fitted)}


def told(fitted: Any) -> dict[str, Any]:
    """What is kept of a fit."""
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


def nearest_last(ground: Ground, place: int, rows: Sequence[int]) -> list[Item]:
    """The items of a pick as the language model reads them."""
    near = ground.pool[list(rows)] @ ground.test[place]
    return [ground.split.pool[rows[i]] for i in np.argsort(near, kind="stable")]
