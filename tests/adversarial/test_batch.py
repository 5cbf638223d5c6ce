"""``setselect batch`` that is killed, or given damaged files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.adversarial.conftest import Cases, damage
from tests.shared_core.batch.corpus import flat_index, table, write_queries

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


# --- damaged files --------------------------------------------------------------------------------

# Runs the command for one line of arguments after another, and answers with its exit code and its error output. Damaged
# files may end this process, or need all memory, in place of the process of the tests.
_READER = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
from tests.adversarial.conftest import run_program
for line in sys.stdin:
    code, _, told = run_program(*json.loads(line))
    print(json.dumps([code, told]), flush=True)
"""


@pytest.fixture(scope="module")
def other() -> Iterator[subprocess.Popen[str]]:
    """Another process that runs ``setselect``."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", _READER], cwd=ROOT, stderr=subprocess.DEVNULL, **pipes) as process:
        yield process
        process.communicate()


def run_in(other: subprocess.Popen[str], *arguments: object) -> tuple[int, str]:
    assert other.stdin is not None
    assert other.stdout is not None
    print(json.dumps([*map(str, arguments)]), file=other.stdin, flush=True)
    code, said = json.loads(other.stdout.readline())
    return code, said


@pytest.mark.parametrize("damaged", ["queries.parquet", "sets/part-00002.parquet"])
def test_a_damaged_file_is_named_or_read_or_written_again(
    damaged: str, cases: Cases, tmp_path: Path, other: subprocess.Popen[str]
) -> None:
    def run() -> tuple[int, str]:
        files = ["--queries", "queries.parquet", "--index", "index.faiss", "--out", "sets"]
        arguments = [str(tmp_path / one) if one[0] != "-" else one for one in files]
        return run_in(other, "batch", *arguments, *MMR, "--block-rows", "100")

    flat_index(tmp_path / "index.faiss")
    pq.write_table(table(), tmp_path / "queries.parquet", row_group_size=60)
    assert run() == (0, "")
    file = tmp_path / damaged
    whole = file.read_bytes()
    for _, rng in cases(share=0.01, at_most=500):
        file.write_bytes(damage(whole, rng))
        if damaged == "queries.parquet":
            shutil.rmtree(tmp_path / "sets", ignore_errors=True)
        code, said = run()
        assert code in (0, 1, 2), said
        assert code != 2 or damaged.split("/")[0] in said, said
