"""The names by which ``shown`` recognises texts, and the calls of one step of an agent."""

from __future__ import annotations

import asyncio

import pytest

from shared_core.retrieval import tools
from shared_core.retrieval.pool import is_name_of_text, name_items, name_of_text
from shared_core.retrieval.tools import ParallelCalls, remember_steps


@pytest.mark.parametrize("text", ["B", "", "é", "\ud800", "\0", "1" * 1_000_000])
def test_the_name_of_a_text_is_short_and_its_own(text: str) -> None:
    assert is_name_of_text(name_of_text(text))
    assert len(name_of_text(text)) < 60
    assert name_of_text(text) == name_of_text(text)
    assert name_of_text(text) != name_of_text(text + " ")


def test_items_have_the_names_of_their_texts_or_their_ids() -> None:
    one, two = name_of_text("one"), name_of_text("two")
    ids, texts = ["a", None, 3, None], ["one", "two", "", ""]
    assert name_items(ids, texts, [None] * len(texts)) == [one, two, "3"]
    assert name_items(["a + b"], ["one two"], [{"a": one, "b": two}]) == [one, two]


def test_a_call_that_runs_again_replaces_its_names() -> None:
    calls = ParallelCalls()
    calls.names |= {"first": ["a", "b"], "second": ["c"]}
    assert calls.names_of_others("first") == ["c"]
    assert calls.names_of_others("third") == ["a", "b", "c"]


def test_the_calls_of_a_step_are_one_object_until_many_later_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "_STEPS", 2)
    calls_of = remember_steps()
    first = calls_of("first")
    assert calls_of("second") is not first
    assert calls_of("first") is first
    calls_of("third")
    assert calls_of("first") is first
    calls_of("fourth")
    calls_of("fifth")
    assert calls_of("first") is not first


def test_one_object_serves_several_event_loops() -> None:
    calls, order = ParallelCalls(), []

    async def call(number: int) -> None:
        async with calls.alone_async:
            order.append(number)
            await asyncio.sleep(0)
            order.append(number)

    async def both() -> None:
        await asyncio.gather(call(1), call(2))

    for _ in range(2):
        asyncio.run(both())
    assert order == [1, 1, 2, 2] * 2
