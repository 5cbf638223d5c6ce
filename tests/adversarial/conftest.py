"""Random cases: few in ``make test``, many in ``make fuzz CASES=300000 SEED=1``, and how to repeat a single case.

A test asks the fixture ``cases`` for numbered random generators, and makes one case from each of them::

    def test_vrsd_equals_its_reference(cases: Cases) -> None:
        for number, rng in cases(share=0.2):
            case = draw(number, rng)
            VRSD_GREEDY.check(case.query, case.vectors, case.k, about=case)

    def test_a_killed_batch_is_resumed(cases: Cases, tmp_path: Path) -> None:
        for number, rng in cases(share=0.003, at_most=50):
            folder = tmp_path / str(number)
            ...

How many cases
    ``make test`` shares out 200 cases, and ``make fuzz`` CASES of them (300,000 unless told otherwise).
    ``cases(share)`` yields ``share`` times that number, but at least one case, and no more than ``at_most``.
    The shares of the tests in test_core.py add up to 1 or a little more, because a case of the core takes less than a
    millisecond. In the other files a case takes far longer: a test there sets ``at_most``, and a share that leaves
    ``make test`` a second or less. The example above has one kill in ``make test``, and 50 in ``make fuzz``.

Which cases
    ``rng`` is ``numpy.random.default_rng`` of the seed, of the test's name with its parameters, and of ``number``.
    The seed is 0 in ``make test``, and SEED in ``make fuzz`` (the date, unless told otherwise). Take every random
    decision from ``rng`` and ``number``. A test loops over ``cases`` once.

A failing case
    The report of a failed test ends with the one command that repeats that case and no other.

Three runs
    ``make fuzz`` runs this folder with numba. It then runs the tests of selections (test_core.py, test_adapters.py)
    twice more: with NUMBA_DISABLE_JIT=1, and with the folder without_numba on PYTHONPATH, so that
    ``import numba`` fails (see sitecustomize.py there). Files, locks and resumption do not depend on numba. A test that
    starts a child process passes ``os.environ`` on, so that the child runs in the same way.

The variables behind all this: FUZZ_CASES, FUZZ_SEED, and FUZZ_CASE (the number of the single case to run).
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeAlias

import numpy as np
import pytest

Cases: TypeAlias = Callable[..., Iterator[tuple[int, np.random.Generator]]]

CASES = int(os.environ.get("FUZZ_CASES", "200"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
CASE = os.environ.get("FUZZ_CASE")

# pytest imports doctest modules, and this one would take numba away from all tests.
collect_ignore = ["without_numba"]

_CURRENT = pytest.StashKey[int]()


def count(share: float, at_most: int | None = None) -> int:
    """How many cases a test runs. For hypothesis: ``@settings(max_examples=count(0.1))``."""
    wanted = max(1, round(CASES * share))
    return wanted if at_most is None else min(wanted, at_most)


@pytest.fixture
def cases(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Cases:
    """``cases(share, at_most=None)`` yields ``(number, rng)`` for each case of this test."""
    name = int.from_bytes(hashlib.sha256(request.node.name.encode()).digest()[:8], "big")

    def draw(share: float, at_most: int | None = None) -> Iterator[tuple[int, np.random.Generator]]:
        numbers = range(count(share, at_most)) if CASE is None else (int(CASE),)
        for number in numbers:
            request.node.stash[_CURRENT] = number
            yield number, np.random.default_rng([SEED, name, number])
        record_property("cases", len(numbers))

    return draw


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the command that repeats the failed case to the report of a test."""
    report = yield
    if report.failed and _CURRENT in item.stash:
        variables: dict[str, object] = {"FUZZ_SEED": SEED, "FUZZ_CASE": item.stash[_CURRENT]}
        variables |= {name: os.environ[name] for name in ("NUMBA_DISABLE_JIT", "PYTHONPATH") if name in os.environ}
        command = [os.path.relpath(sys.executable), "-m", "pytest", "-n0", item.nodeid]
        told = [f"{name}={shlex.quote(str(value))}" for name, value in variables.items()] + [shlex.join(command)]
        report.sections.append(("this command repeats the failed case", " ".join(told)))
    return report


def pytest_report_header() -> str:
    return f"{CASES:,} cases, seed {SEED}, {_numba()}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many cases each test ran. ``make test`` does not show it, because it does not name this folder."""
    run: dict[str, int] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            properties = dict(getattr(report, "user_properties", ()))
            if "cases" in properties:
                run[report.nodeid] = properties["cases"]
    terminalreporter.section(f"{sum(run.values()):,} cases in {len(run)} tests, seed {SEED}, {_numba()}")
    for nodeid, number in sorted(run.items()):
        terminalreporter.write_line(f"{number:>11,}  {nodeid}")


def _numba() -> str:
    """Whether this run uses numba, found out by a look at numba and not at the environment variables."""
    try:
        import numba
    except ImportError:
        return "without numba"
    return "numba switched off" if numba.config.DISABLE_JIT else f"numba {numba.__version__}"
