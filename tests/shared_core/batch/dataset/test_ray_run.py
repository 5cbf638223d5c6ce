"""Selections on a real Ray on this machine.

Each start of an actor takes seconds. So all tests but one share a Ray, have few runs with few actors, and most use the
selector "similarity", for which an actor does not load numba.
"""

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

from shared_core import InvalidInputError, InvalidParameterError, SetSelectWarning, VectorSourceError
from shared_core.batch.dataset import _ray_run, select_dataset, select_table
from tests.shared_core.batch.dataset.corpus import (
    FETCH_K,
    D,
    K,
    Q,
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

MMR = {"k": K, "fetch_k": FETCH_K, "selector": "mmr", "lambda_mult": 0.5}
NEAREST = {"k": K, "fetch_k": K, "selector": "similarity"}


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    import ray

    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=128 << 20)
    yield ray
    ray.shutdown()


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return flat_index(tmp_path / "index.faiss")


def parts(out: Path) -> dict[str, bytes]:
    return {f.name: f.read_bytes() for f in out.iterdir()}


def test_ray_and_one_process_write_the_same_bytes_and_resume_each_other(ray: Any, index: Path, tmp_path: Path) -> None:
    vectors = [list(map(float, v)) for v in table()["vector"].to_pylist()]
    vectors[3][1] = float("nan")
    vectors[99] = vectors[99][:-1]
    files, out = tmp_path / "queries.parquet", tmp_path / "sets"
    pq.write_table(pa.table({"id": names(), "vector": vectors}), files)
    select_dataset(files, index, out=out, block_rows=41, **MMR)
    whole = parts(out)
    for number in (0, 2, 3, 5):
        (out / f"part-{number:05d}.parquet").unlink()
    kept = {f.name: f.stat().st_mtime_ns for f in out.iterdir()}
    done = select_dataset(files, index, out=out, block_rows=41, concurrency=2, **MMR)
    assert (done.rows, done.errors, done.parts, done.resumed) == (Q, 2, 6, 2)
    assert done.first_error == "the vector contains nan (as float32)"
    assert parts(out) == whole
    assert {name: (out / name).stat().st_mtime_ns for name in kept} == kept


def make_deadly_search(deaths: Path, allowed: int, rows: Any) -> Any:
    """A search that kills its process at the query that begins with 77, until ``deaths`` counts ``allowed`` kills."""

    # Inside a function, so that it reaches the actors by value: they cannot import the tests.
    def search(vectors: Any, k: int) -> tuple[list[Any], list[Any]]:
        if np.isclose(vectors[:, 0], 77.0).any() and (deaths.stat().st_size if deaths.exists() else 0) < allowed:
            with deaths.open("ab") as file:
                file.write(b".")
            os.kill(os.getpid(), signal.SIGKILL)
        places = [np.argsort(-(rows @ v), kind="stable")[:k] for v in vectors]
        return [list(one) for one in places], [rows[one] for one in places]

    return search


@pytest.mark.slow
def test_killed_actors_lose_and_repeat_no_row(ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ray_run, "MAX_RETRIES", 1)
    vectors = [np.array(v, np.float32) for v in table()["vector"].to_pylist()]
    # In the middle of a block in the middle of the run.
    vectors[110][0] = 77.0
    files, out, deaths = tmp_path / "queries.parquet", tmp_path / "sets", tmp_path / "deaths"
    pq.write_table(pa.table({"id": names(), "vector": vectors}), files)
    search = make_deadly_search(deaths, 3, corpus())
    with pytest.raises(ChildProcessError, match=" 2 times"):
        select_dataset(files, search, out=out, block_rows=40, concurrency=1, **NEAREST)
    assert deaths.stat().st_size == 2
    there = {f.name: f.stat().st_mtime_ns for f in out.glob("*.parquet")}
    assert "part-00002.parquet" not in there
    # The next call counts from 0 again: the block kills one more actor and then succeeds.
    done = select_dataset(files, search, out=out, block_rows=40, concurrency=1, **NEAREST)
    assert (done.rows, done.errors, done.parts, done.resumed) == (Q, 0, 6, len(there))
    assert {name: (out / name).stat().st_mtime_ns for name in there} == there
    assert not list(out.glob(".*"))
    # The search does not kill a fourth time.
    select_dataset(files, search, out=tmp_path / "calm", block_rows=40, **NEAREST)
    assert parts(out) == parts(tmp_path / "calm")


