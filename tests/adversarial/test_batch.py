"""``setselect batch`` that is killed, started several times at once, short of disk space, or given damaged files."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.adversarial.conftest import Cases
from tests.shared_core.batch.dataset.corpus import D, N, corpus, flat_index, table, write_queries

ROOT = Path(__file__).parents[2]
PARTS = 23
COMMAND = [sys.executable, "-c", "from shared_core.cli import main; main()", "batch", "--block-rows", "10"]
MMR, NEAREST = ("--selector", "mmr", "--k", "4"), ("--selector", "similarity", "--k", "4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index, queries, and what runs with two settings write when nothing disturbs them."""
    folder = tmp_path_factory.mktemp("batch")
    flat_index(folder / "index.faiss")
    write_queries(folder / "queries.parquet")
    for name, settings in (("mmr", MMR), ("nearest", NEAREST)):
        done = start(folder, folder / name, settings)
        assert (done.communicate()[1], done.returncode) == ("", 0)
    return folder


def start(folder: Path, out: Path, settings: tuple[str, ...] = MMR, **how: Any) -> subprocess.Popen[str]:
    files = ("--queries", folder / "queries.parquet", "--index", folder / "index.faiss", "--out", out)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*COMMAND, *map(str, files), *settings], cwd=ROOT, **pipes, **how)


def content(out: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in out.iterdir()}


def count_parts(out: Path) -> int:
    return len(list(out.glob("part-*.parquet")))


def test_a_run_that_is_killed_at_any_moment_is_resumed_to_the_same_bytes(
    cases: Cases, folder: Path, tmp_path: Path
) -> None:
    kills = after_a_part = 0
    for number, rng in cases(share=0.007, at_most=50):
        out = tmp_path / str(number)
        run = start(folder, out)
        if number % 5 == 4:
            # The kill may hit any part of the start: imports, the hash of the files, the lock, the settings.
            time.sleep(float(rng.uniform(0, 2)))
        else:
            wanted = int(rng.integers(1, PARTS - 3))
            while run.poll() is None and count_parts(out) < wanted:
                time.sleep(0.001)
            time.sleep(float(rng.uniform(0, 0.01)))
        run.kill()
        run.communicate()
        if run.returncode < 0:
            kills += 1
            after_a_part += count_parts(out) > 0
        again = start(folder, out)
        assert (again.communicate()[1], again.returncode) == ("", 0)
        assert content(out) == content(folder / "mmr")
        shutil.rmtree(out)
    print(f"{kills} kills, {after_a_part} of them after a part")
    # A single case, which is repeated, may be a kill at the start.
    assert kills < 5 or after_a_part >= 0.4 * kills, (after_a_part, kills)


def test_of_four_runs_at_once_one_fills_the_folder_and_the_others_stop(
    cases: Cases, folder: Path, tmp_path: Path
) -> None:
    for number, rng in cases(share=0.002, at_most=20):
        out = tmp_path / str(number)
        settings = [NEAREST if rng.random() < 0.5 else MMR for _ in range(4)]
        runs = [start(folder, out, one) for one in settings]
        done = [(run.communicate(), run.returncode) for run in runs]
        winners = {one for one, (_, code) in zip(settings, done, strict=True) if code == 0}
        assert len(winners) == 1, done
        assert content(out) == content(folder / ("mmr" if winners == {MMR} else "nearest"))
        filled = 0
        for (stdout, stderr), code in done:
            if code:
                assert code == 2, stderr
                assert "is in use by process" in stderr or "made with other settings" in stderr, stderr
                assert stderr.startswith(f"error: {out} ")
            else:
                # A run that started after the end of the first one finds all parts.
                filled += f"{PARTS} of them from an earlier run" not in stdout
        assert filled == 1, done
        shutil.rmtree(out)


def test_a_run_that_cannot_write_stops_and_is_resumed_to_the_same_bytes(
    cases: Cases, folder: Path, tmp_path: Path
) -> None:
    resource = pytest.importorskip("resource", reason="Windows has no limit on the length of files")
    longest = max(map(len, content(folder / "mmr").values()))
    for number, rng in cases(share=0.003, at_most=20):
        out, limit = tmp_path / str(number), int(rng.integers(1, longest))
        limited = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit))
        run = start(folder, out, preexec_fn=limited)
        stderr = run.communicate()[1]
        assert run.returncode == 2, stderr
        assert "File too large" in stderr
        whole = content(folder / "mmr")
        assert all(whole[name] == found for name, found in content(out).items())
        again = start(folder, out)
        assert (again.communicate()[1], again.returncode) == ("", 0)
        assert content(out) == whole


# --- damaged files --------------------------------------------------------------------------------

# Runs the command for one line of arguments after another, and answers with its exit code and its error output. Damaged
# files may end this process, or need all memory, in place of the process of the tests.
_READER = """
import json, resource, sys, traceback
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
from typer.testing import CliRunner
from shared_core.cli._program import app
answers = sys.stdout
for line in sys.stdin:
    done = CliRunner().invoke(app, json.loads(line))
    known = done.exception is None or isinstance(done.exception, SystemExit)
    said = done.stderr if known else "".join(traceback.format_exception(done.exception))
    print(json.dumps([done.exit_code if known else 70, said]), file=answers, flush=True)
"""


