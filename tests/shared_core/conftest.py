from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from shared_core.selectors import compiled


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def either_way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test of a module twice: by numpy's calls, and by the loops that numba compiles."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            patch.setattr(compiled, "_loops", lambda: None)
        else:
            if find_spec("numba") is None:
                if "numba" in os.environ.get("SETSELECT_REQUIRE", "").split():
                    pytest.fail("numba is not installed")
                pytest.skip("needs numba")
            # As a user gets them, and not the stand-in of another module.
            assert compiled._loops() is not None
            # So that rows of every size go the compiled way.
            patch.setattr(compiled, "MOST_BYTES", 1 << 40)
        yield request.param
