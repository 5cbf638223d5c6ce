from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from shared_core.selectors import _greedy, mmr, vrsd


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def either_way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run every test of a module twice: with the numpy loops, and with the loops that numba compiles."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            for module in (vrsd, mmr):
                patch.setattr(module, "compiled_loops", lambda: None)
        else:
            if find_spec("numba") is None:
                if "numba" in os.environ.get("SETSELECT_REQUIRE", "").split():
                    pytest.fail("numba is not installed")
                pytest.skip("needs numba")
            assert _greedy.compiled_loops() is not None
        yield request.param
