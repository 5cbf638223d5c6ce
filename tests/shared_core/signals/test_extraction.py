"""What a model says about a query is checked and kept; what fails projects nothing, with a warning."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from shared_core import InvalidParameterError, SetSelectWarning
from shared_core.signals.extraction import (
    PERSPECTIVE_PROMPT,
    PerspectiveExtractor,
    QueryParts,
)

QUERY = "Which letters argue against a lower speed limit?"
GOOD = QueryParts("a lower speed limit", "argue against")
NONE = QueryParts(QUERY, None)


class Model:
    """Answers every query alike and counts how often it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def split(self, query: str) -> Any:
        self.asked.append(query)
        return self.answer

    async def asplit(self, query: str) -> Any:
        return self.split(query)


class Answer(NamedTuple):
    note: str
    root: Any
    perspective: Any


def at_comma(query: str) -> list[str]:
    return query.split(", ")


@pytest.mark.parametrize(
    "answer", [GOOD, tuple(GOOD), list(GOOD), Answer("", *GOOD), (" a lower speed limit ", " argue against\n")]
)
async def test_a_valid_answer_in_any_form(answer: Any) -> None:
    model = Model(answer)
    assert PerspectiveExtractor(model.split).extract(QUERY) == GOOD
    assert await PerspectiveExtractor(model.split).aextract(QUERY) == GOOD
    assert await PerspectiveExtractor(model.split, model.asplit).aextract(QUERY) == GOOD


@pytest.mark.parametrize("perspective", [None, "", "  ", "—", "."])
@pytest.mark.parametrize("root", [QUERY, "", None])
def test_no_perspective_is_no_failure(root: Any, perspective: Any) -> None:
    model = Model((root, perspective))
    extractor = PerspectiveExtractor(model.split)
    assert [extractor.extract(QUERY), extractor.extract(QUERY)] == [NONE, NONE]
    assert model.asked == [QUERY]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (("limit", "oppose"), r"words that are not in the query \(oppose\)"),
        (("limit", "against higher limits"), r"\(higher, limits\)"),
        (("limit", "gain"), r"\(gain\)"),
        (("limit", QUERY), "whole query"),
        (("limit", "limit speed lower a against argue letters which"), "whole query"),
        (("", "against"), "root is empty"),
        ((" ", "against"), "root is empty"),
        ((None, "against"), "must be texts"),
        (("limit", ["against"]), "must be texts"),
        (None, "not a pair"),
        ("against", "not a pair"),
        (("limit",), "not a pair"),
    ],
)
async def test_an_invalid_answer_projects_nothing_and_is_quoted(answer: Any, fault: str) -> None:
    model = Model(answer)
    extractor = PerspectiveExtractor(model.split, model.asplit)
    with pytest.warns(SetSelectWarning, match=fault) as caught:
        assert extractor.extract(QUERY) == NONE
    assert repr(answer) in str(caught[0].message)
    assert repr(QUERY) in str(caught[0].message)
    with pytest.warns(SetSelectWarning, match=fault):
        assert await extractor.aextract(QUERY) == NONE
    assert len(model.asked) == 2
    model.answer = GOOD
    assert extractor.extract(QUERY) == GOOD


@pytest.mark.parametrize(
    ("query", "perspective"),
    [
        ("news from CANADA, today", "From Canada"),
        ("news (from Canada)", "canada"),
        ("Nachrichten von der Straße", "STRASSE"),
        ("what people don’t like", "don't like"),
        ("cafe\u0301 in Paris", "caf\u00e9"),
        ("加拿大的新闻", "加拿大"),
        ("ニュース、カナダの", "カナダ"),
        ("ข่าวจากแคนาดา", "แคนาดา"),
    ],
)
def test_case_punctuation_and_script_make_no_difference(query: str, perspective: str) -> None:
    assert PerspectiveExtractor(Model(("root", perspective)).split).extract(query).perspective == perspective


