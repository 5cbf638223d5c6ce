"""``setselect train`` that is killed: the labels and the checkpoint of its fit are resumed to the same bytes."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared_core.cli import main
from shared_core.learning import CoverageFeedback
from tests.adversarial.conftest import Cases
from tests.shared_core.cli.test_train import SMALL, arguments, write_pool

pytest.importorskip("matplotlib")
pytest.importorskip("torch")

from safetensors import safe_open

ITEMS = 40
# The server imports once and forks a process for each command, because most of a short run is imports.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["matplotlib.figure", "safetensors.torch", "shared_core.learning.fitting", __name__])


def train(folder: Path) -> None:
    """The command; its feedback is slow, so that labelling can be killed in the middle."""

    def slow(self: CoverageFeedback, pairs: Any) -> list[float]:
        time.sleep(0.001)
        return score(self, pairs)

    score, CoverageFeedback.score = CoverageFeedback.score, slow  # type: ignore[method-assign]
    output = os.open(folder / f"said.{os.getpid()}", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1), os.dup2(output, 2)
    sys.argv = ["setselect", *arguments(folder, *SMALL, "--epochs", 4)]
    main()


def start(folder: Path) -> BaseProcess:
    process = FORKS.Process(target=train, args=(folder,))
    process.start()
    return process


def finish(folder: Path) -> None:
    process = start(folder)
    process.join()
    assert process.exitcode in (0, 1), "\n".join(file.read_text(encoding="utf-8") for file in folder.glob("said.*"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    write_pool(folder, ITEMS)
    finish(folder)
    return folder


def fresh(undisturbed: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in ("pool.jsonl", "vectors.npy"):
        shutil.copy(undisturbed / name, folder)
    return folder


def content(folder: Path) -> dict[str, Any]:
    """All that a run has written; the order of a checkpoint's parts differs from run to run."""
    with safe_open(folder / "kernel.checkpoint", framework="np") as file:
        parts = {name: file.get_tensor(name).tobytes() for name in file.keys()}  # noqa: SIM118
        checkpoint = (file.metadata(), parts)
    ours = ("said", "kernel.checkpoint")
    files = {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.startswith(ours)}
    return {**files, "kernel.checkpoint": checkpoint}


def kill(folder: Path, rng: np.random.Generator) -> bool:
    """Start a run and kill it, at a moment of the start, of labelling, of fitting or of writing; False if it ended."""
    labels, checkpoint, kernel = (folder / f"kernel.{end}" for end in ("labels.jsonl", "checkpoint", "safetensors"))
    process = start(folder)
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
    if process.is_alive():
        process.kill()
    process.join()
    return process.exitcode == -signal.SIGKILL


def test_a_run_that_is_killed_at_any_moment_is_resumed_to_the_same_bytes(
    cases: Cases, undisturbed: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    kills = 0
    for number, rng in cases(share=0.003, at_most=20):
        folder = fresh(undisturbed, tmp_path / str(number))
        while not kill(folder, rng):
            shutil.rmtree(folder)
            fresh(undisturbed, folder)
        kills += 1
        finish(folder)
        assert content(folder) == content(undisturbed)
        shutil.rmtree(folder)
    record_property("kills", kills)
