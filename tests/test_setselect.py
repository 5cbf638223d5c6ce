"""``import setselect`` and ``python -m setselect``."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import setselect
import shared_core


def test_it_gives_the_public_names_of_the_core() -> None:
    for name in shared_core.__all__:
        assert getattr(setselect, name) is getattr(shared_core, name)
    assert set(setselect.__all__) == {*shared_core.__all__, "__version__"}


def test_the_version_is_that_of_the_package() -> None:
    assert setselect.__version__ == version("setselect")


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    # In another folder: the installed module runs, not the file of this checkout.
    run = subprocess.run(
        [sys.executable, "-m", "setselect", "--help"], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    assert {"compare", "train", "batch"} <= set(run.stdout.split())
