"""The rows of the learned kernel's tables: the picks of each method for the test queries of one data set and seed.

Only the oracle, an upper limit, sees the answers of the test queries. Kernels are learned with the defaults of ``fit``
from the pool alone: a fifth of it is held out before labels are drawn, and decides which epoch is kept.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import CACHE as CACHES
from benchmarks.common import best, bm25_scores, say
from benchmarks.learned.data import Item, Split, load
from benchmarks.learned.shell import shell_symbols
from benchmarks.models import MINILM, PAPERS_TOKENS, embed
from shared_core import MMR, NDPP, VRSD, Candidates, LinearKernel, SetSelectWarning, TopK
from shared_core.learning import CoverageFeedback, Feedback, LabelledSubset, fit, hold_out, label, structural_symbols
from shared_core.learning import Split as Halves
from shared_core.selectors.ndpp import AUTO_TEMPERATURE, DEFAULT_RIDGE

CACHE = CACHES / "learned"
SIZES = (2, 4, 8, 16)
TRAINED_AT = 4
FETCH_K = 100
# The larger pools need fewer passes.
EPOCHS = {"geoquery": 30, "mtop": 10, "nl2bash": 10}

AUTO = f"NDPP, default: T = {AUTO_TEMPERATURE:g} σ, ridge {DEFAULT_RIDGE:g}"
UNLEARNED: dict[str, Any] = {
    "similarity": TopK(),
    "MMR (λ = 0.5)": MMR(lambda_mult=0.5),
    "MMR (λ = 0.75)": MMR(lambda_mult=0.75),
    "VRSD": VRSD(),
    "VRSD, refined": VRSD(refine=True),
    "NDPP, linear": NDPP(relevance_mapping="linear", ridge=0),
    "NDPP, exponential, T = 0.1": NDPP(relevance_mapping="exponential", temperature=0.1, ridge=0),
    AUTO: NDPP(relevance_mapping="exponential", temperature="auto", ridge=DEFAULT_RIDGE),
}
# The rows of the selectors that ``fit`` compares its kernel with, by the names that it gives them.
RIVALS = {
    "Coverage()": "Coverage",
    "NDPP()": AUTO,
    "NDPP(relevance_mapping='linear', ridge=0.0)": "NDPP, linear",
    "NDPP(relevance_mapping='exponential', temperature=0.1, ridge=0.0)": "NDPP, exponential, T = 0.1",
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
    "listwise, without pull": {"pull": 0.0},
    "listwise, without W_R": {"learn_relevance": False},
    "listwise, random subsets": {"random": True},
}

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
    def load(cls, name: str, seed: int, queries: int | None = None) -> Experiment:
        """Read and embed a data set. The first ``queries`` test queries, if need be with some of the spare part."""
        split = load(name, seed)
        if queries is not None:
            split = split._replace(test=(split.test + split.spare)[:queries])
        texts = ([item["question"] for item in part] for part in (split.pool, split.test))
        pool, test = (embed(part, MINILM, tokens=PAPERS_TOKENS) for part in texts)
        symbols = shell_symbols if name == "nl2bash" else structural_symbols
        return cls(name, seed, split, pool, test, CoverageFeedback(symbols=symbols))


def nearest(experiment: Experiment) -> list[np.ndarray]:
    cosines = experiment.test.astype(np.float64) @ experiment.pool.astype(np.float64).T
    return [best(row, FETCH_K) for row in cosines]


def unlearned_picks(experiment: Experiment, sizes: Sequence[int] = SIZES) -> Picks:
    """The picks of the selectors that learn nothing, and of the oracle."""
    candidates = nearest(experiment)
    picks = {row: selected(experiment, candidates, selector, sizes) for row, selector in UNLEARNED.items()}
    picks["random"] = {
        k: [np.random.default_rng([experiment.seed, place]).choice(len(experiment.pool), k, replace=False).tolist()
            for place in range(len(experiment.test))]
        for k in sizes
    }  # fmt: skip
    picks["BM25"] = bm25(experiment, sizes)
    symbols = [experiment.feedback.symbols(item["answer"]) for item in experiment.split.pool]
    wanted_of = [experiment.feedback.symbols(item["answer"]) for item in experiment.split.test]
    whole = [
        greedy(wanted, symbols, rows.tolist(), max(sizes)) for wanted, rows in zip(wanted_of, candidates, strict=True)
    ]
    picks[ORACLE] = {k: [rows[:k] for rows in whole] for k in sizes}
    return picks


def selected(
    experiment: Experiment, candidates: Sequence[np.ndarray], selector: Any, sizes: Sequence[int] = SIZES
) -> dict[int, list[list[int]]]:
    """Rows of the pool that a selector selects for each test query, at each size."""
    made = [
        Candidates(query, experiment.pool[rows], ids=rows.tolist())
        for query, rows in zip(experiment.test, candidates, strict=True)
    ]
    return {
        k: [rows[selector.select(c, k).indices].tolist() for rows, c in zip(candidates, made, strict=True)]
        for k in sizes
    }


def bm25(experiment: Experiment, sizes: Sequence[int]) -> dict[int, list[list[int]]]:
    """The first k by BM25; items that share no word with the query come last, in their order."""
    texts, queries = ([item["question"] for item in part] for part in (experiment.split.pool, experiment.split.test))
    scores = bm25_scores(texts, queries)
    return {k: [best(row, k).tolist() for row in scores] for k in sizes}


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


@dataclass(frozen=True)
class Teacher:
    """What kernels are learned from: a feedback, a split of the pool, and the subsets that the feedback labels.

    ``subsets`` has the number of subsets of an item for each draw; None: the default of ``label``.
    """

    experiment: Experiment
    feedback: Feedback
    split: Halves
    subsets: Mapping[str, int | None] = field(default_factory=lambda: {"greedy": None, "random": None})
    _made: dict[str, list[LabelledSubset]] = field(default_factory=dict)

    @classmethod
    def of_coverage(cls, experiment: Experiment) -> Teacher:
        """Coverage as the feedback, for all items of the pool."""
        return cls(
            experiment, experiment.feedback, hold_out(experiment.split.pool, experiment.pool, seed=experiment.seed)
        )

    def labels(self, draw: str) -> list[LabelledSubset]:
        """The labelled subsets of the training items; random subsets also of the held-out queries."""
        if draw not in self._made:
            self._made[draw] = label(
                self.experiment.split.pool, self.experiment.pool, self.feedback, k=TRAINED_AT, candidates=FETCH_K,
                draw=draw, subsets=self.subsets[draw], queries=self.split.labelled(draw == "greedy"),
                examples=self.split.examples, seed=self.experiment.seed,
            )  # fmt: skip
        return self._made[draw]

    def fit(self, recipe: dict[str, Any], **options: Any) -> Any:
        settings = {**recipe, **options}
        random = settings.pop("random", False) or settings.get("objective") == "likelihood"
        with warnings.catch_warnings():
            # The tables show whether learning helped.
            warnings.simplefilter("ignore", SetSelectWarning)
            return fit(
                self.experiment.split.pool,
                self.experiment.pool,
                self.feedback,
                self.labels("random" if random else "greedy"),
                split=self.split,
                k=TRAINED_AT,
                fetch_k=FETCH_K,
                seed=self.experiment.seed,
                **settings,
            )


def learned(experiment: Experiment, teacher: Teacher, row: str, recipe: dict[str, Any], file: Path) -> dict[str, Any]:
    """The picks of a kernel learned by this recipe, and the report of its fit. The kernel is saved as ``file``."""
    fitted = teacher.fit(recipe, epochs=EPOCHS[experiment.name])
    say(f"{experiment.name} {experiment.seed}, {row}: {summary_of(fitted)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    fitted.kernel.save(file)
    candidates = nearest(experiment)
    picks = {row: selected(experiment, candidates, fitted.selector)}
    if row == BEST:
        picks["listwise, without the query"] = selected(experiment, candidates, without_query(fitted.kernel))
    return {"picks": picks, "fit": report_of(fitted)}


def without_query(kernel: Any) -> NDPP:
    """The kernel alone: every candidate has the same relevance."""
    return NDPP(replace(kernel, W_R=None, temperature=1e9))


def summary_of(fitted: Any) -> str:
    return f"epoch {fitted.epoch} of {len(fitted.history) - 1}, {fitted.gain:+.4f} on held-out items"


def report_of(fitted: Any) -> dict[str, Any]:
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


def coverage_of(experiment: Experiment, picks: Sequence[Sequence[int]]) -> list[float]:
    return experiment.feedback.score(
        [
            (item, [experiment.split.pool[row] for row in rows])
            for item, rows in zip(experiment.split.test, picks, strict=True)
        ]
    )


def cached(name: str, make: Callable[[], Any]) -> Any:
    """The result of ``make`` after a round trip through JSON, cached under .cache/learned/."""
    file = CACHE / f"{name}.json"
    if not file.exists():
        began = time.perf_counter()
        made = json.dumps(make())
        CACHE.mkdir(parents=True, exist_ok=True)
        file.write_text(made, encoding="utf-8")
        say(f"{name}: {time.perf_counter() - began:.0f} s")
    return json.loads(file.read_text(encoding="utf-8"))
