from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.shared_core.cases import loops, ways


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def either_way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run every test of a module twice: with the loops of numpy, and with those that numba compiles."""
    if request.param not in ways():
        pytest.skip("needs numba")
    with loops(request.param):
        yield request.param
