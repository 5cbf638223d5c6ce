"""On a real Ray, of this machine. Two actors at most; each start takes seconds, so one cluster serves all tests."""

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
from shared_core.batch.dataset import select_dataset, select_table
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
# Ray warns of its own plans, on import and while it runs; nothing of ours is meant.
pytestmark = pytest.mark.filterwarnings("ignore")

MMR = {"k": K, "fetch_k": FETCH_K, "selector": "mmr", "lambda_d": 0.5}


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    import ray

    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=128 << 20)
    yield ray
    ray.shutdown()


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return flat_index(tmp_path / "index.faiss")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_queries(tmp_path / "queries.parquet")


def parts(out: Path) -> dict[str, bytes]:
    return {f.name: f.read_bytes() for f in out.iterdir()}


def test_one_actor_two_and_none_write_the_same_bytes(ray: Any, index: Path, files: Path, tmp_path: Path) -> None:
    written = []
    for concurrency in (None, 1, 2):
        out = tmp_path / str(concurrency)
        done = select_dataset(files, index, out=out, block_rows=41, concurrency=concurrency, **MMR)
        assert (done.rows, done.errors, done.parts) == (Q, 0, 6)
        written.append(parts(out))
    assert written[0] == written[1] == written[2]
    assert pq.read_table(tmp_path / "2")["id"].to_pylist() == names()


def dies_once(marker: Path, rows: Any) -> Any:
    # Made inside a function, so that it reaches the actors by value: they need not find the tests.
    def search(vectors: Any, k: int) -> tuple[list[Any], list[Any]]:
        if np.isclose(vectors[:, 0], 77.0).any() and not marker.exists():
            marker.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        places = [np.argsort(-(rows @ v), kind="stable")[:k] for v in vectors]
        return [list(one) for one in places], [rows[one] for one in places]

    return search


def test_a_killed_actor_loses_no_row_and_repeats_none(ray: Any, tmp_path: Path) -> None:
    asked = table().to_pydict()
    vectors = [np.array(v, np.float32) for v in asked["vector"]]
    # In the middle of a block in the middle of the run.
    vectors[110][0] = 77.0
    pq.write_table(pa.table({"id": asked["id"], "vector": vectors}), tmp_path / "queries.parquet")
    marker = tmp_path / "died"
    search = dies_once(marker, corpus())
    out = tmp_path / "sets"
    done = select_dataset(tmp_path / "queries.parquet", search, out=out, block_rows=20, concurrency=2, **MMR)
    assert marker.exists(), "nothing died"
    assert (done.rows, done.errors, done.parts) == (Q, 0, 12)
    assert pq.read_table(out)["id"].to_pylist() == names()
    # The marker is there, so the same search lives on.
    select_dataset(tmp_path / "queries.parquet", search, out=tmp_path / "calm", block_rows=20, **MMR)
    assert parts(out) == parts(tmp_path / "calm")
    assert not list(out.glob(".*"))


def test_a_block_that_always_kills_ends_the_run_and_keeps_the_parts(ray: Any, files: Path, tmp_path: Path) -> None:
    def dies(vectors: Any, k: int) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    out = tmp_path / "sets"
    for _ in range(2):
        with pytest.raises(ChildProcessError, match=r"rows 0 to 229 of .*queries\.parquet killed their worker 5 times"):
            select_dataset(files, dies, out=out, block_rows=Q, concurrency=1, **MMR)
        assert not list(out.glob("*.parquet"))
        # Counted anew by the next call.
        assert [f.stat().st_size for f in out.glob(".*.tries")] == [6]


