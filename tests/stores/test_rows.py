"""One function for the sync and the async client of a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shared_core.stores.rows import Calls, TwoWays


@TwoWays
def total(call: Callable[[int], Any], numbers: list[int]) -> Calls[int]:
    """Add up what the calls give; a call that fails counts as what a second call gives."""
    result = 0
    for number in numbers:
        try:
            result += yield call(number)
        except KeyError:
            result += yield call(100)
    return result


def call(number: int) -> int:
    if number < 0:
        raise KeyError(number)
    if number == 0:
        raise ZeroDivisionError
    return number


async def acall(number: int) -> int:
    return call(number)


async def test_a_sync_and_an_async_client_give_the_same() -> None:
    for numbers, expected in (([], 0), ([1, 2], 3), ([1, -1, 2], 103)):
        assert total(call, numbers) == await total.awaited(acall, numbers) == expected


async def test_the_error_of_a_call_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        total(call, [1, 0])
    with pytest.raises(ZeroDivisionError):
        await total.awaited(acall, [1, 0])
