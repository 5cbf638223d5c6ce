from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.shared_core.cases import UNUSABLE
from tests.shared_core.selectors.loops import available_loops, use_loops


@pytest.fixture(params=UNUSABLE)
def unusable(request: pytest.FixtureRequest) -> Any:
    """A value that looks like an array and cannot be read as one."""
    return UNUSABLE[request.param]()


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def either_way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run every test of a module twice: with the loops of numpy, and with those that numba compiles."""
    if request.param not in available_loops():
        pytest.skip("needs numba")
    with use_loops(request.param):
        yield request.param
