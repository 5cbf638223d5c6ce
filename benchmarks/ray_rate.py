"""Queries a second on Ray: one worker and two, beside one process without Ray.

The index is HNSW (M = 16, efSearch = 128), as is usual for offline work of this size, of random vectors in clusters. A
flat index would measure the bandwidth of the memory, which two cores share.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import platform
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray

from benchmarks.common import CACHE as CACHES
from benchmarks.common import Block, parser, publish, say, table
from setselect.tables import select_dataset

CACHE = CACHES / "ray_rate"
N, DIMENSION, CLUSTERS, K, FETCH_K, SEED = 200_000, 384, 2_000, 10, 100, 0
ONE, TWO = "one Ray worker", "two Ray workers"
WORKERS = {"one process without Ray": None, ONE: 1, TWO: 2}


def main() -> None:
    made = parser(__doc__, "ray_rate.md")
    made.add_argument("--queries", type=int, default=40_000)
    made.add_argument("--vectors", type=int, default=N, help="fewer for a short trial")
    options = made.parse_args()
    index = CACHE / f"hnsw-{options.vectors}.faiss"
    queries = CACHE / f"queries-{options.queries}-of-{options.vectors}.parquet"
    if not (index.is_file() and queries.is_file()):
        make(index, queries, options.queries, options.vectors)
    block_rows = max(1, min(10_000, options.queries // 40))
    # CPUs for two workers. Ray's own store can be small: it holds a plan of a few kB.
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=128 << 20)
    seconds = {}
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        for name, workers in WORKERS.items():
            began = time.perf_counter()
            select_dataset(
                queries, index, out=Path(folder, name), k=K, fetch_k=FETCH_K, selector="vrsd", concurrency=workers,
                block_rows=block_rows,
            )  # fmt: skip
            seconds[name] = time.perf_counter() - began
            say(f"{name}: {seconds[name]:.1f} s")
    ray.shutdown()
    about = (
        f"Made by `python -m benchmarks.ray_rate`: {options.queries:,} queries against {options.vectors:,} x "
        f"{DIMENSION} in an HNSW index of {index.stat().st_size >> 20} MiB, VRSD, "
        f"{K} of {FETCH_K}, blocks of {block_rows:,}."
    )
    publish("ray_rate.md", blocks(about, options.queries, seconds), options.write)


def blocks(about: str, queries: int, seconds: dict[str, float]) -> Iterator[Block]:
    packages = ", ".join(f"{name} {version(name)}" for name in ("ray", "faiss-cpu", "pyarrow", "numpy"))
    yield "Made by ", about
    yield " cores", f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {packages}."
    rows = [[name, f"{took:.1f}", f"{queries / took:,.0f}"] for name, took in seconds.items()]
    yield table(["run", "seconds", "queries a second"], rows)
    yield "Two workers give ", f"Two workers give {seconds[ONE] / seconds[TWO]:.2f} times one worker's rate."


def make(index_file: Path, queries_file: Path, queries: int, vectors: int) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    centres = rng.standard_normal((CLUSTERS, DIMENSION), dtype=np.float32)

    def drawn(n: int) -> np.ndarray:
        rows = centres[rng.integers(CLUSTERS, size=n)] + rng.standard_normal((n, DIMENSION), dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    corpus = drawn(vectors)
    column = pa.FixedSizeListArray.from_arrays(drawn(queries).ravel(), DIMENSION)
    pq.write_table(pa.table({"id": np.arange(queries), "vector": column}), queries_file, row_group_size=50_000)
    say("building the index ...")
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    index = faiss.IndexHNSWFlat(DIMENSION, 16, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 80
    index.hnsw.efSearch = 128
    index.add(corpus)
    faiss.write_index(index, str(index_file))
    faiss.omp_set_num_threads(1)


if __name__ == "__main__":
    main()
