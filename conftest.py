"""Settings for all tests: none asks a model hub for files, and none sends usage data."""

import os
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["ANONYMIZED_TELEMETRY"] = "False"  # of Chroma

collect_ignore = ["shared_core/selectors/_compiled.py"] if find_spec("numba") is None else []


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Let a worker count the tests that it leaves out, because pytest-xdist counts only what ran."""
    vars(items[0].config).get("workeroutput", {})["deselected"] = len(items)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Put this number into the last line of the output."""
    left_out = getattr(node, "workeroutput", {}).get("deselected", 0)
    node.config.pluginmanager.getplugin("terminalreporter").stats["deselected"] = [SimpleNamespace()] * left_out
