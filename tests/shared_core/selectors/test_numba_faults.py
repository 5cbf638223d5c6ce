"""When numba fails, at import or at its first use, the selection is right all the same, and one warning says so.

Each case runs in a process of its own, on a copy of the package, so that its folder of machine code can be damaged.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shared_core
from shared_core.selectors import _greedy
from tests.shared_core.cases import use_loops

numba = pytest.importorskip("numba")
if numba.config.DISABLE_JIT:
    pytest.skip("numba is switched off", allow_module_level=True)

PACKAGE = Path(shared_core.__file__).parent

# Selections by every way into the compiled loops. ``start`` says which comes first and meets the fault.
SELECTIONS = """
import numpy as np
from shared_core import MMR, NDPP, VRSD, Candidates, select, select_many, select_stream

def select_all(start):
    rng = np.random.default_rng(0)
    queries, vectors = rng.normal(size=(6, 8)), rng.normal(size=(6, 30, 8))
    quality = rng.random((6, 30))
    ways = {
        "VRSD": lambda: select(queries[0], vectors[0], 5, "vrsd"),
        "VRSD after shown": lambda: VRSD(refine=True).select(Candidates(queries[1], vectors[1]), 5, shown=[3, 7]),
        "MMR": lambda: MMR(0.5, 0.5).select(Candidates(queries[2], vectors[2], quality=quality[2]), 5, shown=[1]),
        "NDPP": lambda: NDPP().select(Candidates(queries[3], vectors[3]), 5, shown=[2]),
        "select_many": lambda: select_many(queries, vectors, 5, "mmr", quality=quality, workers=3),
        "select_many, NDPP": lambda: select_many(queries, vectors, 5, workers=3),
        "select_stream": lambda: next(select_stream(queries, vectors[0], 5, "vrsd", workers=3)),
    }
    order = sorted(ways, key=lambda way: way != start)
    return {way: (found.indices.tolist(), found.gains.tolist()) for way in order for found in [ways[way]()]}
"""

CHILD = """
import json, os, resource, shutil, signal, sys, warnings
from pathlib import Path
exec(sys.argv[1])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    exec(sys.argv[2])
    first, second = select_all(sys.argv[3]), select_all(sys.argv[3])
print(json.dumps([first, second, [(w.category.__name__, str(w.message)) for w in caught]]))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, see :func:`copy_package`."""
    return copy_package(tmp_path)


def copy_package(folder: Path) -> Path:
    """A copy of the package in ``folder``, with the machine code that the first selection of a process reads."""
    _expected("VRSD")  # numba writes what it has not compiled yet
    shutil.copytree(PACKAGE, folder / "copy" / "shared_core", ignore=shutil.ignore_patterns("*.nb?"))
    machine_code = folder / "copy" / "shared_core" / "selectors" / "__pycache__"
    loops = _greedy.compiled_loops()
    assert loops is not None
    for file in Path(loops.vrsd.stats.cache_path).glob("_compiled.*.nb?"):
        shutil.copy2(file, machine_code)
    return folder / "copy"


def _expected(start: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(SELECTIONS, namespace)
    found: dict[str, Any] = namespace["select_all"](start)
    return found


def check(package: Path, start: str, fault: str, warnings: list[str]) -> None:
    """Run ``fault`` in a process, select twice by every way, and compare with numpy; ``warnings`` are what it warns."""
    warned = warnings_of(package, start, fault)
    assert len(warned) == len(warnings), warned
    for text, part in zip(warned, warnings, strict=True):
        assert part in text


def warnings_of(package: Path, start: str, fault: str) -> list[str]:
    """What a process warns of that runs ``fault`` and then selects twice by every way, as numpy does."""
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    child = subprocess.run(
        [sys.executable, "-c", CHILD, SELECTIONS, fault, start],
        capture_output=True,
        text=True,
        env=environment,
        cwd=package,
        timeout=300,
    )
    assert not child.returncode, child.stderr
    *answers, warned = json.loads(child.stdout)
    with use_loops("numpy"):
        expected = _expected(start)
    for found in answers:
        for way, (indices, gains) in expected.items():
            assert found[way][0] == indices, way
            np.testing.assert_allclose(found[way][1], gains, atol=1e-12, err_msg=way)
    assert {category for category, _ in warned} <= {"SetSelectWarning"}, warned
    return [text for _, text in warned]


def truncate(share: float) -> Callable[[bytes], bytes]:
    return lambda content: content[: int(len(content) * share)]


def test_without_a_fault_there_is_no_warning(package: Path) -> None:
    check(package, "VRSD", "", [])


@pytest.mark.parametrize(
    ("suffix", "damage", "start"),
    [
        ("nbi", truncate(0), "VRSD"),
        ("nbi", truncate(0.5), "MMR"),
        ("nbi", lambda _: b"no pickle" * 100, "select_many"),
        ("nbc", truncate(0), "select_stream"),
        ("nbc", truncate(0.5), "select_many, NDPP"),
    ],
    ids=["empty index", "half an index", "another file as the index", "empty code", "half of the code"],
)
def test_machine_code_that_cannot_be_read(
    package: Path, suffix: str, damage: Callable[[bytes], bytes], start: str
) -> None:
    for file in package.rglob(f"_compiled.*.{suffix}"):
        file.write_bytes(damage(file.read_bytes()))
    check(package, start, "", ["numba"])


IMPORT_NUMBA = "from shared_core.selectors import _compiled\nfolder = Path(_compiled.vrsd.stats.cache_path)\n"


@pytest.mark.parametrize(
    ("fault", "start"),
    [
        # As on a full disk: files can be created, but nothing can be written to them.
        ("resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))", "VRSD"),
        # As in a folder of another user. Permissions would not do, because tests may run as root.
        ("shutil.rmtree(folder); folder.touch()", "select_many"),
    ],
    ids=["full disk", "no folder"],
)
def test_machine_code_that_cannot_be_written(package: Path, fault: str, start: str) -> None:
    for file in package.rglob("_compiled.*.nb?"):
        file.unlink()
    check(package, start, IMPORT_NUMBA + fault, ["numba"])


# --- Ctrl-C ---------------------------------------------------------------------------------------

# Sends SIGINT, as Ctrl-C does, when numba's import asks for ``module``. The selection that it interrupts must end so.
INTERRUPT = """
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
# A shell's background jobs ignore Ctrl-C, and their children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    select([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], 1)
except KeyboardInterrupt:
    pass
else:
    sys.exit("the interruption did not arrive")
"""


@pytest.mark.parametrize(("module", "start"), [("numba.core.typing", "MMR"), ("llvmlite.binding", "select_many")])
def test_an_interrupted_import_of_numba(package: Path, module: str, start: str) -> None:
    check(package, start, SELECTIONS + INTERRUPT.format(module=module), ["its import was interrupted"])
