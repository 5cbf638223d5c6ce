"""The progress bar of a long computation (tqdm)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from .._validation import import_library


@contextlib.contextmanager
def progress_bar(shown: bool, total: int, unit: str, what: str, done: int = 0) -> Iterator[Callable[..., None]]:
    """A function ``advance(count=1, **figures)`` that moves the bar and shows the figures beside it."""
    if not shown:
        yield lambda count=1, **figures: None
        return
    with import_library("tqdm", "train").tqdm(total=total, initial=done, unit=unit, desc=what) as bar:

        def advance(count: int = 1, **figures: str) -> None:
            bar.set_postfix(figures, refresh=False)
            bar.update(count)

        yield advance
