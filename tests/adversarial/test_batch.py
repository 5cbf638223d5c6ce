"""``setselect batch`` that is killed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.adversarial.conftest import Cases
from tests.shared_core.batch.corpus import flat_index, write_queries

ROOT = Path(__file__).parents[2]
PARTS = 23
COMMAND = [sys.executable, "-m", "setselect", "batch", "--block-rows", "10"]
MMR = ("--selector", "mmr", "--k", "4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index, queries, and what a run writes when nothing disturbs it."""
    folder = tmp_path_factory.mktemp("batch")
    flat_index(folder / "index.faiss")
    write_queries(folder / "queries.parquet")
    done = start(folder, folder / "mmr")
    assert (done.communicate()[1], done.returncode) == ("", 0)
    return folder


def start(folder: Path, out: Path) -> subprocess.Popen[str]:
    files = ("--queries", folder / "queries.parquet", "--index", folder / "index.faiss", "--out", out)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*COMMAND, *map(str, files), *MMR], cwd=ROOT, **pipes)


@pytest.mark.slow
def test_a_run_that_is_killed_at_any_moment_is_resumed_to_the_same_rows(
    cases: Cases, folder: Path, tmp_path: Path
) -> None:
    for number, rng in cases(share=0.004, at_most=50):
        out = tmp_path / str(number)
        run = start(folder, out)
        if number % 5 == 4:
            # The kill may hit any part of the start: imports, the hash of the files, the folder.
            time.sleep(float(rng.uniform(0, 2)))
        else:
            wanted = int(rng.integers(1, PARTS - 3))
            while run.poll() is None and len(list(out.glob("part-*.parquet"))) < wanted:
                time.sleep(0.001)
            time.sleep(float(rng.uniform(0, 0.01)))
        run.kill()
        run.communicate()
        there = {file: file.stat().st_mtime_ns for file in out.glob("part-*.parquet")}
        again = start(folder, out)
        assert (again.communicate()[1], again.returncode) == ("", 0)
        assert pq.read_table(out) == pq.read_table(folder / "mmr")
        assert {file: file.stat().st_mtime_ns for file in there} == there
        shutil.rmtree(out)
