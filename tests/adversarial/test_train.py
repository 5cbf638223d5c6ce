"""``setselect train`` that is killed: the labels and the checkpoint of its fit are resumed to the same bytes."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("torch")

from safetensors import safe_open

from shared_core.cli import main
from shared_core.learning import CoverageFeedback
from tests.adversarial.conftest import Cases
from tests.shared_core.cli.test_train import SMALL, arguments, write_pool

ITEMS = 40
# Its server imports once, and forks a process for each command: most of a short run is imports.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["matplotlib.figure", "pytest", "shared_core.learning.fitting", "typer"])


def train(folder: Path) -> None:
    """Run the command in a process of its own. Its feedback is slow, so that labelling can be killed in the middle."""
    score = CoverageFeedback.score

    def slow(self: CoverageFeedback, pairs: Any) -> Any:
        time.sleep(0.001)
        return score(self, pairs)

    with (
        (folder / f"said.{os.getpid()}").open("w", encoding="utf-8") as said,
        redirect_stdout(said),
        redirect_stderr(said),
        mock.patch.object(CoverageFeedback, "score", slow),
        mock.patch.object(sys, "argv", ["setselect", *arguments(folder, *SMALL, "--epochs", 4)]),
    ):
        main()


def start(folder: Path) -> Any:
    process = FORKS.Process(target=train, args=(folder,))
    process.start()
    return process


def run_to_the_end(folder: Path) -> None:
    process = start(folder)
    process.join()
    assert process.exitcode in (0, 1), said(folder)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    write_pool(folder, ITEMS)
    run_to_the_end(folder)
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
    process.kill()
    process.join()
    return bool(process.exitcode == -signal.SIGKILL)


def test_a_run_that_is_killed_at_any_moment_is_resumed_to_the_same_bytes(
    cases: Cases, undisturbed: Path, tmp_path: Path
) -> None:
    for number, rng in cases(share=0.003, at_most=20):
        folder = fresh(undisturbed, tmp_path / str(number))
        while not kill(folder, rng):
            shutil.rmtree(folder)
            fresh(undisturbed, folder)
        run_to_the_end(folder)
        assert content(folder) == content(undisturbed)
        shutil.rmtree(folder)