def test_ray_goes_on_where_one_process_was_and_the_other_way_round(
    ray: Any, index: Path, files: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sets"
    select_dataset(files, index, out=out, block_rows=41, **MMR)
    whole = parts(out)
    for concurrency, lost in ((2, (0, 3, 5)), (None, (1, 2))):
        for number in lost:
            (out / f"part-{number:05d}.parquet").unlink()
        kept = {f.name: f.stat().st_mtime_ns for f in out.iterdir()}
        done = select_dataset(files, index, out=out, block_rows=41, concurrency=concurrency, **MMR)
        assert done.resumed == 6 - len(lost)
        assert parts(out) == whole
        assert {name: (out / name).stat().st_mtime_ns for name in kept} == kept


def test_bad_rows_have_errors_on_ray_too(ray: Any, index: Path, tmp_path: Path) -> None:
    vectors = [list(map(float, v)) for v in table()["vector"].to_pylist()]
    vectors[3][1] = float("nan")
    vectors[99] = vectors[99][:-1]
    pq.write_table(pa.table({"id": names(), "vector": vectors}), tmp_path / "queries.parquet")
    done = select_dataset(
        tmp_path / "queries.parquet", index, out=tmp_path / "sets", block_rows=50, concurrency=2, **MMR
    )
    assert (done.rows, done.errors, done.first_error) == (Q, 2, "the vector holds nan (as float32)")
    errors = pq.read_table(tmp_path / "sets")["error"].to_pylist()
    assert {i: e for i, e in enumerate(errors) if e} == {
        3: "the vector holds nan (as float32)", 99: f"the vector has length {D - 1}, not {D}",
    }  # fmt: skip


def test_what_an_actor_raises_is_raised_plainly(ray: Any, files: Path, tmp_path: Path) -> None:
    def silent(vectors: Any, k: int) -> tuple[list[Any], list[Any]]:
        return [], []

    with pytest.raises(VectorSourceError, match=r"was given 50 queries and answered 0 .* 0 with vectors$") as raised:
        select_dataset(files, silent, out=tmp_path / "sets", block_rows=50, concurrency=2, **MMR)
    assert type(raised.value) is VectorSourceError
    # Before the first query too, as soon as the worker has started.
    with pytest.raises(InvalidParameterError, match=r"model '.*' cannot be loaded"):
        select_dataset(
            files, silent, out=tmp_path / "texts", text_column="id", model=str(tmp_path), concurrency=1, **MMR
        )


def test_a_dataset_comes_back_as_a_dataset(ray: Any, index: Path, tmp_path: Path) -> None:
    dataset = ray.data.from_arrow([table().slice(start, 50) for start in range(0, Q, 50)])
    found = select_dataset(dataset, index, concurrency=2, block_rows=64, **MMR)
    rows = sorted(found.take_all(), key=lambda row: int(row["id"].split()[1]))
    select_dataset(write_queries(tmp_path / "q.parquet"), index, out=tmp_path / "sets", **MMR)
    expected = pq.read_table(tmp_path / "sets").to_pylist()
    assert [(row["id"], list(row["ids"]), row["error"]) for row in rows] == [
        (row["id"], row["ids"], row["error"]) for row in expected
    ]
    with pytest.raises(InvalidParameterError, match="less than the cluster's 3 CPUs, got 3"):
        select_dataset(dataset, index, concurrency=3, **MMR)


def test_a_dataset_with_a_folder_is_written_down_once_and_gone_on_with(
    ray: Any, index: Path, files: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sets"
    done = select_dataset(ray.data.read_parquet(str(files)), index, out=out, concurrency=2, block_rows=60, **MMR)
    assert done.rows == Q
    written = pq.read_table(out)
    assert sorted(written["id"].to_pylist()) == sorted(names())
    (out / "part-00001.parquet").unlink()
    with pytest.warns(SetSelectWarning, match=r"an earlier call wrote to .*_queries are taken"):
        again = select_dataset(ray.data.read_parquet(str(files)), index, out=out, concurrency=1, block_rows=60, **MMR)
    assert again.resumed == again.parts - 1
    assert pq.read_table(out).equals(written)


def test_arrays_in_a_dataset_are_vectors(ray: Any, index: Path, tmp_path: Path) -> None:
    def arrays(batch: dict[str, Any]) -> dict[str, Any]:
        return {"id": batch["id"], "vector": asked[batch["id"]]}

    def of_several_lengths(batch: dict[str, Any]) -> dict[str, Any]:
        rows = np.empty(len(batch["id"]), object)
        rows[:] = [asked[i][: D - (i == 5)] for i in batch["id"]]
        return {"id": batch["id"], "vector": rows}

    asked = queries()[:20]
    expected = select_table(table().slice(0, 20), index, **MMR)["ids"].to_pylist()
    found = select_dataset(ray.data.range(20).map_batches(arrays), index, concurrency=1, **MMR)
    assert [list(row["ids"]) for row in sorted(found.take_all(), key=lambda row: int(row["id"]))] == expected
    done = select_dataset(
        ray.data.range(20, override_num_blocks=1).map_batches(of_several_lengths), index, out=tmp_path / "sets",
        concurrency=1, **MMR,
    )  # fmt: skip
    assert (done.rows, done.errors, done.first_error) == (20, 1, f"the vector has length {D - 1}, not {D}")
    assert pq.read_table(tmp_path / "sets")["ids"].to_pylist() == [*expected[:5], None, *expected[6:]]
    with pytest.raises(InvalidInputError, match=f"length 2, the index of {D}"):
        select_dataset(ray.data.from_numpy(asked[:, :2]), index, vector_column="data", id_column="data", **MMR)


def test_the_command_says_what_it_did_and_not_what_ray_does(index: Path, files: Path, tmp_path: Path) -> None:
    # A Ray of its own, in a process of its own.
    asked = ["batch", "--queries", files, "--index", index, "--out", tmp_path / "sets", "--workers", 2]
    code = "from shared_core.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, asked), "--block-rows", "50", "--k", "3"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"{Q} rows in 5 parts: {tmp_path / 'sets'}\n"), done.stderr
    # That it was told to keep quiet is a line of its own.
    assert not [line for line in done.stderr.splitlines() if "RAY_BACKEND_LOG_LEVEL" not in line]


def test_a_dataset_without_what_is_needed(ray: Any, index: Path, tmp_path: Path) -> None:
    dataset = ray.data.from_arrow(table())
    with pytest.raises(InvalidInputError, match="the dataset: no column name"):
        select_dataset(dataset, index, id_column="name", **MMR)
    with pytest.raises(InvalidParameterError, match="have no numbers"):
        select_dataset(dataset, index, out=tmp_path / "sets", id_column=None, **MMR)
    with pytest.raises(InvalidParameterError, match=r"got Table .*select_table"):
        select_dataset(table(), index, out=tmp_path / "sets", **MMR)
    assert not (tmp_path / "sets").exists()
    with pytest.raises(InvalidInputError, match="has no rows"):
        select_dataset(dataset.limit(0), index, out=tmp_path / "sets", **MMR)
    (tmp_path / "album").mkdir()
    (tmp_path / "album" / "holiday.jpg").write_text("picture")
    with pytest.raises(InvalidParameterError, match=r"holds holiday\.jpg"):
        select_dataset(dataset, index, out=tmp_path / "album", **MMR)
    assert [f.name for f in (tmp_path / "album").iterdir()] == ["holiday.jpg"]