@pytest.mark.slow
def test_an_error_in_an_actor_is_raised_as_it_is(ray: Any, tmp_path: Path) -> None:
    def silent(vectors: Any, k: int) -> tuple[list[Any], list[Any]]:
        return [], []

    files = write_queries(tmp_path / "queries.parquet")
    with pytest.raises(VectorSourceError, match=r"\d+ queries .* 0 ") as raised:
        select_dataset(files, silent, out=tmp_path / "sets", concurrency=1, **NEAREST)
    assert type(raised.value) is VectorSourceError

    def unreachable(vectors: Any, k: int) -> Any:
        raise ConnectionError("no connection")

    with pytest.raises(ConnectionError, match="no connection") as refused:
        select_dataset(files, unreachable, out=tmp_path / "others", concurrency=1, **NEAREST)
    assert type(refused.value) is ConnectionError


@pytest.mark.slow
def test_a_dataset_comes_back_as_a_dataset(ray: Any, index: Path) -> None:
    dataset = ray.data.from_arrow([table().slice(start, 50) for start in range(0, Q, 50)])
    found = select_dataset(dataset, index, concurrency=1, block_rows=64, **NEAREST)
    rows = sorted(found.take_all(), key=lambda row: int(row["id"].split()[1]))
    expected = select_table(table(), index, **NEAREST).to_pylist()
    assert [(row["id"], list(row["ids"]), row["error"]) for row in rows] == [
        (row["id"], row["ids"], row["error"]) for row in expected
    ]
    # The arrays of a Dataset are tensors.
    [tensors] = ray.get(ray.data.from_numpy(queries()).to_arrow_refs())
    again = select_table(tensors, index, vector_column="data", id_column=None, **NEAREST)
    assert again["ids"].to_pylist() == [row["ids"] for row in expected]


@pytest.mark.slow
def test_a_dataset_with_a_folder_is_staged_once_and_resumed(ray: Any, index: Path, tmp_path: Path) -> None:
    rng, out = np.random.default_rng(30), tmp_path / "sets"
    # All lists of candidates are equally long, so Ray makes tensors of them. The vectors have two lengths.
    hits, scores = rng.permuted(np.tile(np.arange(50), (20, 1)), axis=1)[:, :9], rng.normal(size=(20, 9))
    vectors = np.empty(20, object)
    vectors[:] = [query[: D - (i == 5)] for i, query in enumerate(queries()[:20])]
    columns = {"id": np.arange(20), "vector": vectors, "hits": hits, "scores": scores}
    read = {"candidates_column": "hits", "relevance_column": "scores"}
    given = {"k": 3, "selector": "similarity", "block_rows": 6} | read
    dataset = ray.data.from_items([0], override_num_blocks=1).map_batches(lambda _: columns)
    done = select_dataset(dataset, index, out=out, concurrency=1, **given)
    assert (done.rows, done.errors, done.parts) == (20, 1, 4)
    assert done.first_error == f"the vector has length {D - 1}, not {D}"
    written = pq.read_table(out)
    del given["block_rows"]
    expected = select_table(pa.table({name: list(column) for name, column in columns.items()}), index, **given)
    assert written.equals(expected)
    (out / "part-00001.parquet").unlink()
    with pytest.warns(SetSelectWarning, match="_queries "):
        again = select_dataset(dataset, index, out=out, concurrency=1, block_rows=6, **given)
    assert (again.parts, again.resumed) == (4, 3)
    assert pq.read_table(out).equals(written)


def test_a_dataset_that_cannot_be_used_is_refused(ray: Any, index: Path, tmp_path: Path) -> None:
    dataset, out = ray.data.from_arrow(table()), tmp_path / "sets"
    cases: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        (dataset, {"id_column": "name"}, InvalidInputError, "dataset: .*name"),
        (dataset, {"id_column": None, "out": out}, InvalidParameterError, "have no numbers"),
        (dataset, {"concurrency": 3}, InvalidParameterError, " 3 CPUs, got 3"),
        (table(), {"out": out}, InvalidParameterError, r"got Table .*select_table"),
        (dataset.limit(0), {"out": out}, InvalidInputError, "has no rows"),
    ]
    for given, change, error, says in cases:
        with pytest.raises(error, match=says):
            select_dataset(given, index, **{**NEAREST, **change})


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
    assert not [line for line in done.stderr.splitlines() if "RAY_BACKEND_LOG_LEVEL" not in line]
