"""Whether a choice is made by compiled loops: where numba is installed, and the loops are faster than numpy's calls."""

from __future__ import annotations

import functools
import importlib
from importlib.util import find_spec
from typing import Any

from .candidates import Candidates
from .pool import Pool

# VRSD looks at every candidate in every step, which BLAS does faster than a loop once rows outweigh calls.
MOST_BYTES = 16 << 20


@functools.cache
def _loops() -> Any:
    # Not at import time: numba takes a third of a second, and the first choice of a kind a second more, once a machine.
    if find_spec("numba") is None:
        return None
    return importlib.import_module("shared_core.loops")


def loops_for_sums(candidates: Candidates, pool: Pool) -> Any:
    """The module of compiled loops, or None: VRSD's choice is made by numpy. Limits are kept by numpy alone."""
    return None if pool.limited else loops_for_size(candidates.rows_and_inverse()[0].nbytes)


def loops_for_scores(pool: Pool) -> Any:
    """As :func:`loops_for_sums` for MMR, whose loop passes over most candidates, however many."""
    return None if pool.limited else _loops()


def loops_for_size(nbytes: int) -> Any:
    """The compiled loops, or None where numba is missing or there are so many bytes of rows."""
    return _loops() if nbytes <= MOST_BYTES else None


def loops_for_many(nbytes: int) -> Any:
    """As :func:`loops_for_size`, the loops over queries."""
    return None if loops_for_size(nbytes) is None else importlib.import_module("shared_core.many_loops")
