"""Settings for the tests of stores."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # These tests often select all rows of a store on purpose, to see what it returns of them.
    all_selected = pytest.mark.filterwarnings("ignore:.*all of them are selected:shared_core.errors.SetSelectWarning")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(all_selected)
