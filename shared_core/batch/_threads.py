"""Threads across queries, and no others: a BLAS thread more for each of them only gets in the way."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

_Result = TypeVar("_Result")

_lock = threading.Lock()
# The number of threads is the process's: of calls that overlap the first one pins and the last one restores.
_inside = 0
_restore: Callable[[], None] | None = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread, and as it was after the last of those who asked for it, on errors too.

    Without threadpoolctl nothing changes: numpy itself has no say in its BLAS.

    >>> with one_blas_thread():
    ...     pass
    """
    global _inside, _restore
    with _lock:
        if not _inside:
            controller = _controller()
            _restore = (
                None if controller is None else controller.limit(limits=1, user_api="blas").restore_original_limits
            )
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _restore is not None:
                _restore()
                _restore = None


@functools.cache
def _controller() -> Any:
    # Looking through the process's libraries takes longer than many a batch; numpy's own is among them by now.
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


def in_order(
    task: Callable[[range], _Result], pieces: Sequence[range], pool: ThreadPoolExecutor | None
) -> Iterator[_Result]:
    """``task`` of each piece, in their order, on the threads of ``pool``; the first error in that order is raised.

    >>> list(in_order(sum, [range(3), range(3, 5)], None))
    [3, 7]
    """
    if pool is None:
        yield from map(task, pieces)
        return
    futures = [pool.submit(task, piece) for piece in pieces]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()
        # What runs already is waited for: until then nothing of what it relies on may be given back.
        wait(futures)
