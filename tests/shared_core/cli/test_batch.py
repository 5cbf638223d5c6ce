from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from shared_core import NDPP, LinearKernel
from shared_core.batch.tables import TableSelector
from shared_core.cli._program import app
from tests.shared_core.batch.corpus import (
    D,
    Q,
    by_brute_force,
    flat_index,
    names,
    queries,
    table,
    write_queries,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    flat_index(tmp_path / "index.faiss")
    write_queries(tmp_path / "queries.parquet")
    return tmp_path


def run(folder: Path, *arguments: object) -> Result:
    files = ("--queries", folder / "queries.parquet", "--index", folder / "index.faiss", "--out", folder / "sets")
    return CliRunner().invoke(app, ["batch", *map(str, (*files, *arguments))])


def test_parts_are_written_and_a_second_call_skips_them(folder: Path) -> None:
    arguments = ("--selector", "mmr", "--parameter", "lambda_mult=0.5", "--block-rows", 100)
    first = run(folder, *arguments)
    assert (first.exit_code, first.stderr) == (0, "")
    assert first.stdout == f"{Q} rows in 3 parts: {folder / 'sets'}\n"
    written = pq.read_table(folder / "sets")
    assert written["id"].to_pylist() == names()
    # The defaults: 4 of the 50 nearest.
    assert written["ids"].to_pylist() == [by_brute_force(query)[0] for query in queries()]
    second = run(folder, *arguments)
    assert second.stdout == first.stdout
    other = run(folder, *arguments, "--k", 3)
    assert other.exit_code == 2
    assert "were made with other settings (k: 4 there, 3 now); name another" in other.stderr


def test_rows_with_errors_are_counted_and_shown(folder: Path) -> None:
    bad = table().to_pydict()["vector"]
    bad[5] = [0.0] * D
    bad[6] = None
    pq.write_table(pa.table({"name": names(), "v": bad}), folder / "queries.parquet")
    result = run(folder, "--id-column", "name", "--vector-column", "v")
    assert result.exit_code == 1
    said = result.stderr.splitlines()
    assert said[0] == "coverage selects by the vectors alone: with --texts it reads the words too"
    assert said[1].startswith("2 rows have an error in place of a selection; the first: the vector is zero")
    assert pq.read_table(folder / "sets").column_names[0] == "name"


def test_parameters_of_every_kind(folder: Path) -> None:
    LinearKernel(np.eye(D)).save(folder / "kernel.safetensors")
    parameters = [f"kernel={folder / 'kernel.safetensors'}", "relevance_mapping=exponential", "temperature=1"]
    result = run(folder, "--selector", "ndpp", *(w for p in parameters for w in ("--parameter", p)))
    assert result.exit_code == 0, result.output
    written = pq.read_table(folder / "sets")
    selector = NDPP(LinearKernel(np.eye(D)), relevance_mapping="exponential", temperature=1)
    expected = TableSelector(folder / "index.faiss", selector=selector)(table())
    assert written["ids"].to_pylist() == expected["ids"].to_pylist()


COLUMNS = ("--candidates-column", "hits", "--relevance-column", "scores")


def test_candidates_and_relevance_from_columns(folder: Path) -> None:
    rows: dict[str, Any] = {"id": names()[:6], "vector": list(queries()[:6]), "hits": [[3, 1, 2]] * 6}
    pq.write_table(pa.table(rows | {"scores": [[0.1, 7.0, 6.9]] * 6}), folder / "queries.parquet")
    similarity = (*COLUMNS, "--selector", "similarity", "--k", 2)
    result = run(folder, *similarity)
    assert (result.exit_code, result.stderr) == (0, "")
    written = pq.read_table(folder / "sets")
    assert written["ids"].to_pylist() == [[1, 2]] * 6
    assert written["relevance"].to_pylist() == [[7.0, 6.9]] * 6
    # Without a selector: Coverage, which takes relevance.
    assert run(folder, *COLUMNS, "--k", 2, "--out", folder / "default").exit_code == 0
    assert [row[0] for row in pq.read_table(folder / "default")["ids"].to_pylist()] == [1] * 6


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--selector", "best"], "best"),
        (["--parameter", "refine"], "--parameter takes name=value, got 'refine'"),
        (["--parameter", "lambda_mult=0.5"], "'coverage' has no parameter 'lambda_mult' (a parameter of 'mmr')"),
        # Arguments of the library have the names of the command's options.
        (["--fetch-k", "3"], "--fetch-k must be at least --k = 4"),
        (COLUMNS[2:], "--relevance-column has no use without --candidates-column"),
        # A path that contains the name of an argument stays as it is.
        (["--queries", "/data/id_column/q.parquet"], "there is no file /data/id_column/q.parquet"),
    ],
)
def test_a_run_that_cannot_start_says_why(arguments: list[str], says: str, folder: Path) -> None:
    result = run(folder, *arguments)
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.output
    assert not (folder / "sets").exists()


def test_without_ray_two_workers_name_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("ray", "ray.data"):
        monkeypatch.setitem(sys.modules, module, None)
    done = run(folder, "--workers", 2)
    assert done.exit_code == 2
    assert 'pip install "setselect[ray]"' in done.stderr
    assert run(folder).exit_code == 0
