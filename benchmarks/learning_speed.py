"""The cost of an epoch of fitting an NDPP kernel as the pool grows: seconds, and the peak of the memory.

The kernel is RowFactors with K = K' = 64, with 20,000 random labelled subsets of 8. The loss is the paper's, normalised
over the whole pool, and the time includes the steps of torch.optim.Adam. Each size runs in a separate process, whose
peak of resident memory is shown. Two warm-up steps are not timed. The largest pool is timed for one epoch.
"""

from __future__ import annotations

import os

# This is set before torch is imported, which reads it once.
os.environ.setdefault("OMP_NUM_THREADS", "2")

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import Block, parser, publish, say, table

ITEMS = (10_000, 100_000, 1_000_000)
RANK, SKEW_RANK, SUBSETS, SIZE, SEED = 64, 64, 20_000, 8, 0
# The default of `fit` for so many subsets.
BATCH = SUBSETS // 40
# Timed epochs of a pool of up to 100,000 items.
EPOCHS = 3
# ru_maxrss is in kilobytes, but on macOS in bytes.
UNIT = 1 if sys.platform == "darwin" else 1024


def main() -> None:
    made = parser(__doc__, "learning_speed.md")
    made.add_argument("--items", type=int, nargs="+", default=list(ITEMS), help="numbers of items in the pool")
    made.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = made.parse_args()
    if options.one:
        print(json.dumps(measure(options.items[0])))
        return
    publish("learning_speed.md", blocks([in_a_process(items) for items in options.items]), options.write)


def in_a_process(items: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", "--items", str(items)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    say(f"{items:,} items: {found['seconds']:.1f} s, {found['gigabytes']:.2f} GiB")
    return found


def measure(items: int) -> dict[str, float]:
    import torch

    from shared_core.learning.kernel import RowFactors
    from shared_core.learning.objective import Likelihood

    rng = np.random.default_rng(SEED)
    before = peak()
    factors = RowFactors(
        rng.standard_normal((items, RANK)) / RANK**0.5,
        rng.standard_normal((items, SKEW_RANK)) * (0.1 / SKEW_RANK**0.5),
        np.ones(SKEW_RANK // 2),
    )
    # A subset must not hold an item twice, so items are drawn without replacement.
    subsets = [rng.choice(items, SIZE, replace=False, shuffle=False) for _ in range(SUBSETS)]
    loss = Likelihood(factors, subsets)
    adam = torch.optim.Adam(factors.parameters(), lr=0.01, fused=True)

    def step(rows: torch.Tensor) -> None:
        adam.zero_grad()
        loss(rows).backward()
        adam.step()

    # The first steps also allocate memory.
    for rows in torch.arange(2 * BATCH).split(BATCH):
        step(rows)
    seconds = []
    for _ in range(EPOCHS if items <= 100_000 else 1):
        begun = time.perf_counter()
        for rows in torch.from_numpy(rng.permutation(SUBSETS)).split(BATCH):
            step(rows)
        seconds.append(time.perf_counter() - begun)
    return {
        "items": items,
        "seconds": statistics.median(seconds),
        "slowest": max(seconds),
        "gigabytes": peak(),
        "libraries": before,
        "threads": torch.get_num_threads(),
    }


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT / 2**30


def blocks(found: Sequence[dict[str, float]]) -> Iterator[Block]:
    rows, steps = [], -(-SUBSETS // BATCH)
    for row in found:
        each = row["seconds"] / steps / row["items"] * 1e6
        seconds = (f"{row['seconds']:.1f}", f"{row['slowest']:.1f}", f"{each:.2f}")
        rows.append([f"{row['items']:,}", *seconds, f"{row['gigabytes']:.2f}"])
    about = (
        f"Setting: {found[0]['threads']:.0f} threads on {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"numpy {np.__version__}, torch {version('torch')}, seed {SEED}. Python and the libraries take "
        f"{found[0]['libraries']:.2f} GiB of the peak."
    )
    yield "Setting: ", about
    yield table(["items", "seconds an epoch", "slowest", "µs an item and step", "peak, GiB"], rows)


if __name__ == "__main__":
    main()
