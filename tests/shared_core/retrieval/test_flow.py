"""Flows: generators that yield each step that may wait, with a driver for sync and one for async code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from shared_core.retrieval.flow import Flow, Step, run_flow, run_flow_async, together


async def both_ways(make: Callable[[], Flow[Any]]) -> list[Any]:
    return [run_flow(make()), await run_flow_async(make())]


async def test_a_flow_gets_the_result_of_each_step() -> None:
    def flow() -> Flow[list[int]]:
        first = yield Step(lambda: 1)
        second = yield Step(lambda: first + 1)
        return [first, second]

    assert await both_ways(flow) == [[1, 2], [1, 2]]


@pytest.mark.parametrize("raised", [KeyError, StopIteration])
async def test_what_a_step_raises_is_raised_where_it_was_yielded(raised: type[Exception]) -> None:
    def fail() -> None:
        raise raised

    def careful() -> Flow[str]:
        try:
            yield Step(fail)
        except raised:
            yield Step(lambda: None)
            return "handled"
        return "nothing was raised"

    def careless() -> Flow[None]:
        yield Step(fail)

    assert await both_ways(careful) == ["handled", "handled"]
    # Python turns a StopIteration that leaves a generator into a RuntimeError.
    leaves = RuntimeError if raised is StopIteration else raised
    with pytest.raises(leaves):
        run_flow(careless())
    with pytest.raises(leaves):
        await asyncio.wait_for(run_flow_async(careless()), timeout=5)


async def test_async_code_awaits_a_step_or_runs_successive_ones_in_one_thread() -> None:
    started, may_end = threading.Event(), threading.Event()

    def wait() -> threading.Thread:
        started.set()
        assert may_end.wait(5)
        return threading.current_thread()

    async def awaited() -> threading.Thread:
        return threading.current_thread()

    def flow() -> Flow[list[threading.Thread]]:
        return [(yield Step(wait)), (yield Step(threading.current_thread)), (yield Step(wait, awaited))]

    task = asyncio.ensure_future(run_flow_async(flow()))
    while not started.is_set():
        await asyncio.sleep(0)  # The loop goes on while the step waits.
    may_end.set()
    first, second, on_loop = await task
    assert threading.current_thread() not in (first, second)
    assert on_loop is threading.current_thread()
    assert run_flow(flow()) == [threading.current_thread()] * 3


async def test_flows_run_side_by_side_in_async_code_and_one_after_another_in_sync_code() -> None:
    order: list[str] = []

    def one(name: str, *, fails: bool = False) -> Flow[str]:
        async def wait() -> str:
            await asyncio.sleep(0)
            return step()

        def step() -> str:
            order.append(name)
            if fails:
                raise KeyError(name)
            return name

        for _ in range(2):
            yield Step(step, wait)
        return name

    def all_of(*flows: Flow[str]) -> Flow[list[str]]:
        found: list[str] = yield from together(flows)
        return found

    assert await both_ways(lambda: all_of(one("a"), one("b"))) == [["a", "b"]] * 2
    assert order == ["a", "a", "b", "b", *["a", "b"] * 2]
    with pytest.raises(KeyError, match="b"):
        await both_ways(lambda: all_of(one("a"), one("b", fails=True)))
    with pytest.raises(KeyError, match="b"):
        await run_flow_async(all_of(one("a"), one("b", fails=True)))


async def test_if_one_of_several_flows_fails_the_others_are_cancelled() -> None:
    ended: list[str] = []

    async def fail() -> None:
        await asyncio.sleep(0)
        raise KeyError("b")

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)  # The connection is closed, for example.
            ended.append("a")

    def one(step: Callable[[], Any]) -> Flow[None]:
        yield Step(lambda: None, step)

    def both() -> Flow[list[None]]:
        return (yield from together([one(wait), one(fail), one(wait)]))

    with pytest.raises(KeyError, match="b"):
        await asyncio.wait_for(run_flow_async(both()), timeout=5)
    assert ended == ["a", "a"]
    assert len(asyncio.all_tasks()) == 1
