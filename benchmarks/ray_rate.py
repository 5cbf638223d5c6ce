"""Queries a second on Ray: one worker against two, the memory of all processes, and a worker killed midway.

200,000 queries against 200,000 vectors of 384 dimensions: unit length, in 2,000 clusters, as embeddings of texts on as
many subjects lie. VRSD picks 10 of the 100 nearest. The index is HNSW (M = 16, efSearch = 128): what one takes for
offline work of this size, a millisecond a query, so that a run takes minutes and not Ray's start. A flat index would
measure the memory's bandwidth, which two cores share.

Memory is the sum of PSS over this process, Ray's and the workers', sampled every five seconds, since that takes time of
its own: pages that several processes map, the index above all, count once.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
import ray.data

from shared_core.batch.dataset import Summary, select_dataset

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "ray_rate"
RESULT = ROOT / "benchmarks" / "results" / "ray_rate.md"
N, DIMENSION, CLUSTERS, K, FETCH_K, SEED = 200_000, 384, 2_000, 10, 100, 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=200_000)
    parser.add_argument("--vectors", type=int, default=N, help="fewer, to try it out")
    parser.add_argument("--turns", type=int, default=1, help="how often each number of workers has its turn")
    parser.add_argument("--write", action="store_true", help=f"to {RESULT.relative_to(ROOT)}")
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    index, queries = files(given.queries, given.vectors)
    if given.make:
        make(index, queries, given.queries, given.vectors)
        return
    if not (index.is_file() and queries.is_file()):
        # In a process of its own, whose memory is gone when the measuring begins.
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--make"], check=True)
    block_rows = max(1, min(10_000, given.queries // 40))
    # Room for both workers, and none of the machine's memory for Ray's own store, which holds a plan of a few kB.
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=128 << 20)
    # Ray Data's own actors start with its first run, which would be that of the single worker.
    ray.data.range(1).materialize()
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:

        def run(name: str, workers: int | None) -> tuple[float, int, Summary]:
            out = Path(folder, name)
            shutil.rmtree(out, ignore_errors=True)
            with Memory() as memory:
                began = time.perf_counter()
                done = select_dataset(
                    queries, index, out=out, k=K, fetch_k=FETCH_K, concurrency=workers, block_rows=block_rows
                )
                seconds = time.perf_counter() - began
            print(f"{name}: {seconds:.1f} s, {memory.peak >> 20} MiB at most", file=sys.stderr, flush=True)
            return seconds, memory.peak, done

        plain: list[Any] = []
        one: list[Any] = []
        two: list[Any] = []
        for turn in range(given.turns):
            for runs, (name, workers) in zip((plain, one, two), WORKERS, strict=True):
                runs.append(run(f"{name}-{turn}", workers))
        killer = Killer(Path(folder, "killed"), given.queries // block_rows // 2)
        killer.start()
        killed = run("killed", 2)
        killer.join()
        same = parts(Path(folder, "killed")) == parts(Path(folder, "two-0")) == parts(Path(folder, "plain-0"))
        ids = pq.read_table(Path(folder, "killed"), columns=["id"])["id"].to_numpy()
        once = bool((ids == np.arange(given.queries)).all()) and len(ids) == given.queries
    ray.shutdown()
    text = report(given.queries, given.vectors, index, block_rows, plain, one, two, killed, killer, same, once)
    print(text)
    if given.write:
        RESULT.write_text(text, encoding="utf-8")


WORKERS = (("plain", None), ("one", 1), ("two", 2))


def report(
    asked: int, vectors: int, index: Path, block_rows: int,
    plain: list[tuple[float, int, Summary]], one: list[tuple[float, int, Summary]],
    two: list[tuple[float, int, Summary]], killed: tuple[float, int, Summary], killer: "Killer", same: bool, once: bool,
) -> str:  # fmt: skip
    medians = [statistics.median(seconds for seconds, _, _ in runs) for runs in (plain, one, two)]
    ratios = [a[0] / b[0] for a, b in zip(one, two, strict=True)]
    lines = [
        "# Queries a second on Ray",
        "",
        f"Made by `benchmarks/ray_rate.py`: {asked:,} queries against {vectors:,} x {DIMENSION} in an HNSW index of "
        f"{index.stat().st_size >> 20} MiB, VRSD, {K} of {FETCH_K}, blocks of {block_rows:,}. Seconds from call to "
        "return, the actors' start and the writing of the parts included, Ray itself running already.",
        "",
        f"{machine()}, Python {platform.python_version()}, ray {version('ray')}, faiss-cpu {version('faiss-cpu')}, "
        f"pyarrow {version('pyarrow')}, numpy {version('numpy')}.",
        "",
        "| run | seconds | queries a second | all processes, MiB, at most |",
        "| --- | ---: | ---: | ---: |",
    ]
    names = ("one process, no Ray", "one Ray worker", "two Ray workers")
    for name, seconds, runs in zip(names, medians, (plain, one, two), strict=True):
        lines.append(f"| {name} | {seconds:.1f} | {asked / seconds:,.0f} | {max(m for _, m, _ in runs) >> 20:,} |")
    lines += [
        f"| two, one of them killed | {killed[0]:.1f} | {asked / killed[0]:,.0f} | {killed[1] >> 20:,} |",
        "",
        f"Two workers give {statistics.median(ratios):.2f} times one worker's rate "
        f"({', '.join(f'{ratio:.2f}' for ratio in ratios)} turn by turn).",
        "",
        f"Killed: process {killer.killed} (SIGKILL) when {killer.at} of {killed[2].parts} parts were written. Every "
        f"row once and in order: {'yes' if once else 'NO'}. All parts byte for byte as without Ray: "
        f"{'yes' if same else 'NO'}.",
        "",
    ]
    return "\n".join(lines)


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
    print("building the index ...", file=sys.stderr, flush=True)
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    index = faiss.IndexHNSWFlat(DIMENSION, 16, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 80
    index.hnsw.efSearch = 128
    index.add(corpus)
    aside = index_file.with_suffix(".tmp")
    faiss.write_index(index, str(aside))
    aside.replace(index_file)
    # Pages not yet on disk would count as each process's own.
    os.sync()


def parts(folder: Path) -> dict[str, bytes]:
    return {f.name: f.read_bytes() for f in folder.glob("part-*.parquet")}


def machine() -> str:
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    return (
        f"{os.cpu_count()} cores ({model}), {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    )


class Memory:
    """The largest sum of PSS of this process and all below it."""

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
            self.peak = max(self.peak, sum(map(pss, [os.getpid(), *below(os.getpid())])))


def below(root: int) -> list[int]:
    """The processes that this one started, and those that they did."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name before it may hold anything, brackets and blanks too.
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found = list(children.get(root, []))
    for process in found:
        found += children.get(process, [])
    return found


def pss(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        # It has ended.
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


class Killer(threading.Thread):
    """Kills one worker when so many parts are there."""

    def __init__(self, out: Path, parts: int) -> None:
        super().__init__()
        self._out, self._parts = out, parts
        self.killed = self.at = 0

    def run(self) -> None:
        while len(list(self._out.glob("part-*.parquet"))) < self._parts:
            time.sleep(0.1)
        # Not right after a part, where a worker is between two blocks.
        time.sleep(0.5)
        workers = [p for p in below(os.getpid()) if b"MapWorker" in Path(f"/proc/{p}/cmdline").read_bytes()]
        self.at = len(list(self._out.glob("part-*.parquet")))
        self.killed = workers[0]
        os.kill(self.killed, signal.SIGKILL)


if __name__ == "__main__":
    main()
