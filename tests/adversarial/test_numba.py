"""Machine code that is cut off or missing, and Ctrl-C at any moment of the first selection: the answers are right."""

from __future__ import annotations

from pathlib import Path

from tests.adversarial.conftest import Cases
from tests.shared_core.selectors.test_numba_faults import SELECTIONS, copy_package, warnings_of

WAYS = ("VRSD", "VRSD after shown", "MMR", "NDPP", "select_many", "select_many, NDPP", "select_stream")

# The interruption may come before, during or after the selection, or inside of a callback that ignores it.
INTERRUPT = """
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    signal.setitimer(signal.ITIMER_REAL, {seconds})
    select_all({start!r})
    signal.setitimer(signal.ITIMER_REAL, 0)
except KeyboardInterrupt:
    pass
"""


def test_cut_files_and_interruptions_leave_the_answers_right(cases: Cases, tmp_path: Path) -> None:
    for number, rng in cases(share=0.0001, at_most=20):
        package = copy_package(tmp_path / str(number))
        for file in package.rglob("_compiled.*.nb?"):
            if number % 2 and rng.random() < 0.1:
                file.write_bytes(file.read_bytes()[: rng.integers(file.stat().st_size)])
        start = WAYS[rng.integers(len(WAYS))]
        interrupt = SELECTIONS + INTERRUPT.format(seconds=rng.uniform(0.01, 1), start=start)
        assert len(warnings_of(package, start, "" if number % 2 else interrupt)) <= 1