class Reader:
    """Another process that runs ``setselect batch``; a new one after one has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def read(self, queries: Path, index: Path, out: Path) -> tuple[int, str]:
        """The exit code and the error output of a run with these files."""
        if self._process is None:
            command = [sys.executable, "-c", _READER]
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        files = ["--queries", str(queries), "--index", str(index), "--out", str(out), *MMR, "--block-rows", "100"]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(["batch", *files]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            ended = self.close()
            raise AssertionError(f"the process ended with {ended}")
        code, said = json.loads(answer)
        return code, said

    def close(self) -> int:
        """End the process; its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.communicate()
        return process.returncode


@pytest.fixture(scope="module")
def other() -> Iterator[Reader]:
    made = Reader()
    yield made
    made.close()


NUMBERS = (0, 1, N - 1, N + 1, 1 << 20, (1 << 31) - 1, (1 << 32) - 1, 1 << 33, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)


def damage(whole: bytes, rng: np.random.Generator) -> bytes:
    """One or two changes: of a bit, a byte or a number, of some bytes more or less, or of the end."""
    made = bytearray(whole)
    for _ in range(int(rng.integers(1, 3))):
        # Lengths and kinds are at the beginning of FAISS files and at the end of Parquet files.
        edge = min(300, len(made))
        place = int(rng.choice([rng.integers(len(made)), rng.integers(edge), len(made) - 1 - rng.integers(edge)]))
        number = NUMBERS[int(rng.integers(len(NUMBERS)))]
        match int(rng.integers(6)):
            case 0:
                made[place] = int(rng.integers(256))
            case 1:
                made[place] ^= 1 << int(rng.integers(8))
            case 2:
                made[place : place + 8] = number.to_bytes(8, "little")[: int(rng.choice([4, 8]))]
            case 3:
                del made[place : place + int(rng.integers(1, 64))]
            case 4:
                made[place:place] = rng.bytes(int(rng.integers(1, 64)))
            case _:
                del made[place:]
        made = made or bytearray(b"\0")
    return bytes(made)


def check(code: int, said: str, name: str) -> None:
    assert code in (0, 1, 2), said
    if code == 2:
        assert name in said, said
        # Only the paths may be long.
        assert len(said) < 800, said
        assert said.rstrip("\n").isprintable(), said


INDEXES = (
    "Flat", "SQ8", "PQ6", "HNSW8,Flat", "HNSW8,SQ8", "IVF4,Flat", "IVF4,SQ8", "IVF4,PQ6", "IVF4_HNSW8,Flat",
    "IDMap,Flat", "IDMap2,HNSW8,Flat", "IDMap,IVF4,Flat", "IVF4,PQ12x4fs,RFlat", "PCA12,Flat", "L2norm,Flat",
)  # fmt: skip


@pytest.mark.parametrize("kind", INDEXES)
def test_a_damaged_index_is_named_or_read(kind: str, cases: Cases, folder: Path, tmp_path: Path, other: Reader) -> None:
    bits = ",PQ6" in kind or kind == "PQ6"
    made = faiss.index_factory(D, f"{kind}x4" if bits else kind, faiss.METRIC_INNER_PRODUCT)
    # Quantisers of 256 values ask for 39 times as many vectors.
    made.train(np.concatenate([corpus()] * 2))
    made.add_with_ids(corpus(), np.arange(N) * 3) if kind.startswith("ID") else made.add(corpus())
    index = tmp_path / "damaged.faiss"
    faiss.write_index(made, str(index))
    whole = index.read_bytes()
    for number, rng in cases(share=0.004, at_most=200):
        index.write_bytes(damage(whole, rng))
        check(*other.read(folder / "queries.parquet", index, tmp_path / str(number)), "damaged.faiss")


@pytest.mark.parametrize("written", ["snappy", "zstd", "none"])
def test_a_damaged_file_of_queries_is_named_or_read(
    written: str, cases: Cases, folder: Path, tmp_path: Path, other: Reader
) -> None:
    queries = tmp_path / "damaged.parquet"
    pq.write_table(table(), queries, row_group_size=60, compression=written, use_dictionary=written == "snappy")
    whole = queries.read_bytes()
    for number, rng in cases(share=0.015, at_most=500):
        queries.write_bytes(damage(whole, rng))
        check(*other.read(queries, folder / "index.faiss", tmp_path / str(number)), "damaged.parquet")


def test_a_damaged_output_folder_is_named_or_completed(
    cases: Cases, folder: Path, tmp_path: Path, other: Reader
) -> None:
    out, names = tmp_path / "sets", ["_settings.json", "part-00000.parquet", "part-00002.parquet"]
    assert other.read(folder / "queries.parquet", folder / "index.faiss", out) == (0, "")
    whole = content(out)
    for _, rng in cases(share=0.015, at_most=500):
        name = names[int(rng.integers(len(names)))]
        (out / name).write_bytes(damage(whole[name], rng))
        check(*other.read(folder / "queries.parquet", folder / "index.faiss", out), "sets")
        assert sorted(content(out)) == sorted(whole)
        (out / name).write_bytes(whole[name])
