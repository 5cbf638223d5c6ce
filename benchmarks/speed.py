"""Speed of the selectors against LangChain's MMR and pyversity, from raw float32 arrays, in one interleaved run.

Ratios count, not microseconds: all contenders take turns on one machine, and the median of the turns is shown.
Every contender gets what it likes best: pyversity its relevance scores, LangChain's function a float32 array.
"""

import os

# At these sizes a second BLAS thread costs more than it brings, for every contender; unset it to see.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import pyversity
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from rich.console import Console
from rich.table import Table

from shared_core import NDPP, Candidates, LowRankKernel, select

# Rows of length 1 are what most embedding models return; the second of the two at n = 100 are not.
SIZES = [
    (20, 384, 4, True),
    (100, 768, 10, True),
    (100, 768, 10, False),
    (200, 1536, 20, True),
    (1000, 768, 50, True),
]
LANGCHAIN = "langchain-core MMR"
PYVERSITY = "pyversity MMR"
SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=15, help="how often each contender runs a block of calls")
    turns = parser.parse_args().turns
    console = Console(width=int(os.environ.get("COLUMNS", "120")))
    console.print(
        f"numpy {np.__version__}, langchain-core {version('langchain-core')}, pyversity {version('pyversity')}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores, seed {SEED}"
    )
    for n, d, k, unit in SIZES:
        medians = race(contenders(n, d, k, unit), turns)
        lengths = "unit length" if unit else "any length"
        table = Table(title=f"{k} of {n} candidates, {d} dimensions, rows of {lengths}", title_justify="left")
        table.add_column("selector")
        for heading in ("median µs", "times as fast as\n" + LANGCHAIN, "times as fast as\n" + PYVERSITY):
            table.add_column(heading, justify="right")
        for name, seconds in medians.items():
            ratios = [f"{medians[peer] / seconds:.1f}" for peer in (LANGCHAIN, PYVERSITY)]
            table.add_row(name, f"{seconds * 1e6:,.0f}", *ratios)
        console.print(table)


def contenders(n: int, d: int, k: int, unit: bool) -> dict[str, Callable[[], object]]:
    rng = np.random.default_rng(SEED)
    # A common direction in all vectors, as embeddings of texts on one subject have.
    common = rng.standard_normal(d)
    vectors = (rng.standard_normal((n, d)) + common).astype(np.float32)
    if unit:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = (rng.standard_normal(d) + common).astype(np.float32)
    scores = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    skew = rng.standard_normal((64, 64))
    kernel = NDPP(LowRankKernel(rng.standard_normal((n, 64)), rng.standard_normal((n, 64)), skew - skew.T))
    candidates = Candidates(query, vectors)
    return {
        "setselect similarity": lambda: select(query, vectors, k, "similarity"),
        "setselect MMR": lambda: select(query, vectors, k, "mmr", lambda_mult=0.5),
        "setselect VRSD": lambda: select(query, vectors, k, "vrsd"),
        "setselect VRSD, refined": lambda: select(query, vectors, k, "vrsd", refine=True),
        "setselect NDPP, no kernel": lambda: select(query, vectors, k, "ndpp"),
        "setselect NDPP, rank 64": lambda: kernel.select(candidates, k),
        LANGCHAIN: lambda: maximal_marginal_relevance(query, vectors, 0.5, k),  # type: ignore[arg-type]
        PYVERSITY: lambda: pyversity.mmr(vectors, scores, k, diversity=0.5),
        "pyversity DPP": lambda: pyversity.dpp(vectors, scores, k),
    }


def race(runners: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Median seconds a call; each turn is a block of calls of about 20 ms, one contender after the other."""
    calls = {}
    for name, run in runners.items():
        run()
        calls[name] = max(1, int(0.02 / timed(run, 1)))
    samples: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(turns):
        for name, run in runners.items():
            samples[name].append(timed(run, calls[name]))
    return {name: statistics.median(seconds) for name, seconds in samples.items()}


def timed(run: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


if __name__ == "__main__":
    main()
