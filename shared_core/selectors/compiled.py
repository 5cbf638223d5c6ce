"""Whether a choice is made by compiled loops: where numba is installed, and the loops are faster than numpy's calls."""

from __future__ import annotations

import functools
import warnings
from types import ModuleType

from ..errors import SetSelectWarning
from ._greedy import Pool

# VRSD looks at every candidate in every step. Against numpy on one BLAS thread the loops are 1.1 times as fast here and
# 1.0 to 1.1 times beyond; against two threads on idle cores they are .6 to .9 times as fast here, and .5 to .7 beyond.
MOST_BYTES = 8 << 20
# Where relevance outweighs novelty nearly all are passed over, and looking at each one's bound at every pick is what
# is left of the loops' time: at 50,000 the front of :mod:`shared_core.selectors.lazy` takes half of it.
MOST_BOUNDS = 20_000


def loops_for_sums(nbytes: int, pool: Pool | None = None) -> ModuleType | None:
    """The compiled loops, or None: VRSD's choice among so many bytes of vectors is made by numpy.

    Limits are kept by numpy alone.
    """
    return None if nbytes > MOST_BYTES or (pool is not None and pool.limited) else _loops()


def loops_for_scores(n: int, relevance: float, novelty: float, pool: Pool | None = None) -> ModuleType | None:
    """As :func:`loops_for_sums` for MMR with these two weights, whose loop passes over most of ``n`` candidates."""
    by_numpy = n > MOST_BOUNDS and relevance >= 2 * novelty
    return None if by_numpy or (pool is not None and pool.limited) else _loops()


def is_there() -> bool:
    """Whether there are compiled loops at all."""
    return _loops() is not None


@functools.cache
def _loops() -> ModuleType | None:
    # Not at import time: numba takes .2 to .4 seconds, and the first choice of a kind three more, once a machine.
    try:
        import numba

        # As plain Python the loops would take a thousand times as long.
        if getattr(numba.config, "DISABLE_JIT", 0):
            return None
        from . import _compiled as loops
    except Exception as error:
        # Any exception: a numpy that numba does not know yet is an ImportError, a broken library an OSError.
        if not (isinstance(error, ModuleNotFoundError) and error.name == "numba"):
            warnings.warn(
                f"numba is installed but cannot be used ({type(error).__name__}: {error}): numpy alone chooses, which "
                "is slower. Mend or uninstall numba",
                SetSelectWarning,
                stacklevel=2,
            )
        return None
    return loops
