"""The two loops of the selectors, numpy's and the compiled one, for tests that run both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from shared_core.selectors import greedy

# A fixture of a module that uses numpy's loops stays active while pytest-xdist runs tests that do not ask for it.
_compiled_loops = greedy.compiled_loops


def available_loops() -> tuple[str, ...]:
    """The loops that this environment has: numpy's, and numba's where it is installed and switched on."""
    if _compiled_loops() is not None:
        return "numpy", "compiled"
    if "numba" in os.environ.get("SETSELECT_REQUIRE", "").split():
        pytest.fail("numba is not installed or is switched off")
    return ("numpy",)


@contextmanager
def use_loops(way: str) -> Iterator[None]:
    """Let the selectors use the loops of numpy, or the compiled ones (see :func:`available_loops`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(greedy, "compiled_loops", _compiled_loops if way == "compiled" else lambda: None)
        yield
