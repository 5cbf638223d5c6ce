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
    ``make test`` shares out 200 cases, and ``make fuzz`` CASES of them. ``cases(share)`` yields ``share`` times that
    number, at least one and no more than ``at_most``. The shares in test_core.py add up to about 1. In the other files
    a case takes far longer: a test there sets ``at_most``, and a share that leaves ``make test`` a second or less.

Which cases
    ``rng`` is ``numpy.random.default_rng`` of the seed (0 in ``make test``, SEED in ``make fuzz``), of the test's name
    with its parameters, and of ``number``. Take every random decision from ``rng`` and ``number``.

A failing case
    The report of a failed test ends with the one command that repeats that case and no other.

Three runs
    ``make fuzz`` runs this folder with numba, and test_core.py and test_adapters.py twice more: with
    NUMBA_DISABLE_JIT=1, and with the folder without_numba on PYTHONPATH, so that ``import numba`` fails. A test that
    starts a child process passes ``os.environ`` on, so that the child runs in the same way.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, TypeAlias
from unittest import mock

import numpy as np
import pytest

from shared_core.cli import main

Cases: TypeAlias = Callable[..., Iterator[tuple[int, np.random.Generator]]]

CASES = int(os.environ.get("FUZZ_CASES", "200"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))
CASE = os.environ.get("FUZZ_CASE")

# pytest imports doctest modules, and this one would take numba away from all tests.
collect_ignore = ["without_numba"]

_CURRENT = pytest.StashKey[int]()
# Pieces that break readers more often than random bytes do.
_NASTY = (b"\0", b"\xff", b"\xef\xbb\xbf", b"\\", b'"', b"\r\n", b"\t", b",", b";", b"{", b"]", b"null", b"1e999")
# Values, as JSON writes them, of every type, and such as break readers.
_VALUES = (
    "null", "true", "0", "-1", "5", "0.5", "NaN", "Infinity", "1e999", "-1e308", "9" * 25, "9" * 400, "9" * 5000,
    '""', '" "', '"x"', '"5"', '"\\ud800"', '"\\u0000\\u001b[31m"', '"\\u202e"', f'"{"y" * 9000}"', "[]", "{}", "[[]]",
    "[null]", '["x", 5]', '["x", "x"]', '{"x": {"y": []}}', '{"returned": "x", "selected": []}', "[" * 90 + "]" * 90,
    "[" * 2000 + "]" * 2000, "[" * 100_000, '{"x":' * 100_000, "oops",
)  # fmt: skip
# Lengths that are wrong in binary files.
_NUMBERS = (0, 1, 1 << 20, (1 << 31) - 1, (1 << 32) - 1, 1 << 33, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    """The data with one to four changes: of a bit, a byte or a number, of some bytes more or less, or of the end."""
    for _ in range(int(rng.integers(1, 5))):
        # Lengths and kinds are at the start or the end of many formats.
        edge = min(300, len(data))
        start = int(rng.choice([rng.integers(len(data)), rng.integers(edge), len(data) - 1 - rng.integers(edge)]))
        some = data[start : start + int(rng.integers(1, 40))]
        number = _NUMBERS[rng.integers(len(_NUMBERS))].to_bytes(8, "little")[: int(rng.choice([4, 8]))]
        pieces = (b"", some * 2, rng.bytes(len(some)), bytes([some[0] ^ 1 << int(rng.integers(8))]), number)
        piece = [*pieces, _NASTY[rng.integers(len(_NASTY))]][rng.integers(6)]
        rest = data[start + len(some if piece in pieces[:3] else piece) :] if rng.random() < 0.8 else data[start:]
        # One damage in ten cuts the end off.
        data = (data[:start] + piece + (b"" if rng.random() < 0.1 else rest)) or b"\0"
    return data


def change_values(data: bytes, rng: np.random.Generator) -> bytes:
    """JSON lines with one to three changes in a line: of a value, a key, or the depth at any place."""
    lines = data.splitlines()
    at = int(rng.choice([row for row, line in enumerate(lines) if line.strip()]))
    # In a list, the value itself can be changed like those inside it.
    line = [json.loads(lines[at])]
    for _ in range(int(rng.integers(1, 4))):
        holder, key = _find_place(line, rng)
        # A mark takes the place of a value that json cannot write.
        mark = f"\0{rng.integers(len(_VALUES))}\0"
        if isinstance(holder, dict) and rng.random() < 0.2:
            holder[mark] = holder.pop(key)
        else:
            holder[key] = mark if rng.random() < 0.9 else [holder[key]]
    text = json.dumps(line[0])
    for number, value in enumerate(_VALUES):
        mark = json.dumps(f"\0{number}\0")
        name = value if value.startswith('"') else json.dumps(value[:20])
        text = text.replace(f"{mark}:", f"{name}:").replace(mark, value)
    lines[at] = text.encode()
    return b"\n".join(lines) + b"\n"


def _find_place(line: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """A list or object inside the value of a line, and a key or a row of it."""
    holder, key = line, 0
    while isinstance(holder[key], (dict, list)) and holder[key] and rng.random() < 0.8:
        holder = holder[key]
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        key = keys[rng.integers(len(keys))]
    return holder, key


def run_program(*arguments: object) -> tuple[int, str, str]:
    """Run ``setselect`` in this process: its exit code, its output and its error output."""
    out, err = io.StringIO(), io.StringIO()
    command = ["setselect", *map(str, arguments)]
    with mock.patch.object(sys, "argv", command), redirect_stdout(out), redirect_stderr(err):
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), out.getvalue(), err.getvalue()


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> Cases:
    """``cases(share, at_most=None)`` yields ``(number, rng)`` for each case of this test."""
    name = int.from_bytes(hashlib.sha256(request.node.name.encode()).digest()[:8], "big")

    def draw(share: float, at_most: int | None = None) -> Iterator[tuple[int, np.random.Generator]]:
        wanted = max(1, round(CASES * share))
        numbers = range(min(wanted, at_most or wanted)) if CASE is None else (int(CASE),)
        for number in numbers:
            request.node.stash[_CURRENT] = number
            yield number, np.random.default_rng([SEED, name, number])

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
