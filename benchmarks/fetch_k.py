"""How many candidates to fetch: what the default selection finds among 20, 50, 100 and 200, and what they cost.

What it finds is measured on the tasks of benchmarks/regimes.py with all-MiniLM-L6-v2, whose vectors that script keeps
in .cache/. What it costs is measured on the abstracts of SciFact and their claims, through the stores that the tests
open and both adapters with their defaults. The embedding of a query is looked up, so it takes no time. The numbers of
candidates take turns, question by question, on one BLAS thread.

Data is read from SETSELECT_DATA (default: ../shared/data beside the project) and never copied. Stores are measured in
the environment of this script and in .venv-stores (`make bench-stores` builds it); those that are missing are left out.

    python benchmarks/fetch_k.py            # prints the tables, in about four minutes
    python benchmarks/fetch_k.py --write    # and writes benchmarks/results/fetch_k.md
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
import time
import uuid
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.models import MINILM, PACKAGES, embed
from benchmarks.papers._common import DATA, ROOT, heading, table
from benchmarks.regimes_tasks import REGIMES, SEED, Picks, Regime, is_development, is_there
from setselect import select
from shared_core.selection.sizes import default_fetch_k

RESULT = ROOT / "benchmarks" / "results" / "fetch_k.md"
SIZES = (20, 50, 100, 200)
KS = (5, 10)
K = 5  # of the costs
COST_REGIME = "SciFact"
TURNS = 30
SUMMARY = "points more than similarity, mean of the tasks"  # docs/choosing.md shows this table
# Left out: stores that take too long to fill, and further settings of a store that is in the list.
STORES = {
    "LangChain": [
        "in memory",
        "FAISS flat, L2",
        "Chroma in memory, l2",
        "Chroma on a server, ip",
        "Qdrant in memory, Euclid",
        "LanceDB",
        "PGVector, cosine",
        "DuckDB in memory",
        "sqlite-vec",
        "Milvus Lite FLAT, COSINE, given ids",
    ],
    "LlamaIndex": [
        "simple",
        "FAISS flat, L2",
        "Chroma in memory, l2",
        "Chroma on a server, ip",
        "Qdrant in memory, Euclid",
        "LanceDB",
        "PostgreSQL, plain",
        "DuckDB in memory, lists",
    ],
}
OTHER_ENVIRONMENT = ROOT / ".venv-stores" / "bin" / "python"
FRAMEWORKS = ("langchain-core", "llama-index-core")


# --- what is found --------------------------------------------------------------------------------


class Found(NamedTuple):
    """The worth of the picks of each question, 0 to 1: of similarity, and of the default by number of candidates."""

    development: np.ndarray
    similarity: np.ndarray  # (questions, KS)
    default: np.ndarray  # (questions, SIZES, KS)

    def gains(self, development: bool) -> np.ndarray:
        """(SIZES, KS): points more than similarity, the mean of the questions of one half."""
        some = self.development == development
        gains: np.ndarray = 100 * (self.default[some] - self.similarity[some, None]).mean(axis=0)
        return gains


def select_by_default(question: str, query: np.ndarray, vectors: np.ndarray, texts: list[str], k: int) -> Picks:
    """What a user gets who names no selector; without names, because ``bridges.py`` measures what they add."""
    picks: Picks = select(query, vectors, k, question=question, texts=texts, reference_weight=0).indices.tolist()
    return picks


def measure(regime: Regime) -> Found:
    vectors, queries = embed(regime.texts, MINILM), embed([case.question for case in regime.cases], MINILM, query=True)
    found = Found(
        np.array([is_development(case.question) for case in regime.cases]),
        np.zeros((len(regime.cases), len(KS))),
        np.zeros((len(regime.cases), len(SIZES), len(KS))),
    )
    for number, (case, query) in enumerate(zip(regime.cases, queries, strict=True)):
        pool = np.arange(len(vectors)) if case.pool is None else case.pool
        near = pool[np.argsort(-(vectors[pool] @ query), kind="stable")[: max(SIZES)]].tolist()
        found.similarity[number] = [case.worth(near[:k]) for k in KS]
        for column, size in enumerate(SIZES):
            rows = near[:size]
            texts = [regime.texts[row] for row in rows]
            # The default is greedy: the first k of a larger set are the set of k.
            picks = [rows[i] for i in select_by_default(case.question, query, vectors[rows], texts, max(KS))]
            found.default[number, column] = [case.worth(picks[:k]) for k in KS]
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

    import pytest

    from tests.stores.cases import every_store

    for framework, have, make in (
        ("LangChain", every_store.LANGCHAIN, langchain_calls),
        ("LlamaIndex", every_store.LLAMAINDEX, llamaindex_calls),
    ):
        by_name = {case.name: case for case in have}
        for name in STORES[framework]:
            if f"{framework}: {name}" in measured:
                continue
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                stack.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
                try:
                    calls = make(by_name[name], folder, stack)
                except pytest.skip.Exception as missing:
                    print(f"{name}: {missing}", file=sys.stderr)
                    continue
                print(json.dumps(Cost(name, framework, race(calls, questions))), flush=True)


def langchain_calls(case: Any, folder: Path, stack: ExitStack) -> list[Callable[[str], object]]:
    """One call for each of ``SIZES``."""
    from langchain_setselect import SetSelectRetriever
    from tests.stores import harness

    store = stack.enter_context(case.open(harness.TableEmbeddings(harness.TABLE), folder))
    return [SetSelectRetriever(vectorstore=store, k=K, fetch_k=size).invoke for size in SIZES]


def llamaindex_calls(case: Any, folder: Path, stack: ExitStack) -> list[Callable[[str], object]]:
    """One call for each of ``SIZES``."""
    from llamaindex_setselect import SetSelectIndexRetriever
    from tests.stores import harness

    store = stack.enter_context(case.open(folder))
    index = harness.index_over(store, harness.TableEmbedding(table=harness.TABLE))
    return [SetSelectIndexRetriever(index, top_n=K, fetch_k=size).retrieve for size in SIZES]


def race(calls: list[Callable[[str], object]], questions: list[str]) -> tuple[float, ...]:
    """Median milliseconds of each call; they take turns with the same question, in an order that changes."""
    took: list[list[float]] = [[] for _ in calls]
    for turn in range(-2, TURNS):
        for number in np.roll(range(len(calls)), turn):
            begun = time.perf_counter()
            calls[number](questions[turn])
            # The first two turns warm up.
            if turn >= 0:
                took[number].append(1000 * (time.perf_counter() - begun))
    return tuple(statistics.median(one) for one in took)


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
    names = [f"{framework}: {name}" for framework, names in STORES.items() for name in names]
    return [found[name] for name in names if name in found]


# --- the page -------------------------------------------------------------------------------------


def means(found: dict[str, Found], development: bool) -> np.ndarray:
    """(SIZES, KS): the mean over the tasks."""
    values: np.ndarray = np.mean([one.gains(development) for one in found.values()], axis=0)
    return values


def summary_table(found: dict[str, Found], heading: str, development: bool) -> str:
    """Points more than similarity by number of candidates, the mean over the tasks, for each k."""
    values = means(found, development)
    rows = [[f"k = {k}", *(f"{value:+.1f}" for value in values[:, column])] for column, k in enumerate(KS)]
    rows.append(["**mean**", *(f"**{value:+.1f}**" for value in values.mean(axis=1))])
    return table([heading, *(f"{size} candidates" for size in SIZES)], rows)


def task_table(found: dict[str, Found]) -> str:
    """Each task on the half that chose nothing: the mean over k."""
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
    """Milliseconds by store, and how many times as long as with the fewest candidates."""
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


def vector_table() -> str:
    """Kilobytes of the candidates' vectors as float32."""
    rows = [[f"d = {d}, kB", *(f"{4 * d * size / 1000:,.0f}" for size in SIZES)] for d in (384, 768, 1536, 3072)]
    return table(["vectors of a query", *(f"{size} candidates" for size in SIZES)], rows)


