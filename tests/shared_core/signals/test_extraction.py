"""A model's answers about a query are checked and cached; every form of ``perspective=`` becomes a projection."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from shared_core import PerspectiveError, SetSelectWarning
from shared_core.signals.extraction import (
    PERSPECTIVE_PROMPT,
    PerspectiveExtractor,
    QueryParts,
    aread_perspective,
    make_pap,
    read_perspective,
)

QUERY = "Which letters argue against a lower speed limit?"
GOOD = QueryParts("a lower speed limit", "argue against")
NONE = QueryParts(QUERY, None)


class Model:
    """Gives every query the same answer and records the queries."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.queries: list[str] = []

    def split(self, query: str) -> Any:
        self.queries.append(query)
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


@pytest.mark.parametrize(("root", "perspective"), [(QUERY, None), ("", ""), (None, "  "), (QUERY, "—")])
def test_an_answer_without_a_perspective_is_valid(root: Any, perspective: Any) -> None:
    model = Model((root, perspective))
    extractor = PerspectiveExtractor(model.split)
    assert [extractor.extract(QUERY), extractor.extract(QUERY)] == [NONE, NONE]
    assert model.queries == [QUERY]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (("limit", "oppose"), r"words .*\(oppose\)"),
        (("limit", "limit speed lower a against argue letters which"), "whole query"),
        (("", "against"), "root is empty"),
        (("limit", ["against"]), "must be texts"),
        (None, "not a pair"),
    ],
)
async def test_an_invalid_answer_gives_no_perspective_and_a_warning_that_quotes_it(answer: Any, fault: str) -> None:
    model = Model(answer)
    extractor = PerspectiveExtractor(model.split, model.asplit)
    with pytest.warns(SetSelectWarning, match=fault) as caught:
        assert extractor.extract(QUERY) == NONE
    assert repr(answer) in str(caught[0].message)
    assert repr(QUERY) in str(caught[0].message)
    with pytest.warns(SetSelectWarning, match=fault):
        assert await extractor.aextract(QUERY) == NONE
    assert len(model.queries) == 2
    model.answer = GOOD
    assert extractor.extract(QUERY) == GOOD


@pytest.mark.parametrize(
    ("query", "perspective"),
    [
        ("news from CANADA, today", "From Canada"),
        ("Nachrichten von der Straße", "STRASSE"),
        ("what people don’t like", "don't like"),
        ("cafe\u0301 in Paris", "caf\u00e9"),
        pytest.param("news from Canada a" + "\u0300\u0316" * 200_000, "Canada", id="combining marks"),
        ("加拿大的新闻", "加拿大"),
        ("ข่าวจากแคนาดา", "แคนาดา"),
    ],
)
def test_case_punctuation_and_script_make_no_difference(query: str, perspective: str) -> None:
    assert PerspectiveExtractor(Model(("root", perspective)).split).extract(query).perspective == perspective


@pytest.mark.parametrize("query", ["", "  ", "ferries", "?! ferries, ferries"])
async def test_a_query_of_fewer_than_two_words_is_not_sent_to_the_model(query: str) -> None:
    model = Model(GOOD)
    extractor = PerspectiveExtractor(model.split)
    assert extractor.extract(query) == QueryParts(query, None)
    assert await extractor.aextract(query) == QueryParts(query, None)
    assert model.queries == []


@pytest.mark.parametrize(("cache_size", "asked"), [(2, "abcab"), (0, "abacab")])
def test_the_oldest_answer_is_dropped_first(cache_size: int, asked: str) -> None:
    model = Model(("root", None))
    extractor = PerspectiveExtractor(model.split, cache_size=cache_size)
    for letter in "abacab":
        extractor.extract(f"in {letter}")
    assert model.queries == [f"in {letter}" for letter in asked]


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


# --- the setting perspective= ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("perspective", "wanted"),
    [
        (None, None),
        (np.ones(3), None),
        ("against", QueryParts("", "against")),
        (lambda query: "for", QueryParts("", "for")),
        (lambda query: " ", None),
        (lambda query: None, None),
        (lambda query: GOOD, GOOD),
        (lambda query: NONE, None),
        (PerspectiveExtractor(lambda query: GOOD), GOOD),
        (PerspectiveExtractor(lambda query: (query, "")), None),
    ],
)
async def test_what_each_form_of_perspective_means(perspective: Any, wanted: QueryParts | None) -> None:
    assert read_perspective(perspective, QUERY) == wanted
    assert await aread_perspective(perspective, QUERY) == wanted


def test_a_function_that_returns_something_else_is_an_error() -> None:
    with pytest.raises(PerspectiveError, match=r"QueryParts.* 3"):
        read_perspective(lambda query: 3, QUERY)


def test_a_zero_difference_gives_no_projection() -> None:
    query = np.random.default_rng(1).standard_normal(6)
    for root in (query, query.astype(np.float32)):
        assert make_pap(at_comma, query, root.tolist(), perspective_vector="difference") is None
    with pytest.raises(PerspectiveError, match=r"shape \(6,\), the root's \(2,\)"):
        make_pap(at_comma, query, [1.0, 0.0], perspective_vector="difference")
