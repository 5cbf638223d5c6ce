"""BLAS on one thread, for work that is split by queries: more BLAS threads would compete for the same cores."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
# The number of BLAS threads belongs to the process. If calls overlap, the first one sets the number to 1, and the last
# one restores it.
_inside = 0
_restore: Callable[[], None] | None = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run BLAS on one thread until the last of the overlapping calls ends. Without threadpoolctl nothing changes."""
    global _inside, _restore
    with _lock:
        controller = _controller()
        if not _inside and controller is not None:
            _restore = controller.limit(limits=1, user_api="blas").restore_original_limits
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and _restore is not None:
                _restore()
                _restore = None


def _forget_threads() -> None:
    """In a forked child, where the threads that were inside no longer run: free the lock, and restore BLAS."""
    global _lock, _inside, _restore
    _lock, _inside = threading.Lock(), 0
    if _restore is not None:
        _restore()
        _restore = None


# Windows has no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


@functools.cache
def _controller() -> Any:
    # The controller is made once: its search through the process's libraries takes longer than a small batch.
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