def choice(found: dict[str, Found], costs: list[Cost]) -> str:
    """What each step to more candidates brings, on the half that chooses, and what it costs."""
    points = np.diff(means(found, development=True).mean(axis=1))
    added = np.median([np.diff(one.milliseconds) for one in costs], axis=0)
    rows = [
        [f"from {low} to {high}", f"{more:+.1f}", f"{10 * more / (high - low):+.2f}", f"{time:+.1f}"]
        for (low, high), more, time in zip(pairwise(SIZES), points, added, strict=True)
    ]
    steps = table(["candidates", "points", "points for 10 more", "milliseconds, median over the stores"], rows)
    return (
        f"`fetch_k` is {default_fetch_k(K)} by default, and 5 times k for a k above {default_fetch_k(K) // 5}. What "
        f"each step adds, with the points of the half that\nchose:\n\n{steps}"
    )


def page(found: dict[str, Found], costs: list[Cost]) -> str:
    files = list(dict.fromkeys(file for name in found for file in REGIMES[name][1]))
    packages = ["numpy", *FRAMEWORKS, PACKAGES[MINILM][0]]
    text = heading("How many candidates to fetch", "benchmarks/fetch_k.py", files, packages, SEED)
    return f"""{text}
The default selector, without names (`reference_weight=0`), selects k texts from the nearest texts by {MINILM}.
With names, more candidates find more for questions of two steps: see [bridges](bridges.md).

A **point** is one of 100: in most tasks, one
question of 100 for which everything that the answer needs is among the k texts. *Similarity* takes the k nearest texts,
whatever `fetch_k` is. The questions are split into halves by the sha256 of their text, as in
[the regimes](regimes.md): one half chooses, and the other one checks.

## The choice

{choice(found, costs)}
{summary_table(found, "points more than similarity, the half that chose", development=True)}
## What is found on the other half

{summary_table(found, SUMMARY, development=False)}
Task by task, the mean of k = {KS[0]} and k = {KS[1]}. *Ambient* has 100 candidates for a question and no more.

{task_table(found)}
## What it costs

Milliseconds of `SetSelectRetriever.invoke` (LangChain) and `SetSelectIndexRetriever.retrieve` (LlamaIndex) with the
default selector and k = {K}, from the question to the documents. The embedding of the question is looked up and takes
no time; {MINILM} would add 6 to 15 ms. The stores hold the {COST_REGIME} abstracts
({describe_corpus()}), and the questions are claims. In brackets: how many times as
long as with {SIZES[0]} candidates. Medians over {TURNS} questions, for which the numbers of candidates take turns. The
last row has the medians over the stores of the milliseconds that are added and of the ratio. {os.cpu_count()} cores,
one BLAS thread. The times, unlike the points, differ from run to run.

{cost_table(costs)}
The vectors come from the store with the texts. As float32 they take 4 bytes a number; some stores send them as text or
as Python floats, which takes several times as much:

{vector_table()}"""


def describe_corpus() -> str:
    texts = set(REGIMES[COST_REGIME][0]().texts)
    return f"{len(texts):,} texts of {statistics.mean(map(len, texts)):,.0f} characters on average"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.relative_to(ROOT)}")
    parser.add_argument("--costs-of", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--measured", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.costs_of:
        costs_of(options.costs_of, options.measured)
        return
    found: dict[str, Found] = {}
    for name, (make, needed) in REGIMES.items():
        if not is_there(name):
            print(f"skipped {name}: no {' or '.join(needed)} under {DATA}; set SETSELECT_DATA")
            continue
        found[name] = measure(make())
        print(name, flush=True)
    if COST_REGIME in found:
        text = page(found, measure_costs(REGIMES[COST_REGIME][0]()))
        print(text)
        if options.write:
            RESULT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
