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


def run_flow(flow: Flow[T]) -> T:
    """The result of ``flow``. An exception of a step is raised in the flow, at the line that yielded the step."""
    answer, error = None, None
    try:
        while True:
            step = flow.send(answer) if error is None else flow.throw(error)
            answer, error = _run(step)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


async def run_flow_async(flow: Flow[T]) -> T:
    """The async version of :func:`run_flow`."""
    with remembered_line():
        return await _arun(flow)


async def _arun(flow: Flow[T]) -> T:
    answer, error = None, None
    try:
        while True:
            step = flow.send(answer) if error is None else flow.throw(error)
            if step.arun is None:
                answer, error = await asyncio.to_thread(_run, step)
                continue
            try:
                answer, error = await step.arun(), None
            except Exception as failure:
                error = failure
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def _run(step: Step) -> tuple[Any, Exception | None]:
    """The answer of a step, or its error. A thread of asyncio cannot raise StopIteration."""
    try:
        return step.run(), None
    except Exception as error:
        return None, error


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