@pytest.mark.parametrize("query", ["", "  ", "ferries", "?! ferries, ferries"])
async def test_a_query_of_less_than_two_words_is_not_asked_about(query: str) -> None:
    model = Model(GOOD)
    extractor = PerspectiveExtractor(model.split)
    assert extractor.extract(query) == QueryParts(query, None)
    assert await extractor.aextract(query) == QueryParts(query, None)
    assert model.asked == []


async def test_a_failing_call_raises_as_it_is_and_is_not_kept() -> None:
    class Down(Exception):
        pass

    failures = [Down("first"), Down("second")]

    def split(query: str) -> Any:
        if failures:
            raise failures.pop(0)
        return GOOD

    extractor = PerspectiveExtractor(split)
    with pytest.raises(Down, match="first"):
        extractor.extract(QUERY)
    with pytest.raises(Down, match="second"):
        await extractor.aextract(QUERY)
    assert extractor.extract(QUERY) == GOOD


def test_the_least_recently_asked_for_goes_first() -> None:
    model = Model(("root", None))
    extractor = PerspectiveExtractor(model.split, cache_size=2)
    for query in ("in a", "in b", "in a", "in c", "in a", "in b"):
        extractor.extract(query)
    assert model.asked == ["in a", "in b", "in c", "in b"]


async def test_sync_and_async_share_what_is_kept() -> None:
    model = Model(GOOD)
    extractor = PerspectiveExtractor(model.split, model.asplit)
    extractor.extract(QUERY)
    assert await extractor.aextract(QUERY) == GOOD
    assert model.asked == [QUERY]


def test_a_cache_of_none_asks_each_time() -> None:
    model = Model(GOOD)
    extractor = PerspectiveExtractor(model.split, cache_size=0)
    assert [extractor.extract(QUERY), extractor.extract(QUERY)] == [GOOD, GOOD]
    assert len(model.asked) == 2


async def test_without_an_async_function_the_event_loop_stays_free() -> None:
    loop_thread, seen = threading.get_ident(), []

    def split(query: str) -> QueryParts:
        seen.append(threading.get_ident())
        return GOOD

    assert await PerspectiveExtractor(split).aextract(QUERY) == GOOD
    assert seen != [loop_thread]


def test_threads_and_tasks_share_an_extractor() -> None:
    extractor = PerspectiveExtractor(at_comma, cache_size=3)
    queries = [f"ferries, in winter {i % 7}" for i in range(2000)]

    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(extractor.extract, queries))
    assert parts == [QueryParts("ferries", query.split(", ")[1]) for query in queries]

    async def at_once() -> list[QueryParts]:
        return await asyncio.gather(*map(extractor.aextract, queries[:50]))

    assert asyncio.run(at_once()) == parts[:50]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_extract_the_same(copied: Callable[[Any], PerspectiveExtractor]) -> None:
    extractor = PerspectiveExtractor(at_comma, cache_size=5)
    before = extractor.extract("ferries, in winter")
    assert copied(extractor).extract("ferries, in winter") == before == ("ferries", "in winter")
    assert copied(extractor)._cache_size == 5


def test_constructor_refuses_what_cannot_serve() -> None:
    with pytest.raises(InvalidParameterError, match="split must be a function"):
        PerspectiveExtractor("split")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameterError, match="asplit must be an async function"):
        PerspectiveExtractor(at_comma, "asplit")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameterError, match="cache_size must be at least 0, got -1"):
        PerspectiveExtractor(at_comma, cache_size=-1)


def test_the_prompts_own_examples_are_valid_answers() -> None:
    lines = [line for line in PERSPECTIVE_PROMPT.splitlines() if line.startswith(("Query:", "Root:", "Perspective:"))]
    *examples, last = [line.partition(":")[2].strip() for line in lines]
    assert last == "{query}"
    triples = list(zip(examples[::3], examples[1::3], examples[2::3], strict=True))
    assert len(triples) == 3
    for query, root, perspective in triples:
        assert PerspectiveExtractor(lambda _, r=root, p=perspective: (r, p)).extract(query) == QueryParts(  # type: ignore[misc]
            root, perspective or None
        )
        assert root in query
        assert perspective in query
