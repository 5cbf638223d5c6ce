"""Selections on a real Ray on this machine. Each start of a worker takes seconds, so there are few runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# Ray finds the errors in the package that is public.
from setselect import MMR, InvalidInputError
from shared_core.batch.tables import TableSelector, select_dataset
from tests.shared_core.batch.corpus import (
    FETCH_K,
    K,
    Q,
    by_brute_force,
    corpus,
    flat_index,
    names,
    needs_ray,
    queries,
    table,
    write_queries,
)

needs_ray()
# Ray warns about its own plans, on import and while it runs.
pytestmark = pytest.mark.filterwarnings("ignore")

NEAREST: dict[str, Any] = {"k": K, "fetch_k": K, "selector": "similarity"}


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    import ray

    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=128 << 20)
    yield ray
    ray.shutdown()


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return flat_index(tmp_path / "index.faiss")


def test_two_workers_and_one_process_write_the_same_rows_and_resume_each_other(
    ray: Any, index: Path, tmp_path: Path
) -> None:
    vectors = table()["vector"].to_pylist()
    vectors[3][1] = float("nan")
    files, out = tmp_path / "queries.parquet", tmp_path / "sets"
    pq.write_table(pa.table({"id": names(), "vector": vectors}), files)
    settings: dict[str, Any] = {"k": K, "fetch_k": FETCH_K, "selector": MMR(0.5), "out": out, "block_rows": 41}
    select_dataset(files, index, **settings)
    whole = pq.read_table(out)
    for number in (0, 2, 3, 5):
        (out / f"part-{number:05d}.parquet").unlink()
    kept = {f.name: f.stat().st_mtime_ns for f in out.iterdir()}
    done = select_dataset(files, index, concurrency=2, **settings)
    assert (done.rows, done.errors, done.parts) == (Q, 1, 6)
    assert pq.read_table(out) == whole
    assert {name: (out / name).stat().st_mtime_ns for name in kept} == kept


def test_the_class_maps_the_batches_of_a_dataset(ray: Any, index: Path) -> None:
    import ray.data

    # Ray makes tensors of arrays.
    rows = [{"id": name, "vector": vector} for name, vector in zip(names(), queries(), strict=True)]
    found = ray.data.from_items(rows).map_batches(
        TableSelector, fn_constructor_args=(index, K, MMR(0.5)), fn_constructor_kwargs={"fetch_k": FETCH_K},
        batch_format="pyarrow", batch_size=100, concurrency=1,
    )  # fmt: skip
    ids = {row["id"]: list(row["ids"]) for row in found.iter_rows()}
    assert ids == {name: by_brute_force(query)[0] for name, query in zip(names(), queries(), strict=True)}


@pytest.mark.slow
def test_a_killed_worker_loses_and_repeats_no_row_and_an_error_is_raised_as_it_is(ray: Any, tmp_path: Path) -> None:
    vectors = [np.array(v, np.float32) for v in table()["vector"].to_pylist()]
    vectors[110][0] = 77.0
    files, out, deaths = tmp_path / "queries.parquet", tmp_path / "sets", tmp_path / "deaths"
    pq.write_table(pa.table({"id": names(), "vector": vectors}), files)
    rows = corpus()

    # Inside a function, so that it reaches the workers by value: they cannot import the tests.
    def search(vectors: Any, k: int) -> tuple[list[Any], list[Any]]:
        if np.isclose(vectors[:, 0], 77.0).any() and not deaths.exists():
            deaths.write_text("killed")
            os.kill(os.getpid(), signal.SIGKILL)
        places = [np.argsort(-(rows @ v), kind="stable")[:k] for v in vectors]
        return [list(one) for one in places], [rows[one] for one in places]

    done = select_dataset(files, search, out=out, block_rows=40, concurrency=2, **NEAREST)
    assert (done.rows, done.errors, deaths.exists()) == (Q, 0, True)
    written = pq.read_table(out)
    assert written["id"].to_pylist() == names()
    expected = TableSelector(search, **NEAREST)(pq.read_table(files))
    assert written["ids"].to_pylist() == expected["ids"].to_pylist()

    def refuse(vectors: Any, k: int) -> Any:
        raise InvalidInputError("no such collection")

    with pytest.raises(InvalidInputError, match=r"^no such collection$"):
        select_dataset(files, refuse, out=tmp_path / "other", concurrency=1, **NEAREST)


@pytest.mark.slow
def test_the_command_starts_ray_and_prints_none_of_its_messages(index: Path, tmp_path: Path) -> None:
    # In another process, so that it starts a Ray of its own.
    files = write_queries(tmp_path / "queries.parquet")
    options = ["batch", "--queries", files, "--index", index, "--out", tmp_path / "sets", "--ray"]
    done = subprocess.run(
        [sys.executable, "-m", "setselect", *map(str, options), "--block-rows", "150", "--selector", "similarity"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"{Q} rows in 2 parts: {tmp_path / 'sets'}\n"), done.stderr
    # Ray's core reports on a line of its own that its log level is set.
    assert not [line for line in done.stderr.splitlines() if "RAY_BACKEND_LOG_LEVEL" not in line], done.stderr
