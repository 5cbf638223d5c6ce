"""What 20, 50, 100 and 200 candidates cost; benchmarks/keyword_search.py measures what they bring.

It is measured on the abstracts of SciFact and their claims, through the stores of benchmarks/stores.py and both
adapters with their defaults, on one BLAS thread. Stores are measured in the environment of this script and in
.venv-stores (`make bench-stores` builds it); those that are missing are left out. A run takes some minutes.
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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import ROOT, Block, facts, parser, publish, require, table, take_turns
from benchmarks.models import MINILM, PACKAGES, embed
from benchmarks.regimes_tasks import REGIMES, SEED, Regime

PAGE = "fetch_k.md"
SIZES = (20, 50, 100, 200)
K = 5
COST_REGIME = "SciFact"
TURNS = 30
LEFT_OUT = ("PGVectorStore, cosine", "Milvus Lite FLAT, COSINE")
OTHER_ENVIRONMENT = ROOT / ".venv-stores" / "bin" / "python"
FRAMEWORKS = ("langchain-core", "llama-index-core")


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
    return {str(size): SetSelectIndexRetriever(index, similarity_top_k=K, fetch_k=size).retrieve for size in SIZES}


def measure_costs(regime: Regime) -> list[Cost]:
    """The costs in each environment that is there, in a process of its own."""
    texts = list(dict.fromkeys(regime.texts))
    questions = list(dict.fromkeys(case.question for case in regime.cases))[: TURNS + 2]
    vectors, queries = embed(texts, MINILM), embed(questions, MINILM)
    found: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.pickle"
        corpus.write_bytes(pickle.dumps((texts, vectors.tolist(), questions, queries.tolist())))
        for python in (sys.executable, str(OTHER_ENVIRONMENT)):
            if Path(python).exists():
                command = [python, "-m", "benchmarks.fetch_k", "--costs-of", str(corpus), "--measured", *found]
                printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                for line in printed.splitlines():
                    store, framework, milliseconds = json.loads(line)
                    found[f"{framework}: {store}"] = Cost(store, framework, tuple(milliseconds))
    return sorted(found.values(), key=lambda cost: cost.framework)


# --- the page -------------------------------------------------------------------------------------


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


def blocks(costs: list[Cost]) -> Iterator[Block]:
    yield facts(REGIMES[COST_REGIME][1], ["numpy", *FRAMEWORKS, PACKAGES[MINILM][0]], SEED)
    yield cost_table(costs)


def main() -> None:
    made = parser(__doc__, PAGE)
    made.add_argument("--costs-of", type=Path, help=argparse.SUPPRESS)
    made.add_argument("--measured", nargs="*", help=argparse.SUPPRESS)
    options = made.parse_args()
    if options.costs_of:
        costs_of(options.costs_of, options.measured)
        return
    make, needed = REGIMES[COST_REGIME]
    require(*needed)
    publish(PAGE, blocks(measure_costs(make())), options.write)


if __name__ == "__main__":
    main()
