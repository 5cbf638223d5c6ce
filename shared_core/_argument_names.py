"""What messages call an argument: its name in Python, or in a command the option that sets it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

_names: ContextVar[Mapping[str, str]] = ContextVar("_names", default=MappingProxyType({}))


@contextmanager
def rename_arguments(names: Mapping[str, str]) -> Iterator[None]:
    """Let messages call arguments by these names.

    >>> with rename_arguments({"fetch_k": "--fetch-k"}):
    ...     argument_name("fetch_k"), argument_name("k")
    ('--fetch-k', 'k')
    """
    token = _names.set({**_names.get(), **names})
    try:
        yield
    finally:
        _names.reset(token)


def argument_name(name: str) -> str:
    """The name of this argument in a message."""
    return _names.get().get(name, name)
