"""``setselect train`` that is killed: the labels and the checkpoint of its fit are resumed to the same bytes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("torch")

from safetensors import safe_open

from tests.adversarial.conftest import Cases
from tests.shared_core.cli.test_train import SMALL, arguments, write_pool

ROOT = Path(__file__).parents[2]
ITEMS = 40

# Imports once, and forks a process for each command, because most of a short run is imports. The feedback is slow, so
# that labelling can be killed in the middle.
STARTER = """
import json, os, sys, time
import matplotlib.figure, safetensors.torch, torch
import shared_core.learning.fitting, shared_core.learning.results
from shared_core.cli import main
from shared_core.learning import CoverageFeedback

def slow(self, pairs):
    time.sleep(0.001)
    return score(self, pairs)

score, CoverageFeedback.score = CoverageFeedback.score, slow
for line in sys.stdin:
    if line == "end\\n":
        process, status = os.wait()
        print(process, os.waitstatus_to_exitcode(status), flush=True)
        continue
    folder, command = json.loads(line)
    process = os.fork()
    if not process:
        os.chdir(folder)
        said = os.open(f"said.{os.getpid()}", os.O_WRONLY | os.O_CREAT)
        os.dup2(said, 1), os.dup2(said, 2)
        sys.argv = ["setselect", *command]
        try:
            main()
        except SystemExit as end:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(end.code or 0)
        os._exit(99)
    print(process, flush=True)
"""


class Starter:
    """Starts commands, and knows how they end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def start(self, folder: Path) -> int:
        return int(self._ask(json.dumps([str(folder), arguments(folder, *SMALL, "--epochs", 4)])))

    def end(self) -> tuple[int, int]:
        """Wait until a process ends: its number, and its exit code. Until then no other process gets its number."""
        process, code = map(int, self._ask("end").split())
        return process, code

    def _ask(self, request: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(request + "\n")
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        return line


@pytest.fixture(scope="module")
def starter() -> Iterator[Starter]:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER], cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, bufsize=1, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        yield Starter(process)
        process.communicate()


@pytest.fixture(scope="module")
def undisturbed(starter: Starter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    write_pool(folder, ITEMS)
    starter.start(folder)
    assert starter.end()[1] in (0, 1), said(folder)
    return folder


def fresh(undisturbed: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in ("pool.jsonl", "vectors.npy"):
        shutil.copy(undisturbed / name, folder)
    return folder


def said(folder: Path) -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in folder.glob("said.*"))


def content(folder: Path) -> dict[str, Any]:
    """All that a run has written; the order of a checkpoint's parts differs from run to run."""
    with safe_open(folder / "kernel.checkpoint", framework="np") as file:
        parts = {name: file.get_tensor(name).tobytes() for name in file.keys()}  # noqa: SIM118
        checkpoint = (file.metadata(), parts)
    ours = ("said", "kernel.checkpoint")
    files = {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.startswith(ours)}
    return {**files, "kernel.checkpoint": checkpoint}


def kill(starter: Starter, folder: Path, rng: np.random.Generator) -> bool:
    """Start a run and kill it, at a moment of the start, of labelling, of fitting or of writing; False if it ended."""
    labels, checkpoint, kernel = (folder / f"kernel.{end}" for end in ("labels.jsonl", "checkpoint", "safetensors"))
    process = starter.start(folder)
    moment, lines = rng.integers(4), rng.integers(1, ITEMS)

    def is_reached() -> bool:
        if moment == 0:
            return True
        if moment == 1:
            return labels.exists() and labels.read_bytes().count(b"\n") >= lines
        return (checkpoint if moment == 2 else kernel).exists()

    begin = time.monotonic()
    while not is_reached() and time.monotonic() - begin < 60:
        time.sleep(0.0005)
    time.sleep(float(rng.uniform(0, 0.2 if moment == 0 else 0.02)))
    os.kill(process, signal.SIGKILL)
    return starter.end() == (process, -signal.SIGKILL)


def test_a_run_that_is_killed_at_any_moment_is_resumed_to_the_same_bytes(
    cases: Cases, starter: Starter, undisturbed: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    kills = 0
    for number, rng in cases(share=0.003, at_most=20):
        folder = fresh(undisturbed, tmp_path / str(number))
        while not kill(starter, folder, rng):
            shutil.rmtree(folder)
            fresh(undisturbed, folder)
        kills += 1
        starter.start(folder)
        assert starter.end()[1] in (0, 1), said(folder)
        assert content(folder) == content(undisturbed)
        shutil.rmtree(folder)
    record_property("kills", kills)
