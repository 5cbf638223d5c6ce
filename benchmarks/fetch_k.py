"""How many candidates to fetch: what the default selection finds among 20, 50, 100 and 200, and what they cost.

The same numbers are measured with the 25 best texts by words beside the nearest ones. What it finds is measured on the
tasks of benchmarks/regimes.py with all-MiniLM-L6-v2. What it costs is measured on the abstracts of SciFact and their
claims, through the stores of benchmarks/stores.py and both adapters with their defaults, on one BLAS thread. Stores are
measured in the environment of this script and in .venv-stores (`make bench-stores` builds it); those that are missing
are left out. A run takes about ten minutes.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import pickle
import statistics
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import ROOT, Block, facts, is_there, parser, publish, say, table, take_turns
from benchmarks.models import MINILM, PACKAGES, embed
from benchmarks.regimes_methods import METHODS, WORDS, Corpus, Search
from benchmarks.regimes_tasks import (
    COMPANIES,
    REGIMES,
    SEED,
    STORED_THREE_TIMES,
    Regime,
    development_half,
    embed_regime,
    nearest,
)
from shared_core.selection.sizes import DEFAULT_EXTRA_K
from shared_core.texts.word_index import WordIndex
from shared_core.texts.words import Text

TASKS = REGIMES | STORED_THREE_TIMES
PAGE = "fetch_k.md"
SIZES = (20, 50, 100, 200)
KS = (5, 10)
K = 5  # of the costs
COST_REGIME = "SciFact"
TURNS = 30
SUMMARY = "points more than similarity, mean of the tasks"  # docs/choosing.md shows this table
LEFT_OUT = ("PGVectorStore, cosine", "Milvus Lite FLAT, COSINE")
OTHER_ENVIRONMENT = ROOT / ".venv-stores" / "bin" / "python"
FRAMEWORKS = ("langchain-core", "llama-index-core")


# --- what is found --------------------------------------------------------------------------------


class Found(NamedTuple):
    """The worth of the picks of each question, 0 to 1: of similarity, and of the default by number of candidates."""

    development: np.ndarray
    similarity: np.ndarray  # (questions, KS)
    default: np.ndarray  # (2, questions, SIZES, KS): without and with candidates by words

    def gains(self, development: bool, by_words: bool = False) -> np.ndarray:
        """(SIZES, KS): points more than similarity, the mean of the questions of one half."""
        some = self.development == development
        gains: np.ndarray = 100 * (self.default[int(by_words), some] - self.similarity[some, None]).mean(axis=0)
        return gains


def measure(regime: Regime) -> Found:
    vectors, queries = embed_regime(regime)
    found = Found(
        development_half(regime.cases),
        np.zeros((len(regime.cases), len(KS))),
        np.zeros((2, len(regime.cases), len(SIZES), len(KS))),
    )
    corpus = Corpus(regime, vectors, list(map(Text, regime.texts)), WordIndex(regime.texts))
    # Without references, because ``references.py`` measures what they add.
    select = METHODS[WORDS]
    for number, (case, query) in enumerate(zip(regime.cases, queries, strict=True)):
        near = nearest(case, query, vectors, max(SIZES))
        found.similarity[number] = [case.worth(near[:k].tolist()) for k in KS]
        by_words = corpus.best_by_words(case, DEFAULT_EXTRA_K)
        search = Search(case.question, query, near, vectors[near], [], by_words)
        for column, size in enumerate(SIZES):
            for more, rows in enumerate((near[:size], np.concatenate([near[:size], by_words]))):
                candidates = corpus.search(search, list(dict.fromkeys(rows.tolist())))
                # The default is greedy: the first k of a larger set are the set of k.
                picks = select(candidates, max(KS))
                found.default[more, number, column] = [case.worth(picks[:k]) for k in KS]
    return found


# --- what it costs --------------------------------------------------------------------------------


class Cost(NamedTuple):
    """The milliseconds of a call for each of ``SIZES``: medians over the turns."""

    store: str
    framework: str
    milliseconds: tuple[float, ...]


def costs_of(corpus: Path, measured: list[str]) -> None:
    """Measure the other stores of this environment, and print each :class:`Cost` as a line of JSON."""
    from tests.stores import harness

    texts, vectors, questions, queries = pickle.loads(corpus.read_bytes())
    rows = [
        harness.Row(str(uuid.UUID(int=i + 1)), text, {"colour": "red", "number": i}, vector)
        for i, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]
    harness.replace_corpus(rows, dict(zip(questions, queries, strict=True)))

    from benchmarks.stores import each_store

    def is_wanted(name: str, framework: str) -> bool:
        return name not in LEFT_OUT and f"{framework}: {name}" not in measured

    make = {"LangChain": langchain_calls, "LlamaIndex": llamaindex_calls}
    for name, framework, runs in each_store(make, is_wanted):
        took = take_turns(runs, questions, TURNS)
        milliseconds = tuple(1000 * statistics.median(took[size]) for size in runs)
        print(json.dumps(Cost(name, framework, milliseconds)), flush=True)


def langchain_calls(case: Any, folder: Path, stack: ExitStack) -> dict[str, Callable[[str], object]]:
    from langchain_setselect import SetSelectRetriever
    from tests.stores import harness

    store = stack.enter_context(case.open(harness.TableEmbeddings(harness.TABLE), folder))
    return {str(size): SetSelectRetriever(vectorstore=store, k=K, fetch_k=size).invoke for size in SIZES}


def llamaindex_calls(case: Any, folder: Path, stack: ExitStack) -> dict[str, Callable[[str], object]]:
    from llamaindex_setselect import SetSelectIndexRetriever
    from tests.stores import harness

    store = stack.enter_context(case.open(folder))
    index = harness.index_over(store, harness.TableEmbedding(table=harness.TABLE))
    return {str(size): SetSelectIndexRetriever(index, top_n=K, fetch_k=size).retrieve for size in SIZES}


def measure_costs(regime: Regime) -> list[Cost]:
    """The costs in each environment that is there, in a process of its own."""
    texts = list(dict.fromkeys(regime.texts))
    questions = list(dict.fromkeys(case.question for case in regime.cases))[: TURNS + 2]
    vectors, queries = embed(texts, MINILM), embed(questions, MINILM, query=True)
    found: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.pickle"
        corpus.write_bytes(pickle.dumps((texts, vectors.tolist(), questions, queries.tolist())))
        for python in (sys.executable, str(OTHER_ENVIRONMENT)):
            if Path(python).exists():
                command = [python, __file__, "--costs-of", str(corpus), "--measured", *found]
                printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                for line in printed.splitlines():
                    store, framework, milliseconds = json.loads(line)
                    found[f"{framework}: {store}"] = Cost(store, framework, tuple(milliseconds))
    return sorted(found.values(), key=lambda cost: cost.framework)


# --- the page -------------------------------------------------------------------------------------


def means(found: dict[str, Found], development: bool, by_words: bool = False) -> np.ndarray:
    """(SIZES, KS): the mean over the tasks."""
    values: np.ndarray = np.mean([one.gains(development, by_words) for one in found.values()], axis=0)
    return values


def summary_table(found: dict[str, Found], heading: str, development: bool) -> str:
    """Points more than similarity by number of candidates, the mean over the tasks, for each k."""
    values = means(found, development)
    rows = [[f"k = {k}", *(f"{value:+.1f}" for value in values[:, column])] for column, k in enumerate(KS)]
    rows.append(["**mean**", *(f"**{value:+.1f}**" for value in values.mean(axis=1))])
    of_companies = {name: one for name, one in found.items() if name in COMPANIES}
    for kind, some in (("mean", found), ("documents of companies", of_companies)):
        for by_words in (False, True):
            if some and (by_words or kind != "mean"):
                label = f"{kind}, and {DEFAULT_EXTRA_K} by words" if by_words else kind
                gains = means(some, development, by_words).mean(axis=1)
                rows.append([label, *(f"{value:+.1f}" for value in gains)])
    return table([heading, *(f"{size} candidates" for size in SIZES)], rows)


def task_table(found: dict[str, Found]) -> str:
    gains = {name: one.gains(development=False).mean(axis=1) for name, one in found.items()}
    rows = []
    for name, one in found.items():
        base = 100 * one.similarity[~one.development].mean()
        rows.append([name, str((~one.development).sum()), f"{base:.1f}", *(f"{gain:+.1f}" for gain in gains[name])])
    every = np.array(list(gains.values()))
    rows.append(["**mean**", "", "", *(f"**{value:+.1f}**" for value in every.mean(axis=0))])
    rows.append(["**worst**", "", "", *(f"**{value:+.1f}**" for value in every.min(axis=0))])
    return table(["task", "questions", "similarity", *(f"{size} candidates" for size in SIZES)], rows)


def cost_table(costs: list[Cost]) -> str:
    rows = []
    for store, framework, milliseconds in costs:
        times = [f"{one:.1f} ({one / milliseconds[0]:.1f})" for one in milliseconds[1:]]
        rows.append([store, framework, f"{milliseconds[0]:.1f}", *times])
    every = np.array([one.milliseconds for one in costs])
    ratios = np.median(every / every[:, :1], axis=0)[1:]
    more = np.median(every - every[:, :1], axis=0)[1:]
    shown = [f"**+{a:.1f} ({b:.1f})**" for a, b in zip(more, ratios, strict=True)]
    rows.append(["**median**", "", "", *shown])
    return table(["store", "framework", *(f"{size} candidates" for size in SIZES)], rows)


def steps_table(found: dict[str, Found], costs: list[Cost]) -> str:
    """What each step to more candidates brings, on the half that chooses, and what it costs."""
    points = np.diff(means(found, development=True).mean(axis=1))
    added = np.median([np.diff(one.milliseconds) for one in costs], axis=0)
    rows = [
        [f"from {low} to {high}", f"{more:+.1f}", f"{10 * more / (high - low):+.2f}", f"{time:+.1f}"]
        for (low, high), more, time in zip(pairwise(SIZES), points, added, strict=True)
    ]
    return table(["candidates", "points", "points for 10 more", "milliseconds, median over the stores"], rows)


def blocks(found: dict[str, Found], costs: list[Cost]) -> Iterator[Block]:
    files = [file for name in found for file in TASKS[name][1]]
    yield facts(files, ["numpy", *FRAMEWORKS, PACKAGES[MINILM][0]], SEED)
    yield steps_table(found, costs)
    yield summary_table(found, "points more than similarity, the half that chose", development=True)
    yield summary_table(found, SUMMARY, development=False)
    yield task_table(found)
    yield cost_table(costs)


def main() -> None:
    made = parser(__doc__, PAGE)
    made.add_argument("--costs-of", type=Path, help=argparse.SUPPRESS)
    made.add_argument("--measured", nargs="*", help=argparse.SUPPRESS)
    options = made.parse_args()
    if options.costs_of:
        costs_of(options.costs_of, options.measured)
        return
    found: dict[str, Found] = {}
    for name, (make, needed) in TASKS.items():
        if is_there(*needed):
            found[name] = measure(make())
            say(name)
    if COST_REGIME in found:
        publish(PAGE, blocks(found, measure_costs(TASKS[COST_REGIME][0]())), options.write)


if __name__ == "__main__":
    main()
