"""Queries a second on Ray: one worker and two, the memory of all processes, and a run in which a worker is killed.

The index is HNSW (M = 16, efSearch = 128), as is usual for offline work of this size, of random vectors in clusters. A
flat index would measure the bandwidth of the memory, which two cores share. Memory is the sum of PSS over this process,
Ray's processes and the workers, so pages that several processes map count once. It is sampled every five seconds.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import ray
import ray.data

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import CACHE as CACHES
from benchmarks.common import Block, parser, publish, say, table
from shared_core.batch.tables import Summary, select_dataset

CACHE = CACHES / "ray_rate"
N, DIMENSION, CLUSTERS, K, FETCH_K, SEED = 200_000, 384, 2_000, 10, 100, 0


class Run(NamedTuple):
    """Seconds from call to return, the peak of the memory, and what the call returned."""

    seconds: float
    memory: int
    summary: Summary


def main() -> None:
    made = parser(__doc__, "ray_rate.md")
    made.add_argument("--queries", type=int, default=200_000)
    made.add_argument("--vectors", type=int, default=N, help="fewer for a short trial")
    made.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    options = made.parse_args()
    index, queries = files(options.queries, options.vectors)
    if options.make:
        make(index, queries, options.queries, options.vectors)
        return
    if not (index.is_file() and queries.is_file()):
        # A separate process, so its memory is free again when the measurement begins.
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--make"], check=True)
    block_rows = max(1, min(10_000, options.queries // 40))
    # CPUs for two workers. Ray's own store can be small: it holds a plan of a few kB.
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=128 << 20)
    # Ray Data's own actors start with its first run; that must not be the measured run of one worker.
    ray.data.range(1).materialize()
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:

        def run(name: str, workers: int | None) -> Run:
            out = Path(folder, name)
            with Memory() as memory:
                began = time.perf_counter()
                done = select_dataset(
                    queries, index, out=out, k=K, fetch_k=FETCH_K, selector="vrsd", concurrency=workers,
                    block_rows=block_rows,
                )  # fmt: skip
                seconds = time.perf_counter() - began
            say(f"{name}: {seconds:.1f} s, {memory.peak >> 20} MiB at most")
            return Run(seconds, memory.peak, done)

        runs = {name: run(name, workers) for name, workers in WORKERS.items()}
        killer = Killer(Path(folder, KILLED), options.queries // block_rows // 2)
        killer.start()
        runs[KILLED] = run(KILLED, 2)
        killer.join()
        same = rows_of(Path(folder, KILLED)) == rows_of(Path(folder, TWO)) == rows_of(Path(folder, PLAIN))
        ids = pq.read_table(Path(folder, KILLED), columns=["id"])["id"].to_numpy()
        once = bool((ids == np.arange(options.queries)).all()) and len(ids) == options.queries
    ray.shutdown()
    about = (
        f"Made by `benchmarks/ray_rate.py`: {options.queries:,} queries against {options.vectors:,} x {DIMENSION} in "
        f"an HNSW index of {index.stat().st_size >> 20} MiB, VRSD, {K} of {FETCH_K}, blocks of {block_rows:,}."
    )
    publish("ray_rate.md", blocks(about, options.queries, runs, killer, same, once), options.write)


PLAIN, ONE, TWO = "one process without Ray", "one Ray worker", "two Ray workers"
KILLED = "two Ray workers, one of them killed"
WORKERS = {PLAIN: None, ONE: 1, TWO: 2}


def blocks(about: str, queries: int, runs: dict[str, Run], killer: "Killer", same: bool, once: bool) -> Iterator[Block]:
    packages = ", ".join(f"{name} {version(name)}" for name in ("ray", "faiss-cpu", "pyarrow", "numpy"))
    yield "Made by ", about
    yield " cores (", f"{machine()}, Python {platform.python_version()}, {packages}."
    rows = [
        [name, f"{run.seconds:.1f}", f"{queries / run.seconds:,.0f}", f"{run.memory >> 20:,}"]
        for name, run in runs.items()
    ]
    yield table(["run", "seconds", "queries a second", "peak of all processes, MiB"], rows)
    yield "Two workers give ", f"Two workers give {runs[ONE].seconds / runs[TWO].seconds:.2f} times one worker's rate."
    killed = (
        f"Process {killer.killed} was killed (SIGKILL) when {killer.at} of {runs[KILLED].summary.parts} parts were "
        f"written. Every row is there once and in order: {'yes' if once else 'NO'}. All rows equal those without "
        f"Ray: {'yes' if same else 'NO'}."
    )
    yield " was killed (SIGKILL) ", killed


def files(queries: int, vectors: int) -> tuple[Path, Path]:
    return CACHE / f"hnsw-{vectors}.faiss", CACHE / f"queries-{queries}-of-{vectors}.parquet"


def make(index_file: Path, queries_file: Path, queries: int, vectors: int) -> None:
    import faiss

    CACHE.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    centres = rng.standard_normal((CLUSTERS, DIMENSION), dtype=np.float32)

    def drawn(n: int) -> np.ndarray:
        rows = centres[rng.integers(CLUSTERS, size=n)] + rng.standard_normal((n, DIMENSION), dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    corpus = drawn(vectors)
    pq.write_table(
        pa.table(
            {"id": np.arange(queries), "vector": pa.FixedSizeListArray.from_arrays(drawn(queries).ravel(), DIMENSION)}
        ),
        queries_file,
        row_group_size=50_000,
    )
    say("building the index ...")
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    index = faiss.IndexHNSWFlat(DIMENSION, 16, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 80
    index.hnsw.efSearch = 128
    index.add(corpus)
    aside = index_file.with_suffix(".tmp")
    faiss.write_index(index, str(aside))
    aside.replace(index_file)
    # Pages that are not yet on disk would count once for each process.
    os.sync()


def rows_of(folder: Path) -> pa.Table:
    return pq.read_table(folder)


def machine() -> str:
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    return f"{os.cpu_count()} cores ({model}), {psutil.virtual_memory().total / 2**30:.0f} GiB"


class Memory:
    """The largest sum of PSS over this process and its descendants."""

    def __enter__(self) -> "Memory":
        self.peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(5):
            self.peak = max(self.peak, sum(map(pss, [psutil.Process(), *psutil.Process().children(recursive=True)])))


def pss(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        # The process has ended.
        return 0


class Killer(threading.Thread):
    """Kills one worker when ``parts`` parts are written."""

    def __init__(self, out: Path, parts: int) -> None:
        super().__init__()
        self._out, self._parts = out, parts
        self.killed = self.at = 0

    def run(self) -> None:
        while len(list(self._out.glob("part-*.parquet"))) < self._parts:
            time.sleep(0.1)
        # Directly after a part is written, its worker is between two blocks.
        time.sleep(0.5)
        workers = [p for p in psutil.Process().children(recursive=True) if "MapWorker" in "".join(p.cmdline())]
        self.at = len(list(self._out.glob("part-*.parquet")))
        self.killed = workers[0].pid
        workers[0].kill()


if __name__ == "__main__":
    main()
