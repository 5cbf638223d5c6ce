"""Processes that fork while their other threads select, after a first selection with each method."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adversarial.conftest import Cases

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import os, signal, sys, threading
import numpy as np
from shared_core import select

rng = np.random.default_rng(int(sys.argv[1]))
query, vectors, methods = rng.normal(size=16), rng.normal(size=(60, 16)), ("similarity", "vrsd", "mmr", "ndpp")

def sets():
    return [select(query, vectors, 5, method).indices.tolist() for method in methods]

right, stop = sets(), threading.Event()

def select_on():
    while not stop.is_set():
        assert sets() == right

threads = [threading.Thread(target=select_on) for _ in range(int(rng.integers(1, 5)))]
for thread in threads:
    thread.start()
wrong = 0
for _ in range(5):
    child = os.fork()
    if not child:
        signal.alarm(30)  # ends a child that hangs
        os._exit(0 if sets() == right else 1)
    wrong += os.waitpid(child, 0)[1] != 0
stop.set()
sys.exit(wrong)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_children_that_are_forked_while_threads_select_select_the_same(cases: Cases) -> None:
    for number, rng in cases(share=0.003, at_most=30):
        seed = str(rng.integers(2**31))
        ended = subprocess.run([sys.executable, "-c", PROGRAM, seed], cwd=ROOT, capture_output=True, text=True)
        assert (ended.returncode, ended.stderr) == (0, ""), f"case {number}"


# Small batches, so that the other threads often hold the lock around the number of BLAS's threads.
BATCHES = """
import os, signal, sys, threading
import numpy as np
from shared_core import select_many

rng = np.random.default_rng(int(sys.argv[1]))
query, vectors = rng.normal(size=(1, 16)), rng.normal(size=(10, 16))

def sets():
    return select_many(query, vectors, 5, "similarity").indices.tolist()

right, stop = sets(), threading.Event()

def select_on():
    while not stop.is_set():
        assert sets() == right

threads = [threading.Thread(target=select_on) for _ in range(3)]
for thread in threads:
    thread.start()
wrong = 0
for _ in range(30):
    child = os.fork()
    if not child:
        signal.alarm(5)  # ends a child that hangs
        os._exit(0 if sets() == right else 1)
    wrong += os.waitpid(child, 0)[1] != 0
stop.set()
sys.exit(wrong)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_children_that_are_forked_during_batches_select_the_same(cases: Cases) -> None:
    for number, rng in cases(share=0.003, at_most=30):
        command = [sys.executable, "-c", BATCHES, str(rng.integers(2**31))]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert (ended.returncode, ended.stderr) == (0, ""), f"case {number}"
