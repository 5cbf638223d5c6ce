"""A request that is parsed once, for as long as its settings are the same."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..selectors.base import Selector, resolve_selector
from ..selectors.kernels.low_rank import LinearKernel, LowRankKernel
from ._names import CHOICE_KEYS, all_parameters
from .request import Request

# A request keeps these as they are given, so that a change within them is seen without parsing again.
_KEPT = {"selector", "perspective", "quality", "costs", "source"}
_UNCHANGING = (type(None), bool, int, float, str, np.generic, LowRankKernel, LinearKernel)


class RequestMemory:
    """Parses settings, and not again where each is the very object that it was the last time.

    Serves one owner, whose settings may change between calls, in place too. Threads may share it. Copies and pickles
    of it are empty.

    Examples
    --------
    >>> memory = RequestMemory()
    >>> first, _ = memory.parse({"k": 3})
    >>> memory.parse({"k": 3})[0] is first, memory.parse({"k": 4})[0].k
    (True, 4)
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: _Parsed | None = None

    def parse(self, settings: Mapping[str, Any]) -> tuple[Request, dict[str, Any]]:
        """What :meth:`Request.parse` makes of these settings.

        Raises
        ------
        InvalidParameterError, BudgetError, PerspectiveError
            As :meth:`Request.parse`.
        """
        last = self._last
        if last is not None and last.still(settings):
            return last.request, last.rest.copy()
        witness = _witness()
        request, rest = Request.parse(settings)
        self._last = _Parsed(dict(settings), witness, request, rest.copy()) if _settled(settings) else None
        return request, rest

    def __reduce__(self) -> tuple[Any, ...]:
        return (RequestMemory, ())


class _Parsed(NamedTuple):
    """Settings, and what came of them."""

    settings: dict[str, Any]
    witness: Selector
    request: Request
    rest: dict[str, Any]

    def still(self, settings: Mapping[str, Any]) -> bool:
        """Whether parsing these settings would give the same."""
        return (
            list(settings) == list(self.settings)
            and all(map(operator.is_, settings.values(), self.settings.values()))
            and _witness() is self.witness
        )


def _witness() -> Selector:
    """An object that is another one once any selector has been registered: names may have got other meanings."""
    return resolve_selector("similarity", {})


def _settled(settings: Mapping[str, Any]) -> bool:
    """Whether what parsing reads cannot change without another object taking its place, as a list of ids can."""
    parameters = all_parameters()
    return all(
        name in _KEPT
        or isinstance(value, _UNCHANGING)
        or (name == "shown" and isinstance(value, tuple))
        or (name not in CHOICE_KEYS and name not in parameters)
        for name, value in settings.items()
    )
