"""One flow for sync and async code: a generator that yields each call that may wait, and two drivers that run it.

A flow is written once and yields a :class:`Step` for each call of a store or a model. The driver makes the call and
sends its result back, as httpx does for authentication:

>>> def search_and_count(search):
...     found = yield Step(lambda: search("a question"))
...     return len(found)
>>> run_flow(search_and_count(lambda query: ["one", "two"]))
2
>>> asyncio.run(run_flow_async(search_and_count(lambda query: ["one", "two"])))
2

Flows call each other with ``yield from``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..errors import remembered_line

T = TypeVar("T")


class Step(NamedTuple):
    """A call that may wait: ``run()`` in sync code; ``await arun()``, or ``run()`` in a thread, in async code."""

    run: Callable[[], Any]
    arun: Callable[[], Awaitable[Any]] | None = None


Flow = Generator[Step, Any, T]


class _End(NamedTuple):
    """The end of a flow, with its result."""

    result: Any


def run_flow(flow: Flow[T]) -> T:
    """The result of ``flow``. An exception of a step is raised in the flow, at the line that yielded the step."""
    step = _advance(flow)
    while isinstance(step, Step):
        step = _run(flow, step)
    result: T = step.result
    return result


async def run_flow_async(flow: Flow[T]) -> T:
    """The async version of :func:`run_flow`. Successive steps without an async call run in one thread."""
    with remembered_line():
        return await _arun(flow)


def together(flows: Sequence[Flow[T]]) -> Flow[list[T]]:
    """The results of flows that run side by side in async code, and one after another in sync code.

    >>> def search(query):
    ...     return (yield Step(lambda: query.upper()))
    >>> def search_twice():
    ...     return (yield from together([search("one"), search("two")]))
    >>> run_flow(search_twice()), asyncio.run(run_flow_async(search_twice()))
    (['ONE', 'TWO'], ['ONE', 'TWO'])
    """
    results: list[T] = []
    if len(flows) > 1:
        results = yield Step(lambda: list(map(run_flow, flows)), lambda: gather(map(_arun, flows)))
    elif flows:
        results = [(yield from flows[0])]
    return results


async def gather(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """The results, in order. If one fails, the others are cancelled, and have ended when the error is raised."""
    tasks = list(map(asyncio.ensure_future, awaitables))
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _arun(flow: Flow[T]) -> T:
    step = _advance(flow)
    while isinstance(step, Step):
        if step.arun is None:
            step = await asyncio.to_thread(_run_sync_steps, flow, step)
            continue
        try:
            answer = await step.arun()
        except Exception as error:
            step = _advance(flow, error=error)
        else:
            step = _advance(flow, answer)
    result: T = step.result
    return result


def _run_sync_steps(flow: Flow[Any], step: Step) -> Step | _End:
    following: Step | _End = step
    while isinstance(following, Step) and following.arun is None:
        following = _run(flow, following)
    return following


def _run(flow: Flow[Any], step: Step) -> Step | _End:
    try:
        answer = step.run()
    except Exception as error:
        return _advance(flow, error=error)
    return _advance(flow, answer)


def _advance(flow: Flow[Any], answer: Any = None, error: Exception | None = None) -> Step | _End:
    """Send the answer of a step, or throw its error, into the flow; the next step or the end."""
    try:
        return flow.send(answer) if error is None else flow.throw(error)
    except StopIteration as stop:
        return _End(stop.value)
